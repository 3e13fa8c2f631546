"""The file of a new database is made once in this process and written as often as one is wanted.

Making those of a data folder takes 10 ms of processor time, and most tests want one. They differ in the time at which
they were made, which nothing reads, and where a migration draws something at random: such a database is made each time,
and so is every one of a program that is started as people start it.
"""

from __future__ import annotations

from datetime import datetime

from assistant.store.schema import creation
from assistant.store.schema.library import Migrations
from assistant.store.schema.migrations import files_migrations

_make = creation.new_database
_made: dict[tuple[Migrations, int], bytes] = {}


def make_new_databases_once() -> None:
    """From now on, in this process and in those that it forks."""
    creation.new_database = _new_database  # type: ignore[attr-defined]


def _new_database(migrations: Migrations, now: datetime, user_version: int) -> bytes:
    # Each database of files has a token of its own.
    if migrations is files_migrations:
        return _make(migrations, now, user_version)
    made = _made.get((migrations, user_version))
    if made is None:
        made = _made[migrations, user_version] = _make(migrations, now, user_version)
    return made
