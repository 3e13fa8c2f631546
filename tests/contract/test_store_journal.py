"""The journal: entries by their keys, cursors committed with what they stand for, sleep cycles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.errors import StoreError
from assistant.core.memories import JournalEntry, PhaseCursor, SleepReport
from assistant.store.character.journal import StoredJournal
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations
from tests.support.store_home import NOW

LATER = NOW + timedelta(hours=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "character.db"


@pytest.fixture
def db(path: Path) -> Iterator[Database]:
    db = Database.open(path, character_migrations, NOW)
    yield db
    db.close()


@pytest.fixture
def journal(db: Database) -> StoredJournal:
    return StoredJournal(db)


def entry(content: str, key: str = "", *, scope: str = "owner", hours: float = 0, **more: object) -> JournalEntry:
    of = JournalEntry(
        key or f"k:{content}",
        scope,
        "main",
        1,
        content,
        NOW + timedelta(hours=hours),
        "extraction",
        0.5,
        ("fact",),
        (7,),
    )
    return replace(of, **more)  # type: ignore[arg-type]


def contents(found: list[JournalEntry]) -> list[str]:
    return [one.content for one in found]


# ------------------------------------------------------------------------------------------------------------ entries


def test_an_entry_comes_back_as_it_was_written(journal: StoredJournal) -> None:
    wanted = entry("She sails.", source_type="compaction", importance=0.7, tags=("fact", "boat"), sources=(3, 9))
    (written,) = journal.add([wanted], NOW)
    assert written.id is not None and replace(written, id=None) == wanted
    assert journal.entries("owner") == [written]


def test_what_is_written_twice_is_there_once(journal: StoredJournal) -> None:
    (first,) = journal.add([entry("She sails.", "a"), entry("again", "a")], NOW)
    again = journal.add([entry("She sails no more.", "a"), entry("She rows.", "b")], LATER)
    assert contents(again) == ["She rows."]
    assert journal.entries("owner") == [*again, first]


def test_entries_come_newest_first_of_their_scope_since_a_time_and_of_a_kind(journal: StoredJournal) -> None:
    journal.add(
        [
            entry("old", hours=-48),
            entry("new", hours=-1),
            entry("theirs", scope="peer:x:ann"),
            entry("summed up", hours=-2, source_type="context_synthesis"),
        ],
        NOW,
    )
    assert contents(journal.entries("owner")) == ["new", "summed up", "old"]
    assert contents(journal.entries("owner", since=NOW - timedelta(days=1))) == ["new", "summed up"]
    assert contents(journal.entries("owner", source_type="extraction", limit=1)) == ["new"]
    assert contents(journal.entries("peer:x:ann")) == ["theirs"]


def test_broken_characters_are_mended(journal: StoredJournal) -> None:
    (written,) = journal.add([entry("half \ud83d", "a", tags=("\ud83d",))], NOW)
    assert written.content == "half \ufffd" and journal.entries("owner")[0].tags == ("\ufffd",)


# ------------------------------------------------------------------------------------------------------------ reading


def test_reading_is_of_a_phase_a_session_and_a_generation(journal: StoredJournal) -> None:
    assert journal.read_position("extract", "main", 1) == 0
    journal.add([entry("a")], NOW, reading=PhaseCursor("extract", "main", 1, 12))
    assert journal.read_position("extract", "main", 1) == 12
    assert [
        journal.read_position(*of) for of in (("extract", "main", 2), ("score", "main", 1), ("extract", "x", 1))
    ] == [0] * 3


def test_where_an_entry_cannot_be_written_nothing_is_read(journal: StoredJournal, db: Database) -> None:
    """The cursor never runs ahead of what it stands for."""
    with db.write():
        db.execute(
            "CREATE TRIGGER full BEFORE INSERT ON journal WHEN NEW.key = 'b' BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
    with pytest.raises(StoreError):
        journal.add([entry("first", "a"), entry("second", "b")], NOW, reading=PhaseCursor("extract", "main", 1, 9))
    assert (journal.entries("owner"), journal.read_position("extract", "main", 1)) == ([], 0)


def test_reading_only_goes_forward_and_stands_after_a_restart(journal: StoredJournal, path: Path) -> None:
    journal.add([], NOW, reading=PhaseCursor("extract", "main", 1, 9))
    journal.add([], LATER, reading=PhaseCursor("extract", "main", 1, 4))
    again = Database.open(path, character_migrations, LATER)
    assert StoredJournal(again).read_position("extract", "main", 1) == 9
    again.close()


# ------------------------------------------------------------------------------------------------------------- cycles


def test_a_cycle_is_kept_as_it_was_last_noted(journal: StoredJournal) -> None:
    first = journal.begin_cycle("nap", NOW)
    assert journal.list_cycles() == [SleepReport(first, "nap", NOW, None, "running")]
    done = SleepReport(first, "nap", NOW, LATER, "done", {"extract": {"read": 3, "cost_usd": None, "rejected": ["x"]}})
    journal.save_cycle(done)
    second = journal.begin_cycle("manual", LATER)
    assert journal.list_cycles() == [SleepReport(second, "manual", LATER, None, "running"), done]
    assert [cycle.id for cycle in journal.list_cycles(limit=1)] == [second]
    # What a compaction has read before it is no sleep of a person's: status goes on to name the one before.
    journal.begin_cycle("phase", LATER)
    assert [cycle.id for cycle in journal.list_cycles(limit=1, sleeps_only=True)] == [second]


def test_f15_a_cycle_that_a_crash_cut_off_is_interrupted(journal: StoredJournal, path: Path) -> None:
    cut = journal.begin_cycle("sleep", NOW)
    journal.save_cycle(SleepReport(cut, "sleep", NOW, None, "running", {"settle": {"written": 1}}))
    again = Database.open(path, character_migrations, LATER)
    restarted = StoredJournal(again)
    assert [(one.state, one.phases) for one in restarted.list_cycles()] == [("interrupted", {"settle": {"written": 1}})]
    restarted.begin_cycle("sleep", LATER)
    assert [one.state for one in restarted.list_cycles()] == ["running", "interrupted"]
    again.close()


def test_the_last_sleep_is_the_one_begun_last_though_a_wrong_clock_dated_another_later(journal: StoredJournal) -> None:
    for when in (LATER, NOW):
        journal.save_cycle(SleepReport(journal.begin_cycle("sleep", when), "sleep", when, when, "done", {}))
    journal.save_cycle(SleepReport(journal.begin_cycle("nap", LATER), "nap", LATER, LATER, "done", {}))
    assert journal.last_sleep_at() == NOW


def test_one_cycle_runs_at_a_time(journal: StoredJournal) -> None:
    journal.begin_cycle("sleep", NOW)
    journal.begin_cycle("manual", LATER)
    assert [one.state for one in journal.list_cycles()] == ["running", "interrupted"]
