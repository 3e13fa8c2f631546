-- What was last read of calendars and address books. All of it is derived from them and may be thrown away.

-- state: what the source said of itself (entity tag, hash of a file, addresses of the owner), as JSON.
CREATE TABLE sources (
    name TEXT PRIMARY KEY,
    made_of TEXT NOT NULL,
    state TEXT NOT NULL,
    expanded_at TEXT NOT NULL,
    read_at TEXT,
    tried_at TEXT NOT NULL,
    error TEXT NOT NULL,
    remark TEXT NOT NULL
) STRICT;

CREATE TABLE collections (
    source TEXT NOT NULL,
    url TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    tag TEXT NOT NULL,
    token TEXT NOT NULL,
    writable INTEGER NOT NULL,
    PRIMARY KEY (source, url)
) STRICT, WITHOUT ROWID;

-- text: of a series that repeats, to find its occurrences again; '' of any other.
CREATE TABLE resources (
    source TEXT NOT NULL,
    url TEXT NOT NULL,
    collection TEXT NOT NULL,
    tag TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (source, url)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    url TEXT NOT NULL,
    calendar TEXT NOT NULL,
    ref TEXT NOT NULL,
    uid TEXT NOT NULL,
    occurrence TEXT NOT NULL,
    starts TEXT NOT NULL,
    ends TEXT NOT NULL,
    all_day INTEGER NOT NULL,
    title TEXT NOT NULL,
    place TEXT NOT NULL,
    notes TEXT NOT NULL,
    state TEXT NOT NULL,
    answer TEXT NOT NULL,
    organizer TEXT NOT NULL,
    guests INTEGER NOT NULL,
    repeats INTEGER NOT NULL,
    folded TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_time ON events (ends, starts);
CREATE INDEX events_by_url ON events (source, url);
CREATE INDEX events_by_ref ON events (ref);

-- birthday: '1980-02-29', or '--02-29' without the year.
CREATE TABLE contacts (
    id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    url TEXT NOT NULL,
    name TEXT NOT NULL,
    emails TEXT NOT NULL,
    phones TEXT NOT NULL,
    organization TEXT NOT NULL,
    birthday TEXT NOT NULL,
    folded TEXT NOT NULL
) STRICT;
CREATE INDEX contacts_by_url ON contacts (source, url);
CREATE INDEX contacts_by_birthday ON contacts (birthday) WHERE birthday <> '';
