"""Exports what was said in a data folder as plain JSON, and imports it into a new one, for `assistant export` and
`assistant import`.

- Of erased messages an export only says that they existed. Everything else is included, with ids and order, so that
  what was learned still names its sources (I6).
- An export is only imported into a data folder without messages. The log is written first, as always (I1); index and
  views are built from it, as after a crash.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from assistant.core.errors import UsageError
from assistant.core.records import LogRecord
from assistant.core.sessions import session_scope
from assistant.store.database import Database
from assistant.store.log.format import record_from_json, record_to_json
from assistant.store.log.writer import MessageLog
from assistant.store.script.append import Appender
from assistant.store.script.sessions import sort_parents_first

# In the order in which they refer to one another.
_CHARACTER_TABLES = (
    *("journal", "replacements", "consolidated_entry_ids", "entity_profiles", "todos", "pins", "readings"),
)
_SCRIPT_TABLES = ("jobs", "slots", "imports", "imported_conversations", "imported_ranges")
TABLES = (*_CHARACTER_TABLES, *_SCRIPT_TABLES)
_AT_ONCE = 500


class HomeTransfer:
    """Exports from, or imports to, one open data folder."""

    def __init__(self, script: Database, character: Database, log: MessageLog, appender: Appender) -> None:
        self._script = script
        self._character = character
        self._log = log
        self._appender = appender

    def sessions(self) -> list[str]:
        """Return the sessions with messages, each branch after its parent."""
        return sort_parents_first([row["key"] for row in self._script.rows("SELECT DISTINCT key FROM sessions")])

    def records(self, session: str) -> Iterator[LogRecord]:
        """Yield all records in order."""
        return self._log.scan(session) if self._log.size(session) else iter(())

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of one of `TABLES` by column name, ordered by their key."""
        return (dict(row) for row in self._database(table).iterate(f"SELECT * FROM {table} ORDER BY 1, 2"))

    def parents_first(self, sessions: Collection[str]) -> list[str]:
        return sort_parents_first(sessions)

    def to_json(self, record: LogRecord) -> dict[str, Any]:
        return record_to_json(record)

    def require_empty(self) -> None:
        """Raises `UsageError` if there are messages, or learned entries."""
        if self.sessions() or any(True for table in TABLES for _ in self.rows(table)):
            raise UsageError("There is something in your data folder already. Nothing was imported.")

    def add_records(self, session: str, raw: Sequence[Mapping[str, Any]], now: datetime) -> None:
        """Add the records of a session that has none. Raises `UsageError` if one is malformed, with nothing written."""
        records = [_record(one, session) for one in raw]
        for start in range(0, len(records), _AT_ONCE):
            self._log.append(records[start : start + _AT_ONCE])
        self._appender.catch_up_index(session, now, force=True)

    def add_rows(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows. Raises `UsageError` if one does not fit this table."""
        db = self._database(table)
        columns = db.column_names(table)
        if any(not columns.issuperset(row) or not row for row in rows):
            raise UsageError(f"The rows of {table} are not as this version writes them. Nothing of them was imported.")
        # Rows of one table may refer to later ones.
        with db.write(references=False):
            for row in rows:
                db.insert_if_new(table, **row)

    def _database(self, table: str) -> Database:
        if table not in TABLES:
            raise UsageError(f"There is no table {table!r}. Nothing of it was imported.")
        return self._script if table in _SCRIPT_TABLES else self._character


def _record(raw: Mapping[str, Any], session: str) -> LogRecord:
    try:
        record = record_from_json(raw)
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"A record of {session} is malformed. Nothing of it was imported.") from None
    if record.session != session or record.scope != session_scope(session):
        raise UsageError(f"A record of {session} is of another conversation. Nothing of it was imported.")
    return record
