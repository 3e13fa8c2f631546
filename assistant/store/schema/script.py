"""The schema of script.db, as numbered migrations: append new ones, never change one that was released.

Every table that holds words has `scope` and `generation`, and every query over them names a scope (I10). Times are
UTC ISO-8601 text of a fixed width, so that they sort as text.
"""

from __future__ import annotations

from sqlite_utils import Database, Migrations

from assistant.store.schema.statements import run_statements

script_migrations = Migrations("script")


# It has the name of the last migration that it replaced: where that is applied, nothing is missing.
@script_migrations(name="0009_made_by")
def create_tables(db: Database) -> None:
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
