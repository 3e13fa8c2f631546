"""Replies and notices on their way out, what got stuck and what a person decides about it, and the files of a turn.

What always holds:
- One key, one body, for ever (I8). What may have arrived is sent again only on the owner's word, under the same
  key.
- No person decides about what is being sent at this moment: its `error` is empty.
- Files of a turn are kept while it runs and go out with its answer. A tool that runs again after a crash adds its
  file once; a turn that fails sends none.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from assistant.core.bridge_api import DeliveryOutcome, RedirectResult, UndeliveredItem
from assistant.core.errors import StoreError
from assistant.core.messages import Media, media_from_json, media_to_json
from assistant.core.ports import ToolContext
from assistant.core.records import OutboxItem, OutboxState, OutgoingMessage
from assistant.core.sessions import OWNER_SCOPE
from assistant.store.database import Database, DatabaseStore, SqlParameters
from assistant.store.rows import class_row, dump_json, field_values
from assistant.store.script.sessions import current_generation

_read_item = class_row(OutboxItem, outgoing=class_row(OutgoingMessage))
_read_undelivered = class_row(UndeliveredItem)
_read_outcome = class_row(DeliveryOutcome)
_IS_OPEN = "state IN ('pending', 'sending')"
_LAST_ID = (1 << 63) - 1


class StoredOutbox(DatabaseStore):
    """Implements `ports.Outbox`."""

    def push(self, outgoing: OutgoingMessage, now: datetime) -> OutboxItem:
        with self._db.write() as db:
            insert_outgoing(db, [outgoing], now)
        for item in self._items("key = ?", (outgoing.key,)):
            return item
        raise StoreError(f"The message {outgoing.key!r} was not stored. Try again.")

    def pending_items(
        self, bridge: str, *, limit: int = 100, except_targets: Collection[str] = (), except_ids: Collection[int] = ()
    ) -> list[OutboxItem]:
        where, values = [f"bridge = ? AND {_IS_OPEN}"], [bridge]
        for column, excluded in (("target", except_targets), ("id", except_ids)):
            if excluded:
                where.append(f"{column} NOT IN (SELECT value FROM json_each(?))")
                values.append(json.dumps([*excluded]))
        return self._items(f"{' AND '.join(where)} ORDER BY id LIMIT ?", (*values, limit))

    def find_open(self, item_id: int) -> OutboxItem | None:
        return next(iter(self._items(f"id = ? AND {_IS_OPEN}", (item_id,))), None)

    def list_open(self, bridge: str, session: str, *, limit: int) -> list[OutboxItem]:
        """Those of a session's items that wait to be sent on a bridge, oldest first."""
        # The plus keeps it to the index of what is open: a session has years of what was sent.
        return self._items(f"bridge = ? AND {_IS_OPEN} AND +session = ? ORDER BY id LIMIT ?", (bridge, session, limit))

    def set_state(self, item_id: int, state: OutboxState, now: datetime, *, error: str = "") -> None:
        """Each time an item goes to `sending` counts as an attempt; one that stays so with an error does not. Back to
        `pending`, it is known that no try arrived."""
        with self._db.write() as db:
            db.execute(
                "UPDATE outbox SET state = ?1, attempts = attempts + ?2, error = ?3, updated_at = ?4,"
                " tried_at = iif(?1 = 'sending', coalesce(tried_at, ?4), NULL), parts = iif(?1 = 'sent', '[]', parts)"
                " WHERE id = ?5",
                (state, state == "sending" and not error, error, now, item_id),
            )

    def give_up(
        self, item_id: int, state: OutboxState, error: str, notice: OutgoingMessage | None, now: datetime
    ) -> None:
        with self._db.write() as db:
            db.update_rows("outbox", {"id": item_id}, state=state, error=error, updated_at=now)
            if notice is not None:
                insert_outgoing(db, [notice], now)

    def save_parts(self, item_id: int, texts: Sequence[str], now: datetime) -> None:
        """Another version of the program may cut the body at other places, or this one with another parser: a part has
        one body for ever."""
        with self._db.write() as db:
            db.update_rows("outbox", {"id": item_id}, parts=dump_json(list(texts)), updated_at=now)

    def record_parts_sent(self, item_id: int, parts: int, now: datetime) -> None:
        """The network has so many of its parts, for certain; the next one was not sent yet."""
        with self._db.write() as db:
            db.update_rows("outbox", {"id": item_id}, parts_sent=parts, state="pending", tried_at=None, updated_at=now)

    def redirect(self, item_id: int, bridge: str, target: str, now: datetime) -> None:
        with self._db.write() as db:
            _redirect_item(db, item_id, bridge, target, now)

    def count_by_state(self) -> dict[OutboxState, int]:
        """Items by state; states without items are left out."""
        counts: dict[OutboxState, int] = {
            row["state"]: row["items"]
            for row in self._db.rows("SELECT state, count(*) AS items FROM outbox WHERE state <> 'sent' GROUP BY state")
        }
        sent = self._db.value("SELECT count(*) FROM outbox") - sum(counts.values())
        return {**counts, "sent": sent} if sent else counts

    def count_open(self, bridge: str) -> int:
        return int(self._db.value(f"SELECT count(*) FROM outbox WHERE bridge = ? AND {_IS_OPEN}", (bridge,)))

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
        return next(iter(self._items(where, (session, bridge, at))), None)

    def has(self, key: str, scope: str) -> bool:
        """Whether there ever was an item of a scope under a key."""
        return self._db.value("SELECT 1 FROM outbox WHERE key = ? AND scope = ?", (key, scope)) is not None

    def list_by_turn(self, turn: str) -> list[OutboxItem]:
        return self._items("turn = ? ORDER BY id", (turn,))

    def _items(self, where: str, values: SqlParameters) -> list[OutboxItem]:
        return self._db.read_all(_read_item, f"SELECT * FROM outbox WHERE {where}", values)


def _redirect_item(db: Database, item_id: int, bridge: str, target: str, now: datetime) -> None:
    """Inside a transaction: it goes there instead, as the newest item: a reader there that counts deliveries by their
    ids has not passed it."""
    db.execute(
        "UPDATE outbox SET id = (SELECT max(id) + 1 FROM outbox), bridge = ?, target = ?, state = 'pending',"
        " parts_sent = 0, parts = '[]', error = '', tried_at = NULL, updated_at = ? WHERE id = ?",
        (bridge, target, now, item_id),
    )


def insert_outgoing(
    db: Database, outgoing: Sequence[OutgoingMessage], now: datetime, *, generation: int = 0, turn: str | None = None
) -> None:
    """Inside a transaction: store what is to be sent; a key that exists keeps its first body. Without `generation`,
    each goes out in the current generation of its session."""
    for message in outgoing:
        columns = field_values(message) | {
            "buttons": dump_json([[button.label, button.command] for button in message.buttons]),
            "media": dump_json([media_to_json(medium) for medium in message.media]),
            "generation": generation or current_generation(db, message.session),
        }
        db.insert_if_new("outbox", **columns, turn=turn, state="pending", created_at=now, updated_at=now)


_IS_STUCK = "state IN ('ambiguous', 'failed', 'withheld')"
# Tried, and waits for another try.
_IS_RETRYING = f"({_IS_OPEN} AND error <> '')"
# As the index has it. With a plus before the id that is not what is looked through: of years all but a few were sent.
_IS_UNSENT = "state <> 'sent'"


class StuckItems(DatabaseStore):
    """What a person decides about: items that were not delivered, and those that wait for another try."""

    def list_stuck(self, *, limit: int = 100) -> list[UndeliveredItem]:
        """The newest of them, oldest first."""
        where = f"{_IS_UNSENT} AND ({_IS_STUCK} OR {_IS_RETRYING})"
        sql = f"SELECT * FROM outbox WHERE {where} ORDER BY +id DESC LIMIT ?"
        return self._db.read_all(_read_undelivered, sql, (limit,))[::-1]

    def find(self, item_id: int) -> UndeliveredItem | None:
        """None where it was sent, or dropped."""
        sql = f"SELECT * FROM outbox WHERE id = ? AND ({_IS_STUCK} OR {_IS_OPEN})"
        return self._db.read_one(_read_undelivered, sql, (item_id,))

    def delivery_state(self, key: str) -> DeliveryOutcome | None:
        return self._db.read_one(_read_outcome, "SELECT state, error FROM outbox WHERE key = ?", (key,))

    def retry(self, item_id: int, now: datetime) -> bool:
        """Have it sent once more; False where it is not stuck."""
        return self._update_state(item_id, "pending", now, _IS_STUCK)

    def drop(self, item_id: int, now: datetime) -> bool:
        """It goes nowhere any more; False where it is neither stuck nor waits for another try."""
        return self._update_state(item_id, "dropped", now, f"({_IS_STUCK} OR {_IS_RETRYING})")

    def count_open_by_bridge(self) -> dict[str, int]:
        """How many are to go out, by bridge."""
        rows = self._db.rows(f"SELECT bridge, count(*) AS items FROM outbox WHERE {_IS_OPEN} GROUP BY bridge")
        return {row["bridge"]: row["items"] for row in rows}

    def mark_ambiguous(self, bridge: str, now: datetime) -> None:
        """The bridge has another account from now on, whose network knows no key of the one before: it will never be
        known what became of a send that was cut off."""
        with self._db.write() as db:
            _mark_ambiguous(db, bridge, "cut off when its bridge got another account", now)

    def redirect_to_home(self, bridge: str, home: str, now: datetime, *, ended: bool) -> RedirectResult:
        """What waits there for the owner goes to the bridge `home` instead, in its session. `ended`: the bridge runs no
        more, so that it will never be known what became of a send that was cut off."""
        with self._db.write() as db:
            if ended:
                _mark_ambiguous(db, bridge, "cut off when its bridge was removed", now)
            rows = db.rows(
                "SELECT id, session FROM outbox WHERE bridge = ? AND state = 'pending' AND parts_sent = 0 AND scope = ?"
                " ORDER BY id",
                (bridge, OWNER_SCOPE),
            )
            for row in rows:
                _redirect_item(db, row["id"], home, row["session"], now)
        return RedirectResult(len(rows), self.count_open_by_bridge().get(bridge, 0))

    def _update_state(self, item_id: int, state: str, now: datetime, where: str) -> bool:
        with self._db.write() as db:
            changed = db.execute(
                f"UPDATE outbox SET state = ?, tried_at = NULL, updated_at = ? WHERE id = ? AND {where}",
                (state, now, item_id),
            )
        return bool(changed)


def _mark_ambiguous(db: Database, bridge: str, error: str, now: datetime) -> None:
    sending = {"bridge": bridge, "state": "sending"}
    db.update_rows("outbox", sending, state="ambiguous", error=error, updated_at=now)


class TurnFiles(DatabaseStore):
    """Files that go out with the answer of the turn that runs."""

    def add(self, media: Media, context: ToolContext) -> None:
        """Under the context's key, once. Durable when it returns; gone where the turn fails."""
        with self._db.write() as db:
            db.insert_if_new(
                "turn_files",
                key=context.key,
                turn=context.turn,
                session=context.session,
                scope=context.scope,
                media=dump_json(media_to_json(media)),
            )

    def list_files(self, turn: str) -> tuple[Media, ...]:
        return _read_turn_files(self._db, turn)


def complete_outgoing(
    db: Database, turn: str, outgoing: Sequence[OutgoingMessage], message_id: int | None
) -> list[OutgoingMessage]:
    """Inside the transaction that ends the turn: what goes out, its replies with the turn's files, which are kept here
    no longer, and each under the id of the logged reply unless it has one."""
    files = _read_turn_files(db, turn)
    if files:
        db.execute("DELETE FROM turn_files WHERE turn = ?", (turn,))
    return [
        replace(
            message,
            media=(*message.media, *files) if message.kind == "reply" else message.media,
            message_id=message_id if message.message_id is None else message.message_id,
        )
        for message in outgoing
    ]


def _read_turn_files(db: Database, turn: str) -> tuple[Media, ...]:
    rows = db.rows("SELECT media FROM turn_files WHERE turn = ? ORDER BY id", (turn,))
    return tuple(media_from_json(json.loads(row["media"])) for row in rows)
