"""Everything ever said, found by its words, or read by id and byte range: the port `History`.

What always holds:
- Each query names a scope, and each row that comes back was let through by it, neighbours included (I10).
- What was undone is not found, nor shown as a neighbour or as recent; asked for by id or byte range it is there, since
  the log keeps it. What was forgotten has no words left, and is found nowhere.
- A message is found as soon as its commit is done: nothing is cached but stems.
- Texts are read from the master log alone, so that what is quoted is what was said.

A `StoredHistory` has a connection of its own, and a lock around it: any thread may call it, one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from sqlite3 import Row
from threading import Lock

from assistant.messages import Role, Span
from assistant.records import Hit, Record
from assistant.store.candidates import COLUMNS, Candidate, Candidates, Plan, Within
from assistant.store.coincidence import Coincidence, passages_in
from assistant.store.database import Database
from assistant.store.excerpts import EXCERPT, excerpt
from assistant.store.log_files import LogFiles
from assistant.store.matching import Matcher
from assistant.store.passages import Passages, Words
from assistant.store.ranking import REACH, Question, Said, best_passage, scores
from assistant.store.stems import Stems
from assistant.store.terms import query_words
from assistant.store.text import moment

MOST_RECORDS = 1_000
"""The most records that one call of `read_span` or `recent` returns."""

MOST_BYTES = 64 * 1024 * 1024
"""The most log bytes that one such call reads, unless the first record alone is longer."""

_WINDOWS = 50
_MOST_QUERY = 4_000
_NEWEST = (1 << 63) - 1
_SELECT = f"SELECT {COLUMNS} FROM messages"


class StoredHistory:
    """`History` over `script.db` and the master log of a home. Opens nothing for writing."""

    def __init__(self, database: Database, files: LogFiles, plan: Plan | None = None) -> None:
        """`database` and `files` are this object's own, and closed with it."""
        self._db = database
        self._files = files
        self._candidates = Candidates(database, plan)
        self._passages = Passages(files)
        self._stems = Stems()
        self._lock = Lock()

    @classmethod
    def open(cls, home: Path, plan: Plan | None = None) -> StoredHistory:
        """Open beside whoever writes. Raises `StoreError` where there is no home yet."""
        return cls(Database.reader(home / "script.db"), LogFiles(home), plan)

    def close(self) -> None:
        with self._lock:
            self._stems.close()
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
    ) -> list[Hit]:
        """The messages that answer `query` best, best first; see `History.search`."""
        words = query_words(query[:_MOST_QUERY])
        if not words or limit <= 0:
            return []
        within = Within(scope, roles, after, before, session)
        with self._lock:
            found = self._candidates.find(words, within)
            rows = self._with_neighbours(found.candidates, within)
            texts = self._passages.words(list(rows.values()))
            matcher = Matcher(words, self._stems)
            known = {candidate.row["id"]: candidate.words for candidate in found.candidates}
            table = _conversations(rows, texts, known, matcher)
            best = scores(Question(query[:_MOST_QUERY], found.idf, found.rows), table)[:limit]
            chance = Coincidence(words, found.idf, found.rows, passages_in(table))
            return [self._hit(rows[said.id], said, score, matcher, chance) for score, said in best]

    def _with_neighbours(self, candidates: Sequence[Candidate], within: Within) -> dict[int, Row]:
        """Index rows of the candidates and of what stands around the best of them, by id. `shown` tells which of them
        the search may return."""
        found: dict[int, Row] = {candidate.row["id"]: candidate.row for candidate in candidates}
        condition, values = within.condition
        sql = (
            f"SELECT {COLUMNS}, ({condition}) AS shown FROM messages WHERE session = ? AND seq BETWEEN ? AND ?"
            f" AND scope = ? AND hidden_by IS NULL"
        )
        for session, first, last in _stretches([candidate.row for candidate in candidates[:_WINDOWS]]):
            for row in self._db.rows(sql, (*values, session, first, last, within.scope)):
                found.setdefault(row["id"], row)
        return found

    def _hit(self, row: Row, said: Said, score: float, matcher: Matcher, chance: Coincidence) -> Hit:
        text = self._excerpt(row, said, matcher, chance.idf)
        return Hit(
            message_id=row["id"],
            session=row["session"],
            generation=row["generation"],
            role=row["role"],
            name=said.name,
            ts=moment(row["ts"]),
            text=text,
            score=score,
            place=self._files.place(row["session"], Span(row["byte_start"], row["byte_end"])),
            fit=chance.fit(matcher.words_in(text) | said.named),
        )

    def _excerpt(self, row: Row, said: Said, matcher: Matcher, idf: Sequence[float]) -> str:
        if said.whole:
            return excerpt(said.text, said.spots, idf)
        wanted = sum(idf[word] for word in said.elsewhere | {spot.word for spot in said.spots})
        best = (best_passage(said.spots, idf, EXCERPT)[0], said.text, said.spots)
        for text in self._passages.windows(row):
            if best[0] >= wanted:
                break
            spots = matcher.spots(text)
            worth = best_passage(spots, idf, EXCERPT)[0]
            if worth > best[0]:
                best = (worth, text, spots)
        return excerpt(best[1], best[2], idf)

    # ------------------------------------------------------------------------------------------------------ reading

    def read(self, message_id: int, scope: str, *, neighbours: int = 0) -> list[Record]:
        """The message and its neighbours; see `History.read`. Neighbours that were undone are passed over."""
        with self._lock:
            row = self._db.row(f"{_SELECT} WHERE id = ? AND scope = ?", (message_id, scope))
            if row is None:
                return []
            rows = [*self._beside(row, scope, "<", neighbours)[::-1], row, *self._beside(row, scope, ">", neighbours)]
            return self._records(rows)

    def read_span(self, session: str, start: int, end: int, scope: str) -> list[Record]:
        """The whole records within bytes [start, end) of a session's log, in scope; see `History.read_span`. At most
        1,000 of them and 64 MB: the last one's span tells where to read on."""
        with self._lock:
            rows = self._db.rows(
                f"{_SELECT} WHERE session = ? AND seq >= ? AND scope = ? AND byte_start >= ? AND byte_end <= ?"
                " ORDER BY seq LIMIT ?",
                (session, self._seq_at(session, start), scope, start, end, MOST_RECORDS),
            )
            return self._records(_within_bytes(rows))

    def recent(
        self, scope: str, *, session: str | None = None, limit: int = 50, before_id: int | None = None
    ) -> list[Record]:
        """The newest messages in scope, oldest first; see `History.recent`. At most 1,000 of them and 64 MB."""
        conditions, values = ["scope = ?", "hidden_by IS NULL"], [scope]
        if session is not None:
            conditions.append("session = ?")
            values.append(session)
        newest = before_id if before_id is not None else _NEWEST
        with self._lock:
            rows = self._db.rows(
                f"{_SELECT} WHERE {' AND '.join(conditions)} AND id < ? ORDER BY id DESC LIMIT ?",
                (*values, newest, max(0, min(limit, MOST_RECORDS))),
            )
            return self._records(_within_bytes(rows))[::-1]

    def _beside(self, row: Row, scope: str, side: str, count: int) -> list[Row]:
        """Up to `count` records before ("<") or after (">") one in its session, the nearest first."""
        order = "DESC" if side == "<" else "ASC"
        return self._db.rows(
            f"{_SELECT} WHERE session = ? AND seq {side} ? AND scope = ? AND hidden_by IS NULL"
            f" ORDER BY seq {order} LIMIT ?",
            (row["session"], row["seq"], scope, max(0, min(count, MOST_RECORDS))),
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

    def _records(self, rows: Sequence[Row]) -> list[Record]:
        return [self._files.read(row["session"], Span(row["byte_start"], row["byte_end"])) for row in rows]


def _stretches(rows: Sequence[Row]) -> Iterator[tuple[str, int, int]]:
    """(session, first seq, last seq) around the rows, those that touch made one."""
    places = sorted((row["session"], row["seq"]) for row in rows)
    current: tuple[str, int, int] | None = None
    for session, seq in places:
        if current and current[0] == session and seq - REACH <= current[2] + 1:
            current = (session, current[1], seq + REACH)
            continue
        if current:
            yield current
        current = (session, seq - REACH, seq + REACH)
    if current:
        yield current


def _conversations(
    rows: Mapping[int, Row], texts: Mapping[int, Words], known: Mapping[int, frozenset[int]], matcher: Matcher
) -> list[list[Said]]:
    """The rows with their words, by session in the order of seq; `known` are the question's words that the full text
    has of a row. Records without words (forgotten ones, mere calls of tools) are left out."""
    sessions: dict[str, list[Said]] = {}
    names: dict[str, frozenset[int]] = {}
    for row in sorted(rows.values(), key=lambda row: (row["session"], row["seq"])):
        words = texts.get(row["id"])
        if words is None or not words.text.strip():
            continue
        spots = matcher.spots(words.text)
        name = words.name if words.name and row["role"] != "tool" else ""
        if name not in names:
            names[name] = matcher.words_in(name)
        sessions.setdefault(row["session"], []).append(
            Said(
                id=row["id"], seq=row["seq"], role=row["role"], text=words.text, spots=spots, name=words.name,
                named=names[name], elsewhere=known.get(row["id"], frozenset()) - {spot.word for spot in spots},
                whole=words.whole, shown=bool(row["shown"]),
            )
        )  # fmt: skip
    return list(sessions.values())


def _within_bytes(rows: Sequence[Row]) -> list[Row]:
    """The first rows that are at most 64 MB of log together; at least one."""
    kept: list[Row] = []
    room = MOST_BYTES
    for row in rows:
        room -= row["byte_end"] - row["byte_start"]
        if room < 0 and kept:
            break
        kept.append(row)
    return kept
