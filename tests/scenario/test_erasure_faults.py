"""Forgetting where something stands in the way: what was not done is told and done later, and nothing is lost."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assistant.core.erasure import ErasureRequest
from assistant.core.errors import StoreError, UsageError
from assistant.core.messages import Message
from assistant.erasure.service import ErasureService
from assistant.mem0.client import MemoryStoreSettings
from assistant.store.database import Database
from assistant.store.erasure.plan import PLAN_FILES
from assistant.store.log import redact as blanking
from assistant.store.log.format import decode_record, encode_body, encode_record, split_line
from assistant.store.rows import FORGOTTEN_PLACEHOLDER
from assistant.wire.memories import open_mem0_client
from tests.support.erasure_home import (
    KEPT_FACT,
    SECRET,
    ErasureHome,
    UnreachableMemories,
    erasure_request,
    write_everywhere,
)
from tests.support.faulty_disk import FullableDisk, can_mount, file_size_limit, mounted_disk, unlistable
from tests.support.imports import import_messages
from tests.support.semantic_memory import add_changes, make_memory
from tests.support.store_home import NOW, memory_backed_directory

NOTE = PLAN_FILES.replace("*", "1")


@pytest.fixture
def home() -> Iterator[ErasureHome]:
    with memory_backed_directory() as path:
        opened = ErasureHome(path / "home").open()
        yield opened
        opened.close()


@pytest.fixture(params=["files that may not grow", *(["a file system of 8 MB"] if can_mount() else [])])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FullableDisk]:
    of = file_size_limit if request.param == "files that may not grow" else mounted_disk
    place = tmp_path / "disk"
    place.mkdir()
    with of(place) as opened:
        yield opened


@pytest.mark.parametrize("begun", [False, True])
async def test_f11_on_a_full_disk_it_stops_and_is_done_when_there_is_room(disk: FullableDisk, begun: bool) -> None:
    home = ErasureHome(disk.place / "home").open()
    write_everywhere(home, SECRET, SECRET)
    before = [record.id for record in home.log.scan("main")]
    if begun:
        home.erasure_store.write_plan(home.erasure_store.plan_erasure(erasure_request()))
    disk.fill()
    with pytest.raises(StoreError):
        await home.erasure.erase(erasure_request(), NOW)
    assert [record.id for record in home.log.scan("main")] == before
    disk.free()
    assert home.verify().redactions == ()
    [done] = await home.erasure.finish_interrupted(NOW) if begun else [await home.erasure.erase(erasure_request(), NOW)]
    assert [(one.where, one.why) for one in done.leftovers] == []
    assert home.files_containing() == []
    assert home.verify().problems == ()
    home.close()


async def test_f11_databases_that_cannot_be_written_anew_are_told_of(disk: FullableDisk) -> None:
    home = ErasureHome(disk.place / "home").open()
    write_everywhere(home, SECRET, SECRET)
    home.erasure_store.write_plan(marked := home.erasure_store.plan_erasure(erasure_request()))
    assert home.erasure_store.execute(marked, NOW, is_retry=False) == []
    disk.fill()
    assert {one.where for one in home.erasure_store.rewrite_databases()} >= {"script.db", "character.db"}
    disk.free()
    assert home.erasure_store.rewrite_databases() == []
    home.close()


async def test_a_memory_layer_that_is_down_is_told_of_and_asked_again_at_the_next_start(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    layer = UnreachableMemories(home)
    forgetting = ErasureService(home.erasure_store, layer)  # type: ignore[arg-type]
    done = await forgetting.erase(erasure_request(), NOW)
    assert not done.complete
    assert "memories" in {one.where for one in done.leftovers}
    assert set(home.files_containing()) == {NOTE, "memory.db"}
    layer.answers = True
    [settled] = await forgetting.finish_interrupted(NOW)
    assert settled.leftovers == ()
    assert home.files_containing() == []
    assert await forgetting.finish_interrupted(NOW) == []


async def test_asking_again_finishes_what_was_cut_off_and_says_so(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    layer = UnreachableMemories(home)
    forgetting = ErasureService(home.erasure_store, layer)  # type: ignore[arg-type]
    await forgetting.erase(erasure_request(), NOW)
    await forgetting.request_code(erasure_request(), NOW)
    assert NOTE in home.files_containing()
    layer.answers = True
    found, code = await forgetting.request_code(erasure_request(), NOW)
    assert ([done.complete for done in found.finished], found.places, code) == ([True], (), "")
    assert home.files_containing() == []
    assert (await forgetting.request_code(erasure_request(), NOW))[0].finished == ()


async def test_confirming_again_after_a_fault_tells_what_was_done(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    _, code = await home.erasure.request_code(erasure_request(), NOW)
    home.erasure_store.write_plan(home.erasure_store.plan_erasure(erasure_request()))
    done = await home.erasure.confirm(code, "owner", NOW)
    assert (done.was_resumed, done.complete, bool(done.places)) == (True, True, True)
    assert home.files_containing() == []


async def test_what_was_cut_off_waits_while_a_message_is_answered(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    home.erasure_store.write_plan(home.erasure_store.plan_erasure(erasure_request()))
    home.conversation.begin_turn(home.inbox_item("Hello"), "It is ten.", NOW)
    found, _ = await home.erasure.request_code(erasure_request(), NOW)
    assert (found.finished, bool(found)) == ((), True)
    assert NOTE in home.files_containing()


async def test_what_was_cut_off_for_somebody_else_is_finished_and_not_told(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    home.erasure_store.write_plan(home.erasure_store.plan_erasure(erasure_request()))
    found, _ = await home.erasure.request_code(erasure_request("called Albatross", "peer:telegram:7"), NOW)
    assert (found.finished, home.files_containing()) == ((), [])


async def test_what_could_not_be_done_is_not_forgotten_by_a_later_forgetting(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    layer = UnreachableMemories(home)
    forgetting = ErasureService(home.erasure_store, layer)  # type: ignore[arg-type]
    await forgetting.erase(erasure_request(), NOW)
    await forgetting.erase(erasure_request("called Albatross"), NOW)
    assert {path.name for path in home.path.glob(PLAN_FILES)} == {NOTE}
    layer.answers = True
    assert [one.complete for one in await forgetting.finish_interrupted(NOW)] == [True]
    assert home.files_containing() == []


async def test_the_memory_layer_itself_leaves_nothing(home: ErasureHome) -> None:
    gone, kept = make_memory(f"The word: {SECRET}", "owner", entries=()), make_memory(KEPT_FACT, "owner", 1, entries=())
    app = open_mem0_client(MemoryStoreSettings(home.path), home.memory_db)
    try:
        await app.apply(add_changes(gone, kept))
        assert "memory.db" in {name.partition("-")[0] for name in home.files_containing()}
        done = await ErasureService(home.erasure_store, app).erase(erasure_request(), NOW)  # type: ignore[arg-type]
        assert done.complete
        assert await app.all("owner") == [kept]
    finally:
        await app.aclose()
    assert home.files_containing() == []


async def test_a_process_that_still_reads_is_told_of(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    reader = Database.open_reader(home.path / "script.db")
    with reader.snapshot():
        reader.rows("SELECT count(*) FROM messages")
        done = await home.erasure.erase(erasure_request(), NOW)
    reader.close()
    assert not done.complete
    assert any(one.where == "script.db" and "still reading" in one.why for one in done.leftovers)
    [settled] = await home.erasure.finish_interrupted(NOW)
    assert settled.leftovers == ()
    assert home.files_containing() == []


async def test_what_is_not_the_apps_is_left_and_told_of(home: ErasureHome) -> None:
    home.say(f"Keep {SECRET}", "Yes.")
    (home.path / "workspace").mkdir()
    (home.path / "workspace" / "mine.txt").write_text(SECRET)
    (home.path / "PERSONA.md").write_text(f"You know {SECRET}")
    (home.path / "other.gz").write_bytes(gzip.compress(SECRET.encode()))
    done = await home.erasure.erase(erasure_request(), NOW)
    told = {one.where: one.why for one in done.leftovers}
    assert set(told) == {"workspace/mine.txt", "PERSONA.md", "other.gz"}
    assert all(why.startswith("your own file") for why in told.values())
    assert done.complete


async def test_a_backup_that_cannot_be_opened_is_told_of(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    broken = home.path / "backups" / "script-broken.db"
    broken.write_bytes(b"no database: " + SECRET.encode())
    done = await home.erasure.erase(erasure_request(), NOW)
    assert {one.where for one in done.leftovers} == {"script-broken.db", "backups/script-broken.db"}
    assert not done.complete
    assert home.files_containing() == ["backups/script-broken.db", NOTE]
    broken.unlink()
    [settled] = await home.erasure.finish_interrupted(NOW)
    assert settled.complete
    assert home.files_containing() == []


async def test_a_copy_of_an_earlier_version_goes_for_its_full_text_too(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    [backup] = (home.path / "backups").glob("script-*.db")
    earlier = Database.open_unmigrated(backup)
    with earlier.write() as db:
        db.execute("CREATE VIRTUAL TABLE messages_fts USING fts5 (text, content='')")
        db.execute("INSERT INTO messages_fts (rowid, text) VALUES (3, ?)", (f"keep {SECRET}",))
    earlier.close()
    done = await home.erasure.erase(erasure_request(), NOW)
    assert done.complete
    assert not backup.exists()
    assert home.files_containing() == []


async def test_a_text_that_a_crash_left_beside_its_file_is_settled_first(home: ErasureHome) -> None:
    home.say(f"Keep {SECRET}", "Yes.")
    (home.path / ".MEMORY.md.99.partial").write_text(f"- {SECRET}\n")
    done = await home.erasure.erase(erasure_request(), NOW)
    assert done.complete
    assert home.files_containing() == []


async def test_an_archive_that_cannot_be_read_is_told_of(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    archive = home.path / "archive" / "main" / "2.jsonl.gz"
    archive.write_bytes(gzip.compress(SECRET.encode())[:-9])
    done = await home.erasure.erase(erasure_request(), NOW)
    assert {one.where for one in done.leftovers} == {"archive/main/2.jsonl.gz"}
    assert not done.complete
    archive.unlink()
    [settled] = await home.erasure.finish_interrupted(NOW)
    assert settled.complete
    assert home.files_containing() == []


async def test_nobody_forgets_while_a_sleep_may_write_of_it(home: ErasureHome) -> None:
    home.say(f"Keep {SECRET}", "Yes.")
    with pytest.raises(UsageError, match="is asleep, is compacting"):
        await ErasureService(home.erasure_store, home.memories, lambda: True).erase(erasure_request(), NOW)  # type: ignore[arg-type],
    assert home.verify().redactions == ()


async def test_what_was_cut_off_waits_while_a_sleep_may_write_of_it(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    home.erasure_store.write_plan(home.erasure_store.plan_erasure(erasure_request()))
    asleep = ErasureService(home.erasure_store, home.memories, lambda: True)  # type: ignore[arg-type]
    assert (await asleep.request_code(erasure_request(), NOW))[0].finished == ()
    assert NOTE in home.files_containing()


async def test_a_repair_afterwards_changes_nothing_that_is_seen(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    await home.erasure.erase(erasure_request(), NOW)
    shown = home.view_contents()
    assert home.repair().problems == ()
    assert home.view_contents() == shown
    assert home.files_containing() == []


async def test_an_index_made_anew_from_the_logs_knows_what_was_forgotten(home: ErasureHome) -> None:
    home.say("What is my boat called?", KEPT_FACT)
    home.say(f"Keep {SECRET}", "Yes.")
    home.say("And then?", "Nothing.")
    await home.erasure.erase(erasure_request(), NOW)
    home.close()
    for path in [*home.path.glob("script.db*"), *home.path.glob("search.db*")]:
        path.unlink()
    reconciled = home.open().conversation.recover_after_crash(NOW)
    assert reconciled.torn_files == ()
    assert home.view_contents() == [
        "What is my boat called?",
        KEPT_FACT,
        FORGOTTEN_PLACEHOLDER,
        "Yes.",
        "And then?",
        "Nothing.",
    ]
    assert home.verify().problems == ()
    assert home.verify().redactions == (3,)


async def test_words_in_sealed_pages_of_the_search_index_are_gone(home: ErasureHome) -> None:
    import_messages(
        home.conversation,
        "main",
        "owner",
        [Message("user", f"Plain words number {n} of the day.") for n in range(1_100)],
        NOW,
    )
    [said] = import_messages(home.conversation, "main", "owner", [Message("user", f"The gate: {SECRET}")], NOW)
    import_messages(
        home.conversation, "main", "owner", [Message("user", f"More plain words {n}.") for n in range(1_100)], NOW
    )
    assert home.search_ids("zanzibarquux")[0] == said.id
    done = await home.erasure.erase(erasure_request(), NOW)
    assert done.messages == (said.id,)
    assert home.files_containing() == []
    assert said.id not in home.search_ids("plain words gate")
    assert home.search_ids("number 77") != []


async def test_the_index_is_not_told_twice_after_a_crash(home: ErasureHome) -> None:
    said = import_messages(
        home.conversation,
        "main",
        "owner",
        [Message("user", text) for text in (f"Quokka: {SECRET}", "A quokka sat there.")],
        NOW,
    )
    import_messages(
        home.conversation, "main", "owner", [Message("user", f"Plain words {n}.") for n in range(1_100)], NOW
    )
    assert home.search_ids("quokka")
    home.erasure_store.write_plan(home.erasure_store.plan_erasure(erasure_request()))
    home.finder.forget([said[0].id or 0], lambda _: said[0].content)
    await home.erasure.finish_interrupted(NOW)
    assert home.search_ids("quokka")[0] == said[1].id
    assert home.finder.frequencies(["quokka"])[0] == [1]
    assert home.files_containing() == []


@pytest.mark.parametrize("name", [f".{NOTE}.done", f".{NOTE}.new.partial"])
async def test_a_note_that_was_being_written_or_removed_is_taken_away(home: ErasureHome, name: str) -> None:
    (home.path / name).write_text(SECRET)
    assert await home.erasure.finish_interrupted(NOW) == []
    assert home.files_containing() == []


def test_a_blank_line_keeps_length_header_and_place() -> None:
    with memory_backed_directory() as path:
        home = ErasureHome(path / "home").open()
        write_everywhere(home, SECRET, SECRET)
        import_messages(home.conversation, "main", "owner", [Message("user", "", name="x"), Message("user", "é")], NOW)
        for record in home.log.scan("main"):
            line = home.log.read_line("main", record.span)
            header, _, _ = split_line(line)
            left = blanking.build_blank_line(header, len(line))
            assert (len(left), split_line(left)[0], blanking.is_blank_line(left)) == (len(line), header, True)
            again = decode_record(left, record.span.start)
            assert (again.id, again.commit, again.content) == (record.id, record.commit, "")
            assert (again.tool_calls, again.media) == ((), ())
            body = encode_body(record, record.salt)
            assert encode_record(record, record.seq, record.prev, body, record.span.start)[1] == line
        home.close()


Cut = Callable[[int], int]


@pytest.mark.parametrize("torn", [lambda size: size // 2, lambda size: size - 30], ids=["middle", "end"])
async def test_a_line_that_a_power_cut_left_half_blank_is_blanked_again(home: ErasureHome, torn: Cut) -> None:
    home.say(f"Keep {SECRET} " + "and much more " * 50, "Yes.")
    home.say("And then?", "Nothing.")
    marked = home.erasure_store.plan_erasure(erasure_request())
    [place] = marked.records
    home.erasure_store.write_plan(marked)
    home.conversation.annotate("main", "redaction", [place.id], "", NOW)
    line = home.log.read_line("main", place.span)
    half = torn(len(line))
    left = blanking.build_blank_line(home.log.read_header("main", place.span), len(line))
    raw = home.log_bytes()
    home.log.path("main").write_bytes(raw[: place.span.start] + left[:half] + raw[place.span.start + half :])
    [done] = await home.erasure.finish_interrupted(NOW)
    assert done.complete
    assert home.files_containing() == []
    assert home.verify().problems == ()
    assert [record.content for record in home.log.scan("main")] == ["", "Yes.", "And then?", "Nothing.", ""]


async def test_a_home_that_the_disk_cannot_list_stops_with_what_to_do(home: ErasureHome) -> None:
    with unlistable(home.path), pytest.raises(StoreError, match=r"cannot be listed: Input/output error\. Nothing was"):
        await home.erasure.finish_interrupted(NOW)


async def test_a_note_that_cannot_be_read_stops_with_what_to_do(home: ErasureHome) -> None:
    (home.path / NOTE).write_text("{")
    with pytest.raises(StoreError, match="Remove the file, then forget it again"):
        await home.erasure.erase(ErasureRequest("owner", text=SECRET), NOW)
