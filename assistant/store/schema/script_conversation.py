"""The tables of script.db for conversations: sessions with their views and checkpoints, what came in and goes out,
turns with their tools, requests.
"""

from __future__ import annotations

CONVERSATION_TABLES: tuple[str, ...] = (
    # One row a generation of a session, with the running totals of its view, so that a turn never recounts it.
    # - extracted_seq: follows the journal's own cursor (character.db), never runs ahead of it
    # - parent_session, parent_message_id: where a branch begins
    # - view_floor: rows at positions up to it are out of view; a compaction leaves what it replaces where it is
    # - from_seq: of the generation's first record
    # - resumed: the generation that this one continues
    # - cleared: whether what an ended generation no longer shows was taken out of conversation_history
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
        extracted_seq INTEGER NOT NULL DEFAULT 0,
        parent_session TEXT,
        parent_message_id INTEGER REFERENCES messages(id),
        view_floor INTEGER NOT NULL DEFAULT 0,
        from_seq INTEGER NOT NULL DEFAULT 1,
        resumed INTEGER,
        cleared INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (key, generation)
    ) STRICT""",
    "CREATE INDEX sessions_to_clear ON sessions (key, generation) WHERE ended_at IS NOT NULL AND cleared = 0",
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
    # The working context, a row per message as the model sees it, in order of position. A prefix made by a compaction
    # takes positions below those of the tail before which it comes; positions are spaced out, so that a prefix of any
    # length fits between two rows. parts: JSON of tool calls, media and the like.
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
    # - absorbs: ids of the checkpoints it took over, as JSON
    # - journaled: whether the journal has its entry
    # - kept_from: the session's view_floor as it was before, while that can be put back
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
        depth INTEGER NOT NULL DEFAULT 1,
        model TEXT NOT NULL DEFAULT '',
        attempts INTEGER NOT NULL DEFAULT 0,
        note TEXT NOT NULL DEFAULT '',
        absorbs TEXT NOT NULL DEFAULT '[]',
        journaled INTEGER NOT NULL DEFAULT 0,
        kept_from INTEGER,
        UNIQUE (session_id, checkpoint_num)
    ) STRICT""",
    "CREATE INDEX checkpoints_live ON checkpoints (session_id, generation, from_seq) WHERE state = 'live'",
    "CREATE INDEX checkpoints_started ON checkpoints (id) WHERE state = 'started'",
    "CREATE INDEX checkpoints_unjournaled ON checkpoints (id) WHERE journaled = 0 AND state IN ('live', 'absorbed')",
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
)

TURN_TABLES: tuple[str, ...] = (
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
    # A body longer than the network takes goes out in parts, in order; buttons and media are JSON lists.
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
        updated_at TEXT NOT NULL,
        parts_sent INTEGER NOT NULL DEFAULT 0,
        buttons TEXT NOT NULL DEFAULT '[]',
        media TEXT NOT NULL DEFAULT '[]'
    ) STRICT""",
    "CREATE INDEX outbox_open ON outbox (bridge, id) WHERE state IN ('pending', 'sending')",
    "CREATE INDEX outbox_unsent ON outbox (state) WHERE state <> 'sent'",
    "CREATE INDEX outbox_session ON outbox (session, id)",
    # What a terminal that comes again has missed.
    "CREATE INDEX outbox_shown ON outbox (session, bridge, id)",
    "CREATE INDEX outbox_turn ON outbox (turn) WHERE turn IS NOT NULL",
    # Files that go out with the answer of a turn that still runs; media: JSON.
    """CREATE TABLE turn_files (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        turn TEXT NOT NULL REFERENCES turns(id),
        session TEXT NOT NULL,
        scope TEXT NOT NULL,
        media TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX turn_files_turn ON turn_files (turn)",
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
    # Commands that were typed on a bridge. state: accepted, running, done; text is emptied with the answer.
    """CREATE TABLE typed_commands (
        id INTEGER PRIMARY KEY,
        bridge TEXT NOT NULL,
        external_id TEXT NOT NULL,
        session TEXT NOT NULL,
        scope TEXT NOT NULL,
        sender TEXT NOT NULL,
        target TEXT NOT NULL,
        text TEXT NOT NULL,
        state TEXT NOT NULL,
        accepted_at TEXT NOT NULL,
        UNIQUE (bridge, external_id)
    ) STRICT""",
    "CREATE INDEX typed_open ON typed_commands (id) WHERE state <> 'done'",
    # What was edited or deleted on its network after it had arrived; record_id is its own in the log, given when it was
    # accepted. content: the words that it brought, or that it replaced, until the log has them.
    """CREATE TABLE changes (
        id INTEGER PRIMARY KEY,
        bridge TEXT NOT NULL,
        change_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        session TEXT NOT NULL,
        scope TEXT NOT NULL,
        message_id INTEGER NOT NULL,
        record_id INTEGER NOT NULL UNIQUE,
        content TEXT NOT NULL,
        state TEXT NOT NULL,
        at TEXT NOT NULL,
        UNIQUE (bridge, change_id)
    ) STRICT""",
    "CREATE INDEX changes_message ON changes (message_id)",
    "CREATE INDEX changes_open ON changes (id) WHERE state = 'accepted'",
)
