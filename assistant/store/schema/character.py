"""The schema of character.db, as numbered migrations: append new ones, never change one that was released."""

from __future__ import annotations

from sqlite_utils import Database, Migrations

from assistant.store.schema.statements import run_statements

character_migrations = Migrations("character")


# It has the name of the last migration that it replaced: where that is applied, nothing is missing.
@character_migrations(name="0004_as_of")
def create_tables(db: Database) -> None:
    """All tables as they were when migrations were counted anew."""
    run_statements(db, "character.sql")
