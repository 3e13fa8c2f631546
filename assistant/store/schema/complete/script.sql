-- Made by `make docs` from the migrations of script.db. Do not edit.

CREATE TABLE sessions (
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
    extracted_seq INTEGER NOT NULL DEFAULT 0,
    parent_session TEXT,
    parent_message_id INTEGER REFERENCES messages(id),
    view_floor INTEGER NOT NULL DEFAULT 0,
    from_seq INTEGER NOT NULL DEFAULT 1,
    resumed INTEGER,
    cleared INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (key, generation)
) STRICT;

CREATE INDEX sessions_to_clear ON sessions (key, generation) WHERE ended_at IS NOT NULL AND cleared = 0;

CREATE TABLE messages (
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
    hidden_by INTEGER REFERENCES messages(id), unlearned INTEGER NOT NULL DEFAULT 0, external_id TEXT,
    UNIQUE (session, seq)
) STRICT;

CREATE INDEX messages_turn ON messages (turn) WHERE turn IS NOT NULL;

CREATE INDEX messages_scope ON messages (scope, id);

CREATE TABLE conversation_history (
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
) STRICT;

CREATE INDEX history_message ON conversation_history (message_id);

CREATE TABLE checkpoints (
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
    kept_from INTEGER, lease_until TEXT,
    UNIQUE (session_id, checkpoint_num)
) STRICT;

CREATE INDEX checkpoints_live ON checkpoints (session_id, generation, from_seq) WHERE state = 'live';

CREATE INDEX checkpoints_started ON checkpoints (id) WHERE state = 'started';

CREATE INDEX checkpoints_unjournaled ON checkpoints (id) WHERE journaled = 0 AND state IN ('live', 'absorbed');

CREATE INDEX checkpoints_kept ON checkpoints (session_id, checkpoint_num) WHERE kept_from IS NOT NULL;

CREATE TABLE earlier_rows (
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
) STRICT;

CREATE INDEX earlier_message ON earlier_rows (message_id);

CREATE TABLE inbox (
    id INTEGER PRIMARY KEY,
    bridge TEXT NOT NULL,
    external_id TEXT NOT NULL,
    session TEXT NOT NULL,
    generation INTEGER NOT NULL,
    scope TEXT NOT NULL,
    sender TEXT NOT NULL,
    trust TEXT NOT NULL,
    target TEXT NOT NULL,
    message_id INTEGER NOT NULL UNIQUE,
    state TEXT NOT NULL,
    turn TEXT,
    received_at TEXT NOT NULL,
    ended_at TEXT, has_data INTEGER NOT NULL DEFAULT 0,
    UNIQUE (bridge, external_id)
) STRICT;

CREATE INDEX inbox_accepted ON inbox (session, id) WHERE state = 'accepted';

CREATE INDEX inbox_turn ON inbox (turn) WHERE turn IS NOT NULL;

CREATE TABLE turns (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    generation INTEGER NOT NULL,
    scope TEXT NOT NULL,
    state TEXT NOT NULL,
    volatile TEXT NOT NULL,
    error TEXT NOT NULL DEFAULT '',
    started_at TEXT NOT NULL,
    ended_at TEXT
, untrusted TEXT NOT NULL DEFAULT '[]') STRICT;

CREATE INDEX turns_running ON turns (session) WHERE state = 'running';

CREATE TABLE tool_runs (
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
) STRICT;

CREATE TABLE outbox (
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
, parts TEXT NOT NULL DEFAULT '[]', tried_at TEXT) STRICT;

CREATE INDEX outbox_open ON outbox (bridge, id) WHERE state IN ('pending', 'sending');

CREATE INDEX outbox_unsent ON outbox (state) WHERE state <> 'sent';

CREATE INDEX outbox_session ON outbox (session, id);

CREATE INDEX outbox_shown ON outbox (session, bridge, id);

CREATE INDEX outbox_turn ON outbox (turn) WHERE turn IS NOT NULL;

CREATE TABLE turn_files (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    turn TEXT NOT NULL REFERENCES turns(id),
    session TEXT NOT NULL,
    scope TEXT NOT NULL,
    media TEXT NOT NULL
) STRICT;

CREATE INDEX turn_files_turn ON turn_files (turn);

CREATE TABLE delegations (
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
) STRICT;

CREATE INDEX delegations_running ON delegations (session) WHERE state = 'running';

CREATE INDEX delegations_session ON delegations (session, id);

CREATE INDEX delegations_key ON delegations (key);

CREATE TABLE requests (
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
) STRICT;

CREATE INDEX requests_open ON requests (session, message_id) WHERE state = 'open';

CREATE INDEX requests_scope ON requests (scope, message_id);

CREATE INDEX requests_turn ON requests (turn);

CREATE TABLE typed_commands (
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
) STRICT;

CREATE INDEX typed_open ON typed_commands (id) WHERE state <> 'done';

CREATE TABLE changes (
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
) STRICT;

CREATE INDEX changes_message ON changes (message_id);

CREATE INDEX changes_open ON changes (id) WHERE state = 'accepted';

CREATE TABLE people (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX people_owner ON people (role) WHERE role = 'owner';

CREATE TABLE identities (
    bridge TEXT NOT NULL,
    sender TEXT NOT NULL,
    person_id INTEGER NOT NULL REFERENCES people(id),
    linked_at TEXT NOT NULL,
    PRIMARY KEY (bridge, sender)
) STRICT;

CREATE INDEX identities_person ON identities (person_id);

CREATE TABLE rooms (
    bridge TEXT NOT NULL,
    room TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    decided_at TEXT NOT NULL,
    PRIMARY KEY (bridge, room)
) STRICT;

CREATE TABLE places (
    bridge TEXT NOT NULL,
    target TEXT NOT NULL,
    session TEXT NOT NULL,
    chosen_at TEXT NOT NULL,
    PRIMARY KEY (bridge, target)
) STRICT;

CREATE TABLE accounts_at (
    bridge TEXT NOT NULL,
    target TEXT NOT NULL,
    account TEXT NOT NULL,
    PRIMARY KEY (bridge, target)
) STRICT;

CREATE TABLE told (
    session TEXT PRIMARY KEY,
    told_at TEXT NOT NULL
) STRICT;

CREATE TABLE bridge_states (
    bridge TEXT PRIMARY KEY,
    position TEXT NOT NULL DEFAULT '',
    paused INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE jobs (
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
, change_key TEXT, replanned INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE INDEX jobs_due ON jobs (next_due_at) WHERE state = 'active';

CREATE INDEX jobs_made_by ON jobs (made_by) WHERE made_by IS NOT NULL;

CREATE INDEX jobs_scope ON jobs (scope, kind, id) WHERE state IN ('active', 'paused');

CREATE UNIQUE INDEX jobs_name ON jobs (scope, name) WHERE name <> '' AND state IN ('active', 'paused');

CREATE TABLE slots (
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
) STRICT;

CREATE INDEX slots_unlogged ON slots (told) WHERE logged = 0;

CREATE INDEX slots_scope ON slots (scope, id);

CREATE TABLE resets (
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
) STRICT;

CREATE INDEX resets_unfinished ON resets (begun_at) WHERE state IN ('begun', 'waiting', 'archived');

CREATE TABLE archives (
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
) STRICT;

CREATE INDEX archives_scope ON archives (scope, archived_at);

CREATE TABLE usage (
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
, parts TEXT NOT NULL DEFAULT '', boot TEXT) STRICT;

CREATE INDEX usage_ts ON usage (ts);

CREATE TABLE usage_totals (
    period TEXT PRIMARY KEY,
    usd REAL NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0,
    unpriced_tokens INTEGER NOT NULL DEFAULT 0,
    calls INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE model_facts (
    model TEXT PRIMARY KEY,
    factor REAL,
    samples INTEGER NOT NULL DEFAULT 0,
    window INTEGER,
    max_output INTEGER,
    max_bytes INTEGER,
    max_images INTEGER,
    source TEXT,
    updated_at TEXT NOT NULL
) STRICT;

CREATE TABLE usage_by_role (
    role TEXT NOT NULL,
    period TEXT NOT NULL,
    usd REAL NOT NULL DEFAULT 0,
    unpriced_tokens INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (role, period)
) STRICT;

CREATE TABLE breakers (
    name TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    opened_at TEXT,
    last_error TEXT NOT NULL
) STRICT;

CREATE TABLE "notice_marks" (
    name TEXT PRIMARY KEY,
    at TEXT NOT NULL
) STRICT;

CREATE TABLE repeated_requests (
    fingerprint TEXT PRIMARY KEY,
    purpose TEXT NOT NULL,
    first_at TEXT NOT NULL,
    sent INTEGER NOT NULL,
    stopped_until TEXT
) STRICT;

CREATE INDEX repeated_stopped ON repeated_requests (stopped_until) WHERE stopped_until IS NOT NULL;

CREATE INDEX inbox_scope ON inbox (scope, id);

CREATE TABLE model_outages (model TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL, began_at TEXT NOT NULL) STRICT;

CREATE TABLE model_outage_places (model TEXT NOT NULL REFERENCES model_outages(model), session TEXT NOT NULL, scope TEXT NOT NULL, bridge TEXT NOT NULL, target TEXT NOT NULL, PRIMARY KEY (model, session, bridge, target)) STRICT;

CREATE INDEX jobs_done ON jobs (scope, ended_at) WHERE state = 'done';

CREATE INDEX slots_unseen ON slots (scope, id) WHERE state <> 'ran' AND seen_at IS NULL;

CREATE TABLE pairings (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, bridge TEXT NOT NULL, sender TEXT NOT NULL, room TEXT, target TEXT NOT NULL, name TEXT NOT NULL, salt BLOB NOT NULL, hash BLOB NOT NULL, state TEXT NOT NULL, tries INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL, expires_at TEXT NOT NULL) STRICT;

CREATE INDEX pairings_kind ON pairings (kind, expires_at);

CREATE TABLE clock_steps (id INTEGER PRIMARY KEY, before_at TEXT NOT NULL, after_at TEXT NOT NULL) STRICT;

CREATE TABLE approvals (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, session TEXT NOT NULL, generation INTEGER NOT NULL, scope TEXT NOT NULL, turn TEXT NOT NULL, call_id TEXT NOT NULL, tool TEXT NOT NULL, arguments TEXT NOT NULL, effect TEXT NOT NULL, bridge TEXT NOT NULL, target TEXT NOT NULL, state TEXT NOT NULL, result TEXT NOT NULL DEFAULT '', decided_by TEXT NOT NULL DEFAULT '', created_at TEXT NOT NULL, expires_at TEXT NOT NULL, decided_at TEXT, ended_at TEXT, pattern TEXT NOT NULL DEFAULT '', allows TEXT NOT NULL DEFAULT '', allowed_until TEXT, uses INTEGER NOT NULL DEFAULT 0, used_at TEXT) STRICT;

CREATE INDEX approvals_open ON approvals (state, expires_at) WHERE state IN ('pending', 'approved');

CREATE INDEX approvals_turn ON approvals (turn);

CREATE INDEX approvals_decided_by ON approvals (decided_by) WHERE decided_by <> '';

CREATE INDEX approvals_allowed ON approvals (tool, pattern, allowed_until) WHERE allowed_until IS NOT NULL;

CREATE TABLE mcp_tools (server TEXT NOT NULL, name TEXT NOT NULL, seen TEXT NOT NULL, approved TEXT NOT NULL DEFAULT '', approved_at TEXT, PRIMARY KEY (server, name)) STRICT;

CREATE INDEX messages_external ON messages (session, external_id) WHERE external_id IS NOT NULL;

CREATE TABLE imports (id INTEGER PRIMARY KEY, source TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL, scope TEXT NOT NULL, begun_at TEXT NOT NULL, ended_at TEXT, rejected INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE TABLE imported_conversations (id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, source TEXT NOT NULL, external_id TEXT NOT NULL, title TEXT NOT NULL) STRICT;

CREATE INDEX imported_conversations_known ON imported_conversations (source, external_id);

CREATE TABLE imported_ranges (import_id INTEGER NOT NULL REFERENCES imports(id), session TEXT NOT NULL, from_seq INTEGER NOT NULL, to_seq INTEGER NOT NULL, PRIMARY KEY (session, from_seq)) STRICT;

CREATE INDEX imported_ranges_import ON imported_ranges (import_id);

CREATE TABLE pushes (key TEXT NOT NULL, service TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL, error TEXT NOT NULL, retry_at TEXT, updated_at TEXT NOT NULL, PRIMARY KEY (key, service)) STRICT;

CREATE INDEX pushes_service ON pushes (service, updated_at);

CREATE TABLE inbox_words (inbox_id INTEGER PRIMARY KEY REFERENCES inbox(id) ON DELETE CASCADE, scope TEXT NOT NULL, generation INTEGER NOT NULL, body TEXT NOT NULL) STRICT;

CREATE VIEW inbox_messages AS SELECT inbox.*, inbox_words.body FROM inbox LEFT JOIN inbox_words ON inbox_words.inbox_id = inbox.id;

CREATE INDEX messages_not_counted ON messages (session, generation, seq) WHERE kind <> 'message' OR hidden_by IS NOT NULL;

CREATE TABLE dated_texts (scope TEXT NOT NULL, made_of BLOB NOT NULL, mentions TEXT NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (scope, made_of)) STRICT, WITHOUT ROWID;

CREATE INDEX usage_boot ON usage (boot) WHERE boot IS NOT NULL;

INSERT INTO "sqlite_sequence" VALUES('pairings',0)
