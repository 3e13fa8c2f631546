"""The permanent index of the master log: a row a record with its place, and the full text of what was said.

What always holds: the index follows the log and can be made again from it alone. The full-text table holds no words
of its own (contentless); what it was given for a record is `searchable(record)`, which must give the same text again
when an entry is to be taken out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Row

from assistant.messages import Span
from assistant.records import Record
from assistant.store.database import Database
from assistant.store.terms import index_text
from assistant.store.text import stamp

_IDS_A_QUERY = 500
_INDEXED_ENDS = 256 * 1024
KINDS_WITH_WORDS = ("message", "edit", "delete")

_MERGE_EVERY = 16
_PAGES_A_MESSAGE = 2

_INSERT = (
    "INSERT INTO messages (id, session, generation, scope, seq, kind, role, tool_call_id, turn, ts, byte_start,"
    " byte_end, tokens, commitment) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_TEXT = "INSERT INTO messages_fts (rowid, text) VALUES (?, ?)"


@dataclass(frozen=True, slots=True)
class Indexed:
    """The last record of a session that the index knows."""

    id: int
    seq: int
    start: int
    end: int


def searchable(record: Record) -> str:
    """What full text finds a record by: its words, the name it was said under, and the names of its media. Of a tool
    result over 512 KB the first and last 256 KB (in characters); what people and the assistant said is indexed
    whole."""
    text = record.content
    if record.role == "tool" and len(text) > 2 * _INDEXED_ENDS:
        text = f"{text[:_INDEXED_ENDS]}\n{text[-_INDEXED_ENDS:]}"
    names = [media.name for media in record.media if media.name]
    return index_text("\n".join([text, *names]), record.scope, record.name)


def insert(db: Database, records: Sequence[Record], tokens: Sequence[int]) -> None:
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
    db.execute_many(
        _INSERT_TEXT, [(record.id, searchable(record)) for record in records if record.kind in KINDS_WITH_WORDS]
    )


def merge(db: Database, messages: int) -> bool:
    """Merge full-text segments by a share that keeps pace with this many new messages; False when they are too few to
    bother. Left to itself, FTS5 merges rarely and much at once, and one turn would pay for a thousand."""
    if messages < _MERGE_EVERY:
        return False
    db.execute("INSERT INTO messages_fts (messages_fts, rank) VALUES ('merge', ?)", (messages * _PAGES_A_MESSAGE,))
    return True


def hide(db: Database, undo: Record) -> None:
    """Mark what an undo names as hidden by it; what an earlier one hid stays as it is."""
    db.execute_many(
        "UPDATE messages SET hidden_by = ? WHERE id = ? AND session = ? AND hidden_by IS NULL",
        [(undo.id, message_id, undo.session) for message_id in undo.refs],
    )


def clear(db: Database) -> None:
    db.execute("INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')")
    db.execute("DELETE FROM messages")


def last(db: Database, session: str) -> Indexed | None:
    row = db.row(
        "SELECT id, seq, byte_start, byte_end FROM messages WHERE session = ? ORDER BY seq DESC LIMIT 1", (session,)
    )
    return None if row is None else Indexed(row["id"], row["seq"], row["byte_start"], row["byte_end"])


def find(db: Database, message_id: int) -> Row | None:
    return db.row("SELECT * FROM messages WHERE id = ?", (message_id,))


def spans(db: Database, message_ids: Sequence[int]) -> dict[int, tuple[str, Span]]:
    """Session and byte range of those messages that are indexed."""
    found: dict[int, tuple[str, Span]] = {}
    for first in range(0, len(message_ids), _IDS_A_QUERY):
        some = message_ids[first : first + _IDS_A_QUERY]
        marks = ", ".join("?" * len(some))
        query = f"SELECT id, session, byte_start, byte_end FROM messages WHERE id IN ({marks})"
        for row in db.rows(query, tuple(some)):
            found[row["id"]] = (row["session"], Span(row["byte_start"], row["byte_end"]))
    return found


def has(db: Database, message_id: int) -> bool:
    return db.row("SELECT 1 FROM messages WHERE id = ?", (message_id,)) is not None


def largest_id(db: Database) -> int:
    """The largest message id that was given to an accepted or logged message."""
    row = db.row(
        "SELECT max(coalesce((SELECT max(id) FROM messages), 0), coalesce((SELECT max(message_id) FROM inbox), 0))"
    )
    return int(row[0]) if row else 0
