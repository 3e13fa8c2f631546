"""Replies and notices on their way out, what got stuck and what a person decides about it, and the files of a turn.

What always holds:
- One key, one body, for ever (I8). What may have arrived is sent again only on the owner's word, under the same
  key.
- Nobody decides on what is being sent at this moment: its `error` is empty.
- Files of a turn are kept while it runs and go out with its answer. A tool that runs again after a crash adds its
  file once; a turn that fails sends none.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from sqlite3 import Row

from assistant.core.bridge_api import DeliveryOutcome, RedirectResult, UndeliveredItem
from assistant.core.errors import StoreError
from assistant.core.messages import (
    Media,
    media_from_json,
    media_to_json,
)
from assistant.core.ports import ToolContext
from assistant.core.records import (
    Button,
    OutboxItem,
    OutboxState,
    OutgoingMessage,
)
from assistant.core.sessions import OWNER_SCOPE
from assistant.store.database import Database
from assistant.store.encoding import clean_text, dump_json, format_time, json_safe, parse_time
from assistant.store.script import sessions as session_rows

_INSERT = (
    "INSERT INTO outbox (key, session, generation, scope, bridge, target, kind, body, buttons, media, message_id,"
    " inbox_id, turn, state, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)"
    " ON CONFLICT (key) DO NOTHING"
)

_IS_OPEN = "state IN ('pending', 'sending')"
_LAST_ID = (1 << 63) - 1


class StoredOutbox:
    """Implements `ports.Outbox`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def push(self, outgoing: OutgoingMessage, now: datetime) -> OutboxItem:
        session = session_rows.find_session(self._db, outgoing.session)
        with self._db.write() as db:
            insert_outgoing(db, [outgoing], 1 if session is None else session.generation, None, now)
        row = self._db.row("SELECT * FROM outbox WHERE key = ?", (outgoing.key,))
        if row is None:
            raise StoreError(f"{outgoing.key!r} was not stored. Try again.")
        return outbox_item_of_row(row)

    def pending_items(
        self, bridge: str, *, limit: int = 100, except_targets: Collection[str] = (), except_ids: Collection[int] = ()
    ) -> list[OutboxItem]:
        where, values = [f"bridge = ? AND {_IS_OPEN}"], [bridge]
        for column, left_out in (("target", except_targets), ("id", except_ids)):
            if left_out:
                where.append(f"{column} NOT IN (SELECT value FROM json_each(?))")
                values.append(json.dumps([*left_out]))
        return self._items(f"{' AND '.join(where)} ORDER BY id LIMIT ?", (*values, limit))

    def find_open(self, item_id: int) -> OutboxItem | None:
        found = self._items(f"id = ? AND {_IS_OPEN}", (item_id,))
        return found[0] if found else None

    def list_open(self, bridge: str, session: str, *, limit: int) -> list[OutboxItem]:
        """Those of a session's items that wait to be sent on a bridge, oldest first."""
        # The plus keeps it to the index of what is open: a session has years of what was sent.
        return self._items(f"bridge = ? AND {_IS_OPEN} AND +session = ? ORDER BY id LIMIT ?", (bridge, session, limit))

    def set_state(self, item_id: int, state: OutboxState, now: datetime, *, error: str = "") -> None:
        """Each time an item goes to `sending` counts as an attempt; one that stays so with an error does not."""
        with self._db.write() as db:
            db.execute(
                "UPDATE outbox SET state = ?, attempts = attempts + ?, error = ?, updated_at = ?,"
                " parts = iif(? = 'sent', '[]', parts) WHERE id = ?",
                (state, int(state == "sending" and not error), clean_text(error), format_time(now), state, item_id),
            )

    def give_up(
        self, item_id: int, state: OutboxState, error: str, notice: OutgoingMessage | None, now: datetime
    ) -> None:
        with self._db.write() as db:
            db.execute(
                "UPDATE outbox SET state = ?, error = ?, updated_at = ? WHERE id = ?",
                (state, clean_text(error), format_time(now), item_id),
            )
            if notice is not None:
                session = session_rows.find_session(db, notice.session)
                insert_outgoing(db, [notice], 1 if session is None else session.generation, None, now)

    def save_parts(self, item_id: int, texts: Sequence[str], now: datetime) -> None:
        """Another version of the program may cut the body at other places, or this one with another parser: a part has
        one body for ever."""
        with self._db.write() as db:
            db.execute(
                "UPDATE outbox SET parts = ?, updated_at = ? WHERE id = ?",
                (dump_json([clean_text(text) for text in texts]), format_time(now), item_id),
            )

    def record_parts_sent(self, item_id: int, parts: int, now: datetime) -> None:
        """The network has so many of its parts, for certain; the next one was not sent yet."""
        with self._db.write() as db:
            db.execute(
                "UPDATE outbox SET parts_sent = ?, state = 'pending', updated_at = ? WHERE id = ?",
                (parts, format_time(now), item_id),
            )

    def redirect(self, item_id: int, bridge: str, target: str, now: datetime) -> None:
        with self._db.write() as db:
            redirect_item(db, item_id, bridge, target, now)

    def count_by_state(self) -> dict[OutboxState, int]:
        """Items by state; states without items are left out."""
        counts: dict[OutboxState, int] = {
            row["state"]: row["items"]
            for row in self._db.rows("SELECT state, count(*) AS items FROM outbox WHERE state <> 'sent' GROUP BY state")
        }
        row = self._db.row("SELECT count(*) FROM outbox")
        sent = (row[0] if row is not None else 0) - sum(counts.values())
        return {**counts, "sent": sent} if sent else counts

    def count_open(self, bridge: str) -> int:
        row = self._db.row(f"SELECT count(*) FROM outbox WHERE bridge = ? AND {_IS_OPEN}", (bridge,))
        return 0 if row is None else int(row[0])

    def recent_items(self, session: str, *, limit: int = 20) -> list[OutboxItem]:
        """The newest items of a session, oldest first."""
        return self._items("session = ? ORDER BY id DESC LIMIT ?", (session, limit))[::-1]

    def list_between(
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
        return next(iter(self._items(where, (session, bridge, format_time(at)))), None)

    def has(self, key: str, scope: str) -> bool:
        """Whether there ever was an item of a scope under a key."""
        return self._db.row("SELECT 1 FROM outbox WHERE key = ? AND scope = ?", (key, scope)) is not None

    def list_by_turn(self, turn: str) -> list[OutboxItem]:
        return self._items("turn = ? ORDER BY id", (turn,))

    def _items(self, where: str, values: Sequence[str | int]) -> list[OutboxItem]:
        return [outbox_item_of_row(row) for row in self._db.rows(f"SELECT * FROM outbox WHERE {where}", values)]


def redirect_item(db: Database, item_id: int, bridge: str, target: str, now: datetime) -> None:
    """Inside a transaction: it goes there instead, as the newest: whoever counts deliveries there by their ids has not
    passed it."""
    db.execute(
        "UPDATE outbox SET id = (SELECT max(id) + 1 FROM outbox), bridge = ?, target = ?, state = 'pending',"
        " parts_sent = 0, parts = '[]', error = '', updated_at = ? WHERE id = ?",
        (bridge, target, format_time(now), item_id),
    )


def insert_outgoing(
    db: Database, outgoing: Sequence[OutgoingMessage], generation: int, turn: str | None, now: datetime
) -> None:
    """Inside a transaction: store what is to be sent; a key that exists keeps its first body."""
    at = format_time(now)
    db.execute_many(
        _INSERT,
        [
            (
                one.key,
                one.session,
                generation,
                one.scope,
                one.bridge,
                one.target,
                one.kind,
                clean_text(one.body),
                encode_buttons(one),
                encode_media(one),
                one.message_id,
                one.inbox_id,
                turn,
                at,
                at,
            )
            for one in outgoing
        ],
    )


def with_message_id(outgoing: Sequence[OutgoingMessage], message_id: int | None) -> list[OutgoingMessage]:
    """`outgoing`, each without a message id given this one."""
    return [one if one.message_id is not None else replace(one, message_id=message_id) for one in outgoing]


_IS_STUCK = "state IN ('ambiguous', 'failed', 'withheld')"
# Tried, and waits for another try.
_IS_RETRYING = f"({_IS_OPEN} AND error <> '')"
# As the index has it. With a plus before the id that is not what is looked through: of years all but a few were sent.
_IS_UNSENT = "state <> 'sent'"


class StuckItems:
    """Implements `assistant.commands.bridges.Deliveries`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def list_stuck(self, *, limit: int = 100) -> list[UndeliveredItem]:
        """And what waits for another try; the newest, oldest of them first."""
        where = f"{_IS_UNSENT} AND ({_IS_STUCK} OR {_IS_RETRYING})"
        rows = self._db.rows(f"SELECT * FROM outbox WHERE {where} ORDER BY +id DESC LIMIT ?", (limit,))
        return [_undelivered_of_row(row) for row in rows][::-1]

    def find(self, item_id: int) -> UndeliveredItem | None:
        """None where it was sent, or dropped."""
        row = self._db.row(f"SELECT * FROM outbox WHERE id = ? AND ({_IS_STUCK} OR {_IS_OPEN})", (item_id,))
        return None if row is None else _undelivered_of_row(row)

    def delivery_state(self, key: str) -> DeliveryOutcome | None:
        row = self._db.row("SELECT state, error FROM outbox WHERE key = ?", (key,))
        return None if row is None else DeliveryOutcome(row["state"], row["error"])

    def retry(self, item_id: int, now: datetime) -> bool:
        """Have it sent once more; False where it is not stuck."""
        return self._settle(item_id, "pending", now, _IS_STUCK)

    def drop(self, item_id: int, now: datetime) -> bool:
        """It goes nowhere any more; False where it is neither stuck nor waits for another try."""
        return self._settle(item_id, "dropped", now, f"({_IS_STUCK} OR {_IS_RETRYING})")

    def count_open_by_bridge(self) -> dict[str, int]:
        """How many are to go out, by bridge."""
        rows = self._db.rows(f"SELECT bridge, count(*) AS items FROM outbox WHERE {_IS_OPEN} GROUP BY bridge")
        return {row["bridge"]: row["items"] for row in rows}

    def mark_ambiguous(self, bridge: str, now: datetime) -> None:
        """It has another account from now on, whose network knows no key of the one before: nobody will learn what
        became of a send that was cut off."""
        with self._db.write() as db:
            _mark_ambiguous(db, bridge, "cut off when its bridge got another account", now)

    def redirect_to_home(self, bridge: str, home: str, now: datetime, *, ended: bool) -> RedirectResult:
        """What waits there for the owner goes to the bridge `home` instead, in its session. `ended`: the bridge runs no
        more, so that nobody will learn what became of a send that was cut off."""
        with self._db.write() as db:
            if ended:
                _mark_ambiguous(db, bridge, "cut off when its bridge was removed", now)
            owners = db.rows(
                "SELECT id, session FROM outbox WHERE bridge = ? AND state = 'pending' AND parts_sent = 0 AND scope = ?"
                " ORDER BY id",
                (bridge, OWNER_SCOPE),
            )
            for row in owners:
                redirect_item(db, row["id"], home, row["session"], now)
        return RedirectResult(len(owners), self.count_open_by_bridge().get(bridge, 0))

    def _settle(self, item_id: int, state: str, now: datetime, where: str) -> bool:
        with self._db.write() as db:
            changed = db.execute(
                f"UPDATE outbox SET state = ?, updated_at = ? WHERE id = ? AND {where}",
                (state, format_time(now), item_id),
            )
        return bool(changed)


def _mark_ambiguous(db: Database, bridge: str, error: str, now: datetime) -> None:
    db.execute(
        "UPDATE outbox SET state = 'ambiguous', error = ?, updated_at = ? WHERE bridge = ? AND state = 'sending'",
        (error, format_time(now), bridge),
    )


def _undelivered_of_row(row: Row) -> UndeliveredItem:
    return UndeliveredItem(
        row["id"],
        row["state"],
        row["bridge"],
        row["target"],
        row["session"],
        row["scope"],
        row["body"],
        row["error"],
        row["parts_sent"],
        row["attempts"],
        parse_time(row["created_at"]),
        parse_time(row["updated_at"]),
    )


class TurnFiles:
    """Files that go out with the answer of the turn that runs."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, media: Media, context: ToolContext) -> None:
        """Under the context's key, once. Durable when it returns; gone where the turn fails."""
        with self._db.write() as db:
            db.execute(
                "INSERT INTO turn_files (key, turn, session, scope, media) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (key) DO NOTHING",
                (context.key, context.turn, context.session, context.scope, dump_json(json_safe(media_to_json(media)))),
            )

    def list_files(self, turn: str) -> tuple[Media, ...]:
        return _read_turn_files(self._db, turn)


def attach_turn_files(db: Database, turn: str, outgoing: Sequence[OutgoingMessage]) -> list[OutgoingMessage]:
    """Inside the transaction that ends the turn: what goes out, its answers with the files, which are kept here no
    longer."""
    files = _read_turn_files(db, turn)
    if not files:
        return list(outgoing)
    db.execute("DELETE FROM turn_files WHERE turn = ?", (turn,))
    return [replace(one, media=(*one.media, *files)) if one.kind == "reply" else one for one in outgoing]


def _read_turn_files(db: Database, turn: str) -> tuple[Media, ...]:
    rows = db.rows("SELECT media FROM turn_files WHERE turn = ? ORDER BY id", (turn,))
    return tuple(media_from_json(json.loads(row["media"])) for row in rows)


def outbox_item_of_row(row: Row) -> OutboxItem:
    outgoing = OutgoingMessage(
        key=row["key"],
        session=row["session"],
        scope=row["scope"],
        bridge=row["bridge"],
        target=row["target"],
        body=row["body"],
        kind=row["kind"],
        message_id=row["message_id"],
        inbox_id=row["inbox_id"],
        buttons=tuple(Button(*one) for one in json.loads(row["buttons"])),
        media=tuple(media_from_json(one) for one in json.loads(row["media"])),
    )
    at = parse_time(row["created_at"])
    parts = tuple(json.loads(row["parts"]))
    return OutboxItem(row["id"], outgoing, row["state"], row["attempts"], at, row["parts_sent"], parts)


def encode_buttons(outgoing: OutgoingMessage) -> str:
    return dump_json([[clean_text(one.label), clean_text(one.command)] for one in outgoing.buttons])


def encode_media(outgoing: OutgoingMessage) -> str:
    return dump_json([media_to_json(one) for one in outgoing.media])
