"""The schema of script.db, as numbered migrations: append new ones, never change one that was released.

Every table that holds words has `scope` and `generation`, and every query over them names a scope (I10). Times are
UTC ISO-8601 text with a fixed width, so that they sort as text.
"""

from __future__ import annotations

from sqlite_utils import Database, Migrations

from assistant.store import (
    agenda_tables,
    bridge_tables,
    compaction_tables,
    first_tables,
    people_tables,
    reset_tables,
    spending_tables,
)

script = Migrations("script")


@script(name="0001_initial")
def initial(db: Database) -> None:
    """Sessions, the message index and its full text, the working context, checkpoints, inbox and outbox, turns and
    tool runs, metering, jobs and their slots."""
    for statement in first_tables.TABLES:
        db.execute(statement)


@script(name="0002_compaction")
def compaction(db: Database) -> None:
    """What compactions replaced, requests, delegations, breakers; how far the journal has read."""
    for statement in compaction_tables.TABLES:
        db.execute(statement)


@script(name="0003_search_moved")
def search_moved(db: Database) -> None:
    """What was said is found through search.db, which is made from the log."""
    db.execute("DROP TABLE messages_terms")
    db.execute("DROP TABLE messages_fts")


@script(name="0004_people")
def people(db: Database) -> None:
    """Who is who, on which bridge."""
    for statement in people_tables.TABLES:
        db.execute(statement)


@script(name="0005_agenda")
def agenda(db: Database) -> None:
    """Reminders and schedules as they are kept now; nothing used the tables before."""
    for statement in agenda_tables.TABLES:
        db.execute(statement)


@script(name="0006_resets")
def resets(db: Database) -> None:
    """Ends of sessions."""
    for statement in reset_tables.TABLES:
        db.execute(statement)


@script(name="0007_bridges")
def bridges(db: Database) -> None:
    """How far each bridge has come, and answers that go out in several parts, with buttons, or as files."""
    for statement in bridge_tables.TABLES:
        db.execute(statement)


@script(name="0008_spending")
def spending(db: Database) -> None:
    """What was said of the budget, and requests that repeat themselves."""
    for statement in spending_tables.TABLES:
        db.execute(statement)


@script(name="0009_made_by")
def made_by(db: Database) -> None:
    """What a message asked to be reminded of is looked for at the end of its turn."""
    db.execute("CREATE INDEX jobs_made_by ON jobs (made_by) WHERE made_by IS NOT NULL")
