"""Which entries went into which memories, and plans that survive a crash."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.errors import StoreError
from assistant.core.memories import ChangePlan, JournalEntry, Memory, MemoryChange, PhaseCursor
from assistant.store.character.consolidations import StoredConsolidations
from assistant.store.character.journal import StoredJournal
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations
from tests.support.store_home import NOW

LATER = NOW + timedelta(days=30)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    db = Database.open(tmp_path / "character.db", character_migrations, NOW)
    yield db
    db.close()


@pytest.fixture
def store(db: Database) -> StoredConsolidations:
    return StoredConsolidations(db)


def written(db: Database, *texts: str, scope: str = "owner", **more: object) -> list[int]:
    fields: dict[str, object] = {"source_type": "extraction"} | more
    entries = [JournalEntry(f"{scope}:{text}", scope, "main", 1, text, NOW, **fields) for text in texts]  # type: ignore[arg-type]
    return [entry.id or 0 for entry in StoredJournal(db).add(entries, NOW)]


def plan(key: str = "k", cycle: int = 1, entries: tuple[int, ...] = (1, 2, 3)) -> ChangePlan:
    old = Memory("m1", "owner", "I live in Oslo. 🙂", NOW, "fact", 0.625, (1,))
    new = Memory("m2", "owner", "I live in Bergen.", LATER, "decision", 0.7, (2,))
    former = replace(old, until=LATER, superseded_by="m2")
    changes = (MemoryChange("add", new), MemoryChange("update", former, old), MemoryChange("delete", old, old))
    return ChangePlan(key, cycle, "owner", changes, entries, ((1, 2),), ((3, "small talk"),))


def test_a_plan_is_kept_whole_until_it_is_carried_out(db: Database, store: StoredConsolidations) -> None:
    written(db, "a", "b", "c")
    store.save_plan(plan(), NOW)
    assert store.unapplied_plans() == [plan()]
    store.mark_applied("k", NOW)
    assert store.unapplied_plans() == []
    assert store.applied_plans(1) == [plan()]


def test_a_plan_that_is_known_stays_as_it_was_and_is_carried_out_once(
    db: Database, store: StoredConsolidations
) -> None:
    written(db, "a", "b", "c")
    store.save_plan(plan(), NOW)
    store.save_plan(replace(plan(), changes=()), NOW)
    assert store.unapplied_plans() == [plan()]
    store.mark_applied("k", NOW)
    store.save_plan(plan(), LATER)
    store.mark_applied("k", LATER)
    assert store.unapplied_plans() == []


def test_what_was_carried_out_is_written_together(db: Database, store: StoredConsolidations) -> None:
    ids = written(db, "a", "b", "c", "d")
    store.save_plan(plan(), NOW)
    store.mark_applied("k", NOW)
    assert store.memory_ids_by_entry(ids) == {1: "m1", 2: "m2"}
    assert [entry.content for entry in store.pending_entries()] == ["d"]
    assert {entry.id: entry.superseded_by for entry in StoredJournal(db).entries("owner")} == {
        1: 2,
        2: None,
        3: None,
        4: None,
    }
    assert [entry.content for entry in store.entries_of_memory("m1")] == ["a"]
    assert store.memory_ids() == ["m1", "m2"]
    assert store.entries_of_memory("") == []


def test_an_entry_that_was_forgotten_meanwhile_is_passed_over(db: Database, store: StoredConsolidations) -> None:
    written(db, "a", "b", "c")
    store.save_plan(plan(entries=(1, 2, 3, 99)), NOW)
    with db.write():
        db.execute("DELETE FROM journal WHERE id = 2")
    store.mark_applied("k", NOW)
    assert store.memory_ids_by_entry([1, 2, 99]) == {1: "m1"}
    assert [entry.superseded_by for entry in store.entries_of_memory("m1")] == [None]


def test_plans_stand_in_their_order_and_by_their_cycle(db: Database, store: StoredConsolidations) -> None:
    written(db, "a", "b", "c")
    plans = [plan("x", 1), plan("y", 1), plan("z", 2)]
    for one in plans:
        store.save_plan(one, NOW)
    assert store.unapplied_plans() == plans
    for one in plans:
        store.mark_applied(one.key, NOW)
    assert ([one.key for one in store.applied_plans(1)], [one.key for one in store.applied_plans(2)]) == (
        ["y", "x"],
        ["z"],
    )


def test_what_was_taken_back_is_neither_pending_nor_consolidated(db: Database, store: StoredConsolidations) -> None:
    ids = written(db, "a", "b", "c")
    store.save_plan(plan(), NOW)
    store.mark_applied("k", NOW)
    store.mark_undone(["k"], LATER)
    store.mark_undone(["k", "unknown"], LATER)
    assert (store.pending_entries(), store.memory_ids_by_entry(ids), store.applied_plans(1)) == ([], {}, [])
    assert [entry.superseded_by for entry in StoredJournal(db).entries("owner")] == [None, None, None]


def test_a_plan_that_was_not_carried_out_is_not_taken_back(db: Database, store: StoredConsolidations) -> None:
    written(db, "a", "b", "c")
    store.save_plan(plan(), NOW)
    store.mark_undone(["k"], LATER)
    assert store.unapplied_plans() == [plan()]


def test_summaries_of_conversations_never_wait(db: Database, store: StoredConsolidations) -> None:
    written(db, "whole summary", source_type="context_synthesis")
    written(db, "noted", source_type="tool")
    assert [entry.content for entry in store.pending_entries()] == ["noted"]


def test_what_waits_comes_oldest_first_and_no_more_than_asked_for(db: Database, store: StoredConsolidations) -> None:
    entries = [
        JournalEntry(f"k{n}", "owner", "main", 1, str(n), NOW - timedelta(days=n), "extraction") for n in range(5)
    ]
    StoredJournal(db).add(entries, NOW)
    assert [entry.content for entry in store.pending_entries(limit=3)] == ["4", "3", "2"]


def test_weights_are_written_with_how_far_was_read(db: Database, store: StoredConsolidations) -> None:
    ids = [written(db, text, importance=weight)[0] for text, weight in (("a", 0.4), ("b", 0.5), ("c", 0.9))]
    assert [entry.content for entry in store.unscored_entries(0, 0.35, 0.55)] == ["a", "b"]
    store.save_scores({ids[0]: 0.8}, PhaseCursor("score", "", 0, ids[1]), NOW)
    assert StoredJournal(db).read_position("score", "", 0) == ids[1]
    assert store.unscored_entries(ids[1], 0.35, 0.55) == []
    assert [entry.importance for entry in store.pending_entries()] == [0.8, 0.5, 0.9]


def test_nothing_is_written_in_half(db: Database, store: StoredConsolidations) -> None:
    ids = written(db, "a", "b", "c")
    store.save_plan(plan(), NOW)
    with db.write():
        db.execute("CREATE TRIGGER full BEFORE UPDATE OF state ON change_plans BEGIN SELECT RAISE(ABORT, 'full'); END")
    with pytest.raises(StoreError):
        store.mark_applied("k", NOW)
    assert (store.memory_ids_by_entry(ids), len(store.pending_entries()), store.unapplied_plans()) == ({}, 3, [plan()])
