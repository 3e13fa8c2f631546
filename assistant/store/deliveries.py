"""What is on its way out and got stuck, and what a person decides about it: over the outbox.

What always holds: nothing that may have arrived is sent again but on the owner's word, under the key and with the body
that it always had (I8). What is being sent at this moment is nobody's to decide on: its `error` is empty.
"""

from __future__ import annotations

from datetime import datetime
from sqlite3 import Row

from assistant.core.bridge_api import DeliveryOutcome, RedirectResult, UndeliveredItem
from assistant.core.sessions import OWNER_SCOPE
from assistant.store import outbox
from assistant.store.database import Database
from assistant.store.text import moment, stamp

_STUCK = "state IN ('ambiguous', 'failed', 'withheld')"
_OPEN = "state IN ('pending', 'sending')"
# Tried, and waits for another try.
_WAITS = f"({_OPEN} AND error <> '')"
# As the index has it. With a plus before the id that is not what is looked through: of years all but a few were sent.
_UNSENT = "state <> 'sent'"


class Deliveries:
    """Implements `assistant.commands.deliveries.Deliveries`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def stuck(self, *, limit: int = 100) -> list[UndeliveredItem]:
        """And what waits for another try; the newest, oldest of them first."""
        where = f"{_UNSENT} AND ({_STUCK} OR {_WAITS})"
        rows = self._db.rows(f"SELECT * FROM outbox WHERE {where} ORDER BY +id DESC LIMIT ?", (limit,))
        return [_undelivered(row) for row in rows][::-1]

    def one(self, item_id: int) -> UndeliveredItem | None:
        """None where it was sent, or dropped."""
        row = self._db.row(f"SELECT * FROM outbox WHERE id = ? AND ({_STUCK} OR {_OPEN})", (item_id,))
        return None if row is None else _undelivered(row)

    def fate(self, key: str) -> DeliveryOutcome | None:
        row = self._db.row("SELECT state, error FROM outbox WHERE key = ?", (key,))
        return None if row is None else DeliveryOutcome(row["state"], row["error"])

    def again(self, item_id: int, now: datetime) -> bool:
        """Have it sent once more; False where it is not stuck."""
        return self._settle(item_id, "pending", now, _STUCK)

    def drop(self, item_id: int, now: datetime) -> bool:
        """It goes nowhere any more; False where it is neither stuck nor waits for another try."""
        return self._settle(item_id, "dropped", now, f"({_STUCK} OR {_WAITS})")

    def waiting(self) -> dict[str, int]:
        """How many are to go out, by bridge."""
        rows = self._db.rows(f"SELECT bridge, count(*) AS items FROM outbox WHERE {_OPEN} GROUP BY bridge")
        return {row["bridge"]: row["items"] for row in rows}

    def cut_off(self, bridge: str, now: datetime) -> None:
        """It has another account from now on, whose network knows no key of the one before: nobody will learn what
        became of a send that was cut off."""
        with self._db.write() as db:
            _cut_off(db, bridge, "cut off when its bridge got another account", now)

    def bring_home(self, bridge: str, home: str, now: datetime, *, ended: bool) -> RedirectResult:
        """What waits there for the owner goes to the bridge `home` instead, in its session. `ended`: the bridge runs no
        more, so that nobody will learn what became of a send that was cut off."""
        with self._db.write() as db:
            if ended:
                _cut_off(db, bridge, "cut off when its bridge was removed", now)
            owners = db.rows(
                "SELECT id, session FROM outbox WHERE bridge = ? AND state = 'pending' AND parts_sent = 0 AND scope = ?"
                " ORDER BY id",
                (bridge, OWNER_SCOPE),
            )
            for row in owners:
                outbox.send_on(db, row["id"], home, row["session"], now)
        return RedirectResult(len(owners), self.waiting().get(bridge, 0))

    def _settle(self, item_id: int, state: str, now: datetime, where: str) -> bool:
        with self._db.write() as db:
            changed = db.execute(
                f"UPDATE outbox SET state = ?, updated_at = ? WHERE id = ? AND {where}", (state, stamp(now), item_id)
            )
        return bool(changed)


def _cut_off(db: Database, bridge: str, error: str, now: datetime) -> None:
    db.execute(
        "UPDATE outbox SET state = 'ambiguous', error = ?, updated_at = ? WHERE bridge = ? AND state = 'sending'",
        (error, stamp(now), bridge),
    )


def _undelivered(row: Row) -> UndeliveredItem:
    return UndeliveredItem(
        row["id"], row["state"], row["bridge"], row["target"], row["session"], row["scope"], row["body"], row["error"],
        row["parts_sent"], row["attempts"], moment(row["created_at"]), moment(row["updated_at"]),
    )  # fmt: skip
