"""Paged listing of memories in chronological order, from the journal. Cost is independent of the total number."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from assistant.core.memories import JournalEntry
from assistant.store.character.journal import read_entry
from assistant.store.database import Database

PENDING = (
    "SELECT * FROM journal WHERE source_type <> 'context_synthesis'"
    " AND NOT EXISTS (SELECT 1 FROM consolidated_entry_ids c WHERE c.entry_id = journal.id)"
)
# Later than every stored time.
_END_OF_TIME = datetime.max.replace(tzinfo=UTC)


class MemoryListing:
    """Lists memories from character.db. Methods raise `StoreError`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def first_entries(
        self, scope: str, before_entry: tuple[datetime, int] | None, limit: int
    ) -> list[tuple[JournalEntry, str]]:
        """Return the first entry of each memory with the memory's id, and pending entries with "", newest first,
        optionally before a (time, entry id)."""
        at, number = before_entry or (_END_OF_TIME, 0)
        return self._db.read_all(
            lambda row: (read_entry(row), row["memory_id"] or ""),
            "SELECT j.*, c.memory_id FROM journal j LEFT JOIN consolidated_entry_ids c ON c.entry_id = j.id"
            " WHERE j.scope = ? AND j.timestamp <= ? AND (j.timestamp < ? OR j.id < ?)"
            " AND ((c.entry_id IS NULL AND j.source_type <> 'context_synthesis') OR (c.memory_id <> ''"
            " AND NOT EXISTS (SELECT 1 FROM consolidated_entry_ids o JOIN journal e ON e.id = o.entry_id"
            " WHERE o.memory_id = c.memory_id AND (e.timestamp, e.id) < (j.timestamp, j.id))))"
            " ORDER BY j.timestamp DESC, j.id DESC LIMIT ?",
            (scope, at, at, number, limit),
        )

    def pending_successors(self, memory_ids: Sequence[str]) -> dict[str, JournalEntry]:
        """Return by memory id the pending entry that supersedes it."""
        return dict(
            self._db.read_all(
                lambda row: (row["memory_id"], read_entry(row)),
                f"SELECT p.*, c.memory_id FROM consolidated_entry_ids c JOIN journal j ON j.id = c.entry_id"
                f" JOIN ({PENDING}) p ON p.id = j.superseded_by"
                " WHERE c.memory_id IN (SELECT value FROM json_each(?)) ORDER BY p.timestamp, p.id",
                (json.dumps(list(memory_ids)),),
            )
        )

    def sample_memory_ids(self, count: int) -> list[str]:
        """Return at most `count` ids, evenly distributed; all if there are no more."""
        rows = self._db.rows(
            "SELECT DISTINCT memory_id AS id FROM consolidated_entry_ids WHERE memory_id > '' LIMIT ?", (count + 1,)
        )
        if len(rows) <= count:
            return [row["id"] for row in rows]
        # Ids are hashes, so they are evenly distributed.
        starts = [f"{number * 16**8 // count:08x}" for number in range(count)]
        sql = "SELECT memory_id FROM consolidated_entry_ids WHERE memory_id >= ? ORDER BY memory_id LIMIT 1"
        return list(dict.fromkeys(filter(None, (self._db.value(sql, (start,)) for start in starts))))
