"""Rows that a process asks for again and again, read once for each change: several times in each turn it looks up which
session this is, what is pinned there, and when somebody slept last.

What is remembered of a table is forgotten when a writing statement of this connection names the table; everything is
when a transaction is rolled back, and when another connection, of this process or another, has committed to the file.
"""

from __future__ import annotations

from collections.abc import Callable
from sqlite3 import Row
from typing import Any

Parameters = tuple[Any, ...]

# Results kept of one table.
_MOST = 64


class RememberedRows:
    """Of one connection; to be used by one thread at a time."""

    def __init__(self, read: Callable[[str, Parameters], list[Row]], changed_elsewhere: Callable[[], int]) -> None:
        """`read` reads all rows of a query; `changed_elsewhere` returns a number that differs once another connection
        has committed (SQLite's `data_version`)."""
        self._read = read
        self._changed_elsewhere = changed_elsewhere
        self._seen = -1
        self._by_table: dict[str, dict[tuple[str, Parameters], list[Row]]] = {}

    def rows(self, table: str, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Return all rows of a query over `table` alone. Raises `StoreError`."""
        if (seen := self._changed_elsewhere()) != self._seen:
            self._by_table.clear()
            self._seen = seen
        known = self._by_table.setdefault(table, {})
        rows = known.get((sql, parameters))
        if rows is None:
            if len(known) >= _MOST:
                known.clear()
            rows = known[sql, parameters] = self._read(sql, parameters)
        return rows

    def note_write(self, sql: str) -> None:
        """Forget each table that a writing statement names, even if it only reads it."""
        for table in [table for table in self._by_table if table in sql]:
            del self._by_table[table]

    def clear(self) -> None:
        """Forget everything: what was read within a transaction that is rolled back was never there."""
        self._by_table.clear()
