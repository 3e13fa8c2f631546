"""The permanent index of the message log, a row a record with its place; edits and deletions looked up by the
messages that they are about; and the log read with a cursor, as sleep does.

What always holds: the index follows the log and can be made again from it alone. Full-text search has its own
database, search.db, which follows this index.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from sqlite3 import Row

from assistant.core.messages import LogByteRange
from assistant.core.records import LogRecord
from assistant.store.database import Database
from assistant.store.log.reader import LogFiles

MOST_BYTES_AT_ONCE = 1 << 20
"""How much of the log is read at once on the loop, but for one record, however long."""

IS_READABLE = "m.kind = 'message' AND m.hidden_by IS NULL AND m.unlearned = 0"
"""Which messages `m` the journal reads."""

# The newest edit of a message that was read before: one that was not read yet says itself what it was edited to.
_IS_LATE_EDIT = (
    "m.kind = 'edit' AND EXISTS (SELECT 1 FROM changes c JOIN messages o ON o.id = c.message_id"
    " WHERE c.record_id = m.id AND c.state = 'logged' AND (o.seq <= ? OR o.generation < m.generation)"
    " AND o.hidden_by IS NULL AND o.unlearned = 0"
    " AND NOT EXISTS"
    " (SELECT 1 FROM changes n WHERE n.message_id = c.message_id AND n.state = 'logged' AND n.id > c.id))"
)


def span_of_row(row: Row) -> LogByteRange:
    """Where the log has the record of a row of `messages`."""
    return LogByteRange(row["byte_start"], row["byte_end"])


def first_spans(spans: Sequence[LogByteRange], most: int) -> list[LogByteRange]:
    """The first of them that have `most` bytes together; at least one."""
    first: list[LogByteRange] = []
    for span in spans:
        most -= span.end - span.start
        if most < 0 and first:
            break
        first.append(span)
    return first


def insert_records(db: Database, records: Sequence[LogRecord], tokens: Sequence[int]) -> None:
    """Index records that the log has; `tokens` as counted for the view, in the same order."""
    for record, count in zip(records, tokens, strict=True):
        db.insert_row(
            "messages",
            id=record.id,
            session=record.session,
            generation=record.generation,
            scope=record.scope,
            seq=record.seq,
            kind=record.kind,
            role=record.role,
            tool_call_id=record.tool_call_id,
            turn=record.turn,
            ts=record.ts,
            byte_start=record.span.start,
            byte_end=record.span.end,
            tokens=count,
            commitment=record.commit,
            external_id=record.external_id,
        )


def withdrawn_ids(db: Database, record: LogRecord) -> tuple[int, ...]:
    """What a record takes out of sight: all that an undo names, and of what a deletion names what no turn had taken."""
    if record.kind != "delete":
        return record.refs if record.kind == "undo" else ()
    is_untaken = "SELECT 1 FROM messages WHERE id = ? AND turn IS NULL"
    return tuple(message_id for message_id in record.refs if db.value(is_untaken, (message_id,)))


def hide_messages(db: Database, undo: LogRecord) -> None:
    """Mark what is withdrawn as hidden by this record; what an earlier one hid stays as it is. An effect that waits for
    the owner's word goes with the turn that asked for it."""
    db.execute_many(
        "UPDATE messages SET hidden_by = ? WHERE id = ? AND session = ? AND hidden_by IS NULL",
        [(undo.id, message_id, undo.session) for message_id in undo.refs],
    )
    db.execute(
        "UPDATE approvals SET state = 'declined', decided_at = ?1, ended_at = ?1 WHERE state = 'pending' AND turn IN"
        " (SELECT turn FROM messages WHERE hidden_by = ?2 AND session = ?3)",
        (undo.ts, undo.id, undo.session),
    )


def last_indexed(db: Database, session: str) -> Row | None:
    """The last record of a session that the index knows."""
    return db.row("SELECT * FROM messages WHERE session = ? ORDER BY seq DESC LIMIT 1", (session,))


def find_message_row(db: Database, message_id: int) -> Row | None:
    return db.row("SELECT * FROM messages WHERE id = ?", (message_id,))


def find_spans(db: Database, message_ids: Sequence[int]) -> dict[int, tuple[str, LogByteRange]]:
    """Session and byte range of those messages that are indexed."""
    rows = db.rows(
        "SELECT id, session, byte_start, byte_end FROM messages WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps([*message_ids]),),
    )
    return {row["id"]: (row["session"], span_of_row(row)) for row in rows}


def is_indexed(db: Database, message_id: int) -> bool:
    return db.value("SELECT 1 FROM messages WHERE id = ?", (message_id,)) is not None


def largest_message_id(db: Database) -> int:
    """The largest message id that was given to an accepted or logged message, or to what goes out and is not logged."""
    largest = db.value(
        "SELECT max(coalesce((SELECT max(id) FROM messages), 0), coalesce((SELECT max(message_id) FROM inbox), 0),"
        " coalesce((SELECT max(message_id) FROM outbox WHERE state <> 'sent'), 0),"
        " coalesce((SELECT max(record_id) FROM changes), 0))"
    )
    return int(largest)


def list_logged_changes(db: Database, message_ids: Sequence[int]) -> list[Row]:
    """What was changed of these messages after a turn had taken them, oldest first."""
    return db.rows(
        "SELECT * FROM changes WHERE message_id IN (SELECT value FROM json_each(?)) AND state = 'logged' ORDER BY id",
        (json.dumps([*message_ids]),),
    )


def current_contents(db: Database, log: LogFiles, message_ids: Sequence[int]) -> dict[int, str]:
    """Of those messages that were changed since they were said, their current words: "" where one was deleted."""
    contents: dict[int, str] = {}
    for row in list_logged_changes(db, message_ids):
        place = None if row["kind"] == "delete" else find_spans(db, [row["record_id"]]).get(row["record_id"])
        contents[row["message_id"]] = "" if place is None else log.read(*place).content
    return contents


class UnreadMessages:
    """Implements `LogReader` over the index of script.db and the message log."""

    def __init__(self, db: Database, log: LogFiles) -> None:
        self._db = db
        self._log = log

    def read_after(self, session: str, generation: int, seq: int, *, limit: int = 200) -> list[LogRecord]:
        # What a running turn has said so far is not its end; its few messages are found by their turn.
        end = self._db.value(
            "SELECT min(m.seq) FROM turns t CROSS JOIN messages m INDEXED BY messages_turn ON m.turn = t.id"
            " WHERE t.session = ? AND t.state = 'running' AND m.session = t.session",
            (session,),
        )
        spans = self._db.read_all(
            span_of_row,
            "SELECT m.byte_start, m.byte_end FROM messages m WHERE m.session = ? AND m.seq > ? AND m.generation = ?"
            f" AND ({IS_READABLE} OR {_IS_LATE_EDIT}) AND (? IS NULL OR m.seq < ?) ORDER BY m.seq LIMIT ?",
            (session, seq, generation, seq, end, end, limit),
        )
        records = [self._log.read(session, span) for span in first_spans(spans, MOST_BYTES_AT_ONCE)]
        current = current_contents(self._db, self._log, [record.id for record in records])
        # Words that somebody deleted must not be learned, and an edited message says what it says now.
        return [
            replace(record, content=current[record.id], media=record.media if current[record.id] else ())
            if record.id in current
            else _as_said(record)
            for record in records
        ]


def _as_said(record: LogRecord) -> LogRecord:
    """An edit as its message, said at the time of the edit; `refs` tells it from what was said once. Others as they
    are."""
    if record.kind != "edit":
        return record
    return replace(record, kind="message", role="user", id=record.refs[0])
