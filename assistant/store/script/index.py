"""The permanent index of the message log, a row a record with its place; and edits and deletions looked up by the
messages that they are about.

What always holds: the index follows the log and can be made again from it alone. Full-text search has its own
database, search.db, which follows this index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Row

from assistant.core.messages import LogByteRange
from assistant.core.records import LogRecord
from assistant.store.database import Database
from assistant.store.encoding import format_time
from assistant.store.log.reader import LogFiles

_IDS_A_QUERY = 500

_INSERT_RECORD = (
    "INSERT INTO messages (id, session, generation, scope, seq, kind, role, tool_call_id, turn, ts, byte_start,"
    " byte_end, tokens, commitment) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class IndexedRecord:
    """The last record of a session that the index knows."""

    id: int
    seq: int
    start: int
    end: int


def insert_records(db: Database, records: Sequence[LogRecord], tokens: Sequence[int]) -> None:
    """Index records that the log has; `tokens` as counted for the view, in the same order."""
    db.execute_many(
        _INSERT_RECORD,
        [
            (
                record.id,
                record.session,
                record.generation,
                record.scope,
                record.seq,
                record.kind,
                record.role,
                record.tool_call_id,
                record.turn,
                format_time(record.ts),
                record.span.start,
                record.span.end,
                count,
                record.commit,
            )
            for record, count in zip(records, tokens, strict=True)
        ],
    )


def withdrawn_ids(db: Database, record: LogRecord) -> tuple[int, ...]:
    """What a record takes out of sight: all that an undo names, and of what a deletion names what no turn had taken."""
    if record.kind != "delete":
        return record.refs if record.kind == "undo" else ()
    untaken = (db.row("SELECT 1 FROM messages WHERE id = ? AND turn IS NULL", (one,)) for one in record.refs)
    return tuple(one for one, found in zip(record.refs, untaken, strict=True) if found is not None)


def hide_messages(db: Database, undo: LogRecord) -> None:
    """Mark what is withdrawn as hidden by this record; what an earlier one hid stays as it is."""
    db.execute_many(
        "UPDATE messages SET hidden_by = ? WHERE id = ? AND session = ? AND hidden_by IS NULL",
        [(undo.id, message_id, undo.session) for message_id in undo.refs],
    )


def clear_index(db: Database) -> None:
    db.execute("DELETE FROM messages")


def last_indexed(db: Database, session: str) -> IndexedRecord | None:
    row = db.row(
        "SELECT id, seq, byte_start, byte_end FROM messages WHERE session = ? ORDER BY seq DESC LIMIT 1", (session,)
    )
    return None if row is None else IndexedRecord(row["id"], row["seq"], row["byte_start"], row["byte_end"])


def find_message_row(db: Database, message_id: int) -> Row | None:
    return db.row("SELECT * FROM messages WHERE id = ?", (message_id,))


def find_spans(db: Database, message_ids: Sequence[int]) -> dict[int, tuple[str, LogByteRange]]:
    """Session and byte range of those messages that are indexed."""
    found: dict[int, tuple[str, LogByteRange]] = {}
    for first in range(0, len(message_ids), _IDS_A_QUERY):
        some = message_ids[first : first + _IDS_A_QUERY]
        marks = ", ".join("?" * len(some))
        query = f"SELECT id, session, byte_start, byte_end FROM messages WHERE id IN ({marks})"
        for row in db.rows(query, tuple(some)):
            found[row["id"]] = (row["session"], LogByteRange(row["byte_start"], row["byte_end"]))
    return found


def is_indexed(db: Database, message_id: int) -> bool:
    return db.row("SELECT 1 FROM messages WHERE id = ?", (message_id,)) is not None


def largest_message_id(db: Database) -> int:
    """The largest message id that was given to an accepted or logged message, or to what goes out and is not logged."""
    row = db.row(
        "SELECT max(coalesce((SELECT max(id) FROM messages), 0), coalesce((SELECT max(message_id) FROM inbox), 0),"
        " coalesce((SELECT max(message_id) FROM outbox WHERE state <> 'sent'), 0),"
        " coalesce((SELECT max(record_id) FROM changes), 0))"
    )
    return int(row[0]) if row else 0


def list_logged_changes(db: Database, message_ids: Sequence[int]) -> list[Row]:
    """What was changed of these messages after a turn had taken them, oldest first."""
    marks = ", ".join("?" * len(message_ids))
    return db.rows(
        f"SELECT * FROM changes WHERE message_id IN ({marks}) AND state = 'logged' ORDER BY id", tuple(message_ids)
    )


def current_contents(db: Database, log: LogFiles, session: str, message_ids: Sequence[int]) -> dict[int, str]:
    """Of those messages that were changed since they were said, the words that hold: "" where it was deleted."""
    hold: dict[int, str] = {}
    for row in list_logged_changes(db, message_ids):
        found = find_spans(db, [row["record_id"]]).get(row["record_id"])
        if row["kind"] == "delete" or found is None:
            hold[row["message_id"]] = ""
        else:
            hold[row["message_id"]] = log.read(session, found[1]).content
    return hold
