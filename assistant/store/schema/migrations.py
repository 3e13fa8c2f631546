"""The tables of each database are in SQL files, which its first migration runs."""

from __future__ import annotations

from pathlib import Path

from sqlite_utils import Database, Migrations


def run_statements(db: Database, name: str) -> None:
    """Run a SQL file of this folder inside the transaction of a migration, which `executescript` would commit."""
    for statement in (Path(__file__).parent / name).read_text(encoding="utf-8").split(";\n"):
        db.execute(statement)


script_migrations = Migrations("script")


# It has the name of the last migration that it replaced: where that is applied, nothing is missing.
@script_migrations(name="0009_made_by")
def create_script_tables(db: Database) -> None:
    """All tables as they were when migrations were counted anew."""
    run_statements(db, "script.sql")


@script_migrations(name="0010_outbox_parts")
def add_outbox_parts(db: Database) -> None:
    """The parts of a long message are stored before the first is sent. Where some were sent already, nobody can tell
    any more what the others are: the owner decides about these."""
    # parts: JSON list of texts; empty for a message that is short, was not tried yet, or was sent.
    db.execute("ALTER TABLE outbox ADD COLUMN parts TEXT NOT NULL DEFAULT '[]'")
    db.execute(
        "UPDATE outbox SET state = 'ambiguous', parts_sent = 0, error = 'an earlier version sent some of its parts'"
        " WHERE state IN ('pending', 'sending') AND parts_sent > 0"
    )


@script_migrations(name="0011_started_is_the_lease")
def drop_noted_twice(db: Database) -> None:
    """What can be worked out is not noted a second time: a compaction's lease is its started checkpoint, and what waits
    for the journal is what it has not read of checkpoints and ended conversations."""
    db.execute("ALTER TABLE checkpoints ADD COLUMN lease_until TEXT")
    for column in ("lease_holder", "lease_until"):
        db.execute(f"ALTER TABLE sessions DROP COLUMN {column}")
    db.execute("DROP TABLE extraction_queue")


character_migrations = Migrations("character")


# It has the name of the last migration that it replaced: where that is applied, nothing is missing.
@character_migrations(name="0004_as_of")
def create_character_tables(db: Database) -> None:
    """All tables as they were when migrations were counted anew."""
    run_statements(db, "character.sql")


@character_migrations(name="0005_without_full_text")
def drop_journal_full_text(db: Database) -> None:
    """Entries are found through the search index, so character.db needs no full text of its own."""
    db.execute("DROP TABLE journal_fts")


memory_migrations = Migrations("memory")


@memory_migrations(name="0001_initial")
def create_memory_tables(db: Database) -> None:
    """Memories with their vectors and full text, what they said before, and which embedder answers."""
    run_statements(db, "memory.sql")


@memory_migrations(name="0002_without_full_text")
def drop_full_text(db: Database) -> None:
    """Memories are found through the journal, so memory.db needs no full text of its own."""
    db.execute("DROP TABLE memories_fts")


search_migrations = Migrations("search")


@search_migrations(name="0001_initial")
def create_search_tables(db: Database) -> None:
    """Units, their pages, postings and vectors. All of it is derived from the log, the journal and the memories."""
    run_statements(db, "search.sql")
