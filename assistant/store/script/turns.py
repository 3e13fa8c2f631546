"""Turns, the tools they ran, and tasks given to helpers (F22), as rows of script.db.

What always holds: a task is written before a helper starts on it, and ends once. A call that is repeated under its
key after a crash finds its tasks: those with a result keep it, the others run again. Functions that write turns and
tool runs are called inside a transaction; `Delegations` opens its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from sqlite3 import Row

from assistant.core.checkpoints import Delegation, DelegationState
from assistant.core.errors import StoreError
from assistant.core.messages import (
    ToolCall,
)
from assistant.core.records import (
    InboxItem,
    ToolRun,
    Turn,
    TurnState,
)
from assistant.store.database import Database
from assistant.store.encoding import clean_text, dump_json, format_time, json_safe, parse_time
from assistant.store.script import sessions as session_rows
from assistant.store.script.sessions import Session


def turn_id_of_message(message_id: int) -> str:
    """A turn is named for the message it answers, so that a repeated start finds the same turn."""
    return f"t{message_id:08d}"


def insert_turn(db: Database, turn: str, session: Session, volatile: str, now: datetime) -> None:
    db.execute(
        "INSERT INTO turns (id, session, generation, scope, state, volatile, started_at)"
        " VALUES (?, ?, ?, ?, 'running', ?, ?)",
        (turn, session.key, session.generation, session.scope, volatile, format_time(now)),
    )


def find_turn_row(db: Database, turn: str) -> Row | None:
    return db.row("SELECT * FROM turns WHERE id = ?", (turn,))


def find_last_volatile(db: Database, session: str) -> str:
    row = db.row(
        "SELECT volatile FROM turns WHERE session = ? ORDER BY started_at DESC, rowid DESC LIMIT 1", (session,)
    )
    return "" if row is None else str(row["volatile"])


def list_running_turn_rows(db: Database) -> list[Row]:
    return db.rows("SELECT * FROM turns WHERE state = 'running' ORDER BY started_at, id")


def require_running_turn(db: Database, turn: Turn) -> None:
    """Raises `StoreError` where the turn has ended: nothing more may be said in its name."""
    row = find_turn_row(db, turn.id)
    if row is None or row["state"] != "running":
        raise StoreError(f"Turn {turn.id} has ended. Nothing was written.")


def end_turn(db: Database, turn: Turn, state: TurnState, error: str, now: datetime) -> None:
    """A tool that is still marked as started was interrupted."""
    db.execute(
        "UPDATE turns SET state = ?, error = ?, ended_at = ? WHERE id = ?",
        (state, clean_text(error), format_time(now), turn.id),
    )
    db.execute(
        "UPDATE tool_runs SET state = 'interrupted', ended_at = ? WHERE turn = ? AND state = 'started'",
        (format_time(now), turn.id),
    )


def insert_tool_run(db: Database, turn: Turn, call: ToolCall, now: datetime) -> None:
    db.execute(
        "INSERT INTO tool_runs (turn, session, generation, scope, call_id, name, arguments, state, started_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, 'started', ?) ON CONFLICT (turn, call_id) DO NOTHING",
        (
            turn.id,
            turn.session,
            turn.generation,
            turn.scope,
            clean_text(call.id),
            clean_text(call.name),
            dump_json(json_safe(call.arguments)),
            format_time(now),
        ),
    )


def list_tool_runs(db: Database, turn: str) -> list[ToolRun]:
    return [tool_run_of_row(row) for row in db.rows("SELECT * FROM tool_runs WHERE turn = ? ORDER BY id", (turn,))]


class Delegations:
    """Tasks given to helpers (script.db): written before a helper starts, so that a restart can tell of them (F22)."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def begin(
        self, key: str, turn: str, session: str, scope: str, tasks: Sequence[str], now: datetime
    ) -> list[Delegation]:
        with self._db.write() as db:
            if not self._of_key(key):
                generation = session_rows.require_session(db, session).generation
                db.execute_many(
                    "INSERT INTO delegations (key, turn, session, generation, scope, task, state, started_at)"
                    " VALUES (?, ?, ?, ?, ?, ?, 'running', ?)",
                    [(key, turn, session, generation, scope, clean_text(task), format_time(now)) for task in tasks],
                )
            db.execute(
                "UPDATE delegations SET state = 'running', started_at = ?, ended_at = NULL"
                " WHERE key = ? AND state = 'interrupted'",
                (format_time(now), key),
            )
        return self._of_key(key)

    def end(
        self, delegation_id: int, state: DelegationState, result: str, cost_usd: float | None, now: datetime
    ) -> None:
        with self._db.write() as db:
            db.execute(
                "UPDATE delegations SET state = ?, result = ?, cost_usd = ?, ended_at = ?"
                " WHERE id = ? AND state = 'running'",
                (state, clean_text(result), cost_usd, format_time(now), delegation_id),
            )

    def list_for_session(
        self, session: str, *, state: DelegationState | None = None, limit: int = 50
    ) -> list[Delegation]:
        """Newest first."""
        rows = self._db.rows(
            "SELECT * FROM delegations WHERE session = ? AND (? IS NULL OR state = ?) ORDER BY id DESC LIMIT ?",
            (session, state, state, limit),
        )
        return [_delegation_of_row(row) for row in rows]

    def interrupt_running(self, now: datetime) -> list[Delegation]:
        """At start: those an earlier process left running are `interrupted`."""
        with self._db.write() as db:
            running = "SELECT id FROM delegations INDEXED BY delegations_running WHERE state = 'running'"
            ids = sorted(row["id"] for row in db.rows(running))
            for delegation_id in ids:
                db.execute(
                    "UPDATE delegations SET state = 'interrupted', ended_at = ? WHERE id = ?",
                    (format_time(now), delegation_id),
                )
            return [
                _delegation_of_row(row) for one in ids for row in db.rows(f"{_SELECT_DELEGATIONS} WHERE id = ?", (one,))
            ]

    def _of_key(self, key: str) -> list[Delegation]:
        return [
            _delegation_of_row(row) for row in self._db.rows(f"{_SELECT_DELEGATIONS} WHERE key = ? ORDER BY id", (key,))
        ]


_SELECT_DELEGATIONS = "SELECT * FROM delegations"


def _delegation_of_row(row: Row) -> Delegation:
    return Delegation(
        id=row["id"],
        key=row["key"],
        turn=row["turn"],
        session=row["session"],
        scope=row["scope"],
        task=row["task"],
        state=row["state"],
        result=row["result"],
        started_at=parse_time(row["started_at"]),
        ended_at=None if row["ended_at"] is None else parse_time(row["ended_at"]),
        cost_usd=row["cost_usd"],
    )


def turn_of_row(row: Row, items: tuple[InboxItem, ...]) -> Turn:
    return Turn(
        row["id"],
        row["session"],
        row["generation"],
        row["scope"],
        row["volatile"],
        row["state"],
        parse_time(row["started_at"]),
        items,
    )


def tool_run_of_row(row: Row) -> ToolRun:
    return ToolRun(ToolCall(row["call_id"], row["name"], json.loads(row["arguments"])), row["turn"], row["state"])
