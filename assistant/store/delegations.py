"""Tasks given to helpers (F22): `sleep_ports.Delegations` over script.db.

What always holds: a task is written before a helper starts on it, and ends once. A call that is made again under its
key, after a crash, finds its tasks: those that have a result keep it, the others run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from sqlite3 import Row

from assistant.core.checkpoints import Delegation, DelegationState
from assistant.store import session_rows
from assistant.store.database import Database
from assistant.store.text import clean, moment, stamp


class Delegations:
    def __init__(self, db: Database) -> None:
        self._db = db

    def begin(
        self, key: str, turn: str, session: str, scope: str, tasks: Sequence[str], now: datetime
    ) -> list[Delegation]:
        with self._db.write() as db:
            if not self._of_key(key):
                generation = session_rows.require(db, session).generation
                db.execute_many(
                    "INSERT INTO delegations (key, turn, session, generation, scope, task, state, started_at)"
                    " VALUES (?, ?, ?, ?, ?, ?, 'running', ?)",
                    [(key, turn, session, generation, scope, clean(task), stamp(now)) for task in tasks],
                )
            db.execute(
                "UPDATE delegations SET state = 'running', started_at = ?, ended_at = NULL"
                " WHERE key = ? AND state = 'interrupted'",
                (stamp(now), key),
            )
        return self._of_key(key)

    def end(
        self, delegation_id: int, state: DelegationState, result: str, cost_usd: float | None, now: datetime
    ) -> None:
        with self._db.write() as db:
            db.execute(
                "UPDATE delegations SET state = ?, result = ?, cost_usd = ?, ended_at = ?"
                " WHERE id = ? AND state = 'running'",
                (state, clean(result), cost_usd, stamp(now), delegation_id),
            )

    def of(self, session: str, *, state: DelegationState | None = None, limit: int = 50) -> list[Delegation]:
        rows = self._db.rows(
            "SELECT * FROM delegations WHERE session = ? AND (? IS NULL OR state = ?) ORDER BY id DESC LIMIT ?",
            (session, state, state, limit),
        )
        return [_delegation(row) for row in rows]

    def interrupt(self, now: datetime) -> list[Delegation]:
        with self._db.write() as db:
            running = "SELECT id FROM delegations INDEXED BY delegations_running WHERE state = 'running'"
            ids = sorted(row["id"] for row in db.rows(running))
            for delegation_id in ids:
                db.execute(
                    "UPDATE delegations SET state = 'interrupted', ended_at = ? WHERE id = ?",
                    (stamp(now), delegation_id),
                )
            return [_delegation(row) for one in ids for row in db.rows(f"{_SELECT} WHERE id = ?", (one,))]

    def _of_key(self, key: str) -> list[Delegation]:
        return [_delegation(row) for row in self._db.rows(f"{_SELECT} WHERE key = ? ORDER BY id", (key,))]


_SELECT = "SELECT * FROM delegations"


def _delegation(row: Row) -> Delegation:
    return Delegation(
        id=row["id"],
        key=row["key"],
        turn=row["turn"],
        session=row["session"],
        scope=row["scope"],
        task=row["task"],
        state=row["state"],
        result=row["result"],
        started_at=moment(row["started_at"]),
        ended_at=None if row["ended_at"] is None else moment(row["ended_at"]),
        cost_usd=row["cost_usd"],
    )
