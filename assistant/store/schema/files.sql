-- Which files.db this is: what was made of another one is made again.
CREATE TABLE origin (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    token TEXT NOT NULL
) STRICT;
INSERT INTO origin (one, token) VALUES (1, lower(hex(randomblob(8))));

-- state: read, unreadable (reason says why), left_out (it has words that the owner forgot, and is theirs to change).
CREATE TABLE files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL,
    path TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    changed_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    pages INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;

-- file: NULL where the row only says which passages are gone (takes_back: JSON list of their ids). start: in bytes.
CREATE TABLE passages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file INTEGER REFERENCES files(id),
    scope TEXT NOT NULL,
    place TEXT NOT NULL,
    start INTEGER NOT NULL,
    text TEXT NOT NULL,
    takes_back TEXT NOT NULL
) STRICT;
CREATE INDEX passages_file ON passages (file, id);
