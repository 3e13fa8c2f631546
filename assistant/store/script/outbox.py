"""The outbox of replies and notices, stuck deliveries and decisions about them, and the files of a turn.

- One key, one body, from the first try on that may have arrived (I8). What may have arrived is sent again only if the
  owner says so, with the same key.
- Items being sent right now cannot be changed by people: their `error` is empty.
- Files of a turn are stored while it runs and sent with its answer, once even if the tool runs again; a failed turn
  sends none.
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
from assistant.store.files import sync_file
from assistant.store.rows import class_row, dump_json, field_values
from assistant.store.script.sessions import current_generation
from assistant.store.sqlite_errors import DATA_KEPT

_read_item = class_row(OutboxItem, outgoing=class_row(OutgoingMessage))
_read_undelivered = class_row(UndeliveredItem)
_read_outcome = class_row(DeliveryOutcome)
_IS_OPEN = "state IN ('pending', 'sending')"
_LAST_ID = (1 << 63) - 1


class StoredOutbox(DatabaseStore):
    """Implements `ports.Outbox`."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self._set_after = -1  # how many durable commits there were when a state was last set without a wait

    def push(self, outgoing: OutgoingMessage, now: datetime) -> OutboxItem:
        """As the port says; durable on return."""
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
        sql = f"SELECT * FROM outbox WHERE {' AND '.join(where)} ORDER BY id LIMIT ?"
        return self._db.read_all(_read_item, sql, (*values, limit), remember="outbox")

    def find_open(self, item_id: int) -> OutboxItem | None:
        return next(iter(self._items(f"id = ? AND {_IS_OPEN}", (item_id,))), None)

    def list_open(self, bridge: str, session: str, *, limit: int) -> list[OutboxItem]:
        """Return a session's unsent items for a bridge, oldest first."""
        # The plus makes SQLite use the index of open items: a session has years of sent ones.
        return self._items(f"bridge = ? AND {_IS_OPEN} AND +session = ? ORDER BY id LIMIT ?", (bridge, session, limit))

    def set_state(
        self, item_id: int, state: OutboxState, now: datetime, *, error: str = "", durable: bool = True
    ) -> None:
        """Set an item's state. Changing to `sending` without an error counts as an attempt; `pending` means that no
        attempt arrived."""
        durable = durable and state != "sent"
        with self._db.write(durable=durable) as db:
            db.execute(
                "UPDATE outbox SET state = ?1, attempts = attempts + ?2, error = ?3, updated_at = ?4,"
                " tried_at = iif(?1 = 'sending', coalesce(tried_at, ?4), NULL), parts = iif(?1 = 'sent', '[]', parts)"
                " WHERE id = ?5",
                (state, state == "sending" and not error, error, now, item_id),
            )
        if not durable:
            self._set_after = self._db.durable_commits

    def sync(self) -> None:
        if self._db.durable_commits != self._set_after:
            # A later commit has taken it to the disk.
            return
        log = self._db.path.with_name(f"{self._db.path.name}-wal")
        try:
            sync_file(log)
        except OSError as error:
            raise StoreError(
                f"{log} was not written: {error.strerror}. {DATA_KEPT}; make room or repair the disk."
            ) from error

    def give_up(
        self, item_id: int, state: OutboxState, error: str, notice: OutgoingMessage | None, now: datetime
    ) -> None:
        with self._db.write() as db:
            db.update_rows("outbox", {"id": item_id}, state=state, error=error, updated_at=now)
            if notice is not None:
                insert_outgoing(db, [notice], now)

    def save_parts(self, item_id: int, texts: Sequence[str], now: datetime) -> None:
        """Store the texts of the parts, since another version of the program or parser might split differently; part
        bodies are immutable."""
        with self._db.write() as db:
            db.update_rows("outbox", {"id": item_id}, parts=dump_json(list(texts)), updated_at=now)

    def add_text(self, item_id: int, text: str, now: datetime) -> OutboxItem | None:
        """Add to the body of a pending item of which nothing was sent. Return it as it is now, None if it is not to be
        sent any more."""
        with self._db.write() as db:
            db.execute(
                "UPDATE outbox SET body = body || ?, parts = '[]', updated_at = ?"
                " WHERE id = ? AND state = 'pending' AND parts_sent = 0",
                (text, now, item_id),
            )
        return self.find_open(item_id)

    def record_parts_sent(self, item_id: int, parts: int, now: datetime) -> None:
        """Record how many parts the network has confirmed; the next one was not sent yet."""
        with self._db.write() as db:
            db.update_rows("outbox", {"id": item_id}, parts_sent=parts, state="pending", tried_at=None, updated_at=now)

    def redirect(self, item_id: int, bridge: str, target: str, now: datetime) -> None:
        with self._db.write() as db:
            _redirect_item(db, item_id, bridge, target, now)

    def count_by_state(self) -> dict[OutboxState, int]:
        """Return the number of items by state, for states with items."""
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
        """Return a session's items on a bridge with ids between the two, in any state, oldest first."""
        until = _LAST_ID if before is None else before
        return self._items(
            "session = ? AND bridge = ? AND id > ? AND id < ? ORDER BY id LIMIT ?",
            (session, bridge, after, until, limit),
        )

    def newest(self, bridge: str, session: str, until: int | None = None) -> OutboxItem | None:
        """Return a session's newest item on a bridge, up to an id."""
        where = "session = ? AND bridge = ? AND id <= ? ORDER BY id DESC LIMIT 1"
        return next(iter(self._items(where, (session, bridge, _LAST_ID if until is None else until))), None)

    def first_since(self, bridge: str, session: str, at: datetime) -> OutboxItem | None:
        """Return a session's first item on a bridge that was created after a time."""
        where = "session = ? AND bridge = ? AND created_at > ? ORDER BY id LIMIT 1"
        return next(iter(self._items(where, (session, bridge, at))), None)

    def has(self, key: str, scope: str) -> bool:
        """Return whether an item with this key was ever stored in a scope."""
        return self._db.value("SELECT 1 FROM outbox WHERE key = ? AND scope = ?", (key, scope)) is not None

    def stored_keys(self, keys: Sequence[str], scope: str) -> frozenset[str]:
        sql = "SELECT key FROM outbox WHERE key IN (SELECT value FROM json_each(?)) AND scope = ?"
        return frozenset(row["key"] for row in self._db.rows(sql, (dump_json(list(keys)), scope)))

    def list_media(self, key: str, scope: str) -> tuple[Media, ...]:
        """Return the files of a delivery, in any state; none if there is none."""
        return next((it.outgoing.media for it in self._items("key = ? AND scope = ?", (key, scope))), ())

    def list_by_turn(self, turn: str) -> list[OutboxItem]:
        return self._items("turn = ? ORDER BY id", (turn,))

    def _items(self, where: str, values: SqlParameters) -> list[OutboxItem]:
        return self._db.read_all(_read_item, f"SELECT * FROM outbox WHERE {where}", values)


def _redirect_item(db: Database, item_id: int, bridge: str, target: str, now: datetime) -> None:
    """Change an item's destination, within a transaction. It gets a new id, so that readers that track ids see it."""
    db.execute(
        "UPDATE outbox SET id = (SELECT max(id) + 1 FROM outbox), bridge = ?, target = ?, state = 'pending',"
        " parts_sent = 0, parts = '[]', error = '', tried_at = NULL, updated_at = ? WHERE id = ?",
        (bridge, target, now, item_id),
    )


def insert_outgoing(
    db: Database, outgoing: Sequence[OutgoingMessage], now: datetime, *, generation: int = 0, turn: str | None = None
) -> None:
    """Enqueue messages, within a transaction; existing keys are kept. Without `generation`, the session's current one
    is used."""
    for message in outgoing:
        columns = field_values(message) | {
            "buttons": dump_json([[button.label, button.command] for button in message.buttons]),
            "media": dump_json([media_to_json(medium) for medium in message.media]),
            "generation": generation or current_generation(db, message.session),
        }
        db.insert_if_new("outbox", **columns, turn=turn, state="pending", created_at=now, updated_at=now)


_IS_STUCK = "state IN ('ambiguous', 'failed', 'withheld')"
# Failed and to be retried.
_IS_RETRYING = f"({_IS_OPEN} AND error <> '')"
# Must match the index; with a plus before the id only the few unsent items are scanned.
_IS_UNSENT = "state <> 'sent'"


class StuckItems(DatabaseStore):
    """Undelivered items that need a decision, and those that wait for a retry."""

    def list_stuck(self, *, limit: int = 100) -> list[UndeliveredItem]:
        """Return the newest of them, in chronological order."""
        where = f"{_IS_UNSENT} AND ({_IS_STUCK} OR {_IS_RETRYING})"
        sql = f"SELECT * FROM outbox WHERE {where} ORDER BY +id DESC LIMIT ?"
        return self._db.read_all(_read_undelivered, sql, (limit,))[::-1]

    def find(self, item_id: int) -> UndeliveredItem | None:
        """Return an item unless it was sent or dropped."""
        sql = f"SELECT * FROM outbox WHERE id = ? AND ({_IS_STUCK} OR {_IS_OPEN})"
        return self._db.read_one(_read_undelivered, sql, (item_id,))

    def delivery_state(self, key: str) -> DeliveryOutcome | None:
        """Return None if nothing was ever sent under this key."""
        return self._db.read_one(_read_outcome, "SELECT state, error FROM outbox WHERE key = ?", (key,))

    def retry(self, item_id: int, now: datetime) -> bool:
        """Queue a stuck item again; False if it is not stuck."""
        return self._update_state(item_id, "pending", now, _IS_STUCK)

    def drop(self, item_id: int, now: datetime) -> bool:
        """Drop an item; False if it is neither stuck nor waiting for a retry."""
        return self._update_state(item_id, "dropped", now, f"({_IS_STUCK} OR {_IS_RETRYING})")

    def count_open_by_bridge(self) -> dict[str, int]:
        """Return the number of unsent items by bridge."""
        rows = self._db.rows(f"SELECT bridge, count(*) AS items FROM outbox WHERE {_IS_OPEN} GROUP BY bridge")
        return {row["bridge"]: row["items"] for row in rows}

    def mark_ambiguous(self, bridge: str, now: datetime) -> None:
        """Mark sends in progress as ambiguous, because the bridge gets another account, whose network does not know
        earlier keys."""
        with self._db.write() as db:
            _mark_ambiguous(db, bridge, "cut off when its bridge got another account", now)

    def redirect_to_home(self, bridge: str, home: str, now: datetime, *, ended: bool) -> RedirectResult:
        """Redirect the owner's pending items to the bridge `home`. `ended`: the bridge was removed, so sends in
        progress become ambiguous."""
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
    """Files to be sent with a running turn's answer."""

    def add(self, media: Media, context: ToolContext) -> None:
        """Add a file, once per key of the context. Deleted if the turn fails."""
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
        """Return the files that go out with the turn's answer, in the order they were added."""
        return _read_turn_files(self._db, turn)


def complete_outgoing(
    db: Database, turn: str, outgoing: Sequence[OutgoingMessage], message_id: int | None
) -> list[OutgoingMessage]:
    """Within the transaction that ends a turn: return its outgoing messages with files added to replies, and the
    reply's message id where none is set."""
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
