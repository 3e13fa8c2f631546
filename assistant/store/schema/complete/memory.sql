-- Made by `make docs` from the migrations of memory.db. Do not edit.

CREATE TABLE memories (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL,
    text TEXT NOT NULL,
    said_at TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;

CREATE INDEX memories_said ON memories (scope, said_at, number);

CREATE TABLE vectors (
    embedder TEXT NOT NULL,
    memory INTEGER NOT NULL REFERENCES memories(number) ON DELETE CASCADE,
    vector BLOB NOT NULL,
    PRIMARY KEY (embedder, memory)
) STRICT, WITHOUT ROWID;

CREATE INDEX vectors_memory ON vectors (memory);

CREATE TABLE history (
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
) STRICT;

CREATE INDEX history_memory ON history (memory_id, number);

CREATE TABLE answering (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    embedder TEXT NOT NULL,
    settings TEXT NOT NULL
) STRICT
