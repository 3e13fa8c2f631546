"""Generations of sessions: branches, starting the next generation, resets, and deleting rows of ended ones.

Invariants:
- The first record makes the change: of kind `branch` in a branch, `handover` or `resume` in a later generation. The
  transaction that adds it to the view also makes the copies, ends the previous generation and starts new counters, both
  in the original call and when start-up finds only the record. Messages of an ended generation that are not extracted
  yet still wait for extraction (F28). Until that record is in the log, the old generation is current; afterwards the
  new one.
- `prefix_rev` only grows, so that a plan made on the old view is never committed to the new one.
- A branch has the scope of its parent, and only the owner's conversations have branches. Earlier messages stay in the
  parent's log; the branch's view has copies.
- An ended generation keeps the prefix of its view, so that it can be resumed; its messages are in the log, and their
  rows are deleted in small steps, outside of turns.
- A reset becomes `done` only in the transaction that ends its generation; any other reset can be continued.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from operator import attrgetter

from assistant.context.structure import block_starts
from assistant.core.errors import StaleView, UsageError
from assistant.core.messages import Message
from assistant.core.records import ContextView, LogRecord
from assistant.core.sessions import (
    BRANCH_PREFIX,
    Generation,
    GenerationActivity,
    GenerationEnd,
    SessionReset,
    session_role,
)
from assistant.store.database import Database, DatabaseStore
from assistant.store.log.reader import LogFiles
from assistant.store.rows import class_row, parse_time
from assistant.store.script.checkpoints import BELONGS_IN_VIEW, first_uncovered_seq
from assistant.store.script.index import find_message_row, last_indexed, span_of_row
from assistant.store.script.sessions import (
    Session,
    add_to_totals,
    count_messages,
    find_session,
    find_session_row,
    insert_session,
    require_session,
    session_of_row,
    sum_view_sizes,
    update_session,
)
from assistant.store.script.undo import discard_undo, list_undoable_checkpoint_rows
from assistant.store.script.view import (
    FROM_VIEW,
    IS_MESSAGE_ROW,
    CountedMessage,
    Views,
    message_of_view_row,
    view_parameters,
)

_ROWS_PER_CLEARING = 500
_RECORDS_PER_QUERY = 500
# Of a generation `s`: its last record, and the time of its first or last message, searched from that end.
_LAST_SEQ = (
    "coalesce((SELECT n.from_seq - 1 FROM sessions n WHERE n.key = s.key AND n.generation = s.generation + 1),"
    " (SELECT max(l.seq) FROM messages l WHERE l.session = s.key))"
)
_MESSAGE_TIME = (
    "(SELECT m.ts FROM messages m WHERE m.session = s.key AND m.generation = s.generation AND m.kind = 'message'"
    f" AND m.hidden_by IS NULL AND m.seq >= s.from_seq AND m.seq <= {_LAST_SEQ} ORDER BY m.seq {{}} LIMIT 1)"
)


def plan_branch(db: Database, views: Views, key: str, message_id: int) -> tuple[Session, str]:
    """Return the next branch, and the text of its first record. Raises `UsageError` if the conversation cannot branch
    at this message."""
    parent = require_session(db, key)
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
    """Return the first message, starting at `message_id`, after which no group of messages is split. Raises
    `UsageError`."""
    place = next((n for n, message in enumerate(view.messages) if message.id == message_id), None)
    if place is None:
        raise UsageError(
            f"Message #{message_id} is not in what the model currently sees. Nothing was changed; choose one that is."
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
    """Within the transaction of the branch's first record: copy what the parent's view shows up to the message; nothing
    if the parent no longer shows it."""
    parent = find_message_row(db, record.refs[0]) if record.refs else None
    session = Session(record.session, record.generation, record.scope)
    insert_session(db, session.key, session.generation, session.scope, record.ts)
    if parent is None or parent["scope"] != record.scope or record.seq != 1:
        return
    update_session(db, session, parent_session=parent["session"], parent_message_id=parent["id"])
    view = views.read(parent["session"])
    last = next((place for place, message in enumerate(view.messages) if message.id == parent["id"]), -1)
    copies = [
        CountedMessage(as_inherited_copy(message), tokens)
        for message, (tokens, _, _) in zip(view.messages[: last + 1], view.sizes, strict=False)
    ]
    add_to_totals(db, session, sum_view_sizes(views.insert_rows(session, 1, copies)))


def as_inherited_copy(message: Message) -> Message:
    """Return the message as a copy, which does not count for the coverage of its new session; a copy of a copy refers
    to the original."""
    original = message.metadata.get("carried_from", message.id)
    metadata = {**message.metadata, "inherited": True}
    return replace(message, id=None, metadata=metadata if original is None else {**metadata, "carried_from": original})


ROLLOVER_KINDS = ("handover", "resume")
ViewRecord = Callable[[LogRecord], CountedMessage | None]


def check_rollover(db: Database, session: Session, ending: GenerationEnd) -> None:
    """Raises `StaleView` or `UsageError` if this generation may not end now."""
    last = last_indexed(db, session.key)
    if session.generation != ending.generation or (0 if last is None else last["seq"]) != ending.seq:
        raise StaleView
    if db.value("SELECT 1 FROM turns WHERE session = ? AND state = 'running'", (session.key,)):
        raise UsageError(
            f"A message in {session.key!r} is still being answered. Nothing was changed; try again after the answer."
        )


def last_message_of_generation(db: Database, session: Session, generation: int) -> int:
    """Return the id of the last message of an earlier generation. Raises `UsageError` if there is none."""
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
    db: Database, log: LogFiles, views: Views, record: LogRecord, view_record: ViewRecord
) -> None:
    """Within the transaction that indexes the record, before it is shown; idempotent."""
    session = Session(record.session, record.generation, record.scope)
    end_previous_generation(db, record)
    if record.kind != "resume" or not record.refs:
        return
    resumed = find_message_row(db, record.refs[0])
    row = find_session_row(db, session.key)
    if resumed is None or resumed["session"] != session.key or row is None or row["resumed"] is not None:
        return
    previous = Session(session.key, resumed["generation"], session.scope)
    messages = last_view_of_generation(db, log, previous, view_record)
    copies = [replace(message, message=as_inherited_copy(message.message)) for message in messages]
    update_session(db, session, resumed=resumed["generation"])
    add_to_totals(db, session, sum_view_sizes(views.insert_rows(session, 1, copies)))


def end_previous_generation(db: Database, record: LogRecord) -> None:
    """Within a transaction: end the generation before the record's, and start the record's. The record's `sender` is
    the reason."""
    previous = Session(record.session, record.generation - 1, record.scope)
    insert_session(db, record.session, record.generation, record.scope, record.ts)
    db.execute(
        "UPDATE sessions SET from_seq = ?, prefix_rev = max(prefix_rev, (SELECT f.prefix_rev + 1 FROM sessions f"
        " WHERE f.key = sessions.key AND f.generation = ?)) WHERE key = ? AND generation = ?",
        (record.seq, previous.generation, record.session, record.generation),
    )
    db.execute(
        "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE key = ? AND generation = ? AND ended_at IS NULL",
        (record.ts, record.sender or "", *previous.row_key),
    )
    db.execute(
        "UPDATE resets SET state = 'done', ended_at = ?, note = '', retry_at = NULL WHERE session = ?"
        " AND generation = ? AND state <> 'done'",
        (record.ts, *previous.row_key),
    )


def last_view_of_generation(
    db: Database, log: LogFiles, generation: Session, view_record: ViewRecord
) -> list[CountedMessage]:
    """Return the last view of a generation: its stored prefix, then its messages from the log, except for undone
    ones."""
    rows = db.rows(f"SELECT h.*{FROM_VIEW} AND NOT ({IS_MESSAGE_ROW}) ORDER BY h.position", view_parameters(generation))
    prefix = [CountedMessage(message_of_view_row(row), row["tokens"]) for row in rows]
    return [*prefix, *list_uncovered_messages(db, log, generation, view_record)]


def list_uncovered_messages(
    db: Database, log: LogFiles, generation: Session, view_record: ViewRecord
) -> list[CountedMessage]:
    """Return the messages after the last checkpoint of a generation, from the log, as its view has them."""
    spans = db.read_all(
        span_of_row,
        "SELECT m.byte_start, m.byte_end FROM messages m WHERE m.session = ? AND m.seq >= ? AND m.generation = ?"
        f" AND {BELONGS_IN_VIEW} ORDER BY m.seq",
        (generation.key, first_uncovered_seq(db, generation), generation.generation),
    )
    messages = [view_record(log.read(generation.key, span)) for span in spans]
    return [message for message in messages if message is not None]


# ------------------------------------------------------------------------------------------ reading, clearing, resets


_read_generation = class_row(
    Generation,
    session="key",
    number="generation",
    messages="said",
    end_reason=lambda row: row["end_reason"] or "",
)


class StoredGenerations:
    """Reads current and earlier generations of sessions from script.db and the message log."""

    def __init__(self, db: Database, log: LogFiles) -> None:
        self._db = db
        self._log = log

    def list_generations(self, session: str, newest: int | None = None) -> list[Generation]:
        """Return all generations of a session, or only the newest, oldest first; empty if the session does not
        exist."""
        generations = self._db.read_all(
            _read_generation,
            f"SELECT s.*, r.pressure, {count_messages('s.from_seq - 1', _LAST_SEQ)} AS said,"
            f" {_MESSAGE_TIME.format('ASC')} AS first_at, {_MESSAGE_TIME.format('DESC')} AS last_at FROM sessions s"
            " LEFT JOIN resets r ON r.session = s.key AND r.generation = s.generation AND r.state = 'done'"
            " WHERE s.key = ? ORDER BY s.generation DESC LIMIT ?",
            (session, -1 if newest is None else newest),
        )
        return generations[::-1]

    def current_activity(self, session: str) -> GenerationActivity | None:
        """Return the current generation, or None if the session does not exist. Equally fast in long sessions."""
        current = find_session(self._db, session)
        if current is None:
            return None
        row = self._db.row(
            f"SELECT {_MESSAGE_TIME.format('ASC')} AS first, {_MESSAGE_TIME.format('DESC')} AS last FROM sessions s"
            " WHERE s.key = ? AND s.generation = ?",
            current.row_key,
        )
        first, last = (row["first"], row["last"]) if row is not None else (None, None)
        return GenerationActivity(session, current.generation, first and parse_time(first), last and parse_time(last))

    def last_seq(self, session: str) -> int:
        """Return the seq of the session's last record; 0 without records."""
        return self._db.value("SELECT max(seq) FROM messages WHERE session = ?", (session,)) or 0

    def records_of_generation(self, session: str, generation: int) -> Iterator[LogRecord]:
        """Return all logged records of a generation that are not undone, oldest first, in full."""
        seq = 0
        while rows := self._db.rows(
            "SELECT seq, byte_start, byte_end FROM messages WHERE session = ? AND generation = ? AND seq > ?"
            " AND hidden_by IS NULL ORDER BY seq LIMIT ?",
            (session, generation, seq, _RECORDS_PER_QUERY),
        ):
            for row in rows:
                yield self._log.read(session, span_of_row(row))
            seq = rows[-1]["seq"]


_SELECT_TO_CLEAR = "SELECT key, generation, scope, view_floor FROM sessions WHERE ended_at IS NOT NULL AND cleared = 0"


def has_rows_to_clear(db: Database) -> bool:
    """Return whether an ended generation still has rows in the view."""
    return db.value(f"{_SELECT_TO_CLEAR} LIMIT 1") is not None


def clear_ended_rows(db: Database) -> None:
    """Within a transaction: delete some rows an ended generation no longer shows: its messages, and rows replaced by
    compactions, which are not undone any more."""
    row = db.row(f"{_SELECT_TO_CLEAR} ORDER BY key, generation LIMIT 1")
    if row is None:
        return
    session = session_of_row(row)
    for checkpoint in list_undoable_checkpoint_rows(db, session)[:1]:
        discard_undo(db, session, checkpoint["checkpoint_num"])
    deleted = db.execute(
        "DELETE FROM conversation_history WHERE id IN (SELECT h.id FROM conversation_history h WHERE h.session = ?"
        f" AND h.generation = ? AND (h.position <= ? OR ({IS_MESSAGE_ROW})) LIMIT ?)",
        (*session.row_key, row["view_floor"], _ROWS_PER_CLEARING),
    )
    if deleted < _ROWS_PER_CLEARING:
        update_session(db, session, cleared=1)


_OF_GENERATION = "session = ? AND generation = ?"
_IS_UNDER_WAY = "state IN ('begun', 'waiting', 'archived')"
_read_reset = class_row(SessionReset)
_reset_columns = attrgetter("session", "generation", "scope", "reason", "resumes", "pressure", "begun_at")


class StoredResets(DatabaseStore):
    """Stores resets in progress and past ones, one per generation (script.db)."""

    def begin(self, reset: SessionReset) -> SessionReset:
        """Record that a reset of the generation is in progress. Replaces an earlier attempt, keeping its number of
        attempts."""
        with self._db.write() as db:
            db.execute(
                "INSERT INTO resets (session, generation, scope, reason, resumes, state, pressure, begun_at)"
                " VALUES (?, ?, ?, ?, ?, 'begun', ?, ?) ON CONFLICT (session, generation) DO UPDATE SET"
                " reason = excluded.reason, resumes = excluded.resumes, state = 'begun', pressure = excluded.pressure,"
                " attempts = CASE state WHEN 'withdrawn' THEN 0 ELSE attempts END, note = '', retry_at = NULL,"
                " begun_at = CASE state WHEN 'withdrawn' THEN excluded.begun_at ELSE begun_at END, ended_at = NULL"
                " WHERE state <> 'done'",
                _reset_columns(reset),
            )
        return self._get(reset.session, reset.generation)

    def mark_archived(self, session: str, generation: int) -> None:
        """Record that the generation is archived."""
        self._change(session, generation, "state = 'archived'")

    def postpone(self, session: str, generation: int, note: str, retry_at: datetime) -> SessionReset:
        """Record a failed attempt, to be retried."""
        changes = "state = 'waiting', note = ?, retry_at = ?, attempts = attempts + 1"
        self._change(session, generation, changes, note, retry_at)
        return self._get(session, generation)

    def withdraw(self, session: str, generation: int, now: datetime) -> bool:
        """Cancel a reset; return whether one was in progress."""
        return self._change(session, generation, "state = 'withdrawn', ended_at = ?, note = '', retry_at = NULL", now)

    def unfinished_resets(self) -> list[SessionReset]:
        """Return waiting and interrupted resets of current generations, oldest first."""
        current = "generation = (SELECT max(s.generation) FROM sessions s WHERE s.key = session)"
        sql = f"SELECT * FROM resets WHERE {_IS_UNDER_WAY} AND {current} ORDER BY begun_at, session"
        return self._db.read_all(_read_reset, sql)

    def find(self, session: str, generation: int) -> SessionReset | None:
        """Return the reset that ended a generation, or None."""
        return self._db.read_one(_read_reset, f"SELECT * FROM resets WHERE {_OF_GENERATION}", (session, generation))

    def _get(self, session: str, generation: int) -> SessionReset:
        return self._db.read_all(_read_reset, f"SELECT * FROM resets WHERE {_OF_GENERATION}", (session, generation))[0]

    def _change(self, session: str, generation: int, changes: str, *values: str | datetime) -> bool:
        where = f"{_OF_GENERATION} AND {_IS_UNDER_WAY}"
        with self._db.write() as db:
            return bool(db.execute(f"UPDATE resets SET {changes} WHERE {where}", (*values, session, generation)))
