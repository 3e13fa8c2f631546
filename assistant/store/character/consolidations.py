"""Which journal entries went into which memories, and the plans of memory changes. Implements `ConsolidationsPort`
over character.db.

What always holds:
- A plan's body is the whole plan as JSON, so a plan that a crash interrupted is carried out as it was decided (I4).
- That a plan was carried out, which memories its entries went into and what they supersede is one transaction.
- An entry is pending until it has a row in `consolidated_entry_ids`, whatever that row says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from assistant.core.memories import ChangePlan, JournalEntry, MemorySnapshot, PhaseCursor
from assistant.store.character.as_of import KnowledgeAsOf
from assistant.store.character.journal import UNDONE_NOTE, entry_subject, read_entry, save_reading
from assistant.store.database import Database
from assistant.store.rows import dump_json, from_json

_PENDING = (
    "SELECT * FROM journal WHERE source_type <> 'context_synthesis'"
    " AND NOT EXISTS (SELECT 1 FROM consolidated_entry_ids c WHERE c.entry_id = journal.id)"
)
# No id has a character behind this one.
_LAST = "\U0010ffff"


class StoredConsolidations:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._as_of = KnowledgeAsOf(db)

    # ---------------------------------------------------------------------------------------------------------- entries

    def pending_entries(self, *, scope: str | None = None, limit: int = 200) -> list[JournalEntry]:
        return self._db.read_all(
            read_entry, f"{_PENDING} AND scope = coalesce(?, scope) ORDER BY timestamp, id LIMIT ?", (scope, limit)
        )

    def unscored_entries(
        self, after_id: int, min_importance: float, max_importance: float, *, limit: int = 100
    ) -> list[JournalEntry]:
        return self._db.read_all(
            read_entry,
            f"{_PENDING} AND id > ? AND importance BETWEEN ? AND ? ORDER BY id LIMIT ?",
            (after_id, min_importance, max_importance, limit),
        )

    def save_scores(self, weights: Mapping[int, float], reading: PhaseCursor, now: datetime) -> None:
        with self._db.write() as db:
            for entry_id, weight in weights.items():
                db.execute("UPDATE journal SET importance = ? WHERE id = ?", (weight, entry_id))
            save_reading(db, reading, now)

    def memory_ids_by_entry(self, entry_ids: Sequence[int]) -> dict[int, str]:
        """Memory ids by entry id, for those that went into one."""
        rows = self._db.rows(
            "SELECT entry_id, memory_id FROM consolidated_entry_ids"
            " WHERE memory_id <> '' AND entry_id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(entry_ids)),),
        )
        return {row["entry_id"]: row["memory_id"] for row in rows}

    def entries_of_memory(self, memory_id: str) -> list[JournalEntry]:
        return self._db.read_all(
            read_entry,
            "SELECT j.* FROM consolidated_entry_ids c JOIN journal j ON j.id = c.entry_id"
            " WHERE c.memory_id = ? AND c.memory_id <> '' ORDER BY j.timestamp, j.id",
            (memory_id,),
        )

    def memory_ids(self, scope: str | None = None, prefix: str = "") -> list[str]:
        rows = self._db.rows(
            "SELECT c.memory_id AS id FROM consolidated_entry_ids c JOIN journal j ON j.id = c.entry_id"
            " WHERE c.memory_id > '' AND c.memory_id >= ? AND c.memory_id < ? AND j.scope = coalesce(?, j.scope)"
            " GROUP BY c.memory_id ORDER BY min(j.timestamp), min(j.id)",
            (prefix, f"{prefix}{_LAST}", scope),
        )
        return [row["id"] for row in rows]

    def memories_superseded_by(self, entry_ids: Sequence[int]) -> dict[int, list[str]]:
        memory_ids: dict[int, list[str]] = {}
        rows = self._db.rows(
            "SELECT DISTINCT j.superseded_by AS by, c.memory_id AS id FROM journal j"
            " JOIN consolidated_entry_ids c ON c.entry_id = j.id"
            " WHERE c.memory_id <> '' AND j.superseded_by IN (SELECT value FROM json_each(?)) ORDER BY c.memory_id",
            (json.dumps(list(entry_ids)),),
        )
        for row in rows:
            memory_ids.setdefault(row["by"], []).append(row["id"])
        return memory_ids

    def known_as_of(self, scope: str, at: datetime) -> MemorySnapshot:
        """What was known at a time, that moment included: what had been noted by then, made into memories as far as
        that was decided, and not taken back by then. What was erased since is not there. Importance is as it is now
        for what was no memory yet."""
        return self._as_of.all_known(scope, at)

    def first_noted_at(self, scope: str) -> datetime | None:
        """When the first entry that is still there was noted; None where there is none."""
        return self._as_of.first_noted_at(scope)

    # ------------------------------------------------------------------------------------------------------------ plans

    def save_plan(self, plan: ChangePlan, now: datetime) -> None:
        with self._db.write() as db:
            if db.row("SELECT 1 FROM change_plans WHERE key = ?", (plan.key,)) is not None:
                return
            columns = {"key": plan.key, "cycle": plan.cycle, "scope": plan.scope, "body": dump_json(plan)}
            number = db.insert_row("change_plans", **columns, state="planned", at=now)
            subjects = [*(change.memory.id for change in plan.changes), *map(entry_subject, plan.entries)]
            db.execute_many(
                "INSERT INTO plan_subjects (subject, plan) VALUES (?, ?)",
                [(subject, number) for subject in dict.fromkeys(subjects)],
            )

    def unapplied_plans(self) -> list[ChangePlan]:
        return list(self._plans("SELECT body FROM change_plans WHERE state = 'planned' ORDER BY id"))

    def applied_plans(self, cycle: int) -> list[ChangePlan]:
        sql = "SELECT body FROM change_plans WHERE state = 'applied' AND cycle = ? ORDER BY id DESC"
        return list(self._plans(sql, (cycle,)))

    def mark_applied(self, key: str, now: datetime) -> None:
        with self._db.write() as db:
            plan = self._find_plan(key, "planned")
            if plan is None:
                return
            rejected = dict(plan.rejected)
            into = _memories_by_entry(plan)
            for entry_id in dict.fromkeys((*plan.entries, *rejected)):
                # What was forgotten since the plan was made is not there any more.
                db.execute(
                    "INSERT INTO consolidated_entry_ids (entry_id, memory_id, note, cycle, at)"
                    " SELECT id, ?, ?, ?, ? FROM journal WHERE id = ?"
                    " ON CONFLICT (entry_id) DO UPDATE SET memory_id = excluded.memory_id, note = excluded.note,"
                    " cycle = excluded.cycle, at = excluded.at",
                    (
                        "" if entry_id in rejected else into.get(entry_id, ""),
                        rejected.get(entry_id, ""),
                        plan.cycle,
                        now,
                        entry_id,
                    ),
                )
            for entry_id, by in plan.superseded:
                db.execute(
                    "UPDATE journal SET superseded_by = (SELECT id FROM journal WHERE id = ?) WHERE id = ?",
                    (by, entry_id),
                )
            db.execute("UPDATE change_plans SET state = 'applied' WHERE key = ?", (key,))

    def mark_undone(self, keys: Sequence[str], now: datetime) -> None:
        with self._db.write() as db:
            for key in keys:
                plan = self._find_plan(key, "applied")
                if plan is None:
                    continue
                for entry_id in plan.entries:
                    db.execute(
                        "UPDATE consolidated_entry_ids SET memory_id = '', note = ?, at = ? WHERE entry_id = ?",
                        (UNDONE_NOTE, now, entry_id),
                    )
                self._restore_superseded(plan)
                db.execute("UPDATE change_plans SET state = 'undone', undone_at = ? WHERE key = ?", (now, key))

    def entries_of_cycle(self, cycle: int, checkpoints: Sequence[int] = ()) -> list[JournalEntry]:
        patterns = [f"{kind}:{number}" for number in checkpoints for kind in ("synthesis", "memories")]
        return self._db.read_all(
            read_entry,
            "SELECT * FROM journal WHERE (cycle = ? OR EXISTS (SELECT 1 FROM json_each(?) p"
            " WHERE journal.key = p.value OR journal.key GLOB p.value || ':*'))"
            " AND NOT EXISTS (SELECT 1 FROM consolidated_entry_ids c WHERE c.entry_id = journal.id AND c.note = ?"
            " AND c.cycle IS journal.cycle) ORDER BY id",
            (cycle, json.dumps(patterns), UNDONE_NOTE),
        )

    def withdraw_entries(self, entries: Sequence[JournalEntry], now: datetime) -> None:
        with self._db.write() as db:
            for entry in entries:
                db.execute(
                    "INSERT INTO consolidated_entry_ids (entry_id, memory_id, note, cycle, at)"
                    " SELECT id, '', ?, cycle, ? FROM journal WHERE id = ?"
                    " ON CONFLICT (entry_id) DO UPDATE SET memory_id = '', note = excluded.note,"
                    " cycle = excluded.cycle, at = excluded.at",
                    (UNDONE_NOTE, now, entry.id),
                )

    def _restore_superseded(self, plan: ChangePlan) -> None:
        """The entries that the plan superseded: by what stood there before, or was written in their place by others
        than a sleep that was taken back; else by nothing."""
        previous = {
            entry_id: change.before.superseded_by
            for change in plan.changes
            if change.before is not None
            for entry_id in change.before.entries
        }
        for entry_id, by in plan.superseded:
            self._db.execute(
                "UPDATE journal SET superseded_by = coalesce((SELECT min(entry_id) FROM consolidated_entry_ids"
                " WHERE memory_id = ? AND memory_id <> ''), (SELECT max(r.by_entry) FROM replacements r"
                " JOIN journal b ON b.id = r.by_entry LEFT JOIN consolidated_entry_ids c ON c.entry_id = b.id"
                " AND c.note = ? AND c.cycle IS b.cycle WHERE r.entry_id = journal.id AND c.entry_id IS NULL))"
                " WHERE id = ? AND superseded_by = ?",
                (previous.get(entry_id, ""), UNDONE_NOTE, entry_id, by),
            )

    def _find_plan(self, key: str, state: str) -> ChangePlan | None:
        return next(self._plans("SELECT body FROM change_plans WHERE key = ? AND state = ?", (key, state)), None)

    def _plans(self, sql: str, values: Sequence[Any] = ()) -> Iterator[ChangePlan]:
        return (from_json(ChangePlan, row["body"]) for row in self._db.rows(sql, tuple(values)))


def _memories_by_entry(plan: ChangePlan) -> dict[int, str]:
    return {
        entry_id: change.memory.id
        for change in plan.changes
        if change.action != "delete"
        for entry_id in change.memory.entries
    }
