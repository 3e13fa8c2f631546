"""Tables of script.db that came with compaction: what a view held before, what waits to be read for the journal, what
was asked for and is open, breakers, delegations."""

TABLES: tuple[str, ...] = (
    # extracted_seq follows the journal's own cursor (character.db), never runs ahead of it. parent: of a branch.
    "ALTER TABLE sessions ADD COLUMN extracted_seq INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN parent_session TEXT",
    "ALTER TABLE sessions ADD COLUMN parent_message_id INTEGER REFERENCES messages(id)",
    "ALTER TABLE checkpoints ADD COLUMN depth INTEGER NOT NULL DEFAULT 1",
    "ALTER TABLE checkpoints ADD COLUMN model TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE checkpoints ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE checkpoints ADD COLUMN note TEXT NOT NULL DEFAULT ''",
    # Ids of the checkpoints it took over, as JSON; whether the journal has its entry.
    "ALTER TABLE checkpoints ADD COLUMN absorbs TEXT NOT NULL DEFAULT '[]'",
    "ALTER TABLE checkpoints ADD COLUMN journaled INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX checkpoints_live ON checkpoints (session_id, generation, from_seq) WHERE state = 'live'",
    "CREATE INDEX checkpoints_started ON checkpoints (id) WHERE state = 'started'",
    "CREATE INDEX checkpoints_unjournaled ON checkpoints (id) WHERE journaled = 0 AND state IN ('live', 'absorbed')",
    # What a compaction replaces stays where it is, and the view begins above it: positions up to view_floor are out of
    # view. kept_from is the floor as it was before, while that can be put back. Positions are spaced out, so that a
    # prefix of any length fits between two rows.
    "UPDATE conversation_history SET position = (position + 1048576) * 4294967296",
    "ALTER TABLE sessions ADD COLUMN view_floor INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE checkpoints ADD COLUMN kept_from INTEGER",
    "CREATE INDEX checkpoints_kept ON checkpoints (session_id, checkpoint_num) WHERE kept_from IS NOT NULL",
    # Rows that a compaction shortened, as they were.
    """CREATE TABLE earlier_rows (
        checkpoint_id INTEGER NOT NULL REFERENCES checkpoints(id),
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        message_id INTEGER NOT NULL,
        role TEXT NOT NULL,
        content TEXT NOT NULL,
        parts TEXT NOT NULL,
        metadata TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        images INTEGER NOT NULL,
        PRIMARY KEY (checkpoint_id, message_id)
    ) STRICT""",
    "CREATE INDEX earlier_message ON earlier_rows (message_id)",
    # Ranges that left a view before the journal had read them, to be read from the log (F28).
    """CREATE TABLE extraction_queue (
        id INTEGER PRIMARY KEY,
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        from_seq INTEGER NOT NULL,
        to_seq INTEGER NOT NULL,
        reason TEXT NOT NULL,
        state TEXT NOT NULL,
        created_at TEXT NOT NULL,
        done_at TEXT
    ) STRICT""",
    "CREATE INDEX extraction_waiting ON extraction_queue (session, generation, to_seq) WHERE state = 'waiting'",
    # A request is a user's message; its words stand in the log. task: `Asked`. cites: JSON of message ids.
    """CREATE TABLE requests (
        message_id INTEGER PRIMARY KEY REFERENCES messages(id),
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        turn TEXT NOT NULL,
        task INTEGER NOT NULL,
        state TEXT NOT NULL,
        answered_by INTEGER,
        closed_by TEXT NOT NULL DEFAULT '',
        cites TEXT NOT NULL DEFAULT '[]',
        opened_at TEXT NOT NULL,
        closed_at TEXT
    ) STRICT""",
    "CREATE INDEX requests_open ON requests (session, message_id) WHERE state = 'open'",
    "CREATE INDEX requests_scope ON requests (scope, message_id)",
    "CREATE INDEX requests_turn ON requests (turn)",
    """CREATE TABLE breakers (
        name TEXT PRIMARY KEY,
        failures INTEGER NOT NULL,
        opened_at TEXT,
        last_error TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE delegations (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        turn TEXT NOT NULL,
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        task TEXT NOT NULL,
        state TEXT NOT NULL,
        result TEXT NOT NULL DEFAULT '',
        cost_usd REAL,
        started_at TEXT NOT NULL,
        ended_at TEXT
    ) STRICT""",
    "CREATE INDEX delegations_running ON delegations (session) WHERE state = 'running'",
    "CREATE INDEX delegations_session ON delegations (session, id)",
    "CREATE INDEX delegations_key ON delegations (key)",
)
