"""Memories in memory.db: their words, vectors, full text, and history (earlier versions).

What always holds:
- A memory, its vectors and its terms are written and removed in one transaction; every other process reads beside the
  one that writes (WAL).
- The memory layer writes a memory, its vector and its history in separate steps, and only its caller knows which belong
  together: the outermost `MemoryTransaction.writing()` commits all of them, or none.
- A vector belongs to the embedder that made it; when a memory's words change, the vectors of other embedders are
  removed. Payloads have Mem0's form: `data` the words, `user_id` the scope, and the rest.
- The history has the columns of Mem0's own. It is in the same file so that a change and its history row are written in
  one transaction, and so that what is erased is erased there as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from sqlite3 import Row
from typing import Any

from assistant.core.errors import StoreError
from assistant.search.fulltext import index_text, match_all, match_any, query_words, scope_term
from assistant.store.database import Database
from assistant.store.encoding import clean_text, dump_json, json_safe


class MemoryTransaction:
    """Of one open memory.db. Not for several threads at once."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self._open = False

    @contextmanager
    def writing(self) -> Iterator[Database]:
        """Part of the transaction that is open, else one of its own. Raises `StoreError`; then nothing was written."""
        if self._open:
            yield self.db
            return
        with self.db.write():
            self._open = True
            try:
                yield self.db
            finally:
                self._open = False


MemoryRow = tuple[str, dict[str, Any]]
"""A memory's id and payload."""

_COLUMNS = "id, scope, text, payload"
_ROWS = "SELECT m.id, m.scope, m.text, m.payload"
# What has a column of its own, or is made of the words.
_APART = frozenset({"data", "user_id", "text_lemmatized"})


class MemoryVectors:
    """Not for several threads at once."""

    def __init__(self, batch: MemoryTransaction) -> None:
        self._batch = batch
        self._db = batch.db

    # ------------------------------------------------------------------------------------------------------- writing

    def put(self, memory_id: str, payload: Mapping[str, Any], embedder: str, vector: bytes | None) -> None:
        """Write a memory, or what replaces it; `vector` None keeps the one that is there. Raises `StoreError`."""
        text, scope = clean_text(str(payload.get("data") or "")), clean_text(str(payload.get("user_id") or ""))
        rest = dump_json({key: json_safe(value) for key, value in payload.items() if key not in _APART})
        said_at = clean_text(str(payload.get("said_at") or ""))
        with self._batch.writing() as db:
            before = db.row("SELECT number, scope, text FROM memories WHERE id = ?", (memory_id,))
            if before is None:
                number = db.insert(
                    "INSERT INTO memories (id, scope, text, said_at, payload) VALUES (?, ?, ?, ?, ?)",
                    (memory_id, scope, text, said_at, rest),
                )
            else:
                number = int(before["number"])
                self._unindex(before)
                db.execute(
                    "UPDATE memories SET scope = ?, text = ?, said_at = ?, payload = ? WHERE number = ?",
                    (scope, text, said_at, rest, number),
                )
            db.execute("INSERT INTO memories_fts (rowid, words) VALUES (?, ?)", (number, index_text(text, scope)))
            if vector is not None:
                db.execute("DELETE FROM vectors WHERE memory = ?", (number,))
                db.execute("INSERT INTO vectors VALUES (?, ?, ?)", (embedder, number, vector))

    def remove(self, memory_ids: Sequence[str]) -> None:
        """Ids that are not there are passed over."""
        with self._batch.writing() as db:
            for memory_id in memory_ids:
                row = db.row("SELECT number, scope, text FROM memories WHERE id = ?", (memory_id,))
                if row is not None:
                    self._unindex(row)
                    db.execute("DELETE FROM memories WHERE number = ?", (row["number"],))

    def _unindex(self, row: Row) -> None:
        # Contentless: a row goes only with the very terms it came with.
        self._db.execute(
            "INSERT INTO memories_fts (memories_fts, rowid, words) VALUES ('delete', ?, ?)",
            (row["number"], index_text(row["text"], row["scope"])),
        )

    # ------------------------------------------------------------------------------------------------------- reading

    def get(self, memory_id: str) -> MemoryRow | None:
        row = self._db.row(f"SELECT {_COLUMNS} FROM memories WHERE id = ?", (memory_id,))
        return None if row is None else _found(row)

    def get_many(self, memory_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Payloads by id, for those that are there."""
        rows = self._db.rows(
            f"SELECT {_COLUMNS} FROM memories WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(memory_ids)),),
        )
        return dict(map(_found, rows))

    def list_memories(
        self, scope: str | None = None, equal: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> list[MemoryRow]:
        """Those of a scope (None: every one) whose payload has the values of `equal`, by when they were said."""
        where, values = _where(scope, equal)
        rows = self._db.rows(
            f"{_ROWS} FROM memories m WHERE {where} ORDER BY m.said_at, m.number LIMIT ?",
            (*values, -1 if limit is None else limit),
        )
        return list(map(_found, rows))

    def vectors(
        self, embedder: str, scope: str | None = None, equal: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[str, bytes]]:
        """Ids and vectors that the embedder made, one by one."""
        where, values = _where(scope, equal)
        rows = self._db.iterate(
            "SELECT m.id, v.vector FROM vectors v JOIN memories m ON m.number = v.memory"
            f" WHERE v.embedder = ? AND {where}",
            (embedder, *values),
        )
        return ((row["id"], row["vector"]) for row in rows)

    def search_text(
        self, query: str, scope: str | None = None, equal: Mapping[str, Any] | None = None, *, limit: int = 20
    ) -> list[tuple[str, float]]:
        """Ids of memories that have any of the words of a question, best first, with a score above 0. In scripts
        without spaces any part of a run is found."""
        words = query_words(clean_text(query))
        if not words:
            return []
        own = [] if scope is None else [f'"{scope_term(scope)}"']
        where, values = _where(scope, equal)
        rows = self._db.rows(
            "SELECT m.id, -memories_fts.rank AS score FROM memories_fts"
            " JOIN memories m ON m.number = memories_fts.rowid"
            f" WHERE memories_fts MATCH ? AND {where} ORDER BY memories_fts.rank, m.number DESC LIMIT ?",
            (match_all([*own, match_any(words)]), *values, limit),
        )
        return [(row["id"], max(float(row["score"]), 1e-9)) for row in rows]

    # ------------------------------------------------------------------------------------------- change of embedder

    def active_embedder(self) -> tuple[str, dict[str, Any]] | None:
        """The embedder whose vectors answer: its name and how to open it; None before the first."""
        row = self._db.row("SELECT embedder, settings FROM answering")
        return None if row is None else (row["embedder"], json.loads(row["settings"]))

    def activate_embedder(self, embedder: str, settings: Mapping[str, Any]) -> None:
        """From now on the vectors of this embedder answer; those of others go."""
        with self._batch.writing() as db:
            db.execute(
                "INSERT INTO answering (one, embedder, settings) VALUES (1, ?, ?) ON CONFLICT DO UPDATE"
                " SET embedder = excluded.embedder, settings = excluded.settings",
                (embedder, dump_json(dict(settings))),
            )
            db.execute("DELETE FROM vectors WHERE embedder <> ?", (embedder,))

    def memories_without_vector(self, embedder: str, *, limit: int) -> tuple[list[tuple[str, str]], int]:
        """Ids and words of memories that the embedder has made no vector of, at most `limit`, and how many there are
        in all."""
        missing = "memories m WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.embedder = ? AND v.memory = m.number)"
        rows = self._db.rows(f"SELECT m.id, m.text FROM {missing} ORDER BY m.number LIMIT ?", (embedder, limit))
        count = self._db.row(f"SELECT count(*) AS n FROM {missing}", (embedder,))
        return [(row["id"], row["text"]) for row in rows], int(count["n"]) if count else 0

    def add_vectors(self, embedder: str, made: Sequence[tuple[str, str, bytes]]) -> None:
        """Vectors (id, the words they were made of, vector) beside those that answer; where the words have changed
        meanwhile nothing is added."""
        with self._batch.writing() as db:
            db.execute_many(
                "INSERT OR REPLACE INTO vectors SELECT ?, number, ? FROM memories WHERE id = ? AND text = ?",
                [(embedder, vector, memory_id, clean_text(text)) for memory_id, text, vector in made],
            )

    # ----------------------------------------------------------------------------------------------------- forgetting

    def erase(self, memory_ids: Sequence[str], *, erase_history: bool = True) -> None:
        """Take memories and their history out so that none of their words is left in the file or beside it; what they
        had superseded holds again, as in the journal. Raises `StoreError`, also where another process kept the
        write-ahead log from being emptied: then do it again."""
        self._db.rows("PRAGMA secure_delete = ON")
        with self._batch.writing() as db:
            self.remove(memory_ids)
            db.execute(
                "UPDATE memories SET payload = json_set(payload, '$.until', NULL, '$.superseded_by', '')"
                " WHERE json_extract(payload, '$.superseded_by') IN (SELECT value FROM json_each(?))",
                (json.dumps(list(memory_ids)),),
            )
            if erase_history:
                db.execute_many("DELETE FROM history WHERE memory_id = ?", [(one,) for one in memory_ids])
            db.execute("INSERT INTO memories_fts (memories_fts) VALUES ('optimize')")
        self._leave_nothing()

    def _leave_nothing(self) -> None:
        """Write the file anew from what is left, since pages that were rearranged keep words beside their cells, and
        empty the write-ahead log."""
        self._db.rows("VACUUM")
        emptied = self._db.row("PRAGMA wal_checkpoint(TRUNCATE)")
        if emptied is None or emptied[0]:
            raise StoreError(
                f"{self._db.path}: the memories are gone, but another process still reads what they were. Forget them "
                "once more when it is done."
            )


def _where(scope: str | None, equal: Mapping[str, Any] | None) -> tuple[str, list[Any]]:
    parts, values = ["1"], list[Any]()
    if scope is not None:
        parts.append("m.scope = ?")
        values.append(scope)
    for key, value in (equal or {}).items():
        # A key is a value here like any other: none is ever part of the statement.
        parts.append("(SELECT value FROM json_each(m.payload) WHERE key = ?) IS ?")
        values.extend((key, value))
    return " AND ".join(parts), values


def _found(row: Row) -> MemoryRow:
    return row["id"], {"data": row["text"], "user_id": row["scope"], **json.loads(row["payload"])}


HISTORY_COLUMNS = (
    "memory_id",
    "old_memory",
    "new_memory",
    "event",
    "created_at",
    "updated_at",
    "is_deleted",
    "actor_id",
    "role",
)


class MemoryHistory:
    def __init__(self, batch: MemoryTransaction) -> None:
        self._batch = batch

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Rows by column; missing ones are NULL. Raises `StoreError`."""
        places = ", ".join("?" * len(HISTORY_COLUMNS))
        with self._batch.writing() as db:
            db.execute_many(
                f"INSERT INTO history ({', '.join(HISTORY_COLUMNS)}) VALUES ({places})",
                [
                    [_stored(row.get(column)) for column in HISTORY_COLUMNS[:6]]
                    + [int(row.get("is_deleted") or 0), _stored(row.get("actor_id")), _stored(row.get("role"))]
                    for row in rows
                ],
            )

    def history_of_memory(self, memory_id: str) -> list[dict[str, Any]]:
        """Oldest first, with `id` as text."""
        rows = self._batch.db.rows(
            f"SELECT number, {', '.join(HISTORY_COLUMNS)} FROM history WHERE memory_id = ? ORDER BY number",
            (memory_id,),
        )
        return [{"id": str(row["number"]), **{column: row[column] for column in HISTORY_COLUMNS}} for row in rows]

    def erase(self, memory_ids: Sequence[str]) -> None:
        with self._batch.writing() as db:
            db.execute_many("DELETE FROM history WHERE memory_id = ?", [(one,) for one in memory_ids])

    def clear(self) -> None:
        with self._batch.writing() as db:
            db.execute("DELETE FROM history")


def _stored(value: Any) -> Any:
    return clean_text(value) if isinstance(value, str) else value
