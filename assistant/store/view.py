"""The working context: what the model sees of a session, a row a message, in order of position.

What always holds: appending touches the tail and the totals only. A view is read whole from the database once; after
that this process extends what it read by what it commits, as long as generation and `prefix_rev` stay. The rows are
bounded because compaction bounds them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from assistant.messages import Message
from assistant.records import View
from assistant.store import session_rows
from assistant.store.database import Database
from assistant.store.rows import message_parts, view_message
from assistant.store.session_rows import Session, Size
from assistant.store.text import dumps, stamp

_CACHED_VIEWS = 8

_INSERT = (
    "INSERT INTO conversation_history (session, generation, scope, position, message_id, carried_from, role, content,"
    " parts, metadata, ts, tokens, bytes, images) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_OF_VIEW = " FROM conversation_history WHERE session = ? AND generation = ?"
_OF_MESSAGE = " FROM conversation_history WHERE message_id = ? AND session = ? AND generation = ? AND carried_from IS ?"


@dataclass(frozen=True, slots=True)
class Counted:
    """A message as the model sees it, and its tokens."""

    message: Message
    tokens: int


@dataclass(frozen=True, slots=True)
class _Known:
    generation: int
    prefix_rev: int
    messages: tuple[Message, ...]


class Views:
    """The views of a home's sessions. Writing methods are called inside a transaction."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def read(self, session: str) -> View:
        """The view; an empty one of generation 1 and no scope where there is no such session."""
        row = session_rows.current_row(self._db, session)
        if row is None:
            return View(session, 1, "", 0, (), 0, 0, 0)
        known = self._known.get(session)
        if (
            known is None
            or (known.generation, known.prefix_rev) != (row["generation"], row["prefix_rev"])
            or len(known.messages) != row["view_messages"]
        ):
            messages = self._load(session, row["generation"])
            self._remember(session, _Known(row["generation"], row["prefix_rev"], messages))
        else:
            messages = known.messages
            self._known.move_to_end(session)
        reported = row["reported_rev"], row["reported_tokens"], row["reported_message_id"]
        return View(
            session, row["generation"], row["scope"], row["prefix_rev"], messages, row["view_tokens"],
            row["view_bytes"], row["view_images"], None if reported[0] is None else reported,
        )  # fmt: skip

    def append(self, session: Session, shown: Sequence[Counted]) -> None:
        """Add messages at the end."""
        if shown:
            size = self.insert(session, self._last_position(session) + 1, shown)
            session_rows.grow(self._db, session, size)
            self._db.after_commit(partial(self._extend, session, tuple(row.message for row in shown)))

    def insert(self, session: Session, position: int, shown: Sequence[Counted]) -> Size:
        """Write rows from `position` on, which must be free; the totals are the caller's."""
        total = Size()
        rows = []
        for offset, row in enumerate(shown):
            message, parts = row.message, message_parts(row.message)
            if message.ts is None:
                raise ValueError("a message in a view has a time")
            size = _size(row, parts)
            total += size
            rows.append(
                (
                    session.key, session.generation, session.scope, position + offset, message.id,
                    message.metadata.get("carried_from"), message.role, message.content, parts,
                    dumps(dict(message.metadata)), stamp(message.ts),
                    row.tokens, size.bytes, size.images,
                )
            )  # fmt: skip
        self._db.execute_many(_INSERT, rows)
        return total

    def remove(self, session: Session, message_ids: Sequence[int]) -> Size:
        """Take out the rows of messages, copies that were carried included; the totals are the caller's."""
        gone = Size()
        for message_id in message_ids:
            gone += self._delete(session, "(message_id = ? OR carried_from = ?)", (message_id, message_id))
        return gone

    def remove_up_to(self, session: Session, position: int) -> Size:
        return self._delete(session, "position <= ?", (position,))

    def remove_live(self, session: Session) -> Size:
        """Take out everything but what a compaction put in front."""
        return self._delete(session, "message_id IS NOT NULL AND carried_from IS NULL", ())

    def remove_unknown(self) -> None:
        """Take out rows whose message the index does not know; the totals are the caller's."""
        known = "IS NOT NULL AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id ="
        self._db.execute(
            f"DELETE FROM conversation_history WHERE (message_id {known} message_id))"
            f" OR (carried_from {known} carried_from))"
        )

    def rewrite(self, session: Session, shown: Counted) -> Size | None:
        """Put another form of a message in its row; what that changes in size, or None where there is no such row."""
        message, carried = shown.message, shown.message.metadata.get("carried_from")
        if message.id is None:
            return None
        row = self._db.row(
            f"SELECT id, tokens, bytes, images{_OF_MESSAGE}", (message.id, session.key, session.generation, carried)
        )
        if row is None:
            return None
        parts = message_parts(message)
        size = _size(shown, parts)
        self._db.execute(
            "UPDATE conversation_history SET role = ?, content = ?, parts = ?, metadata = ?, tokens = ?, bytes = ?,"
            " images = ? WHERE id = ?",
            (
                message.role, message.content, parts, dumps(dict(message.metadata)), shown.tokens, size.bytes,
                size.images, row["id"],
            ),
        )  # fmt: skip
        return size - Size(1, row["tokens"], row["bytes"], row["images"])

    def position_of(self, session: Session, message_id: int) -> int | None:
        """Where the message itself stands (not a carried copy)."""
        row = self._db.row(f"SELECT position{_OF_MESSAGE}", (message_id, session.key, session.generation, None))
        return None if row is None else int(row["position"])

    def shown(self, session: Session, message_ids: Sequence[int]) -> dict[int, Message]:
        """Those of the messages that stand in the view, by id."""
        found: dict[int, Message] = {}
        for message_id in message_ids:
            row = self._db.row(f"SELECT *{_OF_MESSAGE}", (message_id, session.key, session.generation, None))
            if row is not None:
                found[message_id] = view_message(row)
        return found

    def _delete(self, session: Session, condition: str, values: Sequence[int]) -> Size:
        where = (session.key, session.generation, *values)
        row = self._db.row(
            "SELECT count(*), coalesce(sum(tokens), 0), coalesce(sum(bytes), 0), coalesce(sum(images), 0)"
            f"{_OF_VIEW} AND {condition}",
            where,
        )
        if row is None or not row[0]:
            return Size()
        self._db.execute(f"DELETE{_OF_VIEW} AND {condition}", where)
        return Size(row[0], row[1], row[2], row[3])

    def _last_position(self, session: Session) -> int:
        row = self._db.row(
            f"SELECT position{_OF_VIEW} ORDER BY position DESC LIMIT 1", (session.key, session.generation)
        )
        return 0 if row is None else int(row["position"])

    def _load(self, session: str, generation: int) -> tuple[Message, ...]:
        rows = self._db.rows(f"SELECT *{_OF_VIEW} ORDER BY position", (session, generation))
        return tuple(view_message(row) for row in rows)

    def _extend(self, session: Session, messages: tuple[Message, ...]) -> None:
        known = self._known.get(session.key)
        if known is not None and known.generation == session.generation:
            self._remember(session.key, _Known(known.generation, known.prefix_rev, known.messages + messages))

    def _remember(self, session: str, known: _Known) -> None:
        self._known[session] = known
        self._known.move_to_end(session)
        while len(self._known) > _CACHED_VIEWS:
            self._known.popitem(last=False)


def _size(row: Counted, parts: str) -> Size:
    message = row.message
    images = sum(media.kind == "image" and media.data is not None for media in message.media)
    return Size(1, row.tokens, len(message.content.encode()) + len(parts.encode()), images)
