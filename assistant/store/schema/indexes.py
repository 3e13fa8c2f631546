"""The schemas of memory.db and search.db, as numbered migrations: append new ones, never change one that was released.

search.db is derived from the log, the journal and the memories, and can be made again from them.
"""

from __future__ import annotations

from sqlite_utils import Database, Migrations

memory_migrations = Migrations("memory")


@memory_migrations(name="0001_initial")
def create_memory_tables(db: Database) -> None:
    """Memories with their vectors and full text, what they said before, and which embedder answers."""
    for statement in _MEMORY_TABLES:
        db.execute(statement)


_MEMORY_TABLES = (
    # payload is JSON: what the memory layer keeps of a memory beside its words and scope.
    """CREATE TABLE memories (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        scope TEXT NOT NULL,
        text TEXT NOT NULL,
        said_at TEXT NOT NULL,
        payload TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX memories_said ON memories (scope, said_at, number)",
    # Two bytes a number, least significant first. During a change of embedder a memory may have one of each.
    """CREATE TABLE vectors (
        embedder TEXT NOT NULL,
        memory INTEGER NOT NULL REFERENCES memories(number) ON DELETE CASCADE,
        vector BLOB NOT NULL,
        PRIMARY KEY (embedder, memory)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX vectors_memory ON vectors (memory)",
    # Contentless: it holds terms, never the words (`assistant.search.fulltext`).
    "CREATE VIRTUAL TABLE memories_fts USING fts5 (words, content='', tokenize='porter unicode61 remove_diacritics 2')",
    # The columns of Mem0's own history.
    """CREATE TABLE history (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        memory_id TEXT NOT NULL,
        old_memory TEXT,
        new_memory TEXT,
        event TEXT NOT NULL,
        created_at TEXT,
        updated_at TEXT,
        is_deleted INTEGER NOT NULL,
        actor_id TEXT,
        role TEXT
    ) STRICT""",
    "CREATE INDEX history_memory ON history (memory_id, number)",
    # The embedder whose vectors answer: its name, and as JSON how to open it (never its key).
    """CREATE TABLE answering (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        embedder TEXT NOT NULL,
        settings TEXT NOT NULL
    ) STRICT""",
)


@memory_migrations(name="0002_without_full_text")
def drop_full_text(db: Database) -> None:
    """Memories are found by their words through the journal, so memory.db needs no full text of its own."""
    db.execute("DROP TABLE memories_fts")


search_migrations = Migrations("search")


@search_migrations(name="0001_initial")
def create_search_tables(db: Database) -> None:
    """Units, their pages, postings and vectors. All of it is derived from the log, the journal and the memories."""
    for statement in _SEARCH_TABLES:
        db.execute(statement)


_SEARCH_TABLES = (
    # made_by: what the vectors were made by, and the form of what is kept; another one means that all is made anew.
    """CREATE TABLE collections (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        made_by TEXT NOT NULL,
        total BLOB NOT NULL
    ) STRICT""",
    # How far each stream of a collection's source was read.
    """CREATE TABLE read_to (
        collection INTEGER NOT NULL,
        stream TEXT NOT NULL,
        seq INTEGER NOT NULL,
        PRIMARY KEY (collection, stream)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE names (
        collection INTEGER NOT NULL,
        number INTEGER NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (collection, number)
    ) STRICT, WITHOUT ROWID""",
    # Units that are not sealed yet: stems as JSON [[stem, word, count], ...].
    """CREATE TABLE fresh (
        collection INTEGER NOT NULL,
        number INTEGER NOT NULL,
        meta BLOB NOT NULL,
        vector BLOB NOT NULL,
        stems TEXT NOT NULL,
        PRIMARY KEY (collection, number)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE pages (
        collection INTEGER NOT NULL,
        first INTEGER NOT NULL,
        units INTEGER NOT NULL,
        meta BLOB NOT NULL,
        PRIMARY KEY (collection, first)
    ) STRICT, WITHOUT ROWID""",
    # 16 units a row, so that those around a unit are read with it.
    """CREATE TABLE vectors (
        collection INTEGER NOT NULL,
        block INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (collection, block)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE terms (
        collection INTEGER NOT NULL,
        id INTEGER NOT NULL,
        stem TEXT NOT NULL,
        sources INTEGER NOT NULL,
        vector BLOB NOT NULL,
        PRIMARY KEY (collection, id)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE postings (
        collection INTEGER NOT NULL,
        term INTEGER NOT NULL,
        page INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (collection, term, page)
    ) STRICT, WITHOUT ROWID""",
)
