-- --------------------------------------------------------------------------------------------------- conversations

-- One row a generation of a session, with the running totals of its view, so that a turn never recounts it.
-- - extracted_seq: follows the journal's own cursor (character.db), never runs ahead of it
-- - parent_session, parent_message_id: where a branch begins
-- - view_floor: rows at positions up to it are out of view; a compaction leaves what it replaces where it is
-- - from_seq: of the generation's first record
-- - resumed: the generation that this one continues
-- - cleared: whether what an ended generation no longer shows was taken out of conversation_history
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
) STRICT;
CREATE INDEX sessions_to_clear ON sessions (key, generation) WHERE ended_at IS NOT NULL AND cleared = 0;

-- The permanent index of the message log: where each record stands, never what it says.
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
    hidden_by INTEGER REFERENCES messages(id),
    UNIQUE (session, seq)
) STRICT;
CREATE INDEX messages_turn ON messages (turn) WHERE turn IS NOT NULL;
CREATE INDEX messages_scope ON messages (scope, id);

-- The view, a row a message as the model sees it, in order of position. A prefix made by a compaction
-- takes positions below those of the tail before which it comes; positions are spaced out, so that a prefix of any
-- length fits between two rows. parts: JSON of tool calls, media and the like.
-- carried_from marks a verbatim copy that a compaction kept; coverage counts rows without it.
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

-- - absorbs: ids of the checkpoints it took over, as JSON
-- - journaled: whether the journal has its entry
-- - kept_from: the session's view_floor as it was before, while that can be put back
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
    kept_from INTEGER,
    UNIQUE (session_id, checkpoint_num)
) STRICT;
CREATE INDEX checkpoints_live ON checkpoints (session_id, generation, from_seq) WHERE state = 'live';
CREATE INDEX checkpoints_started ON checkpoints (id) WHERE state = 'started';
CREATE INDEX checkpoints_unjournaled ON checkpoints (id) WHERE journaled = 0 AND state IN ('live', 'absorbed');
CREATE INDEX checkpoints_kept ON checkpoints (session_id, checkpoint_num) WHERE kept_from IS NOT NULL;

-- Rows that a compaction shortened, as they were.
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

-- Ranges that left a view before the journal had read them, to be read from the log (F28).
CREATE TABLE extraction_queue (
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
) STRICT;
CREATE INDEX extraction_waiting ON extraction_queue (session, generation, to_seq) WHERE state = 'waiting';

-- -------------------------------------------------------------------------------------------- turns, inbox, outbox

-- body: JSON of content, media, name. message_id is given at acceptance, before the log has the message.
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
    body TEXT NOT NULL,
    message_id INTEGER NOT NULL UNIQUE,
    state TEXT NOT NULL,
    turn TEXT,
    received_at TEXT NOT NULL,
    ended_at TEXT,
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
) STRICT;
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

-- A body longer than the network takes goes out in parts, in order; buttons and media are JSON lists.
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
) STRICT;
CREATE INDEX outbox_open ON outbox (bridge, id) WHERE state IN ('pending', 'sending');
CREATE INDEX outbox_unsent ON outbox (state) WHERE state <> 'sent';
CREATE INDEX outbox_session ON outbox (session, id);

-- What a terminal that comes again has missed.
CREATE INDEX outbox_shown ON outbox (session, bridge, id);
CREATE INDEX outbox_turn ON outbox (turn) WHERE turn IS NOT NULL;

-- Files that go out with the answer of a turn that still runs; media: JSON.
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

-- A request is a user's message; its words stand in the log. task: `RequestKind`. cites: JSON of message ids.
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

-- Commands that were typed on a bridge. state: accepted, running, done; text is emptied with the answer.
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

-- What was edited or deleted on its network after it had arrived; record_id is its own in the log, given when it was
-- accepted. content: the words that it brought, or that it replaced, until the log has them.
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

-- ---------------------------------------------------------------------------------------------------------- people

-- role: owner (one row at most) or guest; state: allowed or denied.
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

-- Rooms that a person decided on; state: allowed or denied.
CREATE TABLE rooms (
    bridge TEXT NOT NULL,
    room TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    decided_at TEXT NOT NULL,
    PRIMARY KEY (bridge, room)
) STRICT;

-- Codes that were given out, each as a salted hash. kind: knock (a stranger's, which the owner approves; room where
-- it stands for a room) or link (the owner's, to be sent from that bridge). state: pending, used, locked.
CREATE TABLE pairings (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    bridge TEXT NOT NULL,
    sender TEXT NOT NULL,
    room TEXT,
    target TEXT NOT NULL,
    name TEXT NOT NULL,
    salt BLOB NOT NULL,
    hash BLOB NOT NULL,
    state TEXT NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
) STRICT;
CREATE INDEX pairings_kind ON pairings (kind, expires_at);

-- Which of the owner's conversations goes on at a place; without a row it is the main one.
CREATE TABLE places (
    bridge TEXT NOT NULL,
    target TEXT NOT NULL,
    session TEXT NOT NULL,
    chosen_at TEXT NOT NULL,
    PRIMARY KEY (bridge, target)
) STRICT;

-- Which account writes from a place that is no room; only of those who were let in.
CREATE TABLE accounts_at (
    bridge TEXT NOT NULL,
    target TEXT NOT NULL,
    account TEXT NOT NULL,
    PRIMARY KEY (bridge, target)
) STRICT;

-- Strangers and rooms, by the session that would be theirs, that had the notice that the assistant does not talk to them.
CREATE TABLE told (
    session TEXT PRIMARY KEY,
    told_at TEXT NOT NULL
) STRICT;

-- position: where the bridge goes on receiving, in its own words; written with what was kept of a message.
CREATE TABLE bridge_states (
    bridge TEXT PRIMARY KEY,
    position TEXT NOT NULL DEFAULT '',
    paused INTEGER NOT NULL DEFAULT 0
) STRICT;

-- ---------------------------------------------------------------------------------------------------------- agenda

-- next_due_at is the next slot, next_key that slot by the clock of the job's zone. `key` names the call that made
-- the job, end_key the one that cancelled it. spec: JSON of when it is due.
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
) STRICT;
CREATE INDEX jobs_due ON jobs (next_due_at) WHERE state = 'active';
CREATE INDEX jobs_made_by ON jobs (made_by) WHERE made_by IS NOT NULL;
CREATE INDEX jobs_scope ON jobs (scope, kind, id) WHERE state IN ('active', 'paused');
CREATE UNIQUE INDEX jobs_name ON jobs (scope, name) WHERE name <> '' AND state IN ('active', 'paused');

-- A slot stands here once it has ended. told: key of the outbox row by which its reminder goes out; logged: whether
-- the conversation knows. seen_at: when a person looked at one that was missed.
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
CREATE INDEX slots_missed ON slots (scope, id) WHERE state = 'missed' AND seen_at IS NULL;
CREATE INDEX slots_scope ON slots (scope, id);

-- --------------------------------------------------------------------------------------------- resets and archives

-- Resets under way and past, one a generation: begun, waiting (note says why, until retry_at), archived, done,
-- withdrawn. pressure: how full the context was.
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

-- Where each ended generation is kept: `url` is a path within the home, or an address without credentials. `sha256`
-- is of the object as it is kept, `lines_sha256` of the log lines in it. `handover` and `summary` are what its
-- header says. `outdated`: a forgetting concerns it, and the object has not been rewritten yet.
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

-- ----------------------------------------------------------------------------------------------------------- usage

-- Worst case (reserved_*) until settled; usd NULL where no price is known.
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
) STRICT;
CREATE INDEX usage_ts ON usage (ts);

-- What each calendar day and month (of the home's zone) has cost, so that a cap is checked without adding up.
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

-- What each role has cost in each calendar day and month, so that its share is checked without adding up.
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

-- name: what was said, as in "near:daily_usd:2026-11-20:5"; written with the notice that says it.
CREATE TABLE spending_marks (
    name TEXT PRIMARY KEY,
    at TEXT NOT NULL
) STRICT;

-- fingerprint: of purpose, model and prompt. sent: times since first_at, within an hour; a request that is sent too
-- often is stopped_until then. Rows of the past are taken out.
CREATE TABLE repeated_requests (
    fingerprint TEXT PRIMARY KEY,
    purpose TEXT NOT NULL,
    first_at TEXT NOT NULL,
    sent INTEGER NOT NULL,
    stopped_until TEXT
) STRICT;
CREATE INDEX repeated_stopped ON repeated_requests (stopped_until) WHERE stopped_until IS NOT NULL;
