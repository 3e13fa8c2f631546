"""Tables of script.db for what is due at a time: jobs, and the slots in which they were due."""

TABLES: tuple[str, ...] = (
    "DROP TABLE slots",
    "DROP TABLE jobs",
    # next_due_at is the next slot, next_key that slot by the clock of the job's zone. `key` names the call that made
    # the job, end_key the one that cancelled it. spec: JSON of when it is due.
    """CREATE TABLE jobs (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        bridge TEXT NOT NULL,
        target TEXT NOT NULL,
        text TEXT NOT NULL,
        spec TEXT NOT NULL,
        zone TEXT NOT NULL,
        catch_up TEXT NOT NULL,
        state TEXT NOT NULL,
        next_due_at TEXT,
        next_key TEXT,
        made_by INTEGER,
        created_at TEXT NOT NULL,
        ended_at TEXT,
        end_key TEXT
    ) STRICT""",
    "CREATE INDEX jobs_due ON jobs (next_due_at) WHERE state = 'active'",
    "CREATE INDEX jobs_scope ON jobs (scope, kind, id) WHERE state IN ('active', 'paused')",
    "CREATE UNIQUE INDEX jobs_name ON jobs (scope, name) WHERE name <> '' AND state IN ('active', 'paused')",
    # A slot stands here once it has ended. told: key of the outbox row by which its reminder goes out; logged: whether
    # the conversation knows. seen_at: when a person looked at one that was missed.
    """CREATE TABLE slots (
        id INTEGER PRIMARY KEY,
        job_id INTEGER NOT NULL REFERENCES jobs(id),
        scope TEXT NOT NULL,
        due_at TEXT NOT NULL,
        local_key TEXT NOT NULL,
        state TEXT NOT NULL,
        ended_at TEXT NOT NULL,
        note TEXT NOT NULL DEFAULT '',
        told TEXT,
        logged INTEGER NOT NULL DEFAULT 1,
        seen_at TEXT,
        UNIQUE (job_id, local_key)
    ) STRICT""",
    "CREATE INDEX slots_unlogged ON slots (told) WHERE logged = 0",
    "CREATE INDEX slots_missed ON slots (scope, id) WHERE state = 'missed' AND seen_at IS NULL",
    "CREATE INDEX slots_scope ON slots (scope, id)",
)
