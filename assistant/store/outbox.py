"""Replies and notices on their way out: one key, one body, for ever (I8)."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from assistant.core.errors import StoreError
from assistant.core.records import OutboxItem, OutboxState, OutgoingMessage
from assistant.store import session_rows
from assistant.store.database import Database
from assistant.store.rows import outbox_buttons, outbox_item, outbox_media
from assistant.store.text import clean, stamp

_INSERT = (
    "INSERT INTO outbox (key, session, generation, scope, bridge, target, kind, body, buttons, media, message_id,"
    " inbox_id, turn, state, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)"
    " ON CONFLICT (key) DO NOTHING"
)

_OPEN = "state IN ('pending', 'sending')"
_LAST_ID = (1 << 63) - 1


class Outbox:
    """Implements `ports.Outbox`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def push(self, outgoing: OutgoingMessage, now: datetime) -> OutboxItem:
        session = session_rows.current(self._db, outgoing.session)
        with self._db.write() as db:
            insert(db, [outgoing], 1 if session is None else session.generation, None, now)
        row = self._db.row("SELECT * FROM outbox WHERE key = ?", (outgoing.key,))
        if row is None:
            raise StoreError(f"{outgoing.key!r} was not stored. Try again.")
        return outbox_item(row)

    def pending(
        self, bridge: str, *, limit: int = 100, beside: Collection[str] = (), but: Collection[int] = ()
    ) -> list[OutboxItem]:
        where, values = [f"bridge = ? AND {_OPEN}"], [bridge]
        for column, left_out in (("target", beside), ("id", but)):
            if left_out:
                where.append(f"{column} NOT IN (SELECT value FROM json_each(?))")
                values.append(json.dumps([*left_out]))
        return self._items(f"{' AND '.join(where)} ORDER BY id LIMIT ?", (*values, limit))

    def still_open(self, item_id: int) -> OutboxItem | None:
        found = self._items(f"id = ? AND {_OPEN}", (item_id,))
        return found[0] if found else None

    def open_of(self, bridge: str, session: str, *, limit: int) -> list[OutboxItem]:
        """Those of a session's items that wait to be sent on a bridge, oldest first."""
        # The plus keeps it to the index of what is open: a session has years of what was sent.
        return self._items(f"bridge = ? AND {_OPEN} AND +session = ? ORDER BY id LIMIT ?", (bridge, session, limit))

    def mark(self, item_id: int, state: OutboxState, now: datetime, *, error: str = "") -> None:
        """Each time an item goes to `sending` counts as an attempt; one that stays so with an error does not."""
        with self._db.write() as db:
            db.execute(
                "UPDATE outbox SET state = ?, attempts = attempts + ?, error = ?, updated_at = ? WHERE id = ?",
                (state, int(state == "sending" and not error), clean(error), stamp(now), item_id),
            )

    def give_up(
        self, item_id: int, state: OutboxState, error: str, notice: OutgoingMessage | None, now: datetime
    ) -> None:
        with self._db.write() as db:
            db.execute(
                "UPDATE outbox SET state = ?, error = ?, updated_at = ? WHERE id = ?",
                (state, clean(error), stamp(now), item_id),
            )
            if notice is not None:
                session = session_rows.current(db, notice.session)
                insert(db, [notice], 1 if session is None else session.generation, None, now)

    def part_sent(self, item_id: int, parts: int, now: datetime) -> None:
        """The network has so many of its parts, for certain; the next one was not sent yet."""
        with self._db.write() as db:
            db.execute(
                "UPDATE outbox SET parts_sent = ?, state = 'pending', updated_at = ? WHERE id = ?",
                (parts, stamp(now), item_id),
            )

    def redirect(self, item_id: int, bridge: str, target: str, now: datetime) -> None:
        with self._db.write() as db:
            send_on(db, item_id, bridge, target, now)

    def counts(self) -> dict[OutboxState, int]:
        """Items by state; states without items are left out."""
        counts: dict[OutboxState, int] = {
            row["state"]: row["items"]
            for row in self._db.rows("SELECT state, count(*) AS items FROM outbox WHERE state <> 'sent' GROUP BY state")
        }
        row = self._db.row("SELECT count(*) FROM outbox")
        sent = (row[0] if row is not None else 0) - sum(counts.values())
        return {**counts, "sent": sent} if sent else counts

    def waiting(self, bridge: str) -> int:
        row = self._db.row(f"SELECT count(*) FROM outbox WHERE bridge = ? AND {_OPEN}", (bridge,))
        return 0 if row is None else int(row[0])

    def recent(self, session: str, *, limit: int = 20) -> list[OutboxItem]:
        """The newest items of a session, oldest first."""
        return self._items("session = ? ORDER BY id DESC LIMIT ?", (session, limit))[::-1]

    def delivered(
        self, bridge: str, session: str, *, after: int, before: int | None = None, limit: int = 100
    ) -> list[OutboxItem]:
        """A session's items on a bridge with ids between the two, in every state, oldest first."""
        until = _LAST_ID if before is None else before
        return self._items(
            "session = ? AND bridge = ? AND id > ? AND id < ? ORDER BY id LIMIT ?",
            (session, bridge, after, until, limit),
        )

    def newest(self, bridge: str, session: str, until: int | None = None) -> OutboxItem | None:
        """The one of them with the largest id, up to an id."""
        where = "session = ? AND bridge = ? AND id <= ? ORDER BY id DESC LIMIT 1"
        return next(iter(self._items(where, (session, bridge, _LAST_ID if until is None else until))), None)

    def first_since(self, bridge: str, session: str, at: datetime) -> OutboxItem | None:
        """The one of them with the smallest id that was made later than that."""
        where = "session = ? AND bridge = ? AND created_at > ? ORDER BY id LIMIT 1"
        return next(iter(self._items(where, (session, bridge, stamp(at)))), None)

    def has(self, key: str, scope: str) -> bool:
        """Whether there ever was an item of a scope under a key."""
        return self._db.row("SELECT 1 FROM outbox WHERE key = ? AND scope = ?", (key, scope)) is not None

    def by_turn(self, turn: str) -> list[OutboxItem]:
        return self._items("turn = ? ORDER BY id", (turn,))

    def _items(self, where: str, values: Sequence[str | int]) -> list[OutboxItem]:
        return [outbox_item(row) for row in self._db.rows(f"SELECT * FROM outbox WHERE {where}", values)]


def send_on(db: Database, item_id: int, bridge: str, target: str, now: datetime) -> None:
    """Inside a transaction: it goes there instead, as the newest: whoever counts deliveries there by their ids has not
    passed it."""
    db.execute(
        "UPDATE outbox SET id = (SELECT max(id) + 1 FROM outbox), bridge = ?, target = ?, state = 'pending',"
        " parts_sent = 0, error = '', updated_at = ? WHERE id = ?",
        (bridge, target, stamp(now), item_id),
    )


def insert(db: Database, outgoing: Sequence[OutgoingMessage], generation: int, turn: str | None, now: datetime) -> None:
    """Inside a transaction: store what is to be sent; a key that exists keeps its first body."""
    at = stamp(now)
    db.execute_many(
        _INSERT,
        [
            (
                one.key, one.session, generation, one.scope, one.bridge, one.target, one.kind, clean(one.body),
                outbox_buttons(one), outbox_media(one), one.message_id, one.inbox_id, turn, at, at,
            )
            for one in outgoing
        ],
    )  # fmt: skip


def about(outgoing: Sequence[OutgoingMessage], message_id: int | None) -> list[OutgoingMessage]:
    """`outgoing`, each without a message id given this one."""
    return [one if one.message_id is not None else replace(one, message_id=message_id) for one in outgoing]
