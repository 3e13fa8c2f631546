"""Words that stand in every prompt of a session (F21): `sleep_ports.Pins` over character.db.

What always holds: a message is pinned once, a text as often as somebody pins it; what is removed is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from sqlite3 import Row

from assistant.core.checkpoints import Pin
from assistant.core.errors import UsageError
from assistant.store.database import Database
from assistant.store.text import clean, moment, stamp


class Pins:
    def __init__(self, db: Database) -> None:
        self._db = db

    def all(self, session: str) -> list[Pin]:
        """Oldest first."""
        return [_pin(row) for row in self._db.rows("SELECT * FROM pins WHERE session = ? ORDER BY id", (session,))]

    def add(self, session: str, scope: str, text: str, role: str, message_id: int | None, now: datetime) -> Pin:
        with self._db.write() as db:
            known = db.row(
                "SELECT * FROM pins WHERE session = ? AND message_id IS NOT NULL AND message_id = ?",
                (session, message_id),
            )
            if known is not None:
                return _pin(known)
            pin_id = db.insert(
                "INSERT INTO pins (session, scope, text, role, message_id, created_at) VALUES (?, ?, ?, ?, ?, ?)",
                (session, scope, clean(text), clean(role), message_id, stamp(now)),
            )
        return Pin(pin_id, session, scope, clean(text), role, message_id, now)

    def remove(self, session: str, pin_ids: Sequence[int]) -> list[Pin]:
        with self._db.write() as db:
            known = {pin.id: pin for pin in self.all(session)}
            unknown = [str(one) for one in pin_ids if one not in known]
            if unknown:
                raise UsageError(f"There is no pin {', '.join(unknown)} here. Nothing was changed; /pins lists them.")
            wanted = list(dict.fromkeys(pin_ids))
            for one in wanted:
                db.execute("DELETE FROM pins WHERE id = ?", (one,))
        return [known[one] for one in wanted]


def _pin(row: Row) -> Pin:
    return Pin(
        row["id"], row["session"], row["scope"], row["text"], row["role"], row["message_id"], moment(row["created_at"])
    )
