"""What the search index reads: the messages of script.db and the message logs, and the entries of the journal. Both
implement the port for search sources.

A log record that cannot be read has no words here; `assistant verify` reports it. Journal entries that are summaries of
conversations are indexed without words: what they are about is found in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from sqlite3 import Row

from assistant.core.errors import CorruptStore
from assistant.core.messages import LogByteRange
from assistant.core.records import LogRecord
from assistant.search.index_values import SourceText
from assistant.store.database import Database
from assistant.store.log.reader import LogFiles
from assistant.store.rows import parse_time

_INDEXED_ENDS = 256 * 1024
_WITH_WORDS = ("message", "edit", "delete")


class LogSearchSource:
    def __init__(self, db: Database, files: LogFiles) -> None:
        """Both are this object's own."""
        self._db = db
        self._files = files

    def streams_behind(self, read_to: Mapping[str, int]) -> dict[str, int]:
        rows = self._db.rows("SELECT key, (SELECT max(seq) FROM messages WHERE session = key) AS seq FROM sessions")
        last = {row["key"]: row["seq"] or 0 for row in rows}
        return {session: seq for session, seq in last.items() if seq > read_to.get(session, 0)}

    def records_after(self, session: str, seq: int, *, limit: int) -> list[SourceText]:
        rows = self._db.rows(
            "SELECT id, seq, scope, kind, role, ts, byte_start, byte_end, hidden_by FROM messages"
            " WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?",
            (session, seq, limit),
        )
        return [self._spoken(session, row) for row in rows]

    def close(self) -> None:
        self._files.close()
        self._db.close()

    def _spoken(self, session: str, row: Row) -> SourceText:
        record = None if row["hidden_by"] else self._record(session, row)
        hidden: tuple[int, ...] = ()
        if row["kind"] in ("undo", "delete"):
            # These name what they hide; what an earlier one hid is hidden by that.
            rows = self._db.rows("SELECT id FROM messages WHERE session = ? AND hidden_by = ?", (session, row["id"]))
            hidden = tuple(hidden_row["id"] for hidden_row in rows)
        return SourceText(
            row["id"],
            session,
            row["seq"],
            row["scope"],
            row["role"],
            # A tool is nobody.
            (record.name or "") if record and record.role != "tool" else "",
            parse_time(row["ts"]),
            indexed_text(record) if record and row["kind"] in _WITH_WORDS else "",
            row["hidden_by"] is not None,
            hidden,
        )

    def _record(self, session: str, row: Row) -> LogRecord | None:
        try:
            record = self._files.read(session, LogByteRange(row["byte_start"], row["byte_end"]))
        except CorruptStore:
            return None
        return record if record.id == row["id"] else None


def indexed_text(record: LogRecord) -> str:
    """What a record is found by: its words, and the names of its media. Of a tool result over 512 KB the first and last
    256 KB (in characters); what people and the assistant said is indexed whole."""
    text = record.content
    if record.role == "tool" and len(text) > 2 * _INDEXED_ENDS:
        text = f"{text[:_INDEXED_ENDS]}\n{text[-_INDEXED_ENDS:]}"
    names = [media.name for media in record.media if media.name]
    return "\n".join([text, *names])


JOURNAL_ENTRY_ROLE = "entry"
"""The role of every entry in the index."""

_JOURNAL_STREAM = "journal"


class JournalSearchSource:
    def __init__(self, db: Database) -> None:
        """`db` (character.db) is this object's own."""
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

    def close(self) -> None:
        self._db.close()
