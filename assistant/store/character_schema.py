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


@character(name="0002_journal")
def journal(db: Database) -> None:
    """The journal with its full text, how far each phase of sleep has read, pins, sleep cycles."""
    for statement in _JOURNAL:
        db.execute(statement)


_JOURNAL = (
    # key is deterministic: what is written twice is there once. tags and sources are JSON.
    """CREATE TABLE journal (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        scope TEXT NOT NULL,
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        content TEXT NOT NULL,
        importance REAL NOT NULL,
        timestamp TEXT NOT NULL,
        source_type TEXT NOT NULL,
        tags TEXT NOT NULL,
        sources TEXT NOT NULL,
        superseded_by INTEGER REFERENCES journal(id),
        created_at TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX journal_scope ON journal (scope, timestamp)",
    "CREATE VIRTUAL TABLE journal_fts USING fts5 (content, content='journal', content_rowid='id',"
    " tokenize='porter unicode61 remove_diacritics 2')",
    """CREATE TABLE readings (
        phase TEXT NOT NULL,
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        at TEXT NOT NULL,
        PRIMARY KEY (phase, session, generation)
    ) STRICT""",
    """CREATE TABLE pins (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT NOT NULL,
        generation INTEGER NOT NULL DEFAULT 1,
        scope TEXT NOT NULL,
        text TEXT NOT NULL,
        role TEXT NOT NULL,
        message_id INTEGER,
        created_at TEXT NOT NULL,
        UNIQUE (session, message_id)
    ) STRICT""",
    """CREATE TABLE sleep_cycles (
        id INTEGER PRIMARY KEY,
        trigger TEXT NOT NULL,
        started_at TEXT NOT NULL,
        ended_at TEXT,
        state TEXT NOT NULL,
        phases TEXT NOT NULL
    ) STRICT""",
)
