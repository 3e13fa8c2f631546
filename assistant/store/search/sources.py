"""What the search index reads: the messages of script.db and the message logs, and the entries of the journal. Both
classes implement the port for search sources.

A log record that cannot be read is indexed without text; `assistant verify` reports it. An edited message is found only
by its newest text: each edit replaces the text indexed before, and a deletion removes it. Journal entries that are
summaries of conversations are indexed without text, since the log has their content.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from sqlite3 import Row

from assistant.core.errors import CorruptStore
from assistant.core.messages import LOOKUP_TOOLS, LogByteRange
from assistant.core.records import LogRecord
from assistant.search.index_values import SourceText
from assistant.store.database import Database
from assistant.store.log.reader import LogFiles
from assistant.store.rows import parse_time

_INDEXED_ENDS = 256 * 1024
_CHANGES = ("edit", "delete")
_COLUMNS = "id, seq, scope, kind, role, ts, byte_start, byte_end, hidden_by"


class LogSearchSource:
    """Messages of all sessions, one stream each, of which the seq is the position."""

    def __init__(self, db: Database, files: LogFiles) -> None:
        """`db` and `files` are owned by this object."""
        self._db = db
        self._files = files

    def streams_behind(self, read_to: Mapping[str, int]) -> dict[str, int]:
        rows = self._db.rows("SELECT key, (SELECT max(seq) FROM messages WHERE session = key) AS seq FROM sessions")
        last = {row["key"]: row["seq"] or 0 for row in rows}
        return {session: seq for session, seq in last.items() if seq > read_to.get(session, 0)}

    def records_after(self, session: str, seq: int, *, limit: int) -> list[SourceText]:
        rows = self._db.rows(
            f"SELECT {_COLUMNS} FROM messages WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?",
            (session, seq, limit),
        )
        return [self._spoken(session, row) for row in rows]

    def has_until(self, session: str, seq: int, until: datetime) -> bool:
        sql = "SELECT 1 FROM messages WHERE session = ? AND seq > ? AND (ts < ? OR kind <> 'message') LIMIT 1"
        return self._db.row(sql, (session, seq, until)) is not None

    def close(self) -> None:
        self._files.close()
        self._db.close()

    def _spoken(self, session: str, row: Row) -> SourceText:
        record = None if row["hidden_by"] else self._record(session, row)
        if record is not None and row["kind"] in _CHANGES:
            return self._changed(session, row, record)
        hidden: tuple[int, ...] = ()
        if row["kind"] == "undo":
            # The row names the record it hides; records hidden by an earlier row stay hidden by that one.
            rows = self._db.rows("SELECT id FROM messages WHERE session = ? AND hidden_by = ?", (session, row["id"]))
            hidden = tuple(hidden_row["id"] for hidden_row in rows)
        text = indexed_text(record) if record and row["kind"] == "message" else ""
        return _source_text(session, row, row, record, text, hidden)

    def _changed(self, session: str, row: Row, change: LogRecord) -> SourceText:
        """Return an edit as the current text of its message, replacing all earlier text. Text replaced before the
        message was answered is in the log before the message and is not indexed."""
        sql = f"SELECT {_COLUMNS} FROM messages WHERE session = ? AND id = ? AND seq < ?"
        message_row = self._db.row(sql, (session, change.refs[0] if change.refs else 0, row["seq"]))
        if message_row is None:
            return _source_text(session, row, row, None, "")
        earlier = self._db.rows(
            "SELECT record_id FROM changes WHERE message_id = ? AND record_id < ?", (message_row["id"], row["id"])
        )
        message = self._record(session, message_row)
        text = ""
        if message is not None and row["kind"] == "edit" and not message_row["hidden_by"]:
            text = indexed_text(replace(message, content=change.content))
        takes_back = (message_row["id"], *(earlier_row["record_id"] for earlier_row in earlier))
        return _source_text(session, row, message_row, message, text, takes_back)

    def _record(self, session: str, row: Row) -> LogRecord | None:
        try:
            record = self._files.read(session, LogByteRange(row["byte_start"], row["byte_end"]))
        except CorruptStore:
            return None
        return record if record.id == row["id"] else None


def _source_text(
    session: str, row: Row, message_row: Row, message: LogRecord | None, text: str, takes_back: tuple[int, ...] = ()
) -> SourceText:
    """Return the searchable text of a log record (`row`) for a message, usually for itself."""
    # A tool has no speaker.
    speaker = (message.name or "") if message is not None and message.role != "tool" else ""
    said_at, hidden = parse_time(message_row["ts"]), row["hidden_by"] is not None
    return SourceText(
        row["id"], session, row["seq"], row["scope"], message_row["role"], speaker, said_at, text, hidden, takes_back
    )


def indexed_text(record: LogRecord) -> str:
    """Return the text by which a record is found: its content and the names of its media. Of a tool result over 512 KB
    the first and last 256 KB (in characters); messages of people and the assistant are indexed completely. Results of
    lookups have none: they would be found before the words that they repeat, the more the oftener these are asked for.
    """
    if record.role == "tool" and record.name in LOOKUP_TOOLS:
        return ""
    text = record.content
    if record.role == "tool" and len(text) > 2 * _INDEXED_ENDS:
        text = f"{text[:_INDEXED_ENDS]}\n{text[-_INDEXED_ENDS:]}"
    names = [media.name for media in record.media if media.name]
    return "\n".join([text, *names])


JOURNAL_ENTRY_ROLE = "entry"
"""The role of every entry in the index."""

_JOURNAL_STREAM = "journal"


class JournalSearchSource:
    """The journal, as one stream by entry id. Syntheses of conversations have no text here: their messages are
    found."""

    def __init__(self, db: Database) -> None:
        """`db` (character.db) is owned by this object."""
        self._db = db

    def streams_behind(self, read_to: Mapping[str, int]) -> dict[str, int]:
        last = self._db.value("SELECT max(id) FROM journal") or 0
        return {_JOURNAL_STREAM: last} if last > read_to.get(_JOURNAL_STREAM, 0) else {}

    def records_after(self, stream: str, seq: int, *, limit: int) -> list[SourceText]:
        rows = self._db.rows(
            "SELECT id, scope, source_type, content, timestamp FROM journal WHERE id > ? ORDER BY id LIMIT ?",
            (seq, limit),
        )
        return [
            SourceText(
                row["id"],
                "",
                row["id"],
                row["scope"],
                JOURNAL_ENTRY_ROLE,
                "",
                parse_time(row["timestamp"]),
                "" if row["source_type"] == "context_synthesis" else row["content"],
            )
            for row in rows
        ]

    def has_until(self, stream: str, seq: int, until: datetime) -> bool:
        return self._db.row("SELECT 1 FROM journal WHERE id > ? AND timestamp < ? LIMIT 1", (seq, until)) is not None

    def close(self) -> None:
        self._db.close()
