"""Tables of script.db for the ends of sessions: resets under way, and where each generation was archived."""

_ARCHIVES: tuple[str, ...] = (
    # Where each ended generation is kept: `url` is a path within the home, or an address without credentials. `sha256`
    # is of the object as it is kept, `lines_sha256` of the log lines in it. `handover` and `summary` are what its
    # header says. `outdated`: a forgetting concerns it, and the object has not been rewritten yet.
    """CREATE TABLE archives (
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        url TEXT NOT NULL,
        records INTEGER NOT NULL,
        first_id INTEGER NOT NULL,
        last_id INTEGER NOT NULL,
        from_seq INTEGER NOT NULL,
        to_seq INTEGER NOT NULL,
        from_ts TEXT NOT NULL,
        to_ts TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        lines_sha256 TEXT NOT NULL,
        encrypted INTEGER NOT NULL,
        archived_at TEXT NOT NULL,
        reason TEXT NOT NULL,
        handover TEXT NOT NULL,
        summary TEXT NOT NULL,
        outdated INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (session, generation)
    ) STRICT""",
    "CREATE INDEX archives_scope ON archives (scope, archived_at)",
)

TABLES: tuple[str, ...] = (
    # from_seq: of the generation's first record. resumed: the generation that it goes on from. cleared: whether what
    # ended generations show no longer was taken out of conversation_history.
    "ALTER TABLE sessions ADD COLUMN from_seq INTEGER NOT NULL DEFAULT 1",
    "ALTER TABLE sessions ADD COLUMN resumed INTEGER",
    "ALTER TABLE sessions ADD COLUMN cleared INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX sessions_to_clear ON sessions (key, generation) WHERE ended_at IS NOT NULL AND cleared = 0",
    # Resets under way and past, one a generation: begun, waiting (note says why, until retry_at), archived, done,
    # withdrawn. pressure: how full the context was.
    """CREATE TABLE resets (
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        reason TEXT NOT NULL,
        resumes INTEGER,
        state TEXT NOT NULL,
        pressure REAL,
        attempts INTEGER NOT NULL DEFAULT 0,
        note TEXT NOT NULL DEFAULT '',
        retry_at TEXT,
        begun_at TEXT NOT NULL,
        ended_at TEXT,
        PRIMARY KEY (session, generation)
    ) STRICT""",
    "CREATE INDEX resets_unfinished ON resets (begun_at) WHERE state IN ('begun', 'waiting', 'archived')",
    *_ARCHIVES,
)
