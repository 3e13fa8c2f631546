"""What arrived and is not yet answered. SQLite accepts first (I1): a row here, committed, is what a bridge may
acknowledge; it holds the whole message until the log has it, and its words for good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from assistant.core.messages import Media, Message
from assistant.core.records import InboxItem, InboxReceipt, InboxState, IncomingMessage
from assistant.store import bridge_states, session_rows
from assistant.store.database import Database
from assistant.store.rows import inbox_body, inbox_item
from assistant.store.text import clean, clean_message, stamp

_INSERT = (
    "INSERT INTO inbox (bridge, external_id, session, generation, scope, sender, trust, target, body, message_id,"
    " state, received_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'accepted', ?)"
)
# The next session that waits, each time by one look into the index, however many messages wait.
_WAITING = """
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
        incoming = _cleaned(incoming)
        body = inbox_body(incoming)
        with self._db.write():
            return self._put(incoming, body, now)

    def put(self, incoming: IncomingMessage, now: datetime) -> InboxReceipt:
        """Inside a transaction: the same."""
        incoming = _cleaned(incoming)
        return self._put(incoming, inbox_body(incoming), now)

    def _put(self, incoming: IncomingMessage, body: str, now: datetime) -> InboxReceipt:
        known = self._db.row(
            "SELECT * FROM inbox WHERE bridge = ? AND external_id = ?", (incoming.bridge, incoming.external_id)
        )
        bridge_states.put(self._db, incoming.bridge, incoming.position)
        if known is not None:
            differs = not _says_the_same(incoming, inbox_item(known).incoming)
            return InboxReceipt(known["id"], known["message_id"], duplicate=True, differs=differs)
        session = session_rows.ensure(self._db, incoming.session, incoming.scope, now)
        message_id = self._next_id()
        inbox_id = self._db.insert(
            _INSERT,
            (
                incoming.bridge, incoming.external_id, session.key, session.generation, session.scope,
                incoming.sender, incoming.trust, incoming.target, body, message_id, stamp(now),
            ),
        )  # fmt: skip
        return InboxReceipt(inbox_id, message_id)

    def waiting(self) -> list[str]:
        return [row["session"] for row in self._db.rows(_WAITING)]

    def accepted(self, session: str, limit: int) -> list[InboxItem]:
        rows = self._db.rows(
            "SELECT * FROM inbox WHERE session = ? AND state = 'accepted' ORDER BY id LIMIT ?", (session, limit)
        )
        return [inbox_item(row) for row in rows]

    def item(self, inbox_id: int) -> InboxItem | None:
        row = self._db.row("SELECT * FROM inbox WHERE id = ?", (inbox_id,))
        return None if row is None else inbox_item(row)

    def of_turn(self, turn: str) -> tuple[InboxItem, ...]:
        return tuple(
            inbox_item(row) for row in self._db.rows("SELECT * FROM inbox WHERE turn = ? ORDER BY id", (turn,))
        )

    def take(self, items: Sequence[InboxItem], turn: str) -> tuple[InboxItem, ...]:
        """Inside a transaction: accepted items run under a turn."""
        for item in items:
            self._db.execute("UPDATE inbox SET state = 'running', turn = ? WHERE id = ?", (turn, item.id))
        return tuple(replace(item, state="running", turn=turn) for item in items)

    def end(self, inbox_ids: Sequence[int], state: InboxState, now: datetime) -> None:
        """Inside the transaction that ends logged messages: their pictures stand in the log alone from then on."""
        for inbox_id in inbox_ids:
            self._db.execute("UPDATE inbox SET state = ?, ended_at = ? WHERE id = ?", (state, stamp(now), inbox_id))
            row = self._db.row("SELECT * FROM inbox WHERE id = ? AND instr(body, '\"data\":')", (inbox_id,))
            if row is not None:
                incoming = inbox_item(row).incoming
                named = replace(incoming, media=tuple(replace(one, data=None) for one in incoming.media))
                self._db.execute("UPDATE inbox SET body = ? WHERE id = ?", (inbox_body(named), inbox_id))


def message_of(item: InboxItem) -> Message:
    """The accepted message, to be logged under the id it was given."""
    incoming = item.incoming
    return Message(
        "user", incoming.content, item.message_id, item.received_at, name=incoming.name, media=incoming.media
    )  # fmt: skip


def _says_the_same(incoming: IncomingMessage, known: IncomingMessage) -> bool:
    """Whether a message that comes again is the one that is kept, as far as that can be told: of pictures the bytes are
    gone with the end of the turn, and a file that comes on a later day lies under that day's name."""
    if (incoming.session, incoming.content, incoming.name) != (known.session, known.content, known.name):
        return False
    pairs = zip(incoming.media, known.media, strict=False)
    return len(incoming.media) == len(known.media) and all(_may_be(one, other) for one, other in pairs)


def _may_be(one: Media, other: Media) -> bool:
    same = replace(one, data=None, path=None) == replace(other, data=None, path=None)
    return same and (None in (one.data, other.data) or one.data == other.data)


def _cleaned(incoming: IncomingMessage) -> IncomingMessage:
    message = clean_message(Message("user", incoming.content, name=incoming.name, media=incoming.media))
    return replace(
        incoming,
        content=message.content,
        name=message.name,
        media=message.media,
        external_id=clean(incoming.external_id),
        sender=clean(incoming.sender),
        target=clean(incoming.target),
    )
