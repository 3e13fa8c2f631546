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

from assistant.context.structure import block_starts
from assistant.core.errors import StaleView, UsageError
from assistant.core.messages import Message
from assistant.core.records import ContextView, LogRecord
from assistant.core.sessions import BRANCH_PREFIX, GenerationEnd, session_role
from assistant.store.database import Database
from assistant.store.log.reader import LogFiles
from assistant.store.script import sessions as session_rows
from assistant.store.script.checkpoints import BELONGS_IN_VIEW, first_uncovered_seq, mark_extracted, queue_extraction
from assistant.store.script.index import find_message_row, last_indexed, span_of_row
from assistant.store.script.sessions import Session, sum_sizes
from assistant.store.script.view import (
    FROM_VIEW,
    IS_MESSAGE_ROW,
    CountedMessage,
    Views,
    message_of_view_row,
    view_parameters,
)


def plan_branch(db: Database, views: Views, key: str, message_id: int) -> tuple[Session, str]:
    """The next branch, and the text of its first record. Raises `UsageError` where the conversation cannot branch at
    this message."""
    parent = session_rows.require_session(db, key)
    if session_role(key) != "owner":
        raise UsageError(f"Only your own conversations can have branches, and {key!r} is not one. Nothing was changed.")
    last = _end_of_block(db, views.read(key), message_id)
    if last != message_id:
        raise UsageError(
            f"Message #{message_id} is between a tool's call and its result. Nothing was changed; branch at message "
            f"#{last}."
        )
    newest = db.value(
        "SELECT max(CAST(substr(key, ?) AS INTEGER)) FROM sessions WHERE key GLOB ?",
        (len(BRANCH_PREFIX) + 1, f"{BRANCH_PREFIX}*"),
    )
    text = f"This conversation branched from {key} at message #{message_id}."
    return Session(f"{BRANCH_PREFIX}{(newest or 0) + 1}", 1, parent.scope), text


def _end_of_block(db: Database, view: ContextView, message_id: int) -> int | None:
    """The first message from `message_id` on after which nothing is torn apart. Raises `UsageError`."""
    place = next((n for n, message in enumerate(view.messages) if message.id == message_id), None)
    if place is None:
        raise UsageError(
            f"The model does not currently see message #{message_id} of {view.session!r}. Nothing was changed; branch "
            "at a message that it sees."
        )
    indexed = find_message_row(db, message_id)
    if indexed is not None and db.value("SELECT 1 FROM turns WHERE id = ? AND state = 'running'", (indexed["turn"],)):
        raise UsageError(
            f"Message #{message_id} belongs to an answer that is still being written. Nothing was changed; try again "
            "when it is complete."
        )
    starts = (*block_starts(view.messages), len(view.messages))
    return view.messages[min(start for start in starts if start > place) - 1].id


def copy_parent_view(db: Database, views: Views, record: LogRecord) -> None:
    """Inside a transaction, with the branch's first record: the branch has copies of what its parent shows up to the
    message; none where the parent no longer shows it."""
    parent = find_message_row(db, record.refs[0]) if record.refs else None
    session = Session(record.session, record.generation, record.scope)
    session_rows.insert_session(db, session.key, session.generation, session.scope, record.ts)
    if parent is None or parent["scope"] != record.scope or record.seq != 1:
        return
    session_rows.update_session(db, session, parent_session=parent["session"], parent_message_id=parent["id"])
    view = views.read(parent["session"])
    last = next((place for place, message in enumerate(view.messages) if message.id == parent["id"]), -1)
    copies = [
        CountedMessage(as_inherited_copy(message), tokens)
        for message, (tokens, _, _) in zip(view.messages[: last + 1], view.sizes, strict=False)
    ]
    session_rows.add_to_totals(db, session, sum_sizes(views.insert_rows(session, 1, copies)))


def as_inherited_copy(message: Message) -> Message:
    """The message as a copy, outside of the coverage of where it goes; a copy of a copy is one of the same original."""
    original = message.metadata.get("carried_from", message.id)
    metadata = {**message.metadata, "inherited": True}
    return replace(message, id=None, metadata=metadata if original is None else {**metadata, "carried_from": original})


ROLLOVER_KINDS = ("handover", "resume")
ViewRecord = Callable[[LogRecord], Message | None]
CountMessage = Callable[[Message], CountedMessage]


def check_rollover(db: Database, session: Session, ending: GenerationEnd) -> None:
    """Raises `StaleView` or `UsageError` where this generation may not end so now."""
    last = last_indexed(db, session.key)
    if session.generation != ending.generation or (0 if last is None else last.seq) != ending.seq:
        raise StaleView
    if db.value("SELECT 1 FROM turns WHERE session = ? AND state = 'running'", (session.key,)):
        raise UsageError(
            f"A message in {session.key!r} is still being answered. Nothing was changed; try again after the answer."
        )


def last_message_of_generation(db: Database, session: Session, generation: int) -> int:
    """The id of the last message of an earlier generation. Raises `UsageError` where there is none."""
    last: int | None = db.value(
        "SELECT id FROM messages WHERE session = ? AND generation = ? ORDER BY seq DESC LIMIT 1",
        (session.key, generation),
    )
    if last is None or generation >= session.generation:
        raise UsageError(
            f"{session.key!r} has no earlier conversation {generation}. Nothing was changed; "
            f"`assistant sessions show {session.key}` lists them."
        )
    return last


def begin_next_generation(
    db: Database,
    log: LogFiles,
    views: Views,
    record: LogRecord,
    to_view_message: ViewRecord,
    count_message: CountMessage,
) -> None:
    """Inside the transaction that indexes the record, before it is shown. Repeating it changes nothing."""
    session = Session(record.session, record.generation, record.scope)
    end_previous_generation(db, record)
    if record.kind != "resume" or not record.refs:
        return
    resumed = find_message_row(db, record.refs[0])
    row = session_rows.find_session_row(db, session.key)
    if resumed is None or resumed["session"] != session.key or row is None or row["resumed"] is not None:
        return
    previous = Session(session.key, resumed["generation"], session.scope)
    messages = last_view_of_generation(db, log, previous, to_view_message, count_message)
    copies = [replace(message, message=as_inherited_copy(message.message)) for message in messages]
    session_rows.update_session(db, session, resumed=resumed["generation"])
    session_rows.add_to_totals(db, session, sum_sizes(views.insert_rows(session, 1, copies)))


def end_previous_generation(db: Database, record: LogRecord) -> None:
    """Inside a transaction: the generation before the record's is ended, and the record's begun. `sender` of the
    record is why."""
    previous = Session(record.session, record.generation - 1, record.scope)
    session_rows.insert_session(db, record.session, record.generation, record.scope, record.ts)
    db.execute(
        "UPDATE sessions SET from_seq = ?, prefix_rev = max(prefix_rev, (SELECT f.prefix_rev + 1 FROM sessions f"
        " WHERE f.key = sessions.key AND f.generation = ?)) WHERE key = ? AND generation = ?",
        (record.seq, previous.generation, record.session, record.generation),
    )
    db.execute(
        "UPDATE sessions SET ended_at = ?, end_reason = ?, lease_holder = NULL, lease_until = NULL"
        " WHERE key = ? AND generation = ? AND ended_at IS NULL",
        (record.ts, record.sender or "", *previous.row_key),
    )
    db.execute(
        "UPDATE resets SET state = 'done', ended_at = ?, note = '', retry_at = NULL WHERE session = ?"
        " AND generation = ? AND state <> 'done'",
        (record.ts, *previous.row_key),
    )
    first = db.value("SELECT from_seq FROM sessions WHERE key = ? AND generation = ?", previous.row_key)
    if first is not None and first < record.seq:
        queue_extraction(db, previous, (first, record.seq - 1), "reset", record.ts)
        mark_extracted(db, *previous.row_key, 0, record.ts)


def last_view_of_generation(
    db: Database, log: LogFiles, generation: Session, to_view_message: ViewRecord, count_message: CountMessage
) -> list[CountedMessage]:
    """What a generation showed last: what compactions had put in front, which is kept, then its messages again from the
    log, but for those undone."""
    rows = db.rows(f"SELECT h.*{FROM_VIEW} AND NOT ({IS_MESSAGE_ROW}) ORDER BY h.position", view_parameters(generation))
    prefix = [CountedMessage(message_of_view_row(row), row["tokens"]) for row in rows]
    spans = db.read_all(
        span_of_row,
        "SELECT m.byte_start, m.byte_end FROM messages m WHERE m.session = ? AND m.seq >= ? AND m.generation = ?"
        f" AND {BELONGS_IN_VIEW} ORDER BY m.seq",
        (generation.key, first_uncovered_seq(db, generation), generation.generation),
    )
    messages = [to_view_message(log.read(generation.key, span)) for span in spans]
    return [*prefix, *(count_message(message) for message in messages if message is not None)]
