"""What was known, and what a memory file said, at an earlier time: computed from the journal, the plans of memory
changes and the edits of files (character.db).

What always holds:
- "Known" means known to the assistant: an entry from the moment it was noted, a memory from the moment its plan was
  written, however long before that it was said.
- Plans hold whole memories, so the state at a time is the result of all plans up to then, in order, without those that
  were undone by then (no later plan builds on an undone one).
- What was erased is in no plan and no entry any more, so it is not returned for any time.
- Every query is limited to one scope (I10).
- An edit has the whole text before and after it, and when it was made and undone. What a person writes into the file
  is no edit: it shows in that the next edit found another text than the last one left.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from sqlite3 import Row

from assistant.core.memories import ChangePlan, FileSnapshot, JournalEntry, Memory, MemorySnapshot, UndoableEdit
from assistant.store.character.journal import UNDONE_NOTE, entry_subject, read_entry
from assistant.store.database import Database
from assistant.store.rows import format_time, from_json, parse_time

_PLANS = "SELECT p.id, p.body, p.undone_at FROM change_plans p WHERE p.scope = ? AND p.at <= ?"
_UNDONE_BY = (
    f"SELECT 1 FROM consolidated_entry_ids c WHERE c.entry_id = journal.id AND c.note = '{UNDONE_NOTE}' AND c.at <= ?"
)
_KINDS = ("fact", "preference", "decision", "task")


@dataclass
class _PlanEffects:
    """What plans made: memories by id; entries that were found worth nothing, or whose plan was taken back."""

    memories: dict[str, Memory] = field(default_factory=dict)
    rejected: set[int] = field(default_factory=set)
    taken_back: set[int] = field(default_factory=set)


class KnowledgeAsOf:
    """Reads. Every method raises `StoreError`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def first_noted_at(self, scope: str) -> datetime | None:
        row = self._db.row("SELECT min(created_at) AS at FROM journal WHERE scope = ?", (scope,))
        return parse_time(row["at"]) if row is not None and row["at"] else None

    def latest_entry(self, scope: str, at: datetime) -> tuple[datetime, int] | None:
        """The latest time of which anything told that was noted by then, and the largest id among that."""
        row = self._db.row(
            "SELECT max(id) AS id, max(timestamp) AS at FROM journal WHERE scope = ? AND created_at <= ?",
            (scope, at),
        )
        return (parse_time(row["at"]), row["id"]) if row is not None and row["id"] is not None else None

    def all_known(self, scope: str, at: datetime) -> MemorySnapshot:
        made = _apply_plans(self._db.rows(f"{_PLANS} ORDER BY p.id", (scope, at)), at)
        settled = made.rejected | made.taken_back
        settled |= {entry for memory in made.memories.values() for entry in memory.entries}
        rows = self._db.rows(
            "SELECT id FROM journal WHERE scope = ? AND created_at <= ? AND source_type <> 'context_synthesis'"
            f" AND NOT EXISTS ({_UNDONE_BY})",
            (scope, at, at),
        )
        bare = self._entries([row["id"] for row in rows if row["id"] not in settled], scope, at)
        return MemorySnapshot(
            tuple(sorted(made.memories.values(), key=lambda one: (one.said_at, one.entries))),
            tuple(sorted(bare.values(), key=lambda one: (one.timestamp, one.id or 0))),
            self._replaced(None, scope, at),
        )

    def memories_by_entry(self, entry_ids: Sequence[int], scope: str, at: datetime) -> dict[int, Memory]:
        """By entry what it was then: the memory that it was in, or itself alone. Those that were not to be found then
        are left out."""
        entries = self._entries(entry_ids, scope, at)
        made = self._about(map(entry_subject, entries), scope, at)
        made = self._about([*made.memories, *map(entry_subject, entries)], scope, at)
        by_entry = {entry: item for item in made.memories.values() for entry in item.entries}
        about = {*entries, *(entry for number in entries if number in by_entry for entry in by_entry[number].entries)}
        replaced = self._replaced(about, scope, at)
        after = self._about((entry_subject(by.id or 0) for by in replaced.values()), scope, at).memories.values()
        holder = {entry: item.id for item in after for entry in item.entries}
        memories: dict[int, Memory] = {}
        for number, entry in entries.items():
            if number in made.rejected:
                continue
            memory = by_entry.get(number) or entry_as_memory(entry)
            by = next((replaced[item] for item in memory.entries if item in replaced), None)
            if memory.is_current and by is not None:
                memory = replace(memory, until=by.timestamp, superseded_by=holder.get(by.id or 0, ""))
            memories[number] = memory
        return memories

    def find_memory(self, memory_id: str, scope: str, at: datetime) -> Memory | None:
        return self._about([memory_id], scope, at).memories.get(memory_id)

    # ----------------------------------------------------------------------------------------------------------- steps

    def _about(self, subjects: Iterable[str], scope: str, at: datetime) -> _PlanEffects:
        """What the plans about these made; a memory that is not among them may have been changed by others, too."""
        rows = self._db.rows(
            f"{_PLANS} AND p.id IN (SELECT s.plan FROM plan_subjects s"
            " WHERE s.subject IN (SELECT value FROM json_each(?))) ORDER BY p.id",
            (scope, at, json.dumps(list(subjects))),
        )
        return _apply_plans(rows, at)

    def _entries(self, entry_ids: Iterable[int], scope: str, at: datetime) -> dict[int, JournalEntry]:
        """Without those that a sleep wrote and that were taken back with it."""
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
    made = _PlanEffects()
    for row in rows:
        plan = from_json(ChangePlan, row["body"])
        if row["undone_at"] is not None and row["undone_at"] <= format_time(at):
            made.taken_back.update(plan.entries)
            continue
        # What was forgotten is named among neither.
        made.rejected.update({entry for entry, _ in plan.rejected} & set(plan.entries))
        for change in plan.changes:
            made.memories[change.memory.id] = change.memory
    return made


def entry_as_memory(entry: JournalEntry) -> Memory:
    """What an entry is as long as no memory was made of it."""
    kind = next((tag for tag in entry.tags if tag in _KINDS), "fact")
    return Memory("", entry.scope, entry.content, entry.timestamp, kind, entry.importance, (entry.id or 0,))


_Step = tuple[datetime, int, str, str]


def file_text_as_of(
    edits: Sequence[UndoableEdit], at: datetime, current_text: str, changed_at: datetime | None
) -> FileSnapshot:
    """`edits` of one file in any order; `now` is what it says now, last changed at `changed_at`."""
    steps = sorted(_steps(edits))
    before = [step for step in steps if step[0] <= at]
    after = [step for step in steps if step[0] > at]
    last_text = before[-1][3] if before else None
    if after:
        next_text = after[0][2]
        return FileSnapshot(next_text if last_text is None else last_text, next_text == (last_text or ""))
    if last_text == current_text or (changed_at is not None and changed_at <= at):
        return FileSnapshot(current_text)
    return FileSnapshot("" if last_text is None else last_text, is_certain=False)


def _steps(edits: Sequence[UndoableEdit]) -> Iterator[_Step]:
    """When a text took the place of which."""
    for edit in edits:
        yield edit.at, 2 * (edit.id or 0), edit.before, edit.after
        if edit.undone_at is not None:
            yield edit.undone_at, 2 * (edit.id or 0) + 1, edit.after, edit.before
