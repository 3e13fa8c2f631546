"""The schema of character.db, as numbered migrations: append new ones, never change one that was released."""

from __future__ import annotations

from sqlite_utils import Database, Migrations

character = Migrations("character")


@character(name="0001_initial")
def initial(db: Database) -> None:
    """To-dos, and the keyed changes that were made to them."""
    for statement in _INITIAL:
        db.execute(statement)


_INITIAL = (
    """CREATE TABLE todos (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        scope TEXT NOT NULL,
        generation INTEGER NOT NULL DEFAULT 1,
        text TEXT NOT NULL,
        state TEXT NOT NULL,
        created_at TEXT NOT NULL,
        done_at TEXT
    ) STRICT""",
    "CREATE INDEX todos_open ON todos (scope, id) WHERE state = 'open'",
    # A change that a crash may repeat carries a key; what it touched is kept, so that a second run answers the same.
    """CREATE TABLE effects (
        scope TEXT NOT NULL,
        key TEXT NOT NULL,
        result TEXT NOT NULL,
        at TEXT NOT NULL,
        PRIMARY KEY (scope, key)
    ) STRICT""",
)
