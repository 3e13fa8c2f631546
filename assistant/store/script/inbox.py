"""What arrived and is not yet answered: messages, and slash commands that were typed on a bridge.

What always holds: SQLite accepts first (I1): a committed row here is what a bridge may acknowledge. A message's row
holds the whole message until the log has it, and its words for good. A command is stored before it is acknowledged,
and its answer goes out once: the row ends in the transaction that stores the answer, and its text is emptied then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from sqlite3 import Row

from assistant.core.messages import (
    Media,
    Message,
    media_from_json,
    media_to_json,
)
from assistant.core.records import (
    InboxItem,
    InboxReceipt,
    InboxState,
    IncomingMessage,
    OutgoingMessage,
)
from assistant.core.slash_commands import PendingCommand
from assistant.store.database import Database
from assistant.store.encoding import clean_message, clean_text, dump_json, format_time, parse_time
from assistant.store.script import sessions as session_rows
from assistant.store.script.outbox import insert_outgoing
from assistant.store.script.state import save_position

_INSERT_ITEM = (
    "INSERT INTO inbox (bridge, external_id, session, generation, scope, sender, trust, target, body, message_id,"
    " state, received_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'accepted', ?)"
)
# The next session that waits, each time by one look into the index, however many messages wait.
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
    def __init__(self, db: Database, next_id: Callable[[], int]) -> None:
        self._db = db
        self._next_id = next_id

    def accept(self, incoming: IncomingMessage, now: datetime) -> InboxReceipt:
        """See `ports.Conversation.accept`."""
        incoming = _clean_incoming(incoming)
        body = encode_inbox_body(incoming)
        with self._db.write():
            return self._put(incoming, body, now)

    def accept_in_transaction(self, incoming: IncomingMessage, now: datetime) -> InboxReceipt:
        """Inside a transaction: the same."""
        incoming = _clean_incoming(incoming)
        return self._put(incoming, encode_inbox_body(incoming), now)

    def _put(self, incoming: IncomingMessage, body: str, now: datetime) -> InboxReceipt:
        known = self._db.row(
            "SELECT * FROM inbox WHERE bridge = ? AND external_id = ?", (incoming.bridge, incoming.external_id)
        )
        save_position(self._db, incoming.bridge, incoming.position)
        if known is not None:
            differs = not _has_same_content(incoming, inbox_item_of_row(known).incoming)
            return InboxReceipt(known["id"], known["message_id"], duplicate=True, conflicts=differs)
        session = session_rows.ensure_session(self._db, incoming.session, incoming.scope, now)
        message_id = self._next_id()
        inbox_id = self._db.insert(
            _INSERT_ITEM,
            (
                incoming.bridge,
                incoming.external_id,
                session.key,
                session.generation,
                session.scope,
                incoming.sender,
                incoming.trust,
                incoming.target,
                body,
                message_id,
                format_time(now),
            ),
        )
        return InboxReceipt(inbox_id, message_id)

    def sessions_waiting(self) -> list[str]:
        return [row["session"] for row in self._db.rows(_SELECT_WAITING_SESSIONS)]

    def list_accepted(self, session: str, limit: int) -> list[InboxItem]:
        rows = self._db.rows(
            "SELECT * FROM inbox WHERE session = ? AND state = 'accepted' ORDER BY id LIMIT ?", (session, limit)
        )
        return [inbox_item_of_row(row) for row in rows]

    def find_item(self, inbox_id: int) -> InboxItem | None:
        row = self._db.row("SELECT * FROM inbox WHERE id = ?", (inbox_id,))
        return None if row is None else inbox_item_of_row(row)

    def list_by_turn(self, turn: str) -> tuple[InboxItem, ...]:
        return tuple(
            inbox_item_of_row(row) for row in self._db.rows("SELECT * FROM inbox WHERE turn = ? ORDER BY id", (turn,))
        )

    def mark_running(self, items: Sequence[InboxItem], turn: str) -> tuple[InboxItem, ...]:
        """Inside a transaction: accepted items run under a turn."""
        for item in items:
            self._db.execute("UPDATE inbox SET state = 'running', turn = ? WHERE id = ?", (turn, item.id))
        return tuple(replace(item, state="running", turn=turn) for item in items)

    def end_items(self, inbox_ids: Sequence[int], state: InboxState, now: datetime) -> None:
        """Inside the transaction that ends logged messages: their pictures stand in the log alone from then on."""
        for inbox_id in inbox_ids:
            self._db.execute(
                "UPDATE inbox SET state = ?, ended_at = ? WHERE id = ?", (state, format_time(now), inbox_id)
            )
            row = self._db.row("SELECT * FROM inbox WHERE id = ? AND instr(body, '\"data\":')", (inbox_id,))
            if row is not None:
                incoming = inbox_item_of_row(row).incoming
                named = replace(incoming, media=tuple(replace(one, data=None) for one in incoming.media))
                self._db.execute("UPDATE inbox SET body = ? WHERE id = ?", (encode_inbox_body(named), inbox_id))


def message_of_inbox_item(item: InboxItem) -> Message:
    """The accepted message, to be logged under the id it was given."""
    incoming = item.incoming
    return Message(
        "user", incoming.content, item.message_id, item.received_at, name=incoming.name, media=incoming.media
    )


def _has_same_content(incoming: IncomingMessage, known: IncomingMessage) -> bool:
    """Whether a message that comes again is the one that is kept, as far as that can be told: of pictures the bytes are
    gone with the end of the turn, and a file that comes on a later day lies under that day's name."""
    if (incoming.session, incoming.content, incoming.name) != (known.session, known.content, known.name):
        return False
    pairs = zip(incoming.media, known.media, strict=False)
    return len(incoming.media) == len(known.media) and all(_may_be_same_media(one, other) for one, other in pairs)


def _may_be_same_media(one: Media, other: Media) -> bool:
    same = replace(one, data=None, path=None) == replace(other, data=None, path=None)
    return same and (None in (one.data, other.data) or one.data == other.data)


def _clean_incoming(incoming: IncomingMessage) -> IncomingMessage:
    message = clean_message(Message("user", incoming.content, name=incoming.name, media=incoming.media))
    return replace(
        incoming,
        content=message.content,
        name=message.name,
        media=message.media,
        external_id=clean_text(incoming.external_id),
        sender=clean_text(incoming.sender),
        target=clean_text(incoming.target),
    )


class SlashCommandQueue:
    """Commands on their way: accepted, run once, answered once."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def accept(self, incoming: IncomingMessage, text: str, now: datetime) -> PendingCommand | None:
        """Keep the command `text`, durably; None where it was kept before."""
        told = (incoming.sender, incoming.target, text)
        values = (
            clean_text(incoming.bridge),
            clean_text(incoming.external_id),
            incoming.session,
            incoming.scope,
            *map(clean_text, told),
        )
        with self._db.write() as db:
            added = db.execute(
                "INSERT OR IGNORE INTO typed_commands (bridge, external_id, session, scope, sender, target, text,"
                " state, accepted_at) VALUES (?, ?, ?, ?, ?, ?, ?, 'accepted', ?)",
                (*values, format_time(now)),
            )
            save_position(db, incoming.bridge, incoming.position)
            row = db.rows("SELECT * FROM typed_commands WHERE bridge = ? AND external_id = ?", values[:2])[0]
        return _command_of_row(row) if added else None

    def mark_running(self, command: PendingCommand) -> None:
        """It is about to run."""
        with self._db.write() as db:
            db.execute("UPDATE typed_commands SET state = 'running' WHERE id = ?", (command.id,))

    def save_answer(self, command: PendingCommand, outgoing: OutgoingMessage, now: datetime) -> None:
        """Store the answer and end the command, at once; what was typed is kept no longer."""
        session = session_rows.find_session(self._db, command.session)
        with self._db.write() as db:
            insert_outgoing(db, [outgoing], 1 if session is None else session.generation, None, now)
            db.execute("UPDATE typed_commands SET state = 'done', text = '' WHERE id = ?", (command.id,))

    def list_open(self) -> list[PendingCommand]:
        """What was not answered, oldest first."""
        return [
            _command_of_row(row)
            for row in self._db.rows("SELECT * FROM typed_commands WHERE state <> 'done' ORDER BY id")
        ]


def _command_of_row(row: Row) -> PendingCommand:
    return PendingCommand(
        row["id"],
        row["bridge"],
        row["external_id"],
        row["session"],
        row["scope"],
        row["sender"],
        row["target"],
        row["text"],
        row["state"] == "running",
    )


def encode_inbox_body(incoming: IncomingMessage) -> str:
    return dump_json(
        {
            "content": incoming.content,
            "media": [media_to_json(media) for media in incoming.media],
            "name": incoming.name,
        }
    )


def inbox_item_of_row(row: Row) -> InboxItem:
    body = json.loads(row["body"])
    incoming = IncomingMessage(
        bridge=row["bridge"],
        external_id=row["external_id"],
        session=row["session"],
        scope=row["scope"],
        sender=row["sender"],
        trust=row["trust"],
        content=body["content"],
        media=tuple(media_from_json(media) for media in body["media"]),
        name=body["name"],
        target=row["target"],
    )
    return InboxItem(row["id"], row["message_id"], incoming, row["state"], parse_time(row["received_at"]), row["turn"])
