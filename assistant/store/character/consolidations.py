"""Which journal entries were consolidated into which memories, the plans of memory changes, and the knowledge as of an
earlier time, which follows from both. Implements `ConsolidationsPort` over character.db.

- A plan is stored completely, as JSON, so that an interrupted one is applied as decided (I4).
- Marking a plan applied, mapping its entries to memories and superseding entries is one transaction.
- An entry is pending until it has a row in `consolidated_entry_ids`, whatever its content.
- "Known" refers to the assistant: an entry since it was stored, a memory since its plan was saved, however long ago it
  was said. Plans contain complete memories, so the state at a time results from all plans until then, in order, without
  those already undone (no later plan builds on an undone one). Erased content is in no plan or entry, so it is never
  returned.
- Queries about an earlier time are limited to one scope (I10).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from sqlite3 import Row

from assistant.core.dataclass import dataclass
from assistant.core.memories import ChangePlan, JournalEntry, Memory, MemorySnapshot, PhaseCursor
from assistant.store.character.journal import UNDONE_NOTE, entry_subject, read_entry, save_reading
from assistant.store.character.memory_listing import PENDING, MemoryListing
from assistant.store.rows import dump_json, format_time, from_json, parse_time

# Sorts after every id.
_LAST = "\U0010ffff"
_PLANS = "SELECT p.id, p.body, p.undone_at FROM change_plans p WHERE p.scope = ? AND p.at <= ?"
_UNDONE_BY = (
    f"SELECT 1 FROM consolidated_entry_ids c WHERE c.entry_id = journal.id AND c.note = '{UNDONE_NOTE}' AND c.at <= ?"
)
_KINDS = ("fact", "preference", "decision", "task")


@dataclass
class _PlanEffects:
    """The effects of plans: memories by id, rejected entries, and entries of undone plans."""

    memories: dict[str, Memory] = field(default_factory=dict)
    rejected: set[int] = field(default_factory=set)
    taken_back: set[int] = field(default_factory=set)


class KnowledgeAsOf(MemoryListing):
    """Reads the knowledge as of an earlier time. Methods raise `StoreError`."""

    def first_noted_at(self, scope: str) -> datetime | None:
        """Return when the first existing entry was stored, or None."""
        at = self._db.value("SELECT min(created_at) FROM journal WHERE scope = ?", (scope,))
        return parse_time(at) if at else None

    def latest_entry(self, scope: str, at: datetime) -> tuple[datetime, int] | None:
        """Return the latest timestamp and largest id among entries stored by then, or None."""
        sql = "SELECT max(id) AS id, max(timestamp) AS at FROM journal WHERE scope = ? AND created_at <= ?"
        row = self._db.row(sql, (scope, at))
        return (parse_time(row["at"]), row["id"]) if row is not None and row["id"] is not None else None

    def known_as_of(self, scope: str, at: datetime) -> MemorySnapshot:
        """Return what was known at a time (inclusive): entries stored by then, and memories planned by then and not yet
        undone. Content erased since is missing. Unconsolidated entries have their current importance."""
        effects = _apply_plans(self._db.rows(f"{_PLANS} ORDER BY p.id", (scope, at)), at)
        settled = effects.rejected | effects.taken_back
        settled |= {entry for memory in effects.memories.values() for entry in memory.entries}
        rows = self._db.rows(
            "SELECT id FROM journal WHERE scope = ? AND created_at <= ? AND source_type <> 'context_synthesis'"
            f" AND NOT EXISTS ({_UNDONE_BY})",
            (scope, at, at),
        )
        bare = self._entries([row["id"] for row in rows if row["id"] not in settled], scope, at)
        return MemorySnapshot(
            tuple(sorted(effects.memories.values(), key=lambda memory: (memory.said_at, memory.entries))),
            tuple(sorted(bare.values(), key=lambda entry: (entry.timestamp, entry.id or 0))),
            self._replaced(None, scope, at),
        )

    def memories_by_entry(self, entry_ids: Sequence[int], scope: str, at: datetime) -> dict[int, Memory]:
        """Return, by entry, its memory at that time, or the entry itself as one. Entries not findable then are
        omitted."""
        entries = self._entries(entry_ids, scope, at)
        effects = self._about(map(entry_subject, entries), scope, at)
        effects = self._about([*effects.memories, *map(entry_subject, entries)], scope, at)
        by_entry = {entry: item for item in effects.memories.values() for entry in item.entries}
        about = {*entries, *(entry for number in entries if number in by_entry for entry in by_entry[number].entries)}
        replaced = self._replaced(about, scope, at)
        after = self._about((entry_subject(by.id or 0) for by in replaced.values()), scope, at).memories.values()
        holder = {entry: item.id for item in after for entry in item.entries}
        memories: dict[int, Memory] = {}
        for number, entry in entries.items():
            if number in effects.rejected:
                continue
            memory = by_entry.get(number) or entry_as_memory(entry)
            by = next((replaced[item] for item in memory.entries if item in replaced), None)
            if memory.is_current and by is not None:
                memory = replace(memory, until=by.timestamp, superseded_by=holder.get(by.id or 0, ""))
            memories[number] = memory
        return memories

    def find_memory(self, memory_id: str, scope: str, at: datetime) -> Memory | None:
        """Return the memory as it was at that time; None if the scope did not have it."""
        return self._about([memory_id], scope, at).memories.get(memory_id)

    # ----------------------------------------------------------------------------------------------------------- steps

    def _about(self, subjects: Iterable[str], scope: str, at: datetime) -> _PlanEffects:
        """Return the effects of plans concerning these subjects; other memories in the result may be incomplete."""
        rows = self._db.rows(
            f"{_PLANS} AND p.id IN (SELECT s.plan FROM plan_subjects s"
            " WHERE s.subject IN (SELECT value FROM json_each(?))) ORDER BY p.id",
            (scope, at, json.dumps(list(subjects))),
        )
        return _apply_plans(rows, at)

    def _entries(self, entry_ids: Iterable[int], scope: str, at: datetime) -> dict[int, JournalEntry]:
        """Return entries, without those extracted by a cycle and undone with it."""
        rows = self._db.rows(
            "SELECT * FROM journal WHERE id IN (SELECT value FROM json_each(?)) AND scope = ? AND created_at <= ?"
            f" AND NOT EXISTS ({_UNDONE_BY} AND c.cycle IS journal.cycle)",
            (json.dumps(list(entry_ids)), scope, at, at),
        )
        return {row["id"]: read_entry(row) for row in rows}

    def _replaced(self, entry_ids: Iterable[int] | None, scope: str, at: datetime) -> Mapping[int, JournalEntry]:
        rows = self._db.rows(
            "SELECT r.entry_id, r.by_entry FROM replacements r JOIN journal by ON by.id = r.by_entry"
            " WHERE by.scope = ? AND by.created_at <= ?"
            " AND (? IS NULL OR r.entry_id IN (SELECT value FROM json_each(?))) ORDER BY r.by_entry",
            (scope, at, *(2 * [None if entry_ids is None else json.dumps(list(entry_ids))])),
        )
        pairs = {row["entry_id"]: row["by_entry"] for row in rows}
        by = self._entries(pairs.values(), scope, at)
        return {entry: by[instead] for entry, instead in pairs.items() if instead in by}


def _apply_plans(rows: Iterable[Row], at: datetime) -> _PlanEffects:
    effects = _PlanEffects()
    for row in rows:
        plan = from_json(ChangePlan, row["body"])
        if row["undone_at"] is not None and row["undone_at"] <= format_time(at):
            effects.taken_back.update(plan.entries)
            continue
        # Erased entries are removed from `plan.entries`.
        effects.rejected.update({entry for entry, _ in plan.rejected} & set(plan.entries))
        for change in plan.changes:
            effects.memories[change.memory.id] = change.memory
    return effects


def entry_as_memory(entry: JournalEntry) -> Memory:
    """Represent an entry without a memory as one."""
    kind = next((tag for tag in entry.tags if tag in _KINDS), "fact")
    return Memory("", entry.scope, entry.content, entry.timestamp, kind, entry.importance, (entry.id or 0,))


class StoredConsolidations(KnowledgeAsOf):
    """Implements `ConsolidationsPort`, and tells what was known earlier."""

    # ---------------------------------------------------------------------------------------------------------- entries

    def pending_entries(self, *, scope: str | None = None, limit: int = 200) -> list[JournalEntry]:
        return self._db.read_all(
            read_entry, f"{PENDING} AND scope = coalesce(?, scope) ORDER BY timestamp, id LIMIT ?", (scope, limit)
        )

    def unscored_entries(
        self, after_id: int, min_importance: float, max_importance: float, *, limit: int = 100
    ) -> list[JournalEntry]:
        return self._db.read_all(
            read_entry,
            f"{PENDING} AND id > ? AND importance BETWEEN ? AND ? ORDER BY id LIMIT ?",
            (after_id, min_importance, max_importance, limit),
        )

    def save_scores(self, weights: Mapping[int, float], reading: PhaseCursor, now: datetime) -> None:
        with self._db.write() as db:
            for entry_id, weight in weights.items():
                db.execute("UPDATE journal SET importance = ? WHERE id = ?", (weight, entry_id))
            save_reading(db, reading, now)

    def memory_ids_by_entry(self, entry_ids: Sequence[int]) -> dict[int, str]:
        """Return memory ids by entry id, for consolidated entries."""
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

    # ------------------------------------------------------------------------------------------------------------ plans

    def save_plan(self, plan: ChangePlan, now: datetime) -> None:
        with self._db.write() as db:
            if db.row("SELECT 1 FROM change_plans WHERE key = ?", (plan.key,)) is not None:
                return
            self._add_plan(plan, "planned", now)

    def _add_plan(self, plan: ChangePlan, state: str, at: datetime) -> None:
        """Insert a plan, within `write()`."""
        columns = {"key": plan.key, "cycle": plan.cycle, "scope": plan.scope, "body": dump_json(plan)}
        number = self._db.insert_row("change_plans", **columns, state=state, at=at)
        subjects = [*(change.memory.id for change in plan.changes), *map(entry_subject, plan.entries)]
        for subject in dict.fromkeys(subjects):
            self._db.insert_row("plan_subjects", subject=subject, plan=number)

    def unapplied_plans(self) -> list[ChangePlan]:
        return self._db.read_all(_read_plan, "SELECT body FROM change_plans WHERE state = 'planned' ORDER BY id")

    def applied_plans(self, cycle: int) -> list[ChangePlan]:
        sql = "SELECT body FROM change_plans WHERE state = 'applied' AND cycle = ? ORDER BY id DESC"
        return self._db.read_all(_read_plan, sql, (cycle,))

    def iterate_applied_plans(self, cycle: int, scope: str) -> Iterator[ChangePlan]:
        """Yield plans, oldest first."""
        sql = "SELECT body FROM change_plans WHERE cycle = ? AND scope = ? AND state = 'applied' ORDER BY id"
        return map(_read_plan, self._db.iterate(sql, (cycle, scope)))

    def mark_applied(self, key: str, now: datetime) -> None:
        with self._db.write() as db:
            plan = self._find_plan(key, "planned")
            if plan is None:
                return
            rejected = dict(plan.rejected)
            into = _memories_by_entry(plan)
            for entry_id in dict.fromkeys((*plan.entries, *rejected)):
                memory_id = "" if entry_id in rejected else into.get(entry_id, "")
                self._record_entry(entry_id, memory_id, rejected.get(entry_id, ""), plan.cycle, now)
            for entry_id, by in plan.superseded:
                db.execute(
                    "UPDATE journal SET superseded_by = (SELECT id FROM journal WHERE id = ?) WHERE id = ?",
                    (by, entry_id),
                )
            db.execute("UPDATE change_plans SET state = 'applied' WHERE key = ?", (key,))

    def last_plan_of_memory(self, memory_id: str, scope: str) -> ChangePlan | None:
        return self._db.read_one(
            _read_plan,
            "SELECT p.body FROM plan_subjects s JOIN change_plans p ON p.id = s.plan WHERE s.subject = ?"
            " AND p.scope = ? AND p.state = 'applied' AND EXISTS (SELECT 1 FROM json_each(p.body, '$.changes') c"
            " WHERE c.value ->> '$.memory.id' = s.subject) ORDER BY p.id DESC LIMIT 1",
            (memory_id, scope),
        )

    def split_plan(self, rest: ChangePlan, part: ChangePlan) -> None:
        with self._db.write() as db:
            whole = db.row("SELECT id, at FROM change_plans WHERE key = ? AND state = 'applied'", (rest.key,))
            if whole is None:
                return
            db.execute("UPDATE change_plans SET body = ? WHERE id = ?", (dump_json(rest), whole["id"]))
            self._add_plan(part, "applied", parse_time(whole["at"]))

    def mark_accepted(self, keys: Sequence[str], now: datetime) -> None:
        with self._db.write() as db:
            for key in keys:
                db.execute("UPDATE change_plans SET accepted_at = ? WHERE key = ?", (now, key))

    def accepted_keys(self, cycle: int) -> set[str]:
        """Return the keys of a cycle's plans that a person confirmed."""
        rows = self._db.rows("SELECT key FROM change_plans WHERE cycle = ? AND accepted_at IS NOT NULL", (cycle,))
        return {row["key"] for row in rows}

    def mark_undone(self, keys: Sequence[str], now: datetime) -> None:
        with self._db.write() as db:
            for key in keys:
                plan = self._find_plan(key, "applied")
                if plan is None:
                    continue
                for entry_id in plan.entries:
                    where = {"entry_id": entry_id}
                    db.update_rows("consolidated_entry_ids", where, memory_id="", note=UNDONE_NOTE, at=now)
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
        with self._db.write():
            for entry in entries:
                self._record_entry(entry.id, "", UNDONE_NOTE, entry.cycle, now)

    def _restore_superseded(self, plan: ChangePlan) -> None:
        """Restore `superseded_by` of the plan's superseded entries: to the previous successor, or to one written by
        other means than an undone cycle, else NULL."""
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
        return self._db.read_one(_read_plan, "SELECT body FROM change_plans WHERE key = ? AND state = ?", (key, state))

    def _record_entry(self, entry_id: int | None, memory_id: str, note: str, cycle: int | None, now: datetime) -> None:
        """Insert or update an entry's row; does nothing if the entry was erased meanwhile."""
        self._db.execute(
            "INSERT INTO consolidated_entry_ids (entry_id, memory_id, note, cycle, at)"
            " SELECT id, ?, ?, ?, ? FROM journal WHERE id = ?"
            " ON CONFLICT (entry_id) DO UPDATE SET memory_id = excluded.memory_id, note = excluded.note,"
            " cycle = excluded.cycle, at = excluded.at",
            (memory_id, note, cycle, now, entry_id),
        )


def _read_plan(row: Row) -> ChangePlan:
    return from_json(ChangePlan, row["body"])


def _memories_by_entry(plan: ChangePlan) -> dict[int, str]:
    return {
        entry_id: change.memory.id
        for change in plan.changes
        if change.action != "delete"
        for entry_id in change.memory.entries
    }
