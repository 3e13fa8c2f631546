"""The index of the message log, one row per record with its byte range; lookup of edits and deletions by message; and
reading the log from a position, for extraction during sleep.

The index follows the log and can be rebuilt from it alone. Full-text search has its own database, search.db, which
follows this index.
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

# The newest edit of a message that was already read; a message not read yet is read with its new text.
_IS_LATE_EDIT = (
    "m.kind = 'edit' AND EXISTS (SELECT 1 FROM changes c JOIN messages o ON o.id = c.message_id"
    " WHERE c.record_id = m.id AND c.state = 'logged' AND (o.seq <= ? OR o.generation < m.generation)"
    " AND o.hidden_by IS NULL AND o.unlearned = 0"
    " AND NOT EXISTS"
    " (SELECT 1 FROM changes n WHERE n.message_id = c.message_id AND n.state = 'logged' AND n.id > c.id))"
)


def span_of_row(row: Row) -> LogByteRange:
    """Return where the log has the record of a row of `messages`."""
    return LogByteRange(row["byte_start"], row["byte_end"])


def first_spans(spans: Sequence[LogByteRange], most: int) -> list[LogByteRange]:
    """Return the first spans that total at most `most` bytes; at least one."""
    first: list[LogByteRange] = []
    for span in spans:
        most -= span.end - span.start
        if most < 0 and first:
            break
        first.append(span)
    return first


def insert_records(db: Database, records: Sequence[LogRecord], tokens: Sequence[int]) -> None:
    """Index logged records; `tokens` as counted for the view, in the same order."""
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
    """Return the ids a record hides: all that an undo names, and of those a deletion names the ones no turn had
    taken."""
    if record.kind != "delete":
        return record.refs if record.kind == "undo" else ()
    is_untaken = "SELECT 1 FROM messages WHERE id = ? AND turn IS NULL"
    return tuple(message_id for message_id in record.refs if db.value(is_untaken, (message_id,)))


def hide_messages(db: Database, undo: LogRecord) -> None:
    """Mark the withdrawn messages as hidden by this record; already hidden ones are unchanged. Withdraws pending
    approvals with the turn that asked for them."""
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
    """Return the last indexed record of a session."""
    return db.row("SELECT * FROM messages WHERE session = ? ORDER BY seq DESC LIMIT 1", (session,))


def find_message_row(db: Database, message_id: int) -> Row | None:
    return db.row("SELECT * FROM messages WHERE id = ?", (message_id,))


def find_spans(db: Database, message_ids: Sequence[int]) -> dict[int, tuple[str, LogByteRange]]:
    """Return session and byte range of those messages that are indexed."""
    # As one row: each row read lets other threads take the interpreter, and a view has thousands.
    found = db.value(
        "SELECT json_group_array(json_array(id, session, byte_start, byte_end)) FROM messages"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps([*message_ids]),),
    )
    return {id_: (session, LogByteRange(start, end)) for id_, session, start, end in json.loads(found)}


def is_indexed(db: Database, message_id: int) -> bool:
    return db.value("SELECT 1 FROM messages WHERE id = ?", (message_id,)) is not None


def largest_message_id(db: Database) -> int:
    """Return the largest message id assigned to an accepted, logged or outgoing message."""
    largest = db.value(
        "SELECT max(coalesce((SELECT max(id) FROM messages), 0), coalesce((SELECT max(message_id) FROM inbox), 0),"
        " coalesce((SELECT max(message_id) FROM outbox WHERE state <> 'sent'), 0),"
        " coalesce((SELECT max(record_id) FROM changes), 0))"
    )
    return int(largest)


def list_logged_changes(db: Database, message_ids: Sequence[int]) -> list[Row]:
    """Return edits and deletions of these messages that came after a turn had taken them, oldest first."""
    return db.rows(
        "SELECT * FROM changes WHERE message_id IN (SELECT value FROM json_each(?)) AND state = 'logged' ORDER BY id",
        (json.dumps([*message_ids]),),
    )


def current_contents(db: Database, log: LogFiles, message_ids: Sequence[int]) -> dict[int, str]:
    """Return the current texts of those messages that were changed; "" if deleted."""
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
        """As the port says. What was deleted is skipped."""
        # A running turn is not complete yet; its few messages are found by their turn.
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
        # Deleted text must not be learned, and an edited message is read with its current text.
        return [
            replace(record, content=current[record.id], media=record.media if current[record.id] else ())
            if record.id in current
            else _as_said(record)
            for record in records
        ]


def _as_said(record: LogRecord) -> LogRecord:
    """Return an edit as its message, at the time of the edit; `refs` distinguishes it from the original. Other records
    are returned unchanged."""
    if record.kind != "edit":
        return record
    return replace(record, kind="message", role="user", id=record.refs[0])
