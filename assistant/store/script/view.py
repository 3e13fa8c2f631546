"""The view: what the model sees of a session, one row per message, ordered by position.

Invariant: the view of a session is the rows above its floor (`sessions.view_floor`); rows that compactions replaced
stay below it unchanged as long as they can be undone. Original messages are at multiples of `STRIDE`; a compaction
inserts its prefix right above the last row it replaced. Appending touches only the end and the totals. A view is read
from the database once; afterwards the process applies its own commits to the cached view, as long as generation and
`prefix_rev` stay the same. Compaction bounds the number of rows.
"""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from sqlite3 import Row
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.messages import Message
from assistant.core.records import ContextView
from assistant.store.database import Database
from assistant.store.rows import dump_json, insert_sql, message_parts, parse_time, parts_from_json
from assistant.store.script import sessions as session_rows
from assistant.store.script.sessions import Session, ViewSize, sum_view_sizes

POSITION_STRIDE = 1 << 32
FROM_VIEW = (
    " FROM conversation_history AS h WHERE h.session = ? AND h.generation = ?"
    " AND h.position > (SELECT view_floor FROM sessions WHERE key = ? AND generation = ?)"
)
"""The rows `h` of a view; its values are `view_parameters(session)`."""
# Without a hint, the planner would read the whole view for one row.
FROM_MESSAGE_IN_VIEW = (
    " FROM conversation_history AS h INDEXED BY history_message WHERE h.message_id = ? AND h.carried_from IS NULL"
    " AND h.session = ? AND h.generation = ?"
    " AND h.position > (SELECT view_floor FROM sessions WHERE key = ? AND generation = ?)"
)
"""The row `h` of a message itself in a view; its values are the id and `view_parameters(session)`."""
IS_MESSAGE_ROW = "h.message_id IS NOT NULL AND h.carried_from IS NULL"
"""Which rows `h` are the messages themselves: not the prefix, which are summaries and copies."""
SIZE_COLUMNS = "count(*), coalesce(sum(h.tokens), 0), coalesce(sum(h.bytes), 0), coalesce(sum(h.images), 0)"

_CACHED_VIEWS = 8
_FROM_ALL_ROWS = " FROM conversation_history WHERE session = ? AND generation = ?"

ViewParameters = tuple[str, int, str, int]
MessageSizes = tuple[tuple[int, int, int], ...]


def view_parameters(session: Session) -> ViewParameters:
    """Return the values for `FROM_VIEW`."""
    return (*session.row_key, *session.row_key)


@dataclass(frozen=True, slots=True)
class CountedMessage:
    """A message as the model sees it, and its size in tokens."""

    message: Message
    tokens: int


@dataclass(frozen=True, slots=True)
class _CachedView:
    generation: int
    prefix_rev: int
    messages: tuple[Message, ...]
    sizes: MessageSizes


class Views:
    """The views of all sessions. Writing methods are called inside a transaction; except for `append`, the caller
    updates the totals."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._cached: OrderedDict[str, _CachedView] = OrderedDict()

    # ------------------------------------------------------------------------------------------------------ reading

    def read(self, session: str) -> ContextView:
        """Return the view; an empty one of generation 1 without scope if the session does not exist."""
        row = session_rows.find_session_row(self._db, session)
        if row is None:
            return ContextView(session, 1, "", 0, (), 0, 0, 0)
        cached = self._cached.get(session)
        if (
            cached is None
            or (cached.generation, cached.prefix_rev) != (row["generation"], row["prefix_rev"])
            or len(cached.messages) != row["view_messages"]
        ):
            cached = self._load(session_rows.session_of_row(row), row["prefix_rev"])
        self._remember(session, cached)
        reported = row["reported_rev"], row["reported_tokens"], row["reported_message_id"]
        return ContextView(
            session,
            row["generation"],
            row["scope"],
            row["prefix_rev"],
            cached.messages,
            row["view_tokens"],
            row["view_bytes"],
            row["view_images"],
            None if reported[0] is None else reported,
            cached.sizes,
        )

    def position_of(self, session: Session, message_id: int) -> int | None:
        """Return the position of the original message (not of a carried copy), or None if it is not in the view."""
        position: int | None = self._db.value(
            f"SELECT h.position{FROM_MESSAGE_IN_VIEW}", (message_id, *view_parameters(session))
        )
        return position

    def messages_in_view(self, session: Session, message_ids: Sequence[int]) -> dict[int, Message]:
        """Return those of the messages that are in the view, by id."""
        view = self.read(session.key)
        if view.generation != session.generation:
            return {row["message_id"]: message_of_view_row(row) for row in self.rows_in_view(session, message_ids)}
        wanted = set(message_ids)
        return {message.id: message for message in view.messages if message.id in wanted}

    def rows_in_view(self, session: Session, message_ids: Sequence[int]) -> list[Row]:
        """Return the rows of those of the messages that are in the view."""
        rows = [
            self._db.row(f"SELECT h.*{FROM_MESSAGE_IN_VIEW}", (message_id, *view_parameters(session)))
            for message_id in message_ids
        ]
        return [row for row in rows if row is not None]

    def prefix_end(self, session: Session) -> int:
        """Return the position of the last row before the original messages, or the floor."""
        last = self._db.value(f"SELECT max(h.position){FROM_VIEW} AND NOT ({IS_MESSAGE_ROW})", view_parameters(session))
        return session_rows.read_view_floor(self._db, session) if last is None else int(last)

    # ------------------------------------------------------------------------------------------------------ writing

    def append(self, session: Session, shown: Sequence[CountedMessage]) -> None:
        """Add messages at the end."""
        if shown:
            sizes = self.insert_rows(session, self._next_position(session), shown, POSITION_STRIDE)
            session_rows.add_to_totals(self._db, session, sum_view_sizes(sizes))
            each = tuple((size.tokens, size.bytes, size.images) for size in sizes)
            self._db.after_commit(partial(self._extend, session, tuple(row.message for row in shown), each))

    def insert_rows(
        self, session: Session, position: int, shown: Sequence[CountedMessage], step: int = 1
    ) -> list[ViewSize]:
        """Write rows starting at `position`, `step` apart; the positions must be free."""
        sizes: list[ViewSize] = []
        rows: list[dict[str, Any]] = []
        for place, row in enumerate(shown):
            message = row.message
            if message.ts is None:
                raise ValueError("a message in a view has a time")
            size, columns = encode_view_row(row)
            sizes.append(size)
            rows.append(
                {
                    **session.columns,
                    "position": position + place * step,
                    "message_id": message.id,
                    "carried_from": message.metadata.get("carried_from"),
                    "ts": message.ts,
                    **columns,
                }
            )
        if rows:
            self._db.execute_many(insert_sql("conversation_history", (*rows[0],)), ((*row.values(),) for row in rows))
        return sizes

    def rewrite_rows(self, session: Session, shown: Sequence[CountedMessage]) -> ViewSize:
        """Replace messages in their existing rows, and return the change of the totals."""
        sizes = []
        for row in shown:
            size, columns = encode_view_row(row)
            sizes.append(size)
            row_id = self._db.value(f"SELECT h.id{FROM_MESSAGE_IN_VIEW}", (row.message.id, *view_parameters(session)))
            self._db.update_rows("conversation_history", {"id": row_id}, **columns)
        return sum_view_sizes(sizes)

    def replace_row(self, row_id: int, shown: CountedMessage) -> None:
        """Replace the message in a row."""
        _, columns = encode_view_row(shown)
        self._db.update_rows("conversation_history", {"id": row_id}, **columns)

    def remove(self, session: Session, message_ids: Sequence[int]) -> ViewSize:
        """Remove the rows of messages, including carried copies."""
        is_message = "(h.message_id = ? OR h.carried_from = ?)"
        return sum_view_sizes(self._delete(session, is_message, (message_id, message_id)) for message_id in message_ids)

    def remove_prefix(self, session: Session) -> None:
        """Remove the prefix that a compaction inserted."""
        self._delete(session, f"NOT ({IS_MESSAGE_ROW})", ())

    def remove_message_rows(self, session: Session, before: int = sys.maxsize) -> ViewSize:
        """Remove the rows of messages before a seq, keeping the prefix that a compaction inserted."""
        is_before = "EXISTS (SELECT 1 FROM messages m WHERE m.id = h.message_id AND m.seq < ?)"
        return self._delete(session, f"{IS_MESSAGE_ROW} AND {is_before}", (before,))

    def remove_unindexed(self) -> None:
        """Remove rows whose message is not in the index."""
        unknown = "IS NOT NULL AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id ="
        self._db.execute(
            f"DELETE FROM conversation_history WHERE (message_id {unknown} message_id))"
            f" OR (carried_from {unknown} carried_from))"
        )

    def remove_below(self, session: Session, position: int, limit: int) -> bool:
        """Remove the lowest `limit` rows up to `position`, which is not above the floor; return whether any are
        left."""
        rows = f"{_FROM_ALL_ROWS} AND position <= ?"
        sql = f"SELECT position{rows} ORDER BY position LIMIT 1 OFFSET ?"
        next_position = self._db.value(sql, (*session.row_key, position, limit))
        last = position if next_position is None else next_position - 1
        self._db.execute(f"DELETE{rows}", (*session.row_key, last))
        return next_position is not None

    def _delete(self, session: Session, condition: str, values: Sequence[int]) -> ViewSize:
        where = f"{FROM_VIEW} AND {condition}", (*view_parameters(session), *values)
        (size,) = self._db.read_all(lambda row: ViewSize(*row), f"SELECT {SIZE_COLUMNS}{where[0]}", where[1])
        if size.messages:
            self._db.execute(f"DELETE{where[0]}", where[1])
        return size

    def _next_position(self, session: Session) -> int:
        """Return the first position after all rows, including those below the floor, which an undo may restore."""
        last = self._db.value(
            f"SELECT max(view_floor, coalesce((SELECT position{_FROM_ALL_ROWS} ORDER BY position DESC LIMIT 1), 0))"
            " FROM sessions WHERE key = ? AND generation = ?",
            view_parameters(session),
        )
        return ((last or 0) // POSITION_STRIDE + 1) * POSITION_STRIDE

    # ------------------------------------------------------------------------------------------------------- caching

    def _load(self, session: Session, prefix_rev: int) -> _CachedView:
        rows = self._db.rows(f"SELECT h.*{FROM_VIEW} ORDER BY h.position", view_parameters(session))
        messages = tuple(message_of_view_row(row) for row in rows)
        sizes = tuple((row["tokens"], row["bytes"], row["images"]) for row in rows)
        return _CachedView(session.generation, prefix_rev, messages, sizes)

    def _extend(self, session: Session, messages: tuple[Message, ...], sizes: MessageSizes) -> None:
        view = self._cached.get(session.key)
        if view is not None and view.generation == session.generation:
            longer = _CachedView(view.generation, view.prefix_rev, view.messages + messages, view.sizes + sizes)
            self._remember(session.key, longer)

    def _remember(self, session: str, view: _CachedView) -> None:
        self._cached[session] = view
        self._cached.move_to_end(session)
        while len(self._cached) > _CACHED_VIEWS:
            self._cached.popitem(last=False)


def encode_view_row(row: CountedMessage) -> tuple[ViewSize, dict[str, str | int]]:
    """Return the size of a message, and its column values."""
    message, parts = row.message, encode_message_parts(row.message)
    images = sum(media.kind == "image" and media.data is not None for media in message.media)
    size = ViewSize(1, row.tokens, len(message.content.encode()) + len(parts.encode()), images)
    return size, {
        "role": message.role,
        "content": message.content,
        "parts": parts,
        "metadata": dump_json(dict(message.metadata)),
        "tokens": size.tokens,
        "bytes": size.bytes,
        "images": size.images,
    }


def encode_message_parts(message: Message) -> str:
    """Return the parts of a message other than its text, as JSON without unset parts."""
    parts = {**message_parts(message), "tool_call_id": message.tool_call_id, "model": message.model}
    return dump_json({key: part for key, part in parts.items() if part is not None and part != []})


def message_of_view_row(row: Row | Mapping[str, Any]) -> Message:
    """Return the message as the model sees it, not as it was said."""
    parts: Mapping[str, Any] = json.loads(row["parts"])
    return Message(
        role=row["role"],
        content=row["content"],
        id=row["message_id"],
        ts=parse_time(row["ts"]),
        tool_call_id=parts.get("tool_call_id"),
        model=parts.get("model"),
        metadata=json.loads(row["metadata"]),
        **parts_from_json(parts),
    )
