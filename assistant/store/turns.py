"""Turns and the tools they ran, as rows. Writing functions are called inside a transaction."""

from __future__ import annotations

from datetime import datetime
from sqlite3 import Row

from assistant.core.errors import StoreError
from assistant.core.messages import ToolCall
from assistant.core.records import ToolRun, Turn, TurnState
from assistant.store.database import Database
from assistant.store.rows import tool_run
from assistant.store.session_rows import Session
from assistant.store.text import clean, dumps, plain, stamp


def turn_id(message_id: int) -> str:
    """A turn is named for the message it answers, so that a repeated start finds the same turn."""
    return f"t{message_id:08d}"


def begin(db: Database, turn: str, session: Session, volatile: str, now: datetime) -> None:
    db.execute(
        "INSERT INTO turns (id, session, generation, scope, state, volatile, started_at)"
        " VALUES (?, ?, ?, ?, 'running', ?, ?)",
        (turn, session.key, session.generation, session.scope, volatile, stamp(now)),
    )


def find(db: Database, turn: str) -> Row | None:
    return db.row("SELECT * FROM turns WHERE id = ?", (turn,))


def last_volatile(db: Database, session: str) -> str:
    row = db.row(
        "SELECT volatile FROM turns WHERE session = ? ORDER BY started_at DESC, rowid DESC LIMIT 1", (session,)
    )
    return "" if row is None else str(row["volatile"])


def running(db: Database) -> list[Row]:
    return db.rows("SELECT * FROM turns WHERE state = 'running' ORDER BY started_at, id")


def require_running(db: Database, turn: Turn) -> None:
    """Raises `StoreError` where the turn has ended: nothing more may be said in its name."""
    row = find(db, turn.id)
    if row is None or row["state"] != "running":
        raise StoreError(f"Turn {turn.id} has ended. Nothing was written.")


def end(db: Database, turn: Turn, state: TurnState, error: str, now: datetime) -> None:
    """A tool that is still marked as started was interrupted."""
    db.execute(
        "UPDATE turns SET state = ?, error = ?, ended_at = ? WHERE id = ?", (state, clean(error), stamp(now), turn.id)
    )
    db.execute(
        "UPDATE tool_runs SET state = 'interrupted', ended_at = ? WHERE turn = ? AND state = 'started'",
        (stamp(now), turn.id),
    )


def start_tool(db: Database, turn: Turn, call: ToolCall, now: datetime) -> None:
    db.execute(
        "INSERT INTO tool_runs (turn, session, generation, scope, call_id, name, arguments, state, started_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, 'started', ?) ON CONFLICT (turn, call_id) DO NOTHING",
        (
            turn.id, turn.session, turn.generation, turn.scope, clean(call.id), clean(call.name),
            dumps(plain(call.arguments)), stamp(now),
        ),
    )  # fmt: skip


def tool_runs(db: Database, turn: str) -> list[ToolRun]:
    return [tool_run(row) for row in db.rows("SELECT * FROM tool_runs WHERE turn = ? ORDER BY id", (turn,))]
