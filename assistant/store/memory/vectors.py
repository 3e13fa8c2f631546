"""Memories in memory.db: their texts, vectors and history (earlier versions).

- A memory and its vectors are written and deleted in one transaction; other processes can read meanwhile (WAL).
- The memory layer writes a memory, its vector and its history in separate steps, and only its caller knows which belong
  together: the outermost `MemoryVectors.writing()` commits all or none.
- A vector belongs to the embedder that made it; when the text of a memory changes, the vectors of other embedders are
  deleted. Payloads are in Mem0's format: `data` is the text, `user_id` the scope.
- The history has the columns of Mem0's own. It is in the same file so that a change and its history row are one
  transaction, and so that both are erased together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from sqlite3 import Row
from typing import Any

from assistant.core.errors import StoreError
from assistant.store.database import Database
from assistant.store.rows import clean_text, dump_json, json_safe
from assistant.store.sqlite_errors import unreadable_rows_explained

MemoryRow = tuple[str, dict[str, Any]]
"""A memory's id and payload."""

HISTORY_COLUMNS = (
    *("memory_id", "old_memory", "new_memory", "event"),
    *("created_at", "updated_at", "is_deleted", "actor_id", "role"),
)
_COLUMNS = "id, scope, text, payload"
_TYPES = {
    "kind": "'text'",
    "importance": "'real', 'integer'",
    "entries": "'array'",
    "until": "'text', 'null'",
    "superseded_by": "'text'",
}
_HAS_TYPES = " AND ".join(f"coalesce(json_type(payload, '$.{name}') IN ({types}), 1)" for name, types in _TYPES.items())
# Reads every text, and whether each row is one that can be read; it is done in C, at each start.
_READABLE = f"""
SELECT id, scope, text, CASE WHEN json_valid(payload) THEN json_type(payload) = 'object'
    AND json_extract(payload, '$.said_at') IS said_at AND julianday(said_at) IS NOT NULL AND {_HAS_TYPES}
    AND (json_extract(payload, '$.until') IS NULL OR julianday(json_extract(payload, '$.until')) IS NOT NULL)
    END AS is_readable FROM memories
UNION ALL
SELECT old_memory, new_memory, event, julianday(coalesce(nullif(updated_at, ''), created_at)) IS NOT NULL FROM history
UNION ALL
SELECT '', '', '', 0 FROM vectors GROUP BY embedder HAVING min(length(vector)) <> max(length(vector))
"""
# Fields with a column of their own, or derived from the text.
_NOT_IN_PAYLOAD = frozenset({"data", "user_id", "text_lemmatized"})


class MemoryVectors:
    """Access to one open memory.db; not thread-safe."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._is_writing = False

    @contextmanager
    def writing(self) -> Iterator[Database]:
        """Join the open transaction, or start one. Raises `StoreError`, with nothing written."""
        if self._is_writing:
            yield self._db
            return
        with self._db.write():
            self._is_writing = True
            try:
                yield self._db
            finally:
                self._is_writing = False

    # ------------------------------------------------------------------------------------------------------- writing

    def put(self, memory_id: str, payload: Mapping[str, Any], embedder: str, vector: bytes | None) -> None:
        """Insert or replace a memory; `vector` None keeps the existing one. Raises `StoreError`."""
        columns = {
            "scope": clean_text(str(payload.get("user_id") or "")),
            "text": clean_text(str(payload.get("data") or "")),
            "said_at": clean_text(str(payload.get("said_at") or "")),
            "payload": dump_json({key: json_safe(payload[key]) for key in payload if key not in _NOT_IN_PAYLOAD}),
        }
        with self.writing() as db:
            row = db.row("SELECT number FROM memories WHERE id = ?", (memory_id,))
            if row is None:
                number = db.insert_row("memories", id=memory_id, **columns)
            else:
                number = int(row["number"])
                db.update_rows("memories", {"number": number}, **columns)
            if vector is not None:
                db.execute("DELETE FROM vectors WHERE memory = ?", (number,))
                db.execute("INSERT INTO vectors VALUES (?, ?, ?)", (embedder, number, vector))

    def remove(self, memory_ids: Sequence[str]) -> None:
        """Delete memories; unknown ids are ignored."""
        with self.writing() as db:
            db.execute_many("DELETE FROM memories WHERE id = ?", [(memory_id,) for memory_id in memory_ids])

    # ------------------------------------------------------------------------------------------------------- reading

    def get(self, memory_id: str) -> MemoryRow | None:
        return self._db.read_one(_memory_row, f"SELECT {_COLUMNS} FROM memories WHERE id = ?", (memory_id,))

    def get_many(self, memory_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return payloads by id of those that exist."""
        sql = f"SELECT {_COLUMNS} FROM memories WHERE id IN (SELECT value FROM json_each(?))"
        return dict(self._db.read_all(_memory_row, sql, (json.dumps(list(memory_ids)),)))

    def list_memories(self, scope: str | None = None, *, limit: int | None = None) -> list[MemoryRow]:
        """Return the memories of a scope (None: of all), by when they were said."""
        where, values = _in_scope(scope)
        return self._db.read_all(
            _memory_row,
            f"SELECT {_COLUMNS} FROM memories m WHERE {where} ORDER BY m.said_at, m.number LIMIT ?",
            (*values, -1 if limit is None else limit),
        )

    def vectors(self, embedder: str, scope: str | None = None) -> Iterator[tuple[str, bytes]]:
        """Yield ids and vectors of an embedder."""
        where, values = _in_scope(scope)
        rows = self._db.iterate(
            "SELECT m.id, v.vector FROM vectors v JOIN memories m ON m.number = v.memory"
            f" WHERE v.embedder = ? AND {where}",
            (embedder, *values),
        )
        return ((row["id"], row["vector"]) for row in rows)

    def require_readable(self) -> None:
        """Raises `CorruptStore` if a row has a value that cannot be read, though the file's pages are intact: one of
        them, and no memory could be."""
        self.active_embedder()
        with unreadable_rows_explained(self._db.path):
            for row in self._db.iterate(_READABLE):
                if not row["is_readable"]:
                    raise ValueError("a row that is no memory, or no version of one")

    # ------------------------------------------------------------------------------------------- change of embedder

    def active_embedder(self) -> tuple[str, dict[str, Any]] | None:
        """Return the embedder whose vectors are searched: its name and settings; None before the first."""
        return self._db.read_one(
            lambda row: (row["embedder"], json.loads(row["settings"])), "SELECT embedder, settings FROM answering"
        )

    def activate_embedder(self, embedder: str, settings: Mapping[str, Any]) -> None:
        """Search the vectors of this embedder from now on; those of others are deleted."""
        with self.writing() as db:
            db.upsert_row("answering", ("one",), one=1, embedder=embedder, settings=dump_json(settings))
            db.execute("DELETE FROM vectors WHERE embedder <> ?", (embedder,))

    def memories_without_vector(self, embedder: str, *, limit: int) -> tuple[list[tuple[str, str]], int]:
        """Return ids and texts of at most `limit` memories without a vector of the embedder, and the number of all of
        them."""
        missing = "memories m WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.embedder = ? AND v.memory = m.number)"
        rows = self._db.rows(f"SELECT m.id, m.text FROM {missing} ORDER BY m.number LIMIT ?", (embedder, limit))
        count = self._db.value(f"SELECT count(*) FROM {missing}", (embedder,))
        return [(row["id"], row["text"]) for row in rows], count

    def add_vectors(self, embedder: str, vectors: Sequence[tuple[str, str, bytes]]) -> None:
        """Add vectors (id, the text they were made of, vector) of an embedder; those whose text has changed are
        skipped."""
        with self.writing() as db:
            db.execute_many(
                "INSERT OR REPLACE INTO vectors SELECT ?, number, ? FROM memories WHERE id = ? AND text = ?",
                [(embedder, vector, memory_id, clean_text(text)) for memory_id, text, vector in vectors],
            )

    # ------------------------------------------------------------------------------------------------------- history

    def add_history(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows by column; missing columns are NULL. Raises `StoreError`."""
        with self.writing() as db:
            for row in rows:
                columns = {column: json_safe(row.get(column)) for column in HISTORY_COLUMNS}
                db.insert_row("history", **{**columns, "is_deleted": int(row.get("is_deleted") or 0)})

    def history_of_memory(self, memory_id: str) -> list[dict[str, Any]]:
        """Return the history, oldest first, with `id` as text."""
        columns = ", ".join(HISTORY_COLUMNS)
        sql = f"SELECT CAST(number AS TEXT) AS id, {columns} FROM history WHERE memory_id = ? ORDER BY number"
        return self._db.read_all(dict, sql, (memory_id,))

    def clear_history(self) -> None:
        """Delete all earlier versions of all memories."""
        with self.writing() as db:
            db.execute("DELETE FROM history")

    # ------------------------------------------------------------------------------------------------------- erasure

    def erase(self, memory_ids: Sequence[str]) -> None:
        """Delete memories and their history so that their text is nowhere in the file or its write-ahead log; memories
        they superseded become current again, as in the journal. Raises `StoreError`, also if another process kept the
        write-ahead log from being truncated; then call it again."""
        self._db.overwrite_deleted()
        with self.writing() as db:
            self.remove(memory_ids)
            db.execute(
                "UPDATE memories SET payload = json_set(payload, '$.until', NULL, '$.superseded_by', '')"
                " WHERE json_extract(payload, '$.superseded_by') IN (SELECT value FROM json_each(?))",
                (json.dumps(list(memory_ids)),),
            )
            db.execute_many("DELETE FROM history WHERE memory_id = ?", [(memory_id,) for memory_id in memory_ids])
        try:
            self._db.vacuum()
        except StoreError as error:
            raise StoreError(f"The memories are removed, but their words may still be in a file. {error}") from error


def _in_scope(scope: str | None) -> tuple[str, tuple[str, ...]]:
    return ("1", ()) if scope is None else ("m.scope = ?", (scope,))


def _memory_row(row: Row) -> MemoryRow:
    return row["id"], {"data": row["text"], "user_id": row["scope"], **json.loads(row["payload"])}
