"""What was noted, for whoever indexes it: `search_ports.Spoke` over the journal.

Summaries of conversations are left out: what they tell of is found in the log.
"""

from __future__ import annotations

from collections.abc import Mapping

from assistant.search.index_values import SourceText
from assistant.store.database import Database
from assistant.store.encoding import parse_time

ENTRY = "entry"
"""The role of every entry in the index."""

_STREAM = "journal"


class JournalWords:
    def __init__(self, db: Database) -> None:
        """`db` (character.db) is this object's own."""
        self._db = db

    def behind(self, read_to: Mapping[str, int]) -> dict[str, int]:
        row = self._db.row("SELECT max(id) AS id FROM journal")
        last = int(row["id"] or 0) if row else 0
        return {_STREAM: last} if last > read_to.get(_STREAM, 0) else {}

    def after(self, stream: str, seq: int, *, limit: int) -> list[SourceText]:
        rows = self._db.rows(
            "SELECT id, scope, source_type, content, timestamp FROM journal WHERE id > ? ORDER BY id LIMIT ?",
            (seq, limit),
        )
        return [
            SourceText(
                row["id"], "", row["id"], row["scope"], ENTRY, "", parse_time(row["timestamp"]),
                "" if row["source_type"] == "context_synthesis" else row["content"],
            )
            for row in rows
        ]  # fmt: skip

    def close(self) -> None:
        self._db.close()
