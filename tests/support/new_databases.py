"""New databases of this process are copied, not migrated: each set of migrations runs once, in memory, and what it
made is copied page by page into every file that has no table yet.

What always holds: a database that has any table is migrated as ever, and so is one whose migrations draw something at
random, and every database of a program that is started as people start it. Running them takes some 35 ms for a data
folder, and most tests make one. What is forked (`forked_command.py`) has what its server made.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from functools import cache

import sqlite_utils
from sqlite_utils import Migrations

from assistant.store.schema import migrations as schema

# Not `files_migrations`: each database of files has a token of its own.
_COPIED = (
    schema.script_migrations,
    schema.character_migrations,
    schema.memory_migrations,
    schema.search_migrations,
    schema.calendar_migrations,
)
_migrate: Callable[..., None] = Migrations.apply


def copy_new_databases() -> None:
    """From now on, in this process."""
    Migrations.apply = _apply  # type: ignore[method-assign]


def _apply(
    migrations: Migrations, db: sqlite_utils.Database, *, stop_before: str | Iterable[str] | None = None
) -> None:
    """Called within a transaction that nothing was written in."""
    connection = db.conn
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if stop_before is not None or not empty or not connection.in_transaction or migrations not in _COPIED:
        _migrate(migrations, db, stop_before=stop_before)
        return
    # A connection that writes cannot be copied into.
    connection.execute("ROLLBACK")
    _migrated(migrations).backup(connection)
    connection.execute("BEGIN IMMEDIATE")


@cache
def _migrated(migrations: Migrations) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("BEGIN")
    _migrate(migrations, sqlite_utils.Database(connection, execute_plugins=False))
    connection.execute("COMMIT")
    return connection
