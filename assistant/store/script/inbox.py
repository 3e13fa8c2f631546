"""Received messages and slash commands that are not answered yet; and the state of each bridge: how far it has
received, and whether the owner paused it.

SQLite accepts first (I1): a bridge may acknowledge a message once its row here is committed. The row has the whole
message until it is logged, and its text permanently. Texts are in their own table (`inbox_words`), written once,
however often the state of the message changes; the view `inbox_messages` joins both. A command is stored before it is
acknowledged and answered once: the transaction that stores the answer ends the row and empties its text. A bridge's
position is written in the transaction that stores the preceding message, or alone if there was nothing to store, so it
is never ahead of the inbox (I1).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from sqlite3 import Row

from assistant.core.errors import UsageError
from assistant.core.messages import Media, Message, media_from_json, media_to_json
from assistant.core.records import InboxItem, InboxReceipt, InboxState, IncomingMessage, OutgoingMessage, PendingCommand
from assistant.core.sessions import is_imported
from assistant.store.database import Database, DatabaseStore
from assistant.store.rows import class_row, clean_message, clean_text, dump_json, parse_time
from assistant.store.script.outbox import insert_outgoing
from assistant.store.script.sessions import ensure_session

# Enough to show when somebody writes, and read within milliseconds.
_ARRIVALS_READ = 3_000
# Finds the next waiting session by one index lookup each, however many messages wait.
_SELECT_WAITING_SESSIONS = """
    WITH RECURSIVE waiting (session, id) AS (
        SELECT * FROM (SELECT session, id FROM inbox WHERE state = 'accepted' ORDER BY session, id LIMIT 1)
        UNION ALL
        SELECT (SELECT session FROM inbox WHERE state = 'accepted' AND session > waiting.session
                ORDER BY session, id LIMIT 1),
               (SELECT id FROM inbox WHERE state = 'accepted' AND session > waiting.session
                ORDER BY session, id LIMIT 1)
        FROM waiting WHERE waiting.session IS NOT NULL
    )
    SELECT session FROM waiting WHERE session IS NOT NULL ORDER BY id
"""


class Inbox:
    """Accepted messages (script.db) until their turn has ended."""

    def __init__(self, db: Database, next_id: Callable[[], int]) -> None:
        self._db = db
        self._next_id = next_id
        # Reserves, in the transaction that accepts a message of a session, what its answer may cost, by its length.
        self.reserve_ahead: Callable[[str, int, datetime], None] = lambda session, characters, now: None

    def accept(self, incoming: IncomingMessage, now: datetime) -> InboxReceipt:
        """See `store_ports.Conversation.accept`."""
        with self._db.write():
            receipt = self.accept_in_transaction(incoming, now)
            if not receipt.duplicate:
                self.reserve_ahead(incoming.session, len(incoming.content), now)
            return receipt

    def accept_in_transaction(self, incoming: IncomingMessage, now: datetime) -> InboxReceipt:
        """Within a transaction: see `accept`."""
        if is_imported(incoming.session):
            raise UsageError(
                f"{incoming.session} was imported: it is there to be read, not to be talked in. Nothing was accepted."
            )
        incoming = _clean_incoming(incoming)
        db, name = self._db, (incoming.bridge, incoming.external_id)
        save_position(db, incoming.bridge, incoming.position)
        row = db.row("SELECT * FROM inbox_messages WHERE bridge = ? AND external_id = ?", name)
        if row is not None:
            conflicts = not _has_same_content(incoming, read_inbox_item(row).incoming)
            return InboxReceipt(row["id"], row["message_id"], duplicate=True, conflicts=conflicts)
        session = ensure_session(db, incoming.session, incoming.scope, now)
        message_id = self._next_id()
        inbox_id = db.insert_row(
            "inbox",
            bridge=incoming.bridge,
            external_id=incoming.external_id,
            **session.columns,
            sender=incoming.sender,
            trust=incoming.trust,
            target=incoming.target,
            message_id=message_id,
            state="accepted",
            received_at=now,
            has_data=any(medium.data is not None for medium in incoming.media),
        )
        words = {"scope": session.scope, "generation": session.generation, "body": encode_inbox_body(incoming)}
        db.insert_row("inbox_words", inbox_id=inbox_id, **words)
        return InboxReceipt(inbox_id, message_id)

    def sessions_waiting(self) -> list[str]:
        return [row["session"] for row in self._db.remembered.rows("inbox", _SELECT_WAITING_SESSIONS)]

    def list_accepted(self, session: str, limit: int) -> list[InboxItem]:
        sql = "SELECT * FROM inbox_messages WHERE session = ? AND state = 'accepted' ORDER BY id LIMIT ?"
        return self._db.read_all(read_inbox_item, sql, (session, limit))

    def list_arrival_times(self, session: str, since: datetime) -> list[datetime]:
        """Return when the newest messages of a session arrived, oldest first; considers the last few thousand of all
        sessions."""
        sql = (
            "SELECT received_at FROM inbox WHERE id > (SELECT max(id) FROM inbox) - ? AND session = ?"
            " AND received_at >= ? ORDER BY id"
        )
        rows = self._db.rows(sql, (_ARRIVALS_READ, session, since))
        return [parse_time(row["received_at"]) for row in rows]

    def find_item(self, inbox_id: int) -> InboxItem | None:
        return self._db.read_one(read_inbox_item, "SELECT * FROM inbox_messages WHERE id = ?", (inbox_id,))

    def find_item_of(self, message_id: int) -> InboxItem | None:
        return self._db.read_one(read_inbox_item, "SELECT * FROM inbox_messages WHERE message_id = ?", (message_id,))

    def list_by_turn(self, turn: str) -> tuple[InboxItem, ...]:
        """Return the messages that a turn answers, in the order of arrival."""
        return tuple(
            self._db.read_all(read_inbox_item, "SELECT * FROM inbox_messages WHERE turn = ? ORDER BY id", (turn,))
        )

    def mark_running(self, items: Sequence[InboxItem], turn: str) -> tuple[InboxItem, ...]:
        """Within a transaction: mark accepted items as running in a turn."""
        for item in items:
            self._db.update_rows("inbox", {"id": item.id}, state="running", turn=turn)
        return tuple(replace(item, state="running", turn=turn) for item in items)

    def end_items(self, inbox_ids: Sequence[int], state: InboxState, now: datetime) -> None:
        """Within the transaction that ends logged messages; afterwards only the log has their pictures."""
        for inbox_id in inbox_ids:
            self._db.update_rows("inbox", {"id": inbox_id}, state=state, ended_at=now)
            with_data = "SELECT * FROM inbox_messages WHERE id = ? AND has_data"
            item = self._db.read_one(read_inbox_item, with_data, (inbox_id,))
            if item is not None:
                media = tuple(replace(medium, data=None) for medium in item.incoming.media)
                update_inbox_words(self._db, item, replace(item.incoming, media=media))
                self._db.update_rows("inbox", {"id": inbox_id}, has_data=False)


def update_inbox_words(db: Database, item: InboxItem, incoming: IncomingMessage) -> None:
    """Within a transaction: replace the content of a message."""
    db.update_rows("inbox_words", {"inbox_id": item.id}, body=encode_inbox_body(incoming))


def message_of_inbox_item(item: InboxItem) -> Message:
    """Return the accepted message, to be logged under its assigned id."""
    incoming = item.incoming
    return Message(
        "user", incoming.content, item.message_id, item.received_at, name=incoming.name, media=incoming.media
    )


def _has_same_content(incoming: IncomingMessage, stored: IncomingMessage) -> bool:
    """Return whether a resent message equals the stored one, as far as can be known: picture data is deleted after the
    turn, and a file that arrives on a later day has that day's name."""
    # The transcript of a voice message is below its text.
    has_voice = any(medium.voice for medium in incoming.media)
    is_same_text = stored.content.startswith(incoming.content) if has_voice else incoming.content == stored.content
    if not is_same_text or (incoming.session, incoming.name) != (stored.session, stored.name):
        return False
    pairs = zip(incoming.media, stored.media, strict=False)
    return len(incoming.media) == len(stored.media) and all(_may_be_same_media(*pair) for pair in pairs)


def _may_be_same_media(first: Media, second: Media) -> bool:
    same = replace(first, data=None, path=None, voice=False) == replace(second, data=None, path=None, voice=False)
    return same and (None in (first.data, second.data) or first.data == second.data)


def _clean_incoming(incoming: IncomingMessage) -> IncomingMessage:
    message = Message("user", incoming.content, name=incoming.name, media=incoming.media)
    clean = clean_message(message)
    if clean is message:
        return incoming
    return replace(incoming, content=clean.content, name=clean.name, media=clean.media)


def encode_inbox_body(incoming: IncomingMessage) -> str:
    """Return JSON with text, media and the sender's name, which is all that erasing must blank."""
    media = [media_to_json(medium) for medium in incoming.media]
    return dump_json({"content": incoming.content, "media": media, "name": incoming.name})


def _read_incoming(row: Row) -> IncomingMessage:
    body = json.loads(row["body"])
    return IncomingMessage(
        row["bridge"],
        row["external_id"],
        row["session"],
        row["scope"],
        row["sender"],
        row["trust"],
        body["content"],
        tuple(media_from_json(medium) for medium in body["media"]),
        body["name"],
        row["target"],
    )


class StoredVoiceMessages(DatabaseStore):
    """Stores transcripts of voice messages that wait."""

    def save_text(self, item: InboxItem, content: str) -> None:
        """Replace the message's text, and do not transcribe its recordings again. A message deleted or edited meanwhile
        stays unchanged."""
        media = tuple(replace(medium, voice=False) for medium in item.incoming.media)
        with self._db.write() as db:
            waiting = "SELECT * FROM inbox_messages WHERE id = ? AND state = 'accepted' AND body = ?"
            if db.row(waiting, (item.id, encode_inbox_body(item.incoming))) is not None:
                update_inbox_words(db, item, replace(item.incoming, content=clean_text(content), media=media))


read_inbox_item = class_row(InboxItem, incoming=_read_incoming)
_read_command = class_row(PendingCommand, begun=lambda row: row["state"] == "running")


class SlashCommandQueue(DatabaseStore):
    """Slash commands typed on a bridge: accepted, run once, answered once."""

    def accept(self, incoming: IncomingMessage, text: str, now: datetime) -> PendingCommand | None:
        """Store the command `text` durably; None if it was stored before."""
        with self._db.write() as db:
            is_new = db.insert_if_new(
                "typed_commands",
                bridge=incoming.bridge,
                external_id=incoming.external_id,
                session=incoming.session,
                scope=incoming.scope,
                sender=incoming.sender,
                target=incoming.target,
                text=text,
                state="accepted",
                accepted_at=now,
            )
            save_position(db, incoming.bridge, incoming.position)
        if not is_new:
            return None
        sql = "SELECT * FROM typed_commands WHERE bridge = ? AND external_id = ?"
        return self._db.read_one(_read_command, sql, (incoming.bridge, incoming.external_id))

    def mark_running(self, command: PendingCommand) -> None:
        """Mark a command as about to run."""
        with self._db.write() as db:
            db.update_rows("typed_commands", {"id": command.id}, state="running")

    def save_answer(self, command: PendingCommand, outgoing: OutgoingMessage, now: datetime) -> None:
        """Store the answer, end the command and delete its text, in one transaction."""
        with self._db.write() as db:
            insert_outgoing(db, [outgoing], now)
            db.update_rows("typed_commands", {"id": command.id}, state="done", text="")

    def list_open(self) -> list[PendingCommand]:
        """Return commands without an answer, oldest first."""
        return self._db.read_all(_read_command, "SELECT * FROM typed_commands WHERE state <> 'done' ORDER BY id")


class BridgeStates(DatabaseStore):
    """Stores each bridge's receive position, and which bridges the owner paused. Raises `StoreError`."""

    def load_position(self, bridge: str) -> str:
        """Return where the bridge continues to receive; "" before the first message."""
        return self._db.value("SELECT position FROM bridge_states WHERE bridge = ?", (bridge,)) or ""

    def save_position(self, bridge: str, position: str) -> None:
        """Store it durably; "" and an unchanged position are not written."""
        if position and position != self.load_position(bridge):
            with self._db.write() as db:
                save_position(db, bridge, position)

    def is_paused(self, bridge: str) -> bool:
        return bool(self._db.value("SELECT paused FROM bridge_states WHERE bridge = ?", (bridge,)))

    def set_paused(self, bridge: str, paused: bool) -> None:
        with self._db.write() as db:
            db.upsert_row("bridge_states", ("bridge",), bridge=bridge, paused=paused)

    def delete(self, bridge: str) -> None:
        """Delete the state of a removed bridge; one that is added again starts from the beginning."""
        with self._db.write() as db:
            db.execute("DELETE FROM bridge_states WHERE bridge = ?", (bridge,))


def save_position(db: Database, bridge: str, position: str) -> None:
    """Within a transaction: save from where the bridge continues receiving; "" keeps the position."""
    if position:
        db.upsert_row("bridge_states", ("bridge",), bridge=bridge, position=position)
