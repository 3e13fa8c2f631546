"""How far each bridge has come, and which the owner paused.

What always holds: a position is written in the transaction that keeps the message before it, or, where there was
nothing to keep, by itself: it is never ahead of the inbox (I1).
"""

from __future__ import annotations

from assistant.store.database import Database
from assistant.store.text import clean


class BridgeStates:
    """Implements `bridge_ports.States`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def position(self, bridge: str) -> str:
        row = self._db.row("SELECT position FROM bridge_states WHERE bridge = ?", (bridge,))
        return "" if row is None else str(row["position"])

    def advance(self, bridge: str, position: str) -> None:
        if position and position != self.position(bridge):
            with self._db.write() as db:
                put(db, bridge, position)

    def paused(self, bridge: str) -> bool:
        return self._db.row("SELECT 1 FROM bridge_states WHERE bridge = ? AND paused", (bridge,)) is not None

    def pause(self, bridge: str, paused: bool) -> None:
        with self._db.write() as db:
            db.execute(
                "INSERT INTO bridge_states (bridge, paused) VALUES (?, ?)"
                " ON CONFLICT (bridge) DO UPDATE SET paused = excluded.paused",
                (bridge, int(paused)),
            )

    def forget(self, bridge: str) -> None:
        """It was removed: one that is added again begins anew."""
        with self._db.write() as db:
            db.execute("DELETE FROM bridge_states WHERE bridge = ?", (bridge,))


def put(db: Database, bridge: str, position: str) -> None:
    """Inside a transaction: the bridge goes on receiving there; "" leaves it where it was."""
    if position:
        db.execute(
            "INSERT INTO bridge_states (bridge, position) VALUES (?, ?)"
            " ON CONFLICT (bridge) DO UPDATE SET position = excluded.position",
            (bridge, clean(position)),
        )
