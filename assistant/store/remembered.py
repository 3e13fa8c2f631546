"""Rows that a process asks for again and again, read once for each change: several times in each turn it looks up which
session this is, what is pinned there, and when somebody slept last.

What is remembered of a table is forgotten when a writing statement names the table, when a transaction is rolled back,
and when another connection of this process commits to the file. What other processes write is not noticed: it is for
tables that only the process with the lock of the data folder writes, and for the outbox, which is read afresh every
half a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from sqlite3 import Row
from typing import Any

Parameters = tuple[Any, ...]

# Results kept of one table.
_MOST = 64
# By the identity of a file, what stands for the last commit to it.
_last_commits: dict[object, object] = {}


class RememberedRows:
    """Of one connection; to be used by one thread at a time."""

    def __init__(self, file: object, read: Callable[[str, Parameters], list[Row]]) -> None:
        """`file` identifies the database file; `read` reads all rows of a query."""
        self._file = file
        self._read = read
        self._by_table: dict[str, dict[tuple[str, Parameters], list[Row]]] = {}
        self._seen_commit: object = None

    def rows(self, table: str, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Return all rows of a query over `table` alone. Raises `StoreError`."""
        self.forget_if_changed_elsewhere()
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

    def note_commit(self) -> None:
        """What is remembered includes this connection's own commit; others forget."""
        self._seen_commit = _last_commits[self._file] = object()

    def forget_if_changed_elsewhere(self) -> None:
        """To be called at the beginning of a transaction, too: its commit hides an earlier one of somebody else."""
        if (last := _last_commits.get(self._file)) is not self._seen_commit:
            self._by_table.clear()
            self._seen_commit = last

    def clear(self) -> None:
        """Forget everything: what was read within a transaction that is rolled back was never there."""
        self._by_table.clear()
