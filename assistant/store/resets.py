"""Resets under way and past: `reset_ports.Resets` over script.db, a row a generation that was to end.

What always holds: a row is `done` in the transaction that ends its generation (`turnover`), and in no other way, so
that what is not done can be taken up again by whoever finds it.
"""

from __future__ import annotations

from datetime import datetime
from sqlite3 import Row

from assistant.core.sessions import SessionReset
from assistant.store.database import Database
from assistant.store.text import clean, moment, stamp

_OF = "session = ? AND generation = ?"
_UNDER_WAY = "state IN ('begun', 'waiting', 'archived')"


class StoredResets:
    def __init__(self, db: Database) -> None:
        self._db = db

    def begin(self, reset: SessionReset) -> SessionReset:
        with self._db.write() as db:
            db.execute(
                "INSERT INTO resets (session, generation, scope, reason, resumes, state, pressure, begun_at)"
                " VALUES (?, ?, ?, ?, ?, 'begun', ?, ?) ON CONFLICT (session, generation) DO UPDATE SET"
                " reason = excluded.reason, resumes = excluded.resumes, state = 'begun', pressure = excluded.pressure,"
                " attempts = CASE state WHEN 'withdrawn' THEN 0 ELSE attempts END, note = '', retry_at = NULL,"
                " begun_at = CASE state WHEN 'withdrawn' THEN excluded.begun_at ELSE begun_at END, ended_at = NULL"
                " WHERE state <> 'done'",
                (
                    reset.session, reset.generation, reset.scope, reset.reason, reset.resumes, reset.pressure,
                    stamp(reset.begun_at),
                ),
            )  # fmt: skip
        return self._one(reset.session, reset.generation)

    def archived(self, session: str, generation: int) -> None:
        with self._db.write() as db:
            db.execute(
                f"UPDATE resets SET state = 'archived' WHERE {_OF} AND {_UNDER_WAY}", (session, generation)
            )  # fmt: skip

    def wait(self, session: str, generation: int, note: str, retry_at: datetime) -> SessionReset:
        with self._db.write() as db:
            db.execute(
                "UPDATE resets SET state = 'waiting', note = ?, retry_at = ?, attempts = attempts + 1"
                f" WHERE {_OF} AND {_UNDER_WAY}",
                (clean(note), stamp(retry_at), session, generation),
            )
        return self._one(session, generation)

    def withdraw(self, session: str, generation: int, now: datetime) -> bool:
        with self._db.write() as db:
            gone = db.execute(
                f"UPDATE resets SET state = 'withdrawn', ended_at = ?, note = '', retry_at = NULL WHERE {_OF}"
                f" AND {_UNDER_WAY}",
                (stamp(now), session, generation),
            )
        return bool(gone)

    def unfinished(self) -> list[SessionReset]:
        current = "generation = (SELECT max(s.generation) FROM sessions s WHERE s.key = session)"
        rows = self._db.rows(f"SELECT * FROM resets WHERE {_UNDER_WAY} AND {current} ORDER BY begun_at, session")
        return [_reset(row) for row in rows]

    def of(self, session: str) -> list[SessionReset]:
        rows = self._db.rows("SELECT * FROM resets WHERE session = ? ORDER BY generation", (session,))
        return [_reset(row) for row in rows]

    def _one(self, session: str, generation: int) -> SessionReset:
        (row,) = self._db.rows(f"SELECT * FROM resets WHERE {_OF}", (session, generation))
        return _reset(row)


def _reset(row: Row) -> SessionReset:
    return SessionReset(
        session=row["session"],
        generation=row["generation"],
        scope=row["scope"],
        reason=row["reason"],
        state=row["state"],
        begun_at=moment(row["begun_at"]),
        resumes=row["resumes"],
        pressure=row["pressure"],
        attempts=row["attempts"],
        note=row["note"],
        retry_at=moment(row["retry_at"]) if row["retry_at"] else None,
        ended_at=moment(row["ended_at"]) if row["ended_at"] else None,
    )
