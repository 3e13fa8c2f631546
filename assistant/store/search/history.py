"""Searches all messages ever said, and reads them by id and byte range. Implements `History`.

- Each query has a scope, and each returned row is checked against it, neighbours included (I10).
- Undone messages are neither found nor shown as neighbours or as recent; by id or byte range they can be read, since
  the log keeps them. An edited message is found by its newest text, a deleted one not at all; by id, both are returned
  with their change. Erased messages have no text and are never found.
- A message is found as soon as its commit is done: nothing is cached.
- Text is only read from the message log (`hits`), so quotes are verbatim.

A `StoredHistory` has its own connection and a lock: it may be called from any thread. Reads never wait for a search. A
search first indexes new messages, and reads on in huge ones, so it should not run in the event loop.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from sqlite3 import Row
from threading import Lock

from assistant.core.messages import LogByteRange, Role
from assistant.core.records import LogRecord, SearchHit
from assistant.search.finder import SourceFinder
from assistant.search.index_values import SearchFilter
from assistant.search.match import (
    prepare_query,
)
from assistant.search.query import find_names, query_words
from assistant.store.database import Database
from assistant.store.log.reader import LogFiles
from assistant.store.script.index import IS_READABLE, current_contents, list_logged_changes
from assistant.store.search.hits import HitMaker

MAX_RECORDS_PER_READ = 1_000
"""The most records that one call of `read_span` or `recent` returns."""

MAX_BYTES_PER_READ = 64 * 1024 * 1024
"""The most log bytes that one such call reads, unless the first record alone is longer."""

_SPARE = 8
_MAX_QUERY = 4_000
_NEWEST = (1 << 63) - 1
_COLUMNS = "id, session, generation, kind, role, seq, ts, byte_start, byte_end"
_SELECT = f"SELECT {_COLUMNS} FROM messages"


class StoredHistory:
    """`HistoryPort` over script.db and the message log of a data folder. Opens nothing for writing."""

    def __init__(self, home: Path, finder: SourceFinder) -> None:
        """Open a data folder while another process writes; `finder` is closed with it. Raises `StoreError` if it does
        not exist."""
        self._db = Database.open_reader(home / "script.db")
        self._files = LogFiles(home)
        self._finder = finder
        self._lock = Lock()

    def close(self) -> None:
        with self._lock:
            self._finder.close()
            self._files.close()
            self._db.close()

    # ---------------------------------------------------------------------------------------------------- searching

    def search(
        self,
        query: str,
        scope: str,
        *,
        limit: int = 8,
        roles: Sequence[Role] = ("user", "assistant", "tool"),
        after: datetime | None = None,
        before: datetime | None = None,
        session: str | None = None,
    ) -> list[SearchHit]:
        """Return the messages that match `query`, best first; see `History.search`. May be slow."""
        words = query_words(query[:_MAX_QUERY])
        if not words or limit <= 0:
            return []
        where = SearchFilter(scope, roles, after, before, session or "")
        # The lock is only held for reading, and briefly.
        hits_of_index = self._finder.find(query[:_MAX_QUERY], where, limit=limit + _SPARE)
        prepared = prepare_query(self._finder, words)
        with self._lock:
            rows = self._visible_rows([hit.source for hit in hits_of_index], where)
        names = find_names(query)
        names_unknown = any(
            word.text in names and not idf for word, idf in zip(words, prepared.significance.idf, strict=True)
        )
        maker = HitMaker(self._read_piece, self._files.log_place, prepared, names_unknown=names_unknown)
        return maker.make_hits([(rows[hit.source], hit) for hit in hits_of_index if hit.source in rows], limit)

    def _visible_rows(self, sources: list[int], where: SearchFilter) -> dict[int, Row]:
        """Return the messages the search may return, by the record with their newest text. Unlike the index, which
        follows, these rows are always current."""
        rows = self._db.rows(
            "SELECT words.id AS source, words.byte_start, words.byte_end, m.id, m.session, m.generation, m.role, m.ts"
            " FROM messages words LEFT JOIN changes c ON c.record_id = words.id AND c.state = 'logged'"
            " JOIN messages m ON m.id = coalesce(c.message_id, words.id)"
            " WHERE words.id IN (SELECT value FROM json_each(?)) AND words.scope = ? AND m.scope = words.scope"
            " AND words.hidden_by IS NULL AND m.hidden_by IS NULL AND m.ts >= ? AND m.ts < ?"
            " AND NOT EXISTS (SELECT 1 FROM changes later WHERE later.message_id = m.id AND later.state = 'logged'"
            " AND later.record_id > words.id)",
            (json.dumps(sources), where.scope, where.after or "", where.before or "~"),
        )
        return {row["source"]: row for row in rows}

    def _read_piece(self, session: str, start: int, size: int) -> bytes:
        with self._lock:
            return self._files.read_piece(session, start, size)

    # ------------------------------------------------------------------------------------------------------ reading

    def read(self, message_id: int, scope: str, *, neighbours: int = 0) -> list[LogRecord]:
        """Return the message, its later edits, and its neighbours, in the order of the log; [] if the scope has no such
        message. Undone neighbours are skipped."""
        with self._lock:
            row = self._db.row(f"{_SELECT} WHERE id = ? AND scope = ?", (message_id, scope))
            if row is None:
                return []
            beside = [*self._neighbours(row, scope, "<", neighbours), *self._neighbours(row, scope, ">", neighbours)]
            rows = {near["id"]: near for near in (row, *beside, *self._changes_of(row))}
            return self._records(sorted(rows.values(), key=itemgetter("seq")))

    def read_byte_range(self, session: str, start: int, end: int, scope: str) -> list[LogRecord]:
        """Return the complete records within bytes [start, end) of a session's log, in scope; see `History.read_span`.
        At most 1,000 records and 64 MB; continue at the end of the last one's span."""
        with self._lock:
            rows = self._db.rows(
                f"{_SELECT} WHERE session = ? AND seq >= ? AND scope = ? AND byte_start >= ? AND byte_end <= ?"
                " ORDER BY seq LIMIT ?",
                (session, self._seq_at(session, start), scope, start, end, MAX_RECORDS_PER_READ),
            )
            return self._records(_within_bytes(rows))

    def recent(
        self, scope: str, *, session: str | None = None, limit: int = 50, before_id: int | None = None
    ) -> list[LogRecord]:
        """Return the newest messages in scope, oldest first; see `History.recent`. At most 1,000 records and 64 MB."""
        in_session, values = ("", [scope]) if session is None else (" AND session = ?", [scope, session])
        newest = before_id if before_id is not None else _NEWEST
        with self._lock:
            rows = self._db.rows(
                f"{_SELECT} WHERE scope = ? AND hidden_by IS NULL{in_session} AND id < ? ORDER BY id DESC LIMIT ?",
                (*values, newest, max(0, min(limit, MAX_RECORDS_PER_READ))),
            )
            return self._records(_within_bytes(rows))[::-1]

    def version(self) -> tuple[int, int]:
        """Return what differs once anything was said, changed or erased."""
        with self._lock:
            return self._db.version()

    def list_user_messages(self, scope: str, since: datetime, *, limit: int) -> list[LogRecord]:
        """Return current texts of people's messages in scope since a time, oldest first; if there are more than
        `limit`, the newest. Prompts of schedules are not included."""
        with self._lock:
            rows = self._db.rows(
                "SELECT m.session, m.byte_start, m.byte_end FROM messages m WHERE m.scope = ? AND m.role = 'user'"
                f" AND {IS_READABLE} AND m.ts >= ? ORDER BY m.id DESC LIMIT ?",
                (scope, since, limit),
            )
            records = self._records(_within_bytes(rows))[::-1]
            current = current_contents(self._db, self._files, [record.id for record in records])
            return [replace(record, content=current.get(record.id, record.content)) for record in records]

    def _changes_of(self, row: Row) -> list[Row]:
        changes = [change["record_id"] for change in list_logged_changes(self._db, [row["id"]])]
        return self._db.rows(
            f"{_SELECT} WHERE id IN (SELECT value FROM json_each(?)) AND session = ?",
            (json.dumps(changes), row["session"]),
        )

    def _neighbours(self, row: Row, scope: str, side: str, count: int) -> list[Row]:
        """Return up to `count` records before ("<") or after (">") one in its session, nearest first."""
        order = "DESC" if side == "<" else "ASC"
        return self._db.rows(
            f"{_SELECT} WHERE session = ? AND seq {side} ? AND scope = ? AND hidden_by IS NULL"
            f" ORDER BY seq {order} LIMIT ?",
            (row["session"], row["seq"], scope, max(0, min(count, MAX_RECORDS_PER_READ))),
        )

    def _seq_at(self, session: str, start: int) -> int:
        """Return the first seq whose record begins at byte `start` or later, by binary search, since offsets grow with
        seq."""
        low, high = 1, (self._db.value("SELECT max(seq) FROM messages WHERE session = ?", (session,)) or 0) + 1
        while low < high:
            middle = (low + high) // 2
            sql = "SELECT byte_start FROM messages WHERE session = ? AND seq = ?"
            byte_start = self._db.value(sql, (session, middle))
            if byte_start is None or byte_start >= start:
                high = middle
            else:
                low = middle + 1
        return low

    def _records(self, rows: Sequence[Row]) -> list[LogRecord]:
        return [self._files.read(row["session"], LogByteRange(row["byte_start"], row["byte_end"])) for row in rows]


def _within_bytes(rows: Sequence[Row]) -> list[Row]:
    """Return the first rows that total at most 64 MB of log; at least one."""
    first: list[Row] = []
    room = MAX_BYTES_PER_READ
    for row in rows:
        room -= row["byte_end"] - row["byte_start"]
        if room < 0 and first:
            break
        first.append(row)
    return first
