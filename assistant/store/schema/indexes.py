"""The schemas of memory.db and search.db, as numbered migrations: append new ones, never change one that was released.

search.db is derived from the log, the journal and the memories, and can be made again from them.
"""

from __future__ import annotations

from sqlite_utils import Database, Migrations

from assistant.store.schema.statements import run_statements

memory_migrations = Migrations("memory")


@memory_migrations(name="0001_initial")
def create_memory_tables(db: Database) -> None:
    """Memories with their vectors and full text, what they said before, and which embedder answers."""
    run_statements(db, "memory.sql")


@memory_migrations(name="0002_without_full_text")
def drop_full_text(db: Database) -> None:
    """Memories are found by their words through the journal, so memory.db needs no full text of its own."""
    db.execute("DROP TABLE memories_fts")


search_migrations = Migrations("search")


@search_migrations(name="0001_initial")
def create_search_tables(db: Database) -> None:
    """Units, their pages, postings and vectors. All of it is derived from the log, the journal and the memories."""
    run_statements(db, "search.sql")
