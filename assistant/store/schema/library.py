"""The lists of migrations, which are sqlite-utils', and how what is missing in a database is applied.

The library applies them through its classes of databases and tables, which take longer to import than all that a new
data folder needs otherwise. Its record of what was applied is kept as it is, so that its own tools can read it.

A new database runs no migrations where there is a file of what they make together (`complete/`, written by `make
docs`): SQLite reads the whole schema again for each column that is added or dropped, which is 30 ms of a first start.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from assistant.core.imports import deferred_reexports

with deferred_reexports("sqlite_utils"):
    from sqlite_utils import Migrations

__all__ = [
    "MigratedDatabase",
    "Migrations",
    "apply_migrations",
    "columns_when_new",
    "migration_names",
    "new_database",
    "run_statements",
]

_SCHEMAS = Path(__file__).parent
_APPLIED = Migrations.migrations_table
# As the library makes them.
_RECORD = (
    f"""CREATE TABLE IF NOT EXISTS "{_APPLIED}" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
)""",
    f"""CREATE UNIQUE INDEX IF NOT EXISTS "idx_{_APPLIED}_migration_set_name"
    ON "{_APPLIED}" ("migration_set", "name")""",
)


class MigratedDatabase(Protocol):
    """What a migration is given: a connection within a transaction, or a database of sqlite-utils."""

    def execute(self, sql: str, /) -> sqlite3.Cursor: ...


def migration_names(migrations: Migrations) -> list[str]:
    """Return the names of all migrations of a set, in order."""
    return [migration.name for migration in migrations._migrations]


def run_statements(db: MigratedDatabase, file: str) -> None:
    """Run a SQL file of this folder within the caller's transaction, which `executescript` would commit."""
    for statement in (_SCHEMAS / file).read_text(encoding="utf-8").split(";\n"):
        db.execute(statement)


def apply_migrations(
    connection: sqlite3.Connection, migrations: Migrations, applied: Collection[str], now: datetime
) -> None:
    """Apply those that are not among `applied`, and record them, within the caller's transaction."""
    for statement in _RECORD:
        connection.execute(statement)
    # A set of one migration has none.
    complete = f"complete/{migrations.name}.sql"
    is_complete = not applied and (_SCHEMAS / complete).exists()
    if is_complete:
        run_statements(connection, complete)
    for migration in migrations._migrations:
        if migration.name not in applied:
            if not is_complete:
                migration.fn(connection)  # type: ignore[arg-type]  # ours only execute statements
            connection.execute(
                f"INSERT INTO {_APPLIED} (migration_set, name, applied_at) VALUES (?, ?, ?)",
                (migrations.name, migration.name, str(now)),
            )


# The versions of the file format for writing and for reading: 2 is with a write-ahead log, which a database in memory
# cannot have (https://www.sqlite.org/fileformat2.html#file_format_version_numbers).
_FORMAT_VERSIONS, _WRITE_AHEAD = slice(18, 20), b"\2\2"


def new_database(migrations: Migrations, now: datetime, user_version: int) -> bytes:
    """Return the file of a new database with a write-ahead log, to which all migrations are applied."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("BEGIN")
        apply_migrations(connection, migrations, (), now)
        connection.execute(f"PRAGMA user_version = {user_version}")
        connection.execute("COMMIT")
        content = bytearray(connection.serialize())
    content[_FORMAT_VERSIONS] = _WRITE_AHEAD
    return bytes(content)


def columns_when_new(migrations: Migrations) -> dict[str, set[str]]:
    """Return the tables of a new database, without SQLite's and the library's own, and the columns of each."""
    with closing(sqlite3.connect(":memory:")) as connection:
        apply_migrations(connection, migrations, (), datetime.now(UTC))
        columns: dict[str, set[str]] = {}
        for table, column in connection.execute(
            "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'"
        ):
            columns.setdefault(table, set()).add(column)
    return {table: found for table, found in columns.items() if not table.startswith(("sqlite_", "_sqlite_"))}
