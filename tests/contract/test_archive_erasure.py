"""Words go from archives too: from their records and their headers, wherever they are kept, and later where they cannot
be reached now."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyrage
import pytest

from assistant.core.erasure import ErasureRequest, ErasureResult
from assistant.core.errors import ArchiveUnavailable
from assistant.core.messages import Message
from assistant.erasure.service import ErasureService
from assistant.store.archive.archive import StoredArchive
from assistant.store.archive.restore import restore_to_log
from assistant.store.database import Database
from assistant.store.erasure.store import ErasureStore
from assistant.store.schema.migrations import character_migrations
from tests.support.archive_storage import (
    FAULTY_URL,
    IDENTITY,
    IDENTITY_KEY,
    FaultyFileSystem,
    open_archive,
    permission_denied,
)
from tests.support.imports import import_messages
from tests.support.store_home import NOW, StoreHome

SECRET = "the password is zanzibarquux"
RARE = b"zanzibarquux"


@dataclass
class ArchiveErasureHome(StoreHome):
    """A home whose archives stand at `url`."""

    url: str = ""
    key: str = ""

    def open(self) -> ArchiveErasureHome:
        super().open()
        self.people = Database.open(self.path / "character.db", character_migrations, NOW)
        self.archive = open_archive(self, self.url, self.key)
        self.copies = ErasureStore(
            self.path, self.db, self.people, self.log, self.conversation, None, None, self.archive
        )
        self.forgetting = ErasureService(self.copies, None)
        return self

    def close(self) -> None:
        self.people.close()
        super().close()

    def archived(self, note: str = "", summary: str = "") -> StoredArchive:
        self.archive.store("main", 1, NOW, handover=note, summary=summary, reason="manual")
        return self.archive

    async def forget(self, text: str = SECRET) -> ErasureResult:
        return await self.forgetting.erase(ErasureRequest("owner", text=text), NOW)

    def object(self) -> bytes:
        """What the archive says, unpacked without our help."""
        url = self.archive.list_archives()[0].url
        if url.startswith(FAULTY_URL):
            return gzip.decompress(FaultyFileSystem(skip_instance_cache=True).cat_file(url))
        path = Path(url) if url.startswith("/") else self.path / url
        data = path.read_bytes()
        return gzip.decompress(pyrage.decrypt(data, [IDENTITY]) if path.suffix == ".age" else data)


@pytest.fixture(params=["", FAULTY_URL], ids=["home", "elsewhere"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ArchiveErasureHome]:
    FaultyFileSystem.reset()
    opened = ArchiveErasureHome(tmp_path / "home", url=request.param).open()
    yield opened
    opened.close()


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[ArchiveErasureHome]:
    FaultyFileSystem.reset()
    opened = ArchiveErasureHome(tmp_path / "home", url=FAULTY_URL).open()
    yield opened
    opened.close()


async def test_forgotten_words_go_from_records_and_header_and_the_archive_proves_as_before(
    home: ArchiveErasureHome,
) -> None:
    home.chat(2)
    home.say(SECRET, f"noted: {SECRET}")
    archive = home.archived(f"Open: whether {SECRET}. The boat.", f"We said that {SECRET}.")
    assert home.object().count(RARE) == 4
    done = await home.forget()
    assert done.complete
    assert RARE not in home.object()
    assert b"The boat." in home.object()
    assert archive.verify("main", 1) == []
    assert [record.content for record in archive.read_records("main", 1)][:4] == [
        "question 0",
        "answer 0",
        "question 1",
        "answer 1",
    ]
    assert not home.copies.unfinished_plans()
    assert not (await home.forgetting.preview(ErasureRequest("owner", text=SECRET)))


async def test_forgotten_words_go_from_an_encrypted_archive(tmp_path: Path) -> None:
    home = ArchiveErasureHome(tmp_path / "home", url=str(tmp_path / "away"), key=IDENTITY_KEY).open()
    home.say(SECRET, "noted")
    home.archived(f"Open: {SECRET}")
    assert (await home.forget()).complete
    assert RARE not in home.object()
    home.close()


@pytest.mark.parametrize("url", ["away", FAULTY_URL])
async def test_the_proof_reads_archives_that_are_elsewhere_or_encrypted(tmp_path: Path, url: str) -> None:
    FaultyFileSystem.reset()
    place = url if url == FAULTY_URL else str(tmp_path / url)
    home = ArchiveErasureHome(tmp_path / "home", url=place, key=IDENTITY_KEY).open()
    home.say(SECRET, "noted")
    home.archived("Open.")
    request = ErasureRequest("owner", text=SECRET)
    plan = home.copies.plan_erasure(request)
    [left], searched = home.copies.search_archives(plan, ())
    assert (left.where, searched) == (home.archive.list_archives()[0].url, 1)
    assert (await home.forget()).complete
    assert home.copies.search_archives(plan, ()) == ([], 1)
    home.close()


async def test_a_message_that_is_forgotten_goes_by_its_id(home: ArchiveErasureHome) -> None:
    home.say(SECRET, "noted")
    home.say("other", "yes")
    archive = home.archived()
    await home.forgetting.erase(ErasureRequest("owner", messages=(1,)), NOW)
    assert RARE not in home.object()
    assert archive.verify("main", 1) == []


async def test_words_of_the_header_alone_are_found_and_go(home: ArchiveErasureHome) -> None:
    home.chat(1)
    home.archived(f"Open: {SECRET}.")
    found = await home.forgetting.preview(ErasureRequest("owner", text=SECRET))
    assert "archives" in {place.kind for place in found.places}
    assert (await home.forget()).complete
    assert RARE not in home.object()
    assert RARE not in (home.path / "script.db").read_bytes()


async def test_what_would_go_names_the_archive(home: ArchiveErasureHome) -> None:
    home.say(SECRET, "noted")
    url = home.archived().list_archives()[0].url
    found = await home.forgetting.preview(ErasureRequest("owner", text=SECRET))
    assert next(place.examples for place in found.places if place.kind == "archives") == (url,)


async def test_an_archive_that_cannot_be_reached_is_left_and_rewritten_at_the_next_start(
    remote: ArchiveErasureHome,
) -> None:
    remote.say(SECRET, "noted")
    archive = remote.archived(f"Open: {SECRET}")
    FaultyFileSystem.faults["read"] = permission_denied
    done = await remote.forget()
    assert not done.complete
    assert [(left.where, left.why[:9]) for left in done.leftovers] == [(archive.list_archives()[0].url, "not done:")]
    assert RARE not in remote.log_bytes()
    assert len(remote.copies.unfinished_plans()) == 1
    FaultyFileSystem.faults.clear()
    for reads in (archive.read_records, archive.read_notes, partial(restore_to_log, archive, remote.path)):
        with pytest.raises(ArchiveUnavailable, match="still has words that were forgotten"):
            reads("main", 1)
    FaultyFileSystem.faults["read"] = permission_denied
    remote.close()
    remote.open()
    (again,) = await remote.forgetting.finish_interrupted(NOW)
    assert not again.complete
    FaultyFileSystem.faults.clear()
    (again,) = await remote.forgetting.finish_interrupted(NOW)
    assert again.complete
    assert RARE not in remote.object()
    assert remote.archive.verify("main", 1) == []
    assert not remote.copies.unfinished_plans()


async def test_a_place_that_fails_between_keeps_the_archive_before_and_the_note(remote: ArchiveErasureHome) -> None:
    for step in ("write", "move"):
        remote.say(SECRET, "noted")
        remote.archived()
        FaultyFileSystem.faults[step] = permission_denied
        assert not (await remote.forget()).complete
        assert RARE in remote.object()
        FaultyFileSystem.faults.clear()
        await remote.forgetting.finish_interrupted(NOW)
        assert RARE not in remote.object()
        assert remote.archive.verify("main", 1) == []


async def test_a_place_that_is_silent_is_asked_once(remote: ArchiveErasureHome) -> None:
    remote.say(SECRET, "noted")
    remote.archived()
    remote.say(SECRET, "again", "thread:boat")
    remote.archive.store("thread:boat", 1, NOW, handover="", summary="", reason="manual")
    FaultyFileSystem.faults["read"] = permission_denied
    FaultyFileSystem.calls.clear()
    done = await remote.forget()
    assert len(done.leftovers) == 2
    assert sum(step == "read" for step, _ in FaultyFileSystem.calls) == 1


async def test_an_archive_that_is_gone_has_no_words(remote: ArchiveErasureHome) -> None:
    remote.say(SECRET, "noted")
    remote.archived()
    FaultyFileSystem.store.clear()
    assert (await remote.forget()).complete


async def test_an_archive_that_nothing_of_it_concerns_is_not_touched(remote: ArchiveErasureHome) -> None:
    remote.chat(2)
    remote.archived()
    remote.say(SECRET, "noted", "thread:boat")
    FaultyFileSystem.calls.clear()
    assert (await remote.forget()).complete
    assert FaultyFileSystem.calls == []


async def test_i10_what_a_guest_had_archived_stays_when_the_owner_forgets_the_same_words(
    home: ArchiveErasureHome,
) -> None:
    guest = "peer:telegram:7"
    import_messages(home.conversation, guest, guest, [Message("user", SECRET, ts=NOW)], NOW)
    theirs = home.archive.store(guest, 1, NOW, handover=SECRET, summary="", reason="manual")
    home.say(SECRET, "noted")
    home.archived()
    found = await home.forgetting.preview(ErasureRequest("owner", text=SECRET))
    assert theirs.url not in {shown for place in found.places for shown in place.examples}
    await home.forget()
    assert [record.content for record in home.archive.read_records(guest, 1)] == [SECRET]
    assert home.archive.read_notes(guest, 1).handover == SECRET


async def test_an_archive_made_while_something_was_forgotten_never_keeps_it(tmp_path: Path) -> None:
    """The words leave the log between the reading of it and the row: the archive is made again."""
    FaultyFileSystem.reset()
    home = ArchiveErasureHome(tmp_path / "home", url=FAULTY_URL).open()
    home.say(SECRET, "noted")
    marked = home.copies.write_plan(home.copies.plan_erasure(ErasureRequest("owner", text=SECRET)))

    def forgets(path: str, given: object) -> object:
        FaultyFileSystem.faults.clear()
        home.copies.execute(marked, NOW, is_retry=False)
        return given

    FaultyFileSystem.faults["move"] = forgets
    home.archived()
    assert RARE not in home.object()
    assert home.archive.verify("main", 1) == []
    home.close()


async def test_what_a_crash_left_half_written_in_the_home_goes_too(tmp_path: Path) -> None:
    home = ArchiveErasureHome(tmp_path / "home").open()
    home.say(SECRET, "noted")
    home.archived()
    part = home.path / "archive" / ".part" / "main.2.jsonl.gz"
    part.write_bytes((home.path / "archive/main/1.jsonl.gz").read_bytes())
    assert (await home.forget()).complete
    assert not part.exists()
    home.close()


async def test_an_archive_that_the_index_does_not_know_loses_the_words_as_well(tmp_path: Path) -> None:
    home = ArchiveErasureHome(tmp_path / "home").open()
    home.say(SECRET, "noted")
    home.archived(f"Open: {SECRET}")
    with home.db.write() as db:
        db.execute("DELETE FROM archives")
    assert (await home.forget()).complete
    assert RARE not in gzip.decompress((home.path / "archive/main/1.jsonl.gz").read_bytes())
    home.close()
