"""Commands that were typed on a bridge: `people_ports.TypedCommands` over script.db.

What always holds: a command is kept before it is acknowledged, and its answer goes out once: the row ends in the
transaction that stores the answer. Nothing that was typed is kept after that.
"""

from __future__ import annotations

from datetime import datetime
from sqlite3 import Row

from assistant.core.records import IncomingMessage, OutgoingMessage
from assistant.core.slash_commands import PendingCommand
from assistant.store import bridge_states, outbox, session_rows
from assistant.store.database import Database
from assistant.store.text import clean, stamp


class TypedCommands:
    """Implements `people_ports.TypedCommands`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def accept(self, incoming: IncomingMessage, text: str, now: datetime) -> PendingCommand | None:
        told = (incoming.sender, incoming.target, text)
        values = (
            clean(incoming.bridge), clean(incoming.external_id), incoming.session, incoming.scope, *map(clean, told)
        )  # fmt: skip
        with self._db.write() as db:
            added = db.execute(
                "INSERT OR IGNORE INTO typed_commands (bridge, external_id, session, scope, sender, target, text,"
                " state, accepted_at) VALUES (?, ?, ?, ?, ?, ?, ?, 'accepted', ?)",
                (*values, stamp(now)),
            )
            bridge_states.put(db, incoming.bridge, incoming.position)
            row = db.rows("SELECT * FROM typed_commands WHERE bridge = ? AND external_id = ?", values[:2])[0]
        return _command(row) if added else None

    def begin(self, command: PendingCommand) -> None:
        with self._db.write() as db:
            db.execute("UPDATE typed_commands SET state = 'running' WHERE id = ?", (command.id,))

    def answer(self, command: PendingCommand, outgoing: OutgoingMessage, now: datetime) -> None:
        session = session_rows.current(self._db, command.session)
        with self._db.write() as db:
            outbox.insert(db, [outgoing], 1 if session is None else session.generation, None, now)
            db.execute("UPDATE typed_commands SET state = 'done', text = '' WHERE id = ?", (command.id,))

    def open(self) -> list[PendingCommand]:
        return [
            _command(row) for row in self._db.rows("SELECT * FROM typed_commands WHERE state <> 'done' ORDER BY id")
        ]  # fmt: skip


def _command(row: Row) -> PendingCommand:
    return PendingCommand(
        row["id"], row["bridge"], row["external_id"], row["session"], row["scope"], row["sender"], row["target"],
        row["text"], row["state"] == "running",
    )  # fmt: skip
