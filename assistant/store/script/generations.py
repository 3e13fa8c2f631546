"""The generations of sessions: what each was, everything said in it, the clearing of ended ones; and resets, one a
generation that was to end.

What always holds: an ended generation keeps what its compactions had put in front of its view, so that it can be
resumed; its messages are in the log, and their rows are deleted a little at a time, never in the way of a turn. A
reset is `done` only in the transaction that ends its generation (`rollover`), so that whatever is not done can be
taken up again.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from assistant.core.records import LogRecord
from assistant.core.sessions import Generation, GenerationActivity, SessionReset
from assistant.store.database import Database
from assistant.store.encoding import parse_time
from assistant.store.log.reader import LogFiles
from assistant.store.rows import class_row
from assistant.store.script.index import span_of_row
from assistant.store.script.sessions import Session, find_session, session_of_row, update_session
from assistant.store.script.undo import discard_undo, list_undoable_checkpoint_rows
from assistant.store.script.view import IS_MESSAGE_ROW

_ROWS_PER_CLEARING = 500
_RECORDS_PER_QUERY = 500
_IS_VISIBLE_MESSAGE = "m.session = s.key AND m.generation = s.generation AND m.kind = 'message' AND m.hidden_by IS NULL"


_read_generation = class_row(
    Generation,
    session="key",
    number="generation",
    messages="said",
    end_reason=lambda row: row["end_reason"] or "",
)


class StoredGenerations:
    """What sessions were and are, read from script.db and the message log."""

    def __init__(self, db: Database, log: LogFiles) -> None:
        self._db = db
        self._log = log

    def list_generations(self, session: str, newest: int | None = None) -> list[Generation]:
        """Every generation of a session, or its newest alone, oldest first; none where there is no such session."""
        generations = self._db.read_all(
            _read_generation,
            "SELECT s.*, r.pressure, count(m.id) AS said, min(m.ts) AS first_at, max(m.ts) AS last_at FROM sessions s"
            f" LEFT JOIN messages m ON {_IS_VISIBLE_MESSAGE}"
            " LEFT JOIN resets r ON r.session = s.key AND r.generation = s.generation AND r.state = 'done'"
            " WHERE s.key = ? GROUP BY s.generation ORDER BY s.generation DESC LIMIT ?",
            (session, -1 if newest is None else newest),
        )
        return generations[::-1]

    def current_activity(self, session: str) -> GenerationActivity | None:
        """The current generation; None where there is no such session. Takes no longer in a long session."""
        current = find_session(self._db, session)
        if current is None:
            return None
        first, last = (self._message_time(current, order) for order in ("ASC", "DESC"))
        return GenerationActivity(session, current.generation, first, last)

    def last_seq(self, session: str) -> int:
        """The seq of the session's last record; 0 where there is none."""
        return self._db.value("SELECT max(seq) FROM messages WHERE session = ?", (session,)) or 0

    def records_of_generation(self, session: str, generation: int) -> Iterator[LogRecord]:
        """Everything that was logged in a generation and not undone, oldest first, whole."""
        seq = 0
        while rows := self._db.rows(
            "SELECT seq, byte_start, byte_end FROM messages WHERE session = ? AND generation = ? AND seq > ?"
            " AND hidden_by IS NULL ORDER BY seq LIMIT ?",
            (session, generation, seq, _RECORDS_PER_QUERY),
        ):
            for row in rows:
                yield self._log.read(session, span_of_row(row))
            seq = rows[-1]["seq"]

    def _message_time(self, session: Session, order: str) -> datetime | None:
        """When the first (ASC) or last (DESC) message of a generation was said, found from that end."""
        at = self._db.value(
            "SELECT m.ts FROM messages m JOIN sessions s ON s.key = m.session AND s.generation = ?"
            " WHERE m.session = ? AND m.seq >= s.from_seq AND m.generation = s.generation AND m.kind = 'message'"
            f" AND m.hidden_by IS NULL ORDER BY m.seq {order} LIMIT 1",
            (session.generation, session.key),
        )
        return None if at is None else parse_time(at)


_SELECT_TO_CLEAR = "SELECT key, generation, scope, view_floor FROM sessions WHERE ended_at IS NOT NULL AND cleared = 0"


def has_rows_to_clear(db: Database) -> bool:
    return db.value(f"{_SELECT_TO_CLEAR} LIMIT 1") is not None


def clear_ended_rows(db: Database) -> None:
    """Inside a transaction: take some rows out that an ended generation no longer shows: its messages, and what its
    compactions replaced, which is not put back any more."""
    row = db.row(f"{_SELECT_TO_CLEAR} ORDER BY key, generation LIMIT 1")
    if row is None:
        return
    session = session_of_row(row)
    for checkpoint in list_undoable_checkpoint_rows(db, session)[:1]:
        discard_undo(db, session, checkpoint["checkpoint_num"])
    deleted = db.execute(
        "DELETE FROM conversation_history WHERE id IN (SELECT h.id FROM conversation_history h WHERE h.session = ?"
        f" AND h.generation = ? AND (h.position <= ? OR ({IS_MESSAGE_ROW})) LIMIT ?)",
        (*session.row_key, row["view_floor"], _ROWS_PER_CLEARING),
    )
    if deleted < _ROWS_PER_CLEARING:
        update_session(db, session, cleared=1)


_OF_GENERATION = "session = ? AND generation = ?"
_IS_UNDER_WAY = "state IN ('begun', 'waiting', 'archived')"
_read_reset = class_row(SessionReset)


class StoredResets:
    """Resets under way and past, one a generation (script.db)."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def begin(self, reset: SessionReset) -> SessionReset:
        """Note that a reset of the generation is under way; what was noted of an earlier try of it is replaced, but
        for the number of its tries."""
        with self._db.write() as db:
            db.execute(
                "INSERT INTO resets (session, generation, scope, reason, resumes, state, pressure, begun_at)"
                " VALUES (?, ?, ?, ?, ?, 'begun', ?, ?) ON CONFLICT (session, generation) DO UPDATE SET"
                " reason = excluded.reason, resumes = excluded.resumes, state = 'begun', pressure = excluded.pressure,"
                " attempts = CASE state WHEN 'withdrawn' THEN 0 ELSE attempts END, note = '', retry_at = NULL,"
                " begun_at = CASE state WHEN 'withdrawn' THEN excluded.begun_at ELSE begun_at END, ended_at = NULL"
                " WHERE state <> 'done'",
                (
                    reset.session,
                    reset.generation,
                    reset.scope,
                    reset.reason,
                    reset.resumes,
                    reset.pressure,
                    reset.begun_at,
                ),
            )
        return self._get(reset.session, reset.generation)

    def mark_archived(self, session: str, generation: int) -> None:
        """The archive has the generation."""
        with self._db.write() as db:
            db.execute(
                f"UPDATE resets SET state = 'archived' WHERE {_OF_GENERATION} AND {_IS_UNDER_WAY}",
                (session, generation),
            )

    def postpone(self, session: str, generation: int, note: str, retry_at: datetime) -> SessionReset:
        """It could not be carried out now; one more try is counted."""
        with self._db.write() as db:
            db.execute(
                "UPDATE resets SET state = 'waiting', note = ?, retry_at = ?, attempts = attempts + 1"
                f" WHERE {_OF_GENERATION} AND {_IS_UNDER_WAY}",
                (note, retry_at, session, generation),
            )
        return self._get(session, generation)

    def withdraw(self, session: str, generation: int, now: datetime) -> bool:
        """It is wanted no longer: whether one was under way."""
        with self._db.write() as db:
            changed = db.execute(
                "UPDATE resets SET state = 'withdrawn', ended_at = ?, note = '', retry_at = NULL"
                f" WHERE {_OF_GENERATION} AND {_IS_UNDER_WAY}",
                (now, session, generation),
            )
        return bool(changed)

    def unfinished_resets(self) -> list[SessionReset]:
        """Of current generations, oldest first: those that wait, and those that a crash cut off."""
        current = "generation = (SELECT max(s.generation) FROM sessions s WHERE s.key = session)"
        sql = f"SELECT * FROM resets WHERE {_IS_UNDER_WAY} AND {current} ORDER BY begun_at, session"
        return self._db.read_all(_read_reset, sql)

    def list_for_session(self, session: str) -> list[SessionReset]:
        """All of a session, oldest first."""
        return self._db.read_all(_read_reset, "SELECT * FROM resets WHERE session = ? ORDER BY generation", (session,))

    def _get(self, session: str, generation: int) -> SessionReset:
        return self._db.read_all(_read_reset, f"SELECT * FROM resets WHERE {_OF_GENERATION}", (session, generation))[0]
