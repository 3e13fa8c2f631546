"""Conversations of other programs in the store: there once, with their dates, in no view, forgotten as any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assistant.core.errors import UsageError
from assistant.core.import_records import ImportedBatch, ImportedMessage
from assistant.core.messages import LogByteRange
from assistant.core.records import LogRecord
from assistant.store.script.imports import StoredImports
from assistant.store.script.index import UnreadMessages
from sleep.cycle.validate import is_readable
from tests.support.store_home import NOW, StoreHome

BEGUN = datetime(2021, 3, 4, 10, tzinfo=UTC)


def said(count: int, *, key: str = "m", text: str = "words") -> tuple[ImportedMessage, ...]:
    return tuple(
        ImportedMessage(f"{key}{n}", "assistant" if n % 2 else "user", f"{text} {n}", BEGUN + timedelta(minutes=n))
        for n in range(count)
    )


def batch(count: int = 4, *, external_id: str = "c1", title: str = "Rome") -> ImportedBatch:
    return ImportedBatch("chatgpt", external_id, title, said(count))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path).open()
    yield home
    assert home.verify().problems == ()
    home.close()


def imports_of(home: StoreHome) -> StoredImports:
    return StoredImports(home.db, home.log, home.conversation.appender)


def add(home: StoreHome, *batches: ImportedBatch) -> list[tuple[int, int, int]]:
    imports = imports_of(home)
    number = imports.begin("chatgpt", "export.json", NOW)
    counts = [imports.add(number, one, NOW) for one in batches]
    imports.finish(number, 0, NOW)
    return [(count.conversations, count.messages, count.known) for count in counts]


def contents(home: StoreHome, session: str = "import:1") -> list[str]:
    return [record.content for record in home.log.scan(session) if record.kind == "message"]


def test_a_conversation_comes_in_with_its_title_its_dates_and_its_speakers(home: StoreHome) -> None:
    other = ImportedMessage("x", "user", "hello from Anna", BEGUN + timedelta(hours=1), "Anna")
    add(home, replace(batch(2), messages=(*said(2), other)))
    records = list(home.log.scan("import:1"))
    assert [(record.content, record.role, record.trust, record.name) for record in records] == [
        ("Imported from ChatGPT: Rome", "system", "system", None),
        ("words 0", "user", "owner", None),
        ("words 1", "assistant", "model", None),
        ("hello from Anna", "user", "guest", "Anna"),
    ]
    assert [is_readable(record) for record in records] == [False, True, True, False]
    info = home.conversation.find_session("import:1")
    assert info is not None
    assert (info.scope, info.started_at, info.last_at) == ("owner", BEGUN, BEGUN + timedelta(hours=1))


def test_what_is_imported_is_in_no_view_and_in_no_list_of_sessions(home: StoreHome) -> None:
    home.accept("hello")
    add(home, batch())
    assert home.conversation.load_view("import:1").messages == ()
    assert [info.key for info in home.conversation.list_sessions()] == ["main"]
    assert home.conversation.list_unread_generations() == []


def test_nobody_talks_in_what_was_imported(home: StoreHome) -> None:
    add(home, batch())
    with pytest.raises(UsageError, match="was imported"):
        home.accept("hello", "import:1")


def test_the_same_export_twice_changes_nothing(home: StoreHome) -> None:
    assert add(home, batch(), batch(external_id="c2")) == [(1, 4, 0), (1, 4, 0)]
    before = [contents(home, session) for session in home.log.sessions()]
    assert add(home, batch(), batch(external_id="c2")) == [(0, 0, 4), (0, 0, 4)]
    assert [contents(home, session) for session in home.log.sessions()] == before
    assert len(imports_of(home).list_runs()) == 1


def test_a_newer_export_adds_only_what_is_new(home: StoreHome) -> None:
    add(home, batch(4))
    assert add(home, batch(6)) == [(0, 2, 4)]
    assert contents(home) == ["Imported from ChatGPT: Rome", *(f"words {n}" for n in range(6))]
    assert [(run.conversations, run.messages) for run in imports_of(home).list_runs()] == [(1, 4), (1, 2)]


def test_texts_without_ids_are_told_apart_by_their_words(home: StoreHome) -> None:
    def notes(*texts: str) -> ImportedBatch:
        return ImportedBatch(
            "markdown", "MEMORY.md", "MEMORY.md", tuple(ImportedMessage("", "user", text, BEGUN) for text in texts)
        )

    add(home, notes("likes tea", "lives in Rome"))
    assert add(home, notes("has a dog", "likes tea", "lives in Rome")) == [(0, 1, 2)]


def test_a_memory_file_of_many_texts_is_read_once_and_not_for_each_part_of_it(
    home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    def notes(first: int) -> ImportedBatch:
        texts = (ImportedMessage("", "user", f"note {number}", BEGUN) for number in range(first, first + 5))
        return ImportedBatch("markdown", "MEMORY.md", "MEMORY.md", tuple(texts))

    read: list[str] = []
    real = home.log.read
    add(home, notes(0))
    imports = imports_of(home)
    number = imports.begin("markdown", "MEMORY.md", NOW)

    def count_read(session: str, span: LogByteRange) -> LogRecord:
        read.append(session)
        return real(session, span)

    monkeypatch.setattr(home.log, "read", count_read)
    parts = [imports.add(number, notes(first), NOW) for first in (0, 3, 8, 13, 8)]
    assert [(count.messages, count.known) for count in parts] == [(0, 5), (3, 2), (5, 0), (5, 0), (0, 5)]
    assert len(read) <= 6  # the title and the five notes that were there
    # What somebody else adds meanwhile is known as well.
    add(home, notes(18))
    assert imports.add(number, notes(18), NOW).known == 5
    imports.finish(number, 0, NOW)


def test_an_import_that_was_killed_after_the_log_was_written_goes_on_without_doubling(home: StoreHome) -> None:
    imports = imports_of(home)
    number = imports.begin("chatgpt", "export.json", NOW)

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    imports._note_range = die  # type: ignore[method-assign]
    with pytest.raises(Killed):
        imports.add(number, batch(), NOW)
    home.restart()
    home.conversation.recover_after_crash(NOW)
    assert imports_of(home).begin("chatgpt", "export.json", NOW) == number
    assert add(home, batch(6)) == [(0, 2, 4)]
    assert contents(home) == ["Imported from ChatGPT: Rome", *(f"words {n}" for n in range(6))]


def test_the_index_is_made_again_from_the_log_alone(home: StoreHome) -> None:
    add(home, batch(5))
    with home.db.write(references=False) as db:
        db.execute("DELETE FROM messages")
    assert home.repair().problems == ()
    assert home.conversation.load_view("import:1").messages == ()
    assert add(home, batch(5)) == [(0, 0, 5)]


def test_an_import_that_is_taken_back_is_shown_nowhere_and_may_come_again(home: StoreHome) -> None:
    add(home, batch(4))
    imports = imports_of(home)
    for session, ids in imports.messages_of(1).items():
        home.conversation.hide_messages(session, ids, NOW)
    imports.mark_undone(1, NOW)
    assert UnreadMessages(home.db, home.log).read_after("import:1", 1, 0) == []
    assert imports.list_unread(limit=10) == []
    assert add(home, batch(4)) == [(1, 4, 0)]
    assert contents(home, "import:2")[1:] == [f"words {n}" for n in range(4)]


def test_taking_back_a_newer_export_leaves_the_older_one(home: StoreHome) -> None:
    add(home, batch(4))
    add(home, batch(6))
    imports = imports_of(home)
    for session, ids in imports.messages_of(2).items():
        home.conversation.hide_messages(session, ids, NOW)
    imports.mark_undone(2, NOW)
    assert [record.content for record in UnreadMessages(home.db, home.log).read_after("import:1", 1, 0)][1:] == [
        f"words {n}" for n in range(4)
    ]
    assert add(home, batch(6)) == [(0, 2, 4)]


def test_unread_imports_wait_the_earliest_first_until_they_were_read(home: StoreHome) -> None:
    late = replace(batch(external_id="c2"), messages=(ImportedMessage("z", "user", "late", BEGUN + timedelta(days=9)),))
    add(home, late, batch())
    imports = imports_of(home)
    assert [info.key for info in imports.list_unread(limit=9)] == ["import:2", "import:1"]
    home.conversation.mark_extracted("import:2", 1, 5)
    assert [info.key for info in imports.list_unread(limit=9)] == ["import:1"]


def test_what_a_power_cut_left_in_the_log_alone_belongs_to_the_import_that_goes_on(home: StoreHome) -> None:
    add(home, batch(3))
    with home.db.write() as db:
        # What was not synced yet when the log was.
        for table in ("imported_ranges", "imports", "messages"):
            db.execute(f"DELETE FROM {table}")
    home.restart().conversation.recover_after_crash(NOW)
    add(home, batch(4))
    (run,) = imports_of(home).list_runs()
    assert run.state == "done" and (run.conversations, run.messages) == (1, 4)
    assert len(imports_of(home).messages_of(run.id)["import:1"]) == 5
