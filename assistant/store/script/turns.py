"""Turns, the tools they ran, and tasks given to helpers (F22), as rows of script.db.

What always holds: a task is written before a helper starts on it, and ends once. A call that is repeated under its
key after a crash finds its tasks: those with a result keep it, the others run again. Functions that write turns and
tool runs are called inside a transaction; `Delegations` opens its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from sqlite3 import Row

from assistant.core.checkpoints import Delegation, DelegationState
from assistant.core.errors import StoreError
from assistant.core.messages import ToolCall
from assistant.core.records import InboxItem, ToolRun, Turn, TurnState
from assistant.store.database import Database
from assistant.store.rows import class_row, dump_json, json_safe
from assistant.store.script.sessions import Session, require_session, session_of_turn

_read_turn = class_row(Turn, items=lambda row: ())
_read_tool_run = class_row(
    ToolRun, call=lambda row: ToolCall(row["call_id"], row["name"], json.loads(row["arguments"]))
)
_read_delegation = class_row(Delegation)


def turn_id_of_message(message_id: int) -> str:
    """A turn is named for the message it answers, so that a repeated start finds the same turn."""
    return f"t{message_id:08d}"


def insert_turn(db: Database, turn: str, session: Session, volatile: str, now: datetime) -> None:
    db.insert_row("turns", id=turn, **session.columns, state="running", volatile=volatile, started_at=now)


def find_turn_row(db: Database, turn: str) -> Row | None:
    return db.row("SELECT * FROM turns WHERE id = ?", (turn,))


def turn_of_row(row: Row, items: tuple[InboxItem, ...]) -> Turn:
    return replace(_read_turn(row), items=items)


def find_last_volatile(db: Database, session: str) -> str:
    sql = "SELECT volatile FROM turns WHERE session = ? ORDER BY started_at DESC, rowid DESC LIMIT 1"
    return db.value(sql, (session,)) or ""


def list_running_turn_rows(db: Database) -> list[Row]:
    return db.rows("SELECT * FROM turns WHERE state = 'running' ORDER BY started_at, id")


def require_running_turn(db: Database, turn: Turn) -> None:
    """Raises `StoreError` where the turn has ended: nothing more may be said in its name."""
    if db.value("SELECT state FROM turns WHERE id = ?", (turn.id,)) != "running":
        raise StoreError(f"Turn {turn.id} has ended. Nothing was written.")


def end_turn(db: Database, turn: Turn, state: TurnState, error: str, now: datetime) -> None:
    """A tool that is still marked as started was interrupted."""
    db.update_rows("turns", {"id": turn.id}, state=state, error=error, ended_at=now)
    db.update_rows("tool_runs", {"turn": turn.id, "state": "started"}, state="interrupted", ended_at=now)


def insert_tool_run(db: Database, turn: Turn, call: ToolCall, now: datetime) -> None:
    db.insert_if_new(
        "tool_runs",
        turn=turn.id,
        **session_of_turn(turn).columns,
        call_id=call.id,
        name=call.name,
        arguments=dump_json(json_safe(call.arguments)),
        state="started",
        started_at=now,
    )


def list_tool_runs(db: Database, turn: str) -> list[ToolRun]:
    return db.read_all(_read_tool_run, "SELECT * FROM tool_runs WHERE turn = ? ORDER BY id", (turn,))


class Delegations:
    """Tasks given to helpers (script.db): written before a helper starts, so that a restart can report them (F22)."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def begin(
        self, key: str, turn: str, session: str, scope: str, tasks: Sequence[str], now: datetime
    ) -> list[Delegation]:
        with self._db.write() as db:
            if not self._list_by_key(key):
                columns = Session(session, require_session(db, session).generation, scope).columns
                for task in tasks:
                    db.insert_row(
                        "delegations", key=key, turn=turn, **columns, task=task, state="running", started_at=now
                    )
            db.update_rows(
                "delegations", {"key": key, "state": "interrupted"}, state="running", started_at=now, ended_at=None
            )
        return self._list_by_key(key)

    def end(
        self, delegation_id: int, state: DelegationState, result: str, cost_usd: float | None, now: datetime
    ) -> None:
        running = {"id": delegation_id, "state": "running"}
        with self._db.write() as db:
            db.update_rows("delegations", running, state=state, result=result, cost_usd=cost_usd, ended_at=now)

    def list_for_session(
        self, session: str, *, state: DelegationState | None = None, limit: int = 50
    ) -> list[Delegation]:
        """Newest first."""
        return self._db.read_all(
            _read_delegation,
            "SELECT * FROM delegations WHERE session = ? AND (? IS NULL OR state = ?) ORDER BY id DESC LIMIT ?",
            (session, state, state, limit),
        )

    def interrupt_running(self, now: datetime) -> list[Delegation]:
        """At start: those an earlier process left running are `interrupted`."""
        with self._db.write() as db:
            running = db.read_all(
                _read_delegation,
                "SELECT * FROM delegations WHERE id IN"
                " (SELECT id FROM delegations INDEXED BY delegations_running WHERE state = 'running') ORDER BY id",
            )
            for delegation in running:
                db.update_rows("delegations", {"id": delegation.id}, state="interrupted", ended_at=now)
        return [replace(delegation, state="interrupted", ended_at=now) for delegation in running]

    def _list_by_key(self, key: str) -> list[Delegation]:
        return self._db.read_all(_read_delegation, "SELECT * FROM delegations WHERE key = ? ORDER BY id", (key,))
