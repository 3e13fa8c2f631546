"""What a log lost comes back from the archive to where it stood, and nothing else changes."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.core.archives import LogRestoreResult
from assistant.core.errors import ArchiveUnavailable, UsageError
from assistant.store.archive.archive import StoredArchive
from assistant.store.archive.format import ArchiveCheck, DamagedArchive, compress_lines, read_header
from assistant.store.archive.restore import restore_to_log
from assistant.store.script import sessions as session_rows
from tests.support.archive_storage import FAULTY_URL, FaultyFileSystem, open_archive
from tests.support.store_home import NOW, StoreHome, blank_words


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    FaultyFileSystem.reset()
    with_stores = StoreHome(tmp_path / "home").open()
    yield with_stores
    with_stores.close()


def archived(home: StoreHome, turns: int = 3) -> StoredArchive:
    home.chat(turns)
    archive = open_archive(home)
    archive.store("main", 1, NOW, handover="", summary="", reason="manual")
    return archive


def lose(home: StoreHome, data: bytes | None) -> None:
    path = home.log.path("main")
    home.log.close()
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)


def lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


@pytest.mark.parametrize("kept", [None, 0, 1, 2, 5])
def test_a_log_that_lost_its_end_has_it_again(home: StoreHome, kept: int | None) -> None:
    archive = archived(home)
    whole = home.log_bytes()
    lose(home, None if kept is None else b"".join(lines(whole)[:kept]))
    assert restore_to_log(archive, home.path, "main", 1) == LogRestoreResult(kept or 0, 6 - (kept or 0))
    assert home.log_bytes() == whole
    assert home.log.path("main").stat().st_mode & 0o777 in (0o600, 0o644)
    assert home.verify().ok


def test_a_record_that_was_cut_off_is_whole_again(home: StoreHome) -> None:
    archive = archived(home)
    whole = home.log_bytes()
    lose(home, whole[:-40])
    assert restore_to_log(archive, home.path, "main", 1) == LogRestoreResult(5, 1)
    assert home.log_bytes() == whole


def test_a_log_that_lost_nothing_is_not_touched(home: StoreHome) -> None:
    archive = archived(home)
    home.say("later", "yes")
    path = home.log.path("main")
    before, touched = home.log_bytes(), path.stat().st_mtime_ns
    assert restore_to_log(archive, home.path, "main", 1) == LogRestoreResult(6, 0)
    assert (home.log_bytes(), path.stat().st_mtime_ns) == (before, touched)


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: b"\0" * len(line),
        lambda line: line.replace(b"answer", b"anzwer"),
        lambda line: line.replace(b'"role":"assistant"', b'"role":"assostant"'),
        lambda line: line[:-1] + b" ",
    ],
    ids=["zeros", "words", "header", "newline"],
)
def test_a_damaged_record_in_the_middle_is_put_right(home: StoreHome, damage: object) -> None:
    archive = archived(home)
    home.say("later", "yes")
    whole = home.log_bytes()
    broken = lines(whole)
    broken[3] = damage(broken[3])  # type: ignore[operator]
    lose(home, b"".join(broken))
    assert not home.verify().ok
    assert restore_to_log(archive, home.path, "main", 1) == LogRestoreResult(5, 1)
    assert home.log_bytes() == whole
    assert home.verify().ok


def test_what_was_forgotten_since_stays_forgotten(home: StoreHome) -> None:
    archive = archived(home)
    blank_words(home, 3, "question 1")
    forgotten = home.log_bytes()
    assert restore_to_log(archive, home.path, "main", 1) == LogRestoreResult(6, 0)
    assert home.log_bytes() == forgotten


def test_another_record_in_its_place_is_never_changed(home: StoreHome, tmp_path: Path) -> None:
    archive = archived(home)
    other = StoreHome(tmp_path / "other").open()
    other.chat(3)
    theirs = other.log_bytes()
    lose(home, theirs)
    with pytest.raises(UsageError, match=r"Another record is at byte 0.* Nothing was changed"):
        restore_to_log(archive, home.path, "main", 1)
    assert home.log_bytes() == theirs
    other.close()


def test_generations_come_back_in_their_order(home: StoreHome) -> None:
    archive = archived(home)
    with home.db.write() as db:
        session_rows.insert_session(db, "main", 2, "owner", NOW)
    home.say("a new day", "good morning")
    archive.store("main", 2, NOW, handover="", summary="", reason="daily")
    whole = home.log_bytes()
    lose(home, None)
    with pytest.raises(
        UsageError, match=r"ends before generation 2 begins .*restore the conversations before it first"
    ):
        restore_to_log(archive, home.path, "main", 2)
    assert restore_to_log(archive, home.path, "main", 1) == LogRestoreResult(0, 6)
    assert restore_to_log(archive, home.path, "main", 2) == LogRestoreResult(0, 2)
    assert home.log_bytes() == whole
    assert home.verify().ok


def test_an_archive_under_another_name_is_not_taken_for_it(home: StoreHome) -> None:
    archive = archived(home)
    path = home.path / archive.list_archives()[0].url
    path.rename(path.with_name("2.jsonl.gz"))
    with pytest.raises(ArchiveUnavailable, match="is not whole"):
        restore_to_log(archive, home.path, "main", 2)


def test_an_archive_that_does_not_prove_brings_nothing_back(home: StoreHome) -> None:
    archive = archived(home)
    path = home.path / archive.list_archives()[0].url
    path.write_bytes(path.read_bytes()[:-8])
    lose(home, b"")
    with pytest.raises(ArchiveUnavailable, match=re.escape("damaged or cut off")):
        restore_to_log(archive, home.path, "main", 1)
    assert home.log_bytes() == b""


def test_words_that_were_changed_in_an_archive_are_not_brought_back(home: StoreHome) -> None:
    archive = archived(home)
    path = home.path / archive.list_archives()[0].url
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b"question 1", b"question 7")))
    lose(home, b"")
    with pytest.raises(ArchiveUnavailable, match="is not whole"):
        restore_to_log(archive, home.path, "main", 1)
    assert home.log_bytes() == b""


def test_a_new_home_gets_its_log_from_the_archive_alone(home: StoreHome, tmp_path: Path) -> None:
    home.chat(3)
    one = open_archive(home, FAULTY_URL).store("main", 1, NOW, handover="", summary="", reason="manual")
    new = StoreHome(tmp_path / "new").open()
    archive = open_archive(new, FAULTY_URL)
    assert archive.list_archives() == []
    assert [record.content for record in archive.read_records("main", 1)] == home.add_message()
    assert restore_to_log(archive, new.path, "main", 1) == LogRestoreResult(0, 6)
    assert archive.list_archives() == [one]
    new.conversation.recover_after_crash(NOW)
    assert new.add_message() == home.add_message()
    assert new.verify().ok
    new.close()


def test_the_first_problems_alone_are_told() -> None:
    walk = ArchiveCheck("main", 1)
    for _ in range(1000):
        walk.add_line(b"junk\n")
    assert len(walk.problems) == 20


def test_a_header_nested_without_end_is_a_damaged_archive() -> None:
    with pytest.raises(DamagedArchive, match="its first line is no header"):
        read_header(compress_lines([b"[" * 100_000 + b"\n"]))
