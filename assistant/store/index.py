"""The permanent index of the master log: a row a record with its place.

What always holds: the index follows the log and can be made again from it alone. What was said is found by its words
through search.db, which follows this index in turn (`search_source`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Row

from assistant.core.messages import LogByteRange
from assistant.core.records import LogRecord
from assistant.store.database import Database
from assistant.store.text import stamp

_IDS_A_QUERY = 500

_INSERT = (
    "INSERT INTO messages (id, session, generation, scope, seq, kind, role, tool_call_id, turn, ts, byte_start,"
    " byte_end, tokens, commitment) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class Indexed:
    """The last record of a session that the index knows."""

    id: int
    seq: int
    start: int
    end: int


def insert(db: Database, records: Sequence[LogRecord], tokens: Sequence[int]) -> None:
    """Index records that the log has; `tokens` as counted for the view, in the same order."""
    db.execute_many(
        _INSERT,
        [
            (
                record.id, record.session, record.generation, record.scope, record.seq, record.kind, record.role,
                record.tool_call_id, record.turn, stamp(record.ts), record.span.start, record.span.end, count,
                record.commit,
            )
            for record, count in zip(records, tokens, strict=True)
        ],
    )  # fmt: skip


def withdrawn(db: Database, record: LogRecord) -> tuple[int, ...]:
    """What a record takes out of sight: all that an undo names, and of what a deletion names what no turn had taken."""
    if record.kind != "delete":
        return record.refs if record.kind == "undo" else ()
    untaken = (db.row("SELECT 1 FROM messages WHERE id = ? AND turn IS NULL", (one,)) for one in record.refs)
    return tuple(one for one, found in zip(record.refs, untaken, strict=True) if found is not None)


def hide(db: Database, undo: LogRecord) -> None:
    """Mark what is withdrawn as hidden by this record; what an earlier one hid stays as it is."""
    db.execute_many(
        "UPDATE messages SET hidden_by = ? WHERE id = ? AND session = ? AND hidden_by IS NULL",
        [(undo.id, message_id, undo.session) for message_id in undo.refs],
    )


def clear(db: Database) -> None:
    db.execute("DELETE FROM messages")


def last(db: Database, session: str) -> Indexed | None:
    row = db.row(
        "SELECT id, seq, byte_start, byte_end FROM messages WHERE session = ? ORDER BY seq DESC LIMIT 1", (session,)
    )
    return None if row is None else Indexed(row["id"], row["seq"], row["byte_start"], row["byte_end"])


def find(db: Database, message_id: int) -> Row | None:
    return db.row("SELECT * FROM messages WHERE id = ?", (message_id,))


def spans(db: Database, message_ids: Sequence[int]) -> dict[int, tuple[str, LogByteRange]]:
    """Session and byte range of those messages that are indexed."""
    found: dict[int, tuple[str, LogByteRange]] = {}
    for first in range(0, len(message_ids), _IDS_A_QUERY):
        some = message_ids[first : first + _IDS_A_QUERY]
        marks = ", ".join("?" * len(some))
        query = f"SELECT id, session, byte_start, byte_end FROM messages WHERE id IN ({marks})"
        for row in db.rows(query, tuple(some)):
            found[row["id"]] = (row["session"], LogByteRange(row["byte_start"], row["byte_end"]))
    return found


def has(db: Database, message_id: int) -> bool:
    return db.row("SELECT 1 FROM messages WHERE id = ?", (message_id,)) is not None


def largest_id(db: Database) -> int:
    """The largest message id that was given to an accepted or logged message, or to what goes out and is not logged."""
    row = db.row(
        "SELECT max(coalesce((SELECT max(id) FROM messages), 0), coalesce((SELECT max(message_id) FROM inbox), 0),"
        " coalesce((SELECT max(message_id) FROM outbox WHERE state <> 'sent'), 0),"
        " coalesce((SELECT max(record_id) FROM changes), 0))"
    )
    return int(row[0]) if row else 0
