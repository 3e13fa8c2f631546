"""The message history: everything that was ever said, found by its words, or read by id and byte range. Implements the
port `History`.

What always holds:
- Each query names a scope, and each row that is returned was checked against it, neighbours included (I10).
- What was undone is neither found nor shown as a neighbour or as recent; asked for by id or byte range it is there,
  since the log keeps it. What was erased has no words left and is never found.
- A message is found as soon as its commit is done: nothing is cached but stems.
- Texts are read from the message log alone, so a quote is what was said.

A `StoredHistory` has a connection of its own and a lock around it: any thread may call it, one at a time. Readers never
wait for what a search indexes first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from sqlite3 import Row
from threading import Lock

from assistant.core.messages import LogByteRange, Role
from assistant.core.records import LogRecord, SearchHit
from assistant.search.finder import SourceFinder
from assistant.search.fulltext import query_words
from assistant.search.index_values import SearchFilter, SourceHit
from assistant.search.match import EXCERPT_CHARACTERS, PreparedQuery, best_passage, make_excerpt, prepare_query
from assistant.store.database import Database
from assistant.store.log.reader import LogFiles
from assistant.store.rows import format_time, parse_time
from assistant.store.search.record_text import RecordText, RecordTextReader, Stemmer

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
    """`HistoryPort` over script.db and the message log of a home. Opens nothing for writing."""

    def __init__(self, database: Database, files: LogFiles, finder: SourceFinder) -> None:
        """All are this object's own, and closed with it."""
        self._db = database
        self._files = files
        self._finder = finder
        self._texts = RecordTextReader(files)
        self._stems = Stemmer()
        self._lock = Lock()

    @classmethod
    def open(cls, home: Path, finder: SourceFinder) -> StoredHistory:
        """Open while another process writes. Raises `StoreError` where there is no home yet."""
        return cls(Database.open_reader(home / "script.db"), LogFiles(home), finder)

    def close(self) -> None:
        with self._lock:
            self._stems.close()
            self._finder.close()
            self._files.close()
            self._db.close()

    # ---------------------------------------------------------------------------------------------------- searching

    async def prepare_search(self) -> None:
        if self._finder.is_slow():
            await asyncio.to_thread(self._finder.index_pending)

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
        """The messages that answer `query` best, best first; see `History.search`."""
        words = query_words(query[:_MAX_QUERY])
        if not words or limit <= 0:
            return []
        where = SearchFilter(scope, roles, after, before, session or "")
        # Outside the lock: what is taken in first holds up nobody who reads.
        hits_of_index = self._finder.find(query[:_MAX_QUERY], where, limit=limit + _SPARE)
        with self._lock:
            prepared = prepare_query(self._finder, words, self._stems.of)
            rows = self._visible_rows([hit.source for hit in hits_of_index], where)
            texts = {source: self._texts.read_text(row) for source, row in rows.items()}
            hits = [
                self._hit(rows[hit.source], hit, text, prepared)
                for hit in hits_of_index
                if (text := texts.get(hit.source)) is not None and text.text.strip()
            ]
            return hits[:limit]

    def _visible_rows(self, ids: Sequence[int], where: SearchFilter) -> dict[int, Row]:
        """Index rows of those that the search may return: the index follows, this decides."""
        marks = ", ".join("?" * len(ids))
        since, until = (
            (format_time(where.after) if where.after else ""),
            (format_time(where.before) if where.before else "~"),
        )
        rows = self._db.rows(
            f"{_SELECT} WHERE id IN ({marks}) AND scope = ? AND hidden_by IS NULL AND ts >= ? AND ts < ?",
            (*ids, where.scope, since, until),
        )
        return {row["id"]: row for row in rows}

    def _hit(self, row: Row, hit: SourceHit, record: RecordText, query: PreparedQuery) -> SearchHit:
        text = self._excerpt(row, record, query)
        speaker = record.speaker if row["role"] != "tool" else None
        named = query.matcher.words_in(speaker) if speaker else frozenset[int]()
        return SearchHit(
            message_id=row["id"],
            session=row["session"],
            generation=row["generation"],
            role=row["role"],
            name=record.speaker,
            ts=parse_time(row["ts"]),
            text=text,
            score=hit.score,
            location=self._files.log_place(row["session"], LogByteRange(row["byte_start"], row["byte_end"])),
            quality=query.significance.measure_fit(query.matcher.words_in(text) | named),
        )

    def _excerpt(self, row: Row, record: RecordText, query: PreparedQuery) -> str:
        """Of what the message says, the piece that has the most of the question; of a message that is read in windows,
        the first in which all of it stands together."""
        idf, spots = query.significance.idf, query.matcher.find_spots(record.text)
        best = (best_passage(spots, idf, EXCERPT_CHARACTERS)[0], record.text, spots)
        for text in () if record.is_complete else self._texts.read_windows(row):
            if best[0] >= sum(idf):
                break
            spots = query.matcher.find_spots(text)
            worth = best_passage(spots, idf, EXCERPT_CHARACTERS)[0]
            if worth > best[0]:
                best = (worth, text, spots)
        return make_excerpt(best[1], best[2], idf)

    # ------------------------------------------------------------------------------------------------------ reading

    def read(self, message_id: int, scope: str, *, neighbours: int = 0) -> list[LogRecord]:
        """The message and its neighbours; see `History.read`. Neighbours that were undone are passed over."""
        with self._lock:
            row = self._db.row(f"{_SELECT} WHERE id = ? AND scope = ?", (message_id, scope))
            if row is None:
                return []
            rows = [*self._beside(row, scope, "<", neighbours)[::-1], row, *self._beside(row, scope, ">", neighbours)]
            return self._records(rows)

    def read_byte_range(self, session: str, start: int, end: int, scope: str) -> list[LogRecord]:
        """The whole records within bytes [start, end) of a session's log, in scope; see `History.read_span`. At most
        1,000 of them and 64 MB: the last one's span tells where to read on."""
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
        """The newest messages in scope, oldest first; see `History.recent`. At most 1,000 of them and 64 MB."""
        conditions, values = ["scope = ?", "hidden_by IS NULL"], [scope]
        if session is not None:
            conditions.append("session = ?")
            values.append(session)
        newest = before_id if before_id is not None else _NEWEST
        with self._lock:
            rows = self._db.rows(
                f"{_SELECT} WHERE {' AND '.join(conditions)} AND id < ? ORDER BY id DESC LIMIT ?",
                (*values, newest, max(0, min(limit, MAX_RECORDS_PER_READ))),
            )
            return self._records(_within_bytes(rows))[::-1]

    def _beside(self, row: Row, scope: str, side: str, count: int) -> list[Row]:
        """Up to `count` records before ("<") or after (">") one in its session, the nearest first."""
        order = "DESC" if side == "<" else "ASC"
        return self._db.rows(
            f"{_SELECT} WHERE session = ? AND seq {side} ? AND scope = ? AND hidden_by IS NULL"
            f" ORDER BY seq {order} LIMIT ?",
            (row["session"], row["seq"], scope, max(0, min(count, MAX_RECORDS_PER_READ))),
        )

    def _seq_at(self, session: str, start: int) -> int:
        """The first seq whose record begins at byte `start` or later; found by halving, as offsets grow with seq."""
        last = self._db.row("SELECT max(seq) AS seq FROM messages WHERE session = ?", (session,))
        low, high = 1, ((last["seq"] or 0) if last else 0) + 1
        while low < high:
            middle = (low + high) // 2
            row = self._db.row("SELECT byte_start FROM messages WHERE session = ? AND seq = ?", (session, middle))
            if row is None or row["byte_start"] >= start:
                high = middle
            else:
                low = middle + 1
        return low

    def _records(self, rows: Sequence[Row]) -> list[LogRecord]:
        return [self._files.read(row["session"], LogByteRange(row["byte_start"], row["byte_end"])) for row in rows]


def _within_bytes(rows: Sequence[Row]) -> list[Row]:
    """The first rows that are at most 64 MB of log together; at least one."""
    first: list[Row] = []
    room = MAX_BYTES_PER_READ
    for row in rows:
        room -= row["byte_end"] - row["byte_start"]
        if room < 0 and first:
            break
        first.append(row)
    return first
