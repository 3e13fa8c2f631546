"""sqlite-utils, whose lists of migrations every start reads, and whose databases only a migration needs.

The package imports all of itself: the tables with their plugins, parsers and patterns, a fiftieth of what
`assistant chat -m` takes. Here each name is imported when it is asked for.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from assistant.core.imports import deferred_reexports, hidden_modules, stand_in_modules

with deferred_reexports("sqlite_utils"):
    from sqlite_utils import Migrations

if TYPE_CHECKING:
    from sqlite_utils import Database

__all__ = ["Migrations", "empty_database", "library_database", "migration_names"]


def library_database(connection: sqlite3.Connection) -> Database:
    """Return the library's view of a connection: what migrations are given."""
    # Arrays, and functions of its command line.
    with hidden_modules("numpy", "pandas"), stand_in_modules("sqlite_utils.recipes"):
        from sqlite_utils import Database
    return Database(connection, execute_plugins=False)


def empty_database() -> Database:
    """Return a database in memory, to which migrations can be applied."""
    return library_database(sqlite3.connect(":memory:"))


def migration_names(migrations: Migrations) -> list[str]:
    """Return the names of all migrations of a set, in order."""
    return [migration.name for migration in migrations._migrations]
