-- Made by `make docs` from the migrations of character.db. Do not edit.

CREATE TABLE todos (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL,
    generation INTEGER NOT NULL DEFAULT 1,
    text TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at TEXT NOT NULL,
    done_at TEXT
, list TEXT NOT NULL DEFAULT '', due TEXT) STRICT;

CREATE INDEX todos_open ON todos (scope, id) WHERE state = 'open';

CREATE TABLE effects (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    result TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT;

CREATE TABLE journal (
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
    created_at TEXT NOT NULL,
    cycle INTEGER
) STRICT;

CREATE INDEX journal_scope ON journal (scope, timestamp);

CREATE INDEX journal_noted ON journal (scope, created_at);

CREATE INDEX journal_cycle ON journal (cycle) WHERE cycle IS NOT NULL;

CREATE TABLE readings (
    phase TEXT NOT NULL,
    session TEXT NOT NULL,
    generation INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (phase, session, generation)
) STRICT;

CREATE TABLE pins (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    generation INTEGER NOT NULL DEFAULT 1,
    scope TEXT NOT NULL,
    text TEXT NOT NULL,
    role TEXT NOT NULL,
    message_id INTEGER,
    created_at TEXT NOT NULL,
    UNIQUE (session, message_id)
) STRICT;

CREATE TABLE sleep_cycles (
    id INTEGER PRIMARY KEY,
    trigger TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    state TEXT NOT NULL,
    phases TEXT NOT NULL
) STRICT;

CREATE TABLE replacements (
    entry_id INTEGER NOT NULL REFERENCES journal(id) ON DELETE CASCADE,
    by_entry INTEGER NOT NULL REFERENCES journal(id) ON DELETE CASCADE,
    PRIMARY KEY (entry_id, by_entry)
) STRICT, WITHOUT ROWID;

CREATE INDEX replacements_by ON replacements (by_entry);

CREATE TABLE consolidated_entry_ids (
    entry_id INTEGER PRIMARY KEY REFERENCES journal(id),
    memory_id TEXT NOT NULL,
    note TEXT NOT NULL DEFAULT '',
    cycle INTEGER,
    at TEXT NOT NULL
) STRICT;

CREATE INDEX consolidated_memory ON consolidated_entry_ids (memory_id);

CREATE TABLE change_plans (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    cycle INTEGER,
    scope TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    at TEXT NOT NULL,
    undone_at TEXT
, accepted_at TEXT) STRICT;

CREATE INDEX change_plans_open ON change_plans (id) WHERE state = 'planned';

CREATE TABLE plan_subjects (
    subject TEXT NOT NULL,
    plan INTEGER NOT NULL REFERENCES change_plans(id) ON DELETE CASCADE,
    PRIMARY KEY (subject, plan)
) STRICT, WITHOUT ROWID;

CREATE INDEX plan_subjects_plan ON plan_subjects (plan);

CREATE TABLE entity_profiles (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    folded TEXT NOT NULL,
    aliases TEXT NOT NULL,
    summary TEXT NOT NULL,
    attributes TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    UNIQUE (scope, folded)
) STRICT;

CREATE TABLE edits (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT UNIQUE,
    scope TEXT NOT NULL,
    target TEXT NOT NULL,
    by TEXT NOT NULL,
    before TEXT NOT NULL,
    after TEXT NOT NULL,
    cycle INTEGER,
    at TEXT NOT NULL,
    undone_at TEXT
, accepted_at TEXT) STRICT;

CREATE INDEX edits_target ON edits (scope, target, id);

CREATE INDEX todos_due ON todos (scope, due) WHERE state = 'open' AND due IS NOT NULL;

CREATE INDEX todos_done ON todos (scope, done_at) WHERE state = 'done';

CREATE INDEX change_plans_cycle ON change_plans (cycle, state, scope, id);

CREATE INDEX change_plans_accepted ON change_plans (cycle, key) WHERE accepted_at IS NOT NULL
