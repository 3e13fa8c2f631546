-- made_by: what the vectors were made by, and the form of what is kept; another one means that all is made anew.
CREATE TABLE collections (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    made_by TEXT NOT NULL,
    total BLOB NOT NULL
) STRICT;

-- How far each stream of a collection's source was read.
CREATE TABLE read_to (
    collection INTEGER NOT NULL,
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (collection, stream)
) STRICT, WITHOUT ROWID;

CREATE TABLE names (
    collection INTEGER NOT NULL,
    number INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (collection, number)
) STRICT, WITHOUT ROWID;

-- Units that are not sealed yet: stems as JSON [[stem, word, count], ...].
CREATE TABLE fresh (
    collection INTEGER NOT NULL,
    number INTEGER NOT NULL,
    meta BLOB NOT NULL,
    vector BLOB NOT NULL,
    stems TEXT NOT NULL,
    PRIMARY KEY (collection, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE pages (
    collection INTEGER NOT NULL,
    first INTEGER NOT NULL,
    units INTEGER NOT NULL,
    meta BLOB NOT NULL,
    PRIMARY KEY (collection, first)
) STRICT, WITHOUT ROWID;

-- 16 units a row, so that those around a unit are read with it.
CREATE TABLE vectors (
    collection INTEGER NOT NULL,
    block INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (collection, block)
) STRICT, WITHOUT ROWID;

CREATE TABLE terms (
    collection INTEGER NOT NULL,
    id INTEGER NOT NULL,
    stem TEXT NOT NULL,
    sources INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (collection, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE postings (
    collection INTEGER NOT NULL,
    term INTEGER NOT NULL,
    page INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (collection, term, page)
) STRICT, WITHOUT ROWID;
