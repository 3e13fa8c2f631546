-- Made by `make docs` from the migrations of search.db. Do not edit.

CREATE TABLE collections (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    made_by TEXT NOT NULL,
    total BLOB NOT NULL
) STRICT;

CREATE TABLE read_to (
    collection INTEGER NOT NULL,
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL, checksum INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (collection, stream)
) STRICT, WITHOUT ROWID;

CREATE TABLE names (
    collection INTEGER NOT NULL,
    number INTEGER NOT NULL,
    text TEXT NOT NULL, checksum INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (collection, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE fresh (
    collection INTEGER NOT NULL,
    number INTEGER NOT NULL,
    meta BLOB NOT NULL,
    vector BLOB NOT NULL,
    stems TEXT NOT NULL, checksum INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (collection, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE pages (
    collection INTEGER NOT NULL,
    first INTEGER NOT NULL,
    units INTEGER NOT NULL,
    meta BLOB NOT NULL, checksum INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (collection, first)
) STRICT, WITHOUT ROWID;

CREATE TABLE terms (
    collection INTEGER NOT NULL,
    id INTEGER NOT NULL,
    stem TEXT NOT NULL,
    sources INTEGER NOT NULL,
    vector BLOB NOT NULL, checksum INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (collection, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE postings (
    collection INTEGER NOT NULL,
    term INTEGER NOT NULL,
    page INTEGER NOT NULL,
    body BLOB NOT NULL, checksum INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (collection, term, page)
) STRICT, WITHOUT ROWID;

CREATE TABLE passed_over (collection INTEGER NOT NULL, source INTEGER NOT NULL, reason TEXT NOT NULL, checksum INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (collection, source)) STRICT, WITHOUT ROWID;

CREATE TABLE vectors (collection INTEGER NOT NULL, block INTEGER NOT NULL, body BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (collection, block)) STRICT
