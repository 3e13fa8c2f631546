"""Conversations that start from an earlier one: branches, and the next generation of a session.

What always holds:
- The first record makes the change: of kind `branch` in a branch, `handover` or `resume` in a later generation. The
  transaction that shows it makes the copies, ends the previous generation, queues what the journal has not read of
  it (F28) and starts new counters, both in the original call and in a start that finds the record without them.
  Until that record is in the log the old generation is whole; from then on the new one is.
- `prefix_rev` keeps growing, so that what was planned on the old view is never committed to the new one.
- A branch has the scope of its parent, and only the owner's conversations have branches. What was said before stays
  in the log it is in; the branch's view has copies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from assistant.context.structure import block_starts
from assistant.core.errors import StaleView, UsageError
from assistant.core.messages import LogByteRange, Message
from assistant.core.records import ContextView, LogRecord
from assistant.core.sessions import BRANCH_PREFIX, GenerationEnd, session_role
from assistant.store.database import Database
from assistant.store.encoding import format_time
from assistant.store.log.reader import LogFiles
from assistant.store.script import sessions as session_rows
from assistant.store.script import unread as extraction
from assistant.store.script.checkpoints import BELONGS_IN_VIEW, first_uncovered_seq
from assistant.store.script.index import find_message_row, last_indexed
from assistant.store.script.sessions import Session, sum_sizes
from assistant.store.script.view import (
    FROM_VIEW,
    IS_MESSAGE_ROW,
    CountedMessage,
    Views,
    message_of_view_row,
    view_parameters,
)


class BranchPlan(NamedTuple):
    """A branch to be made: its session, and the words that its first record says."""

    session: Session
    words: str


def plan_branch(db: Database, views: Views, key: str, message_id: int) -> BranchPlan:
    """The next branch. Raises `UsageError` where none can be made of this conversation at this message."""
    parent = session_rows.require_session(db, key)
    if session_role(key) != "owner":
        raise UsageError(f"Only the owner's own conversations have branches, and {key!r} is none. Nothing was changed.")
    last = _end_of_block(db, views.read(key), message_id)
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
    return BranchPlan(Session(f"{BRANCH_PREFIX}{number}", 1, parent.scope), words)


def _end_of_block(db: Database, view: ContextView, message_id: int) -> int | None:
    """The first message from `message_id` on after which nothing is torn apart. Raises `UsageError`."""
    at = next((n for n, row in enumerate(view.messages) if row.id == message_id), None)
    if at is None:
        raise UsageError(
            f"Message #{message_id} does not stand in the context of {view.session!r}. Nothing was changed; branch at "
            "a message that does."
        )
    indexed = find_message_row(db, message_id)
    if indexed is not None and db.row("SELECT 1 FROM turns WHERE id = ? AND state = 'running'", (indexed["turn"],)):
        raise UsageError(
            f"Message #{message_id} belongs to an answer that is still being made. Nothing was changed; try again when "
            "it has ended."
        )
    starts = (*block_starts(view.messages), len(view.messages))
    return view.messages[min(start for start in starts if start > at) - 1].id


def copy_parent_view(db: Database, views: Views, record: LogRecord) -> None:
    """Inside a transaction, with the branch's first record: the branch has copies of what its parent shows up to the
    message. Where that does not stand there any longer, there are none."""
    said = find_message_row(db, record.refs[0]) if record.refs else None
    session = Session(record.session, record.generation, record.scope)
    session_rows.insert_session(db, session.key, session.generation, session.scope, record.ts)
    if said is None or said["scope"] != record.scope or record.seq != 1:
        return
    session_rows.set_branch_parent(db, session, said["session"], said["id"])
    view = views.read(said["session"])
    at = next((n for n, row in enumerate(view.messages) if row.id == said["id"]), -1)
    copies = [
        CountedMessage(as_inherited_copy(message), tokens)
        for message, (tokens, _, _) in zip(view.messages[: at + 1], view.sizes, strict=False)
    ]
    session_rows.add_to_totals(db, session, sum_sizes(views.insert_rows(session, 1, copies)))


def as_inherited_copy(message: Message) -> Message:
    """The message as a copy, outside of the coverage of where it goes; a copy of a copy is one of the same original."""
    origin = message.metadata.get("carried_from", message.id)
    about = {**message.metadata, "inherited": True}
    return replace(message, id=None, metadata=about if origin is None else {**about, "carried_from": origin})


ROLLOVER_KINDS = ("handover", "resume")
ViewRecord = Callable[[LogRecord], Message | None]
CountMessage = Callable[[Message], CountedMessage]


def check_rollover(db: Database, session: Session, ending: GenerationEnd) -> None:
    """Raises `StaleView` or `UsageError` where this generation may not end so now."""
    last = last_indexed(db, session.key)
    if session.generation != ending.generation or (0 if last is None else last.seq) != ending.seq:
        raise StaleView
    if db.row("SELECT 1 FROM turns WHERE session = ? AND state = 'running'", (session.key,)) is not None:
        raise UsageError(f"A message in {session.key!r} is still being answered. Nothing was changed; try again then.")


def last_message_of_generation(db: Database, session: Session, generation: int) -> int:
    """The id of the last message of an earlier generation. Raises `UsageError` where there is none."""
    row = db.row(
        "SELECT id FROM messages WHERE session = ? AND generation = ? ORDER BY seq DESC LIMIT 1",
        (session.key, generation),
    )
    if row is None or generation >= session.generation:
        raise UsageError(
            f"{session.key!r} has no earlier conversation {generation}. Nothing was changed; "
            f"`assistant sessions show {session.key}` lists them."
        )
    return int(row["id"])


def begin_next_generation(
    db: Database, log: LogFiles, views: Views, record: LogRecord, viewed: ViewRecord, counted: CountMessage
) -> None:
    """Inside the transaction that indexes the record, before it is shown. Repeating it changes nothing."""
    session = Session(record.session, record.generation, record.scope)
    end_previous_generation(db, record)
    if record.kind != "resume" or not record.refs:
        return
    said = find_message_row(db, record.refs[0])
    begun = session_rows.find_session_row(db, session.key)
    if said is None or said["session"] != session.key or begun is None or begun["resumed"] is not None:
        return
    copies = last_view_of_generation(db, log, Session(session.key, said["generation"], session.scope), viewed, counted)
    copies = [replace(row, message=as_inherited_copy(row.message)) for row in copies]
    db.execute(
        "UPDATE sessions SET resumed = ? WHERE key = ? AND generation = ?",
        (said["generation"], session.key, session.generation),
    )
    session_rows.add_to_totals(db, session, sum_sizes(views.insert_rows(session, 1, copies)))


def end_previous_generation(db: Database, record: LogRecord) -> None:
    """Inside a transaction: the generation before the record's is ended, and the record's begun. `sender` of the
    record is why."""
    former = Session(record.session, record.generation - 1, record.scope)
    session_rows.insert_session(db, record.session, record.generation, record.scope, record.ts)
    db.execute(
        "UPDATE sessions SET from_seq = ?, prefix_rev = max(prefix_rev, (SELECT f.prefix_rev + 1 FROM sessions f"
        " WHERE f.key = sessions.key AND f.generation = ?)) WHERE key = ? AND generation = ?",
        (record.seq, former.generation, record.session, record.generation),
    )
    db.execute(
        "UPDATE sessions SET ended_at = ?, end_reason = ?, lease_holder = NULL, lease_until = NULL"
        " WHERE key = ? AND generation = ? AND ended_at IS NULL",
        (format_time(record.ts), record.sender or "", former.key, former.generation),
    )
    db.execute(
        "UPDATE resets SET state = 'done', ended_at = ?, note = '', retry_at = NULL WHERE session = ?"
        " AND generation = ? AND state <> 'done'",
        (format_time(record.ts), former.key, former.generation),
    )
    _queue_extraction(db, former, record)


def _queue_extraction(db: Database, former: Session, record: LogRecord) -> None:
    row = db.row("SELECT from_seq FROM sessions WHERE key = ? AND generation = ?", (former.key, former.generation))
    if row is not None and row["from_seq"] < record.seq:
        extraction.queue_extraction(db, former, (row["from_seq"], record.seq - 1), "reset", record.ts)
        extraction.mark_extracted(db, former.key, former.generation, 0, record.ts)


def last_view_of_generation(
    db: Database, log: LogFiles, previous: Session, viewed: ViewRecord, counted: CountMessage
) -> list[CountedMessage]:
    """What a generation showed last: what compactions had put in front, which is kept, then its messages anew from the
    log, but for those undone."""
    rows = db.rows(f"SELECT h.*{FROM_VIEW} AND NOT ({IS_MESSAGE_ROW}) ORDER BY h.position", view_parameters(previous))
    shown = [CountedMessage(message_of_view_row(row), row["tokens"]) for row in rows]
    for row in db.rows(
        "SELECT m.byte_start, m.byte_end FROM messages m WHERE m.session = ? AND m.seq >= ? AND m.generation = ?"
        f" AND {BELONGS_IN_VIEW} ORDER BY m.seq",
        (previous.key, first_uncovered_seq(db, previous), previous.generation),
    ):
        message = viewed(log.read(previous.key, LogByteRange(row["byte_start"], row["byte_end"])))
        if message is not None:
            shown.append(counted(message))
    return shown
