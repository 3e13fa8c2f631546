"""The generations of sessions: what they were, everything that was said in one, and what ended ones show no longer.

What always holds: an ended generation keeps what its compactions had put in front of its view, so that it can be gone
on from; its messages stand in the log, and their rows are taken out bit by bit, never in the way of a turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from sqlite3 import Row

from assistant.core.messages import LogByteRange
from assistant.core.records import LogRecord
from assistant.core.sessions import Generation, GenerationActivity
from assistant.store import earlier, session_rows
from assistant.store.database import Database
from assistant.store.log_files import LogFiles
from assistant.store.session_rows import Session
from assistant.store.text import moment
from assistant.store.view import LIVE_ROW

_CLEARED_AT_ONCE = 500
_RECORDS_AT_ONCE = 500
_SAID = "m.session = s.key AND m.generation = s.generation AND m.kind = 'message' AND m.hidden_by IS NULL"


class StoredGenerations:
    """Implements `reset_ports.Generations` over script.db and the master log."""

    def __init__(self, db: Database, log: LogFiles) -> None:
        self._db = db
        self._log = log

    def all(self, session: str, newest: int | None = None) -> list[Generation]:
        rows = self._db.rows(
            "SELECT s.*, r.pressure, count(m.id) AS said, min(m.ts) AS first_at, max(m.ts) AS last_at FROM sessions s"
            f" LEFT JOIN messages m ON {_SAID}"
            " LEFT JOIN resets r ON r.session = s.key AND r.generation = s.generation AND r.state = 'done'"
            " WHERE s.key = ? GROUP BY s.generation ORDER BY s.generation DESC LIMIT ?",
            (session, -1 if newest is None else newest),
        )
        return [_generation(row) for row in reversed(rows)]

    def spoken(self, session: str) -> GenerationActivity | None:
        current = session_rows.current(self._db, session)
        if current is None:
            return None
        return GenerationActivity(session, current.generation, self._said(current, "ASC"), self._said(current, "DESC"))

    def last_seq(self, session: str) -> int:
        row = self._db.row("SELECT max(seq) FROM messages WHERE session = ?", (session,))
        return 0 if row is None or row[0] is None else int(row[0])

    def records(self, session: str, generation: int) -> Iterator[LogRecord]:
        seq = 0
        while rows := self._db.rows(
            "SELECT seq, byte_start, byte_end FROM messages WHERE session = ? AND generation = ? AND seq > ?"
            " AND hidden_by IS NULL ORDER BY seq LIMIT ?",
            (session, generation, seq, _RECORDS_AT_ONCE),
        ):
            for row in rows:
                yield self._log.read(session, LogByteRange(row["byte_start"], row["byte_end"]))
            seq = rows[-1]["seq"]

    def _said(self, session: Session, order: str) -> datetime | None:
        """When something was said in a generation, first (ASC) or last (DESC), found from that end."""
        row = self._db.row(
            "SELECT m.ts FROM messages m JOIN sessions s ON s.key = m.session AND s.generation = ?"
            " WHERE m.session = ? AND m.seq >= s.from_seq AND m.generation = s.generation AND m.kind = 'message'"
            f" AND m.hidden_by IS NULL ORDER BY m.seq {order} LIMIT 1",
            (session.generation, session.key),
        )
        return None if row is None else moment(row["ts"])


def _generation(row: Row) -> Generation:
    return Generation(
        session=row["key"],
        number=row["generation"],
        scope=row["scope"],
        started_at=moment(row["started_at"]),
        from_seq=row["from_seq"],
        messages=row["said"],
        first_at=moment(row["first_at"]) if row["first_at"] else None,
        last_at=moment(row["last_at"]) if row["last_at"] else None,
        ended_at=moment(row["ended_at"]) if row["ended_at"] else None,
        end_reason=row["end_reason"] or "",
        pressure=row["pressure"],
        resumed=row["resumed"],
    )


_TO_CLEAR = "SELECT key, generation, scope, view_floor FROM sessions WHERE ended_at IS NOT NULL AND cleared = 0"


def has_to_clear(db: Database) -> bool:
    return db.row(f"{_TO_CLEAR} LIMIT 1") is not None


def clear_some(db: Database) -> None:
    """Inside a transaction: take some rows out that an ended generation no longer shows: its messages, and what its
    compactions replaced, which is not put back any more."""
    row = db.row(f"{_TO_CLEAR} ORDER BY key, generation LIMIT 1")
    if row is None:
        return
    session = Session(row["key"], row["generation"], row["scope"])
    for kept in earlier.kept(db, session)[:1]:
        earlier.give_up(db, session, kept["checkpoint_num"])
    gone = db.execute(
        "DELETE FROM conversation_history WHERE id IN (SELECT h.id FROM conversation_history h WHERE h.session = ?"
        f" AND h.generation = ? AND (h.position <= ? OR ({LIVE_ROW})) LIMIT ?)",
        (session.key, session.generation, row["view_floor"], _CLEARED_AT_ONCE),
    )
    if gone < _CLEARED_AT_ONCE:
        db.execute("UPDATE sessions SET cleared = 1 WHERE key = ? AND generation = ?", (row["key"], row["generation"]))
