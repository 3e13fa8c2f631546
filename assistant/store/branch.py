"""Conversations that go on from a message of another: what was said before stays in the log it is in, and stands in
the branch's view as copies.

What always holds: a branch has the scope of its parent, and only the owner's conversations have branches. Its first
record, of kind `branch`, names the message; the copies are made when that record is shown, whether by the call that
made the branch or by a start that finds the record without them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from assistant.context.structure import block_starts
from assistant.core.errors import UsageError
from assistant.core.messages import Message
from assistant.core.records import ContextView, LogRecord
from assistant.core.sessions import BRANCH_PREFIX, session_role
from assistant.store import index, session_rows
from assistant.store.database import Database
from assistant.store.session_rows import Session, total
from assistant.store.view import Counted, Views


class Fork(NamedTuple):
    """A branch to be made: its session, and the words that its first record says."""

    session: Session
    words: str


def plan(db: Database, views: Views, key: str, message_id: int) -> Fork:
    """The next branch. Raises `UsageError` where none can be made of this conversation at this message."""
    parent = session_rows.require(db, key)
    if session_role(key) != "owner":
        raise UsageError(f"Only the owner's own conversations have branches, and {key!r} is none. Nothing was changed.")
    last = _end(db, views.read(key), message_id)
    if last != message_id:
        raise UsageError(
            f"Message #{message_id} stands between a tool's call and its result. Nothing was changed; branch at "
            f"message #{last}."
        )
    row = db.row(
        "SELECT max(CAST(substr(key, ?) AS INTEGER)) FROM sessions WHERE key GLOB ?",
        (len(BRANCH_PREFIX) + 1, f"{BRANCH_PREFIX}*"),
    )
    number = 1 + (row[0] if row is not None and row[0] else 0)
    words = f"This conversation branched from {key} at message #{message_id}."
    return Fork(Session(f"{BRANCH_PREFIX}{number}", 1, parent.scope), words)


def _end(db: Database, view: ContextView, message_id: int) -> int | None:
    """The first message from `message_id` on after which nothing is torn apart. Raises `UsageError`."""
    at = next((n for n, row in enumerate(view.messages) if row.id == message_id), None)
    if at is None:
        raise UsageError(
            f"Message #{message_id} does not stand in the context of {view.session!r}. Nothing was changed; branch at "
            "a message that does."
        )
    indexed = index.find(db, message_id)
    if indexed is not None and db.row("SELECT 1 FROM turns WHERE id = ? AND state = 'running'", (indexed["turn"],)):
        raise UsageError(
            f"Message #{message_id} belongs to an answer that is still being made. Nothing was changed; try again when "
            "it has ended."
        )
    starts = (*block_starts(view.messages), len(view.messages))
    return view.messages[min(start for start in starts if start > at) - 1].id


def inherit(db: Database, views: Views, record: LogRecord) -> None:
    """Inside a transaction, with the branch's first record: the branch has copies of what its parent shows up to the
    message. Where that does not stand there any longer, there are none."""
    said = index.find(db, record.refs[0]) if record.refs else None
    session = Session(record.session, record.generation, record.scope)
    session_rows.begin(db, session.key, session.generation, session.scope, record.ts)
    if said is None or said["scope"] != record.scope or record.seq != 1:
        return
    session_rows.set_parent(db, session, said["session"], said["id"])
    view = views.read(said["session"])
    at = next((n for n, row in enumerate(view.messages) if row.id == said["id"]), -1)
    copies = [
        Counted(inherited(message), tokens)
        for message, (tokens, _, _) in zip(view.messages[: at + 1], view.sizes, strict=False)
    ]
    session_rows.grow(db, session, total(views.insert(session, 1, copies)))


def inherited(message: Message) -> Message:
    """The message as a copy, outside of the coverage of where it goes; a copy of a copy is one of the same original."""
    origin = message.metadata.get("carried_from", message.id)
    about = {**message.metadata, "inherited": True}
    return replace(message, id=None, metadata=about if origin is None else {**about, "carried_from": origin})
