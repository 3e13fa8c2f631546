"""What memories said before, in memory.db, with the columns of Mem0's own history.

It lies in the same file as the memories so that a change and its note are written in one transaction, and so that what
is forgotten is forgotten here as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assistant.store.encoding import clean_text
from assistant.store.memory_batch import MemoryBatch

COLUMNS = (
    "memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at", "is_deleted", "actor_id", "role",
)  # fmt: skip


class MemoryHistory:
    def __init__(self, batch: MemoryBatch) -> None:
        self._batch = batch

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Rows by column; missing ones are NULL. Raises `StoreError`."""
        places = ", ".join("?" * len(COLUMNS))
        with self._batch.writing() as db:
            db.execute_many(
                f"INSERT INTO history ({', '.join(COLUMNS)}) VALUES ({places})",
                [[_stored(row.get(column)) for column in COLUMNS[:6]]
                 + [int(row.get("is_deleted") or 0), _stored(row.get("actor_id")), _stored(row.get("role"))]
                 for row in rows],
            )  # fmt: skip

    def of(self, memory_id: str) -> list[dict[str, Any]]:
        """Oldest first, with `id` as text."""
        rows = self._batch.db.rows(
            f"SELECT number, {', '.join(COLUMNS)} FROM history WHERE memory_id = ? ORDER BY number", (memory_id,)
        )
        return [{"id": str(row["number"]), **{column: row[column] for column in COLUMNS}} for row in rows]

    def erase(self, memory_ids: Sequence[str]) -> None:
        with self._batch.writing() as db:
            db.execute_many("DELETE FROM history WHERE memory_id = ?", [(one,) for one in memory_ids])

    def clear(self) -> None:
        with self._batch.writing() as db:
            db.execute("DELETE FROM history")


def _stored(value: Any) -> Any:
    return clean_text(value) if isinstance(value, str) else value
