"""Generations archived: what an archive holds, that nothing counts as archived before it is proved, and what is found
out later."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assistant.core.archives import ArchiveEntry
from assistant.core.errors import ArchiveUnavailable, CorruptStore, UsageError
from assistant.core.messages import Message
from assistant.core.sessions import GenerationEnd
from assistant.store.archive.archive import StoredArchive
from assistant.store.archive.format import check_archive, read_header, read_lines
from assistant.store.log.reader import session_folder_name
from tests.support.archive_storage import (
    FAULTY_URL,
    IDENTITY_KEY,
    FaultyFileSystem,
    bit_flipped,
    open_archive,
    permission_denied,
    truncated,
)
from tests.support.imports import import_messages
from tests.support.store_home import NOW, StoreHome, blank_words

SAYS_OTHERWISE = "the message log does not say the same; `assistant verify` tells whether it is whole"
HOSTILE = "peer:telegram:../../etc/passwd\n/../*?[a]"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    FaultyFileSystem.reset()
    with_stores = StoreHome(tmp_path).open()
    yield with_stores
    with_stores.close()


def stored(archive: StoredArchive, session: str = "main", note: str = "Open: the boat.", **more: Any) -> ArchiveEntry:
    return archive.store(session, 1, NOW, handover=note, summary="We spoke of boats.", reason="manual", **more)


def archived_lines(home: StoreHome, one: ArchiveEntry) -> list[bytes]:
    with gzip.open(home.path / one.url) as file:
        return file.readlines()


def test_an_archive_holds_a_header_and_the_logs_own_lines(home: StoreHome) -> None:
    home.chat(3)
    one = stored(open_archive(home))
    header, *lines = archived_lines(home, one)
    assert b"".join(lines) == home.log_bytes()
    told = json.loads(header)
    assert (told["kind"], told["v"], told["session"], told["generation"], told["scope"]) == (
        "archive",
        1,
        "main",
        1,
        "owner",
    )
    assert (told["records"], told["from_seq"], told["to_seq"], told["start"]) == (6, 1, 6, 0)
    assert (told["handover"], told["summary"], told["reason"]) == ("Open: the boat.", "We spoke of boats.", "manual")
    assert one.url == "archive/main/1.jsonl.gz"
    assert (one.records, one.encrypted, one.archived_at) == (6, False, NOW)
    assert one.bytes == (home.path / one.url).stat().st_size


def test_the_same_generation_again_finds_what_is_there(home: StoreHome) -> None:
    home.chat(2)
    archive = open_archive(home, FAULTY_URL)
    first = stored(archive)
    FaultyFileSystem.calls.clear()
    assert stored(open_archive(home, FAULTY_URL)) == first
    assert "write" not in {step for step, _ in FaultyFileSystem.calls}
    assert archive.list_archives() == [archive.find_entry("main", 1)] == [first]


def test_a_generation_that_went_on_replaces_its_archive(home: StoreHome) -> None:
    home.chat(2)
    first = stored(open_archive(home))
    home.say("one more", "yes")
    second = stored(open_archive(home))
    assert (first.records, second.records) == (4, 6)
    assert open_archive(home).list_archives() == [second]
    assert open_archive(home).verify("main", 1) == []


def test_an_archive_whose_row_a_crash_took_is_found_again(home: StoreHome) -> None:
    home.chat(2)
    first = stored(open_archive(home, FAULTY_URL))
    with home.db.write() as db:
        db.execute("DELETE FROM archives")
    FaultyFileSystem.calls.clear()
    assert stored(open_archive(home, FAULTY_URL)) == first
    assert "write" not in {step for step, _ in FaultyFileSystem.calls}


def test_an_archive_that_was_spoiled_meanwhile_is_made_again(home: StoreHome) -> None:
    home.chat(2)
    archive = open_archive(home)
    first = stored(archive)
    (home.path / first.url).write_bytes(b"nothing")
    assert stored(archive).sha256 == first.sha256
    assert archive.verify("main", 1) == []


def test_a_generation_without_a_record_has_no_archive(home: StoreHome) -> None:
    home.chat(1)
    archive = open_archive(home)
    assert archive.store("main", 2, NOW, handover="", summary="", reason="manual").url == ""
    assert archive.list_archives() == []
    assert not (home.path / "archive").exists()


@pytest.mark.parametrize("fault", [permission_denied, truncated, bit_flipped], ids=["refused", "cut", "turned"])
@pytest.mark.parametrize("step", ["write", "read", "move"])
def test_what_does_not_come_back_as_it_was_meant_has_no_row(
    home: StoreHome, step: str, fault: Callable[[str, Any], Any]
) -> None:
    home.chat(2)
    before = home.log_bytes()
    FaultyFileSystem.faults[step] = permission_denied if step == "move" else fault
    with pytest.raises(ArchiveUnavailable, match=r"Nothing was (cleared|changed)"):
        stored(open_archive(home, FAULTY_URL))
    assert open_archive(home, FAULTY_URL).list_archives() == []
    assert home.log_bytes() == before
    FaultyFileSystem.faults.clear()
    assert stored(open_archive(home, FAULTY_URL)).records == 4


@pytest.mark.parametrize("step", ["write", "read", "move", "list", "row"])
def test_cut_off_at_any_step_the_next_attempt_makes_it_whole(home: StoreHome, step: str) -> None:
    """A process that dies leaves what was done until then: a part, or an object without a row."""
    home.chat(2)
    for last in range(1, 4):
        steps = iter(range(1, 10))

        def dies(path: str, given: Any, left: Iterator[int] = steps, last: int = last) -> Any:
            return permission_denied(path, given) if next(left) >= last else given

        FaultyFileSystem.faults[step] = dies
        with suppress(ArchiveUnavailable):
            stored(open_archive(home, FAULTY_URL))
        FaultyFileSystem.faults.clear()
        if step == "row":
            with home.db.write() as db:
                db.execute("DELETE FROM archives")
        home.say("more", "yes")
        assert stored(open_archive(home, FAULTY_URL)).records == 4 + 2 * last
        assert open_archive(home, FAULTY_URL).verify("main", 1) == []
        assert [path.rpartition("/")[2] for path in FaultyFileSystem.store] == ["1.jsonl.gz"]


def test_what_a_crash_left_elsewhere_goes_with_the_next_archive(home: StoreHome) -> None:
    home.chat(1)
    FaultyFileSystem.faults["move"] = permission_denied
    with suppress(ArchiveUnavailable):
        stored(open_archive(home, FAULTY_URL))
    FaultyFileSystem.faults.clear()
    home.say("another conversation", "yes", "thread:boat")
    stored(open_archive(home, FAULTY_URL), "thread:boat")
    assert [path.rpartition("shelf/")[2] for path in FaultyFileSystem.store] == ["thread%3Aboat/1.jsonl.gz"]


def test_what_a_crash_left_in_the_homes_own_folder_is_tidied_away(home: StoreHome) -> None:
    home.chat(1)
    archive = open_archive(home)
    one = stored(archive)
    left = home.path / "archive" / ".part" / "main.2.jsonl.gz"
    left.write_bytes(b"half")
    archive.remove_partial()
    assert sorted(path for path in (home.path / "archive").rglob("*") if path.is_file()) == [home.path / one.url]


def test_a_log_that_is_not_whole_is_not_archived(home: StoreHome) -> None:
    home.chat(2)
    home.log.path("main").write_bytes(home.log_bytes().replace(b"question 1", b"question 7"))
    with pytest.raises(CorruptStore, match=r"the words of record 3 were changed. Nothing was archived or cleared"):
        stored(open_archive(home))
    assert open_archive(home).list_archives() == []


def test_another_homes_archive_is_never_replaced(home: StoreHome, tmp_path: Path) -> None:
    home.chat(1)
    other = StoreHome(tmp_path / "other").open()
    other.chat(2)
    theirs = stored(open_archive(other, FAULTY_URL))
    with pytest.raises(ArchiveUnavailable, match="as another data folder would put there"):
        stored(open_archive(home, FAULTY_URL))
    assert open_archive(other, FAULTY_URL).verify("main", 1) == []
    assert theirs.records == 4
    other.close()


def reset(home: StoreHome, archive: StoredArchive, generation: int) -> ArchiveEntry:
    one = archive.store("main", generation, NOW, handover="", summary="", reason="manual")
    home.conversation.begin_next_generation(GenerationEnd("main", generation, one.to_seq, "It ended.", "manual"), NOW)
    return one


def test_a_home_that_was_set_back_goes_on_beside_what_it_had_archived_later(home: StoreHome, tmp_path: Path) -> None:
    home.chat(1)
    home.close()
    shutil.copytree(home.path, tmp_path / "earlier")
    home.open()
    home.say("zebra", "yes")
    reset(home, open_archive(home, FAULTY_URL), 1)
    home.chat(1)
    reset(home, open_archive(home, FAULTY_URL), 2)
    before = dict(FaultyFileSystem.store)
    back = StoreHome(tmp_path / "earlier", externals=home.externals).open()
    archive = open_archive(back, FAULTY_URL)
    back.say("mango", "yes")
    kept = [reset(back, archive, 1)]
    back.chat(1)
    kept.append(reset(back, archive, 2))
    assert [one.url for one in kept] == [f"{FAULTY_URL}/main/1-2.jsonl.gz", f"{FAULTY_URL}/main/2-2.jsonl.gz"]
    assert archive.verify_all(remote=True) == [] and open_archive(home, FAULTY_URL).verify_all(remote=True) == []
    assert all(FaultyFileSystem.store[name].getvalue() == one.getvalue() for name, one in before.items())
    assert "mango" in [record.content for record in archive.read_records("main", 1)]
    with archive.open_writer() as db:
        db.execute("DELETE FROM archives WHERE generation = 2")
    assert archive.store("main", 2, NOW, handover="", summary="", reason="manual").url == kept[1].url
    back.close()


def test_an_archive_moved_to_a_place_where_another_homes_stands_does_not_replace_it(
    home: StoreHome, tmp_path: Path
) -> None:
    other = StoreHome(tmp_path / "other").open()
    other.chat(2)
    stored(open_archive(other, FAULTY_URL))
    home.chat(1)
    stored(open_archive(home))
    with pytest.raises(ArchiveUnavailable, match="as another data folder would put there"):
        stored(open_archive(home, FAULTY_URL), note="Another note.")
    assert open_archive(other, FAULTY_URL).verify("main", 1) == [] == open_archive(home).verify("main", 1)
    other.close()


@pytest.mark.parametrize("session", [HOSTILE, "peer:x:" + "ü" * 500, "thread:.part", "thread:Ümläut", "room:a:b"])
def test_no_sessions_name_leads_out_of_the_archive(home: StoreHome, session: str) -> None:
    home.accept("hello", session, scope=session if session.startswith(("peer", "room")) else "owner")
    import_messages(
        home.conversation,
        session,
        session if session.startswith(("peer", "room")) else "owner",
        [Message("user", "hi", ts=NOW)],
        NOW,
    )
    archive = open_archive(home)
    one = stored(archive, session)
    assert (home.path / one.url).resolve().is_relative_to(home.path / "archive")
    assert [record.content for record in archive.read_records(session, 1)] == ["hi"]
    assert archive.verify(session, 1) == []
    assert one.url == f"archive/{session_folder_name(session)}/1.jsonl.gz"
    assert archive.list_archives(one.scope) == [one]


def test_records_are_read_with_their_places_in_the_log(home: StoreHome) -> None:
    home.chat(3)
    archive = open_archive(home)
    stored(archive)
    assert archive.read_records("main", 1) == list(home.log.scan("main"))


def test_a_record_of_many_megabytes_is_archived_whole(home: StoreHome) -> None:
    import_messages(home.conversation, "main", "owner", [Message("user", "x" * 20_000_000, ts=NOW)], NOW)
    archive = open_archive(home)
    one = stored(archive)
    assert one.bytes < 100_000
    assert len(archive.read_records("main", 1)[0].content) == 20_000_000


def test_what_was_never_archived_is_told_as_such(home: StoreHome) -> None:
    home.chat(1)
    archive = open_archive(home)
    for ask in (archive.read_records, archive.verify):
        with pytest.raises(UsageError, match="main 1 is not archived"):
            ask("main", 1)
    archive.remove("main", 1)


def test_an_archive_is_removed_with_its_row(home: StoreHome) -> None:
    home.chat(1)
    archive = open_archive(home)
    one = stored(archive)
    archive.remove("main", 1)
    assert archive.list_archives() == []
    assert not (home.path / one.url).exists()


def test_an_encrypted_archive_reads_as_any_other(home: StoreHome, tmp_path: Path) -> None:
    home.chat(2)
    archive = open_archive(home, str(tmp_path / "away"), IDENTITY_KEY)
    one = stored(archive)
    assert one.encrypted
    assert one.url.endswith("/main/1.jsonl.gz.age")
    assert archive.read_records("main", 1) == list(home.log.scan("main"))


# ------------------------------------------------------------------------------------------------------------ checking


def spoiled(data: bytes, change: Callable[[list[bytes]], list[bytes]]) -> bytes:
    return gzip.compress(b"".join(change(gzip.decompress(data).splitlines(keepends=True))))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda lines: [lines[0], lines[1].replace(b"question", b"Question"), *lines[2:]], "the words of record"),
        (lambda lines: [*lines[:2], *lines[3:]], "does not continue the one before"),
        (lambda lines: lines[:-1], "the lines are not what the header says: records"),
        (lambda lines: [lines[0].replace(b'"generation":1', b'"generation":2'), *lines[1:]], "is of generation 2"),
        (lambda lines: [b"{}\n", *lines[1:]], "its first line is no header"),
        (lambda lines: [lines[0].replace(b'"v":1', b'"v":2'), *lines[1:]], "unknown to this version"),
        (lambda lines: [*lines[:2], b"junk\n", *lines[3:]], "is no record"),
    ],
)
def test_what_was_changed_in_an_archive_is_found(
    home: StoreHome, change: Callable[[list[bytes]], list[bytes]], says: str
) -> None:
    home.chat(3)
    archive = open_archive(home)
    path = home.path / stored(archive).url
    path.write_bytes(spoiled(path.read_bytes(), change))
    with home.db.write() as db:
        db.execute("UPDATE archives SET bytes = ?, sha256 = ''", (path.stat().st_size,))
    assert says in " ".join(problem.text for problem in archive.verify("main", 1))
    assert archive.verify_all(remote=False) == archive.verify("main", 1)


@pytest.mark.parametrize("left", [b"", b"\x1f\x8b", None])
def test_an_archive_that_is_cut_off_or_gone_is_found(home: StoreHome, left: bytes | None) -> None:
    home.chat(3)
    archive = open_archive(home)
    path = home.path / stored(archive).url
    if left is None:
        path.unlink()
    else:
        path.write_bytes(left)
    (problem,) = archive.verify("main", 1)
    assert problem.where == "archive/main/1.jsonl.gz"
    with pytest.raises(ArchiveUnavailable):
        archive.read_records("main", 1)


def test_an_archive_that_says_otherwise_than_the_log_is_found(home: StoreHome) -> None:
    home.chat(2)
    archive = open_archive(home)
    stored(archive)
    home.say("more", "yes")
    assert archive.verify("main", 1) == []
    blank_words(home, 1, "question 0")
    assert [problem.text for problem in archive.verify("main", 1)] == [SAYS_OTHERWISE]


def test_an_archive_that_is_whole_but_not_the_one_that_was_put_there_is_found(home: StoreHome) -> None:
    home.chat(2)
    archive = open_archive(home)
    path = home.path / stored(archive).url
    path.write_bytes(spoiled(path.read_bytes(), lambda lines: [lines[0].replace(b"boats", b"goats"), *lines[1:]]))
    assert [problem.text for problem in archive.verify("main", 1)] == ["other bytes than were put there"]


def test_archives_away_from_the_machine_are_checked_only_when_asked(home: StoreHome) -> None:
    home.chat(1)
    archive = open_archive(home, FAULTY_URL)
    stored(archive)
    FaultyFileSystem.store.clear()
    assert archive.verify_all(remote=False) == []
    assert len(archive.verify_all(remote=True)) == 1


def test_the_same_lines_and_header_make_the_same_bytes(home: StoreHome) -> None:
    home.chat(3)
    archive = open_archive(home)
    path = home.path / stored(archive).url
    first = path.read_bytes()
    archive.remove("main", 1)
    assert stored(archive).bytes == len(first)
    assert path.read_bytes() == first
    header, walk = check_archive(first)
    assert not walk.problems
    assert replace(header, reason="") == replace(read_header(first), reason="")
    assert b"".join(read_lines(first)) == home.log_bytes()
