"""The tables of script.db for conversations: sessions, message index, working context, checkpoints, inbox and outbox,
turns and tool runs, metering (migration 0001); then what compaction added: replaced rows, the extraction queue,
requests, circuit breakers, delegations (0002).
"""

from __future__ import annotations

INITIAL_TABLES: tuple[str, ...] = (
    # One row a generation of a session. The running totals of the view stand here so that a turn never recounts it.
    """CREATE TABLE sessions (
        key TEXT NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        started_at TEXT NOT NULL,
        ended_at TEXT,
        end_reason TEXT,
        prefix_rev INTEGER NOT NULL DEFAULT 0,
        view_messages INTEGER NOT NULL DEFAULT 0,
        view_tokens INTEGER NOT NULL DEFAULT 0,
        view_bytes INTEGER NOT NULL DEFAULT 0,
        view_images INTEGER NOT NULL DEFAULT 0,
        reported_rev INTEGER,
        reported_tokens INTEGER,
        reported_message_id INTEGER,
        lease_holder TEXT,
        lease_until TEXT,
        PRIMARY KEY (key, generation)
    ) STRICT""",
    # The permanent index of the master log: where each record stands, never what it says.
    """CREATE TABLE messages (
        id INTEGER PRIMARY KEY,
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        seq INTEGER NOT NULL,
        kind TEXT NOT NULL,
        role TEXT NOT NULL,
        tool_call_id TEXT,
        turn TEXT,
        ts TEXT NOT NULL,
        byte_start INTEGER NOT NULL,
        byte_end INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        commitment TEXT NOT NULL,
        hidden_by INTEGER REFERENCES messages(id),
        UNIQUE (session, seq)
    ) STRICT""",
    "CREATE INDEX messages_turn ON messages (turn) WHERE turn IS NOT NULL",
    "CREATE INDEX messages_scope ON messages (scope, id)",
    # Contentless: the words stand in the log; a row is found here and read there. rowid = messages.id.
    "CREATE VIRTUAL TABLE messages_fts USING fts5 (text, content='', tokenize='porter unicode61 remove_diacritics 2')",
    # Segments are merged by the store, a little at a time (`index.merge`).
    "INSERT INTO messages_fts (messages_fts, rank) VALUES ('automerge', 0)",
    "INSERT INTO messages_fts (messages_fts, rank) VALUES ('crisismerge', 64)",
    "CREATE VIRTUAL TABLE messages_terms USING fts5vocab ('messages_fts', 'row')",
    # The working context, a row per message as the model sees it, in order of position. A prefix made by a compaction
    # takes positions below those of the tail it stands before. parts: JSON of tool calls, media and the like.
    # carried_from marks a verbatim copy that a compaction kept; coverage counts rows without it.
    """CREATE TABLE conversation_history (
        id INTEGER PRIMARY KEY,
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        position INTEGER NOT NULL,
        message_id INTEGER REFERENCES messages(id),
        carried_from INTEGER,
        role TEXT NOT NULL,
        content TEXT NOT NULL,
        parts TEXT NOT NULL,
        metadata TEXT NOT NULL,
        ts TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        images INTEGER NOT NULL,
        UNIQUE (session, generation, position),
        FOREIGN KEY (session, generation) REFERENCES sessions(key, generation)
    ) STRICT""",
    "CREATE INDEX history_message ON conversation_history (message_id)",
    """CREATE TABLE checkpoints (
        id INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL,
        checkpoint_num INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        from_message_id INTEGER NOT NULL REFERENCES messages(id),
        to_message_id INTEGER NOT NULL REFERENCES messages(id),
        from_seq INTEGER NOT NULL,
        to_seq INTEGER NOT NULL,
        messages_compressed INTEGER NOT NULL,
        summary_content TEXT NOT NULL,
        key_facts TEXT NOT NULL,
        original_tokens INTEGER NOT NULL,
        compressed_tokens INTEGER NOT NULL,
        compression_ratio REAL NOT NULL,
        summary_cost_usd REAL,
        created_at TEXT NOT NULL,
        trigger TEXT NOT NULL,
        tier TEXT NOT NULL,
        state TEXT NOT NULL,
        view_hash TEXT NOT NULL,
        UNIQUE (session_id, checkpoint_num)
    ) STRICT""",
    # body: JSON of content, media, name. message_id is given at acceptance, before the log has the message.
    """CREATE TABLE inbox (
        id INTEGER PRIMARY KEY,
        bridge TEXT NOT NULL,
        external_id TEXT NOT NULL,
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        sender TEXT NOT NULL,
        trust TEXT NOT NULL,
        target TEXT NOT NULL,
        body TEXT NOT NULL,
        message_id INTEGER NOT NULL UNIQUE,
        state TEXT NOT NULL,
        turn TEXT,
        received_at TEXT NOT NULL,
        ended_at TEXT,
        UNIQUE (bridge, external_id)
    ) STRICT""",
    "CREATE INDEX inbox_accepted ON inbox (session, id) WHERE state = 'accepted'",
    "CREATE INDEX inbox_turn ON inbox (turn) WHERE turn IS NOT NULL",
    """CREATE TABLE turns (
        id TEXT PRIMARY KEY,
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        state TEXT NOT NULL,
        volatile TEXT NOT NULL,
        error TEXT NOT NULL DEFAULT '',
        started_at TEXT NOT NULL,
        ended_at TEXT
    ) STRICT""",
    "CREATE INDEX turns_running ON turns (session) WHERE state = 'running'",
    """CREATE TABLE tool_runs (
        id INTEGER PRIMARY KEY,
        turn TEXT NOT NULL REFERENCES turns(id),
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        call_id TEXT NOT NULL,
        name TEXT NOT NULL,
        arguments TEXT NOT NULL,
        state TEXT NOT NULL,
        started_at TEXT NOT NULL,
        ended_at TEXT,
        UNIQUE (turn, call_id)
    ) STRICT""",
    """CREATE TABLE outbox (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        bridge TEXT NOT NULL,
        target TEXT NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        message_id INTEGER,
        inbox_id INTEGER REFERENCES inbox(id),
        turn TEXT,
        state TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        error TEXT NOT NULL DEFAULT '',
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX outbox_open ON outbox (bridge, id) WHERE state IN ('pending', 'sending')",
    "CREATE INDEX outbox_unsent ON outbox (state) WHERE state <> 'sent'",
    "CREATE INDEX outbox_session ON outbox (session, id)",
    "CREATE INDEX outbox_turn ON outbox (turn) WHERE turn IS NOT NULL",
    # Worst case (reserved_*) until settled; usd NULL where no price is known.
    """CREATE TABLE usage (
        id INTEGER PRIMARY KEY,
        ts TEXT NOT NULL,
        purpose TEXT NOT NULL,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        session TEXT,
        turn TEXT,
        state TEXT NOT NULL,
        reserved_tokens INTEGER NOT NULL,
        reserved_usd REAL,
        input INTEGER NOT NULL DEFAULT 0,
        output INTEGER NOT NULL DEFAULT 0,
        cache_read INTEGER NOT NULL DEFAULT 0,
        cache_write INTEGER NOT NULL DEFAULT 0,
        usd REAL,
        settled_at TEXT
    ) STRICT""",
    "CREATE INDEX usage_ts ON usage (ts)",
    # What each calendar day and month (of the home's zone) has cost, so that a cap is checked without adding up.
    """CREATE TABLE usage_totals (
        period TEXT PRIMARY KEY,
        usd REAL NOT NULL DEFAULT 0,
        tokens INTEGER NOT NULL DEFAULT 0,
        unpriced_tokens INTEGER NOT NULL DEFAULT 0,
        calls INTEGER NOT NULL DEFAULT 0
    ) STRICT""",
    """CREATE TABLE model_facts (
        model TEXT PRIMARY KEY,
        factor REAL,
        samples INTEGER NOT NULL DEFAULT 0,
        window INTEGER,
        max_output INTEGER,
        max_bytes INTEGER,
        max_images INTEGER,
        source TEXT,
        updated_at TEXT NOT NULL
    ) STRICT""",
    # Reminders and schedules; spec is JSON. A due moment becomes a slot, and every slot ends as ran, late or missed.
    """CREATE TABLE jobs (
        id INTEGER PRIMARY KEY,
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        scope TEXT NOT NULL,
        kind TEXT NOT NULL,
        spec TEXT NOT NULL,
        state TEXT NOT NULL,
        catch_up TEXT NOT NULL,
        next_due_at TEXT,
        created_at TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX jobs_due ON jobs (next_due_at) WHERE state = 'active'",
    """CREATE TABLE slots (
        id INTEGER PRIMARY KEY,
        job_id INTEGER NOT NULL REFERENCES jobs(id),
        scope TEXT NOT NULL,
        due_at TEXT NOT NULL,
        local_key TEXT NOT NULL,
        state TEXT NOT NULL,
        ended_at TEXT,
        note TEXT NOT NULL DEFAULT '',
        UNIQUE (job_id, local_key)
    ) STRICT""",
)


COMPACTION_TABLES: tuple[str, ...] = (
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
