"""The schema of script.db, as numbered migrations: append new ones, never change one that was released.

Every table that holds words has `scope` and `generation`, and every query over them names a scope (I10). Times are
UTC ISO-8601 text of a fixed width, so that they sort as text. The first two migrations have their tables in
`script_conversation`.
"""

from __future__ import annotations

from sqlite_utils import Database, Migrations

from assistant.store.schema.script_conversation import COMPACTION_TABLES, INITIAL_TABLES

script_migrations = Migrations("script")


@script_migrations(name="0001_initial")
def create_initial_tables(db: Database) -> None:
    """Sessions, the message index and its full text, the working context, checkpoints, inbox and outbox, turns and
    tool runs, metering, jobs and their slots."""
    for statement in INITIAL_TABLES:
        db.execute(statement)


@script_migrations(name="0002_compaction")
def add_compaction_tables(db: Database) -> None:
    """What compactions replaced, requests, delegations, breakers; how far the journal has read."""
    for statement in COMPACTION_TABLES:
        db.execute(statement)


@script_migrations(name="0003_search_moved")
def drop_fulltext(db: Database) -> None:
    """What was said is found through search.db, which is made from the log."""
    db.execute("DROP TABLE messages_terms")
    db.execute("DROP TABLE messages_fts")


@script_migrations(name="0004_people")
def add_people_tables(db: Database) -> None:
    """Who is who, on which bridge."""
    for statement in PEOPLE_TABLES:
        db.execute(statement)


@script_migrations(name="0005_agenda")
def add_agenda_tables(db: Database) -> None:
    """Reminders and schedules as they are kept now; nothing used the tables before."""
    for statement in AGENDA_TABLES:
        db.execute(statement)


@script_migrations(name="0006_resets")
def add_reset_tables(db: Database) -> None:
    """Ends of sessions."""
    for statement in RESET_TABLES:
        db.execute(statement)


@script_migrations(name="0007_bridges")
def add_bridge_tables(db: Database) -> None:
    """How far each bridge has come, and answers that go out in several parts, with buttons, or as files."""
    for statement in BRIDGE_TABLES:
        db.execute(statement)


@script_migrations(name="0008_spending")
def add_spending_tables(db: Database) -> None:
    """What was said of the budget, and requests that repeat themselves."""
    for statement in SPENDING_TABLES:
        db.execute(statement)


@script_migrations(name="0009_made_by")
def add_made_by_index(db: Database) -> None:
    """What a message asked to be reminded of is looked for at the end of its turn."""
    db.execute("CREATE INDEX jobs_made_by ON jobs (made_by) WHERE made_by IS NOT NULL")


PEOPLE_TABLES: tuple[str, ...] = (
    # role: owner (one row at most) or guest; state: allowed or denied.
    """CREATE TABLE people (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        role TEXT NOT NULL,
        state TEXT NOT NULL,
        created_at TEXT NOT NULL
    ) STRICT""",
    "CREATE UNIQUE INDEX people_owner ON people (role) WHERE role = 'owner'",
    """CREATE TABLE identities (
        bridge TEXT NOT NULL,
        sender TEXT NOT NULL,
        person_id INTEGER NOT NULL REFERENCES people(id),
        linked_at TEXT NOT NULL,
        PRIMARY KEY (bridge, sender)
    ) STRICT""",
    "CREATE INDEX identities_person ON identities (person_id)",
    # Rooms that somebody decided on; state: allowed or denied.
    """CREATE TABLE rooms (
        bridge TEXT NOT NULL,
        room TEXT NOT NULL,
        name TEXT NOT NULL,
        state TEXT NOT NULL,
        decided_at TEXT NOT NULL,
        PRIMARY KEY (bridge, room)
    ) STRICT""",
    # Codes that were given out, each as a salted hash. kind: knock (a stranger's, which the owner approves; room where
    # it stands for a room) or link (the owner's, to be sent from that bridge). state: pending, used, locked.
    """CREATE TABLE pairings (
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
    ) STRICT""",
    "CREATE INDEX pairings_kind ON pairings (kind, expires_at)",
    # Which of the owner's conversations goes on at a place; without a row it is the main one.
    """CREATE TABLE places (
        bridge TEXT NOT NULL,
        target TEXT NOT NULL,
        session TEXT NOT NULL,
        chosen_at TEXT NOT NULL,
        PRIMARY KEY (bridge, target)
    ) STRICT""",
    # Which account writes from a place that is no room; only of those who were let in.
    """CREATE TABLE accounts_at (
        bridge TEXT NOT NULL,
        target TEXT NOT NULL,
        account TEXT NOT NULL,
        PRIMARY KEY (bridge, target)
    ) STRICT""",
    # Strangers and rooms, by the session that would be theirs, that were told once that nobody here talks to them.
    """CREATE TABLE told (
        session TEXT PRIMARY KEY,
        told_at TEXT NOT NULL
    ) STRICT""",
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
    # What each role has cost in each calendar day and month, so that its share is checked without adding up.
    """CREATE TABLE usage_by_role (
        role TEXT NOT NULL,
        period TEXT NOT NULL,
        usd REAL NOT NULL DEFAULT 0,
        unpriced_tokens INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (role, period)
    ) STRICT""",
)


AGENDA_TABLES: tuple[str, ...] = (
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


BRIDGE_TABLES: tuple[str, ...] = (
    # position: where the bridge goes on receiving, in its own words; written with what was kept of a message.
    """CREATE TABLE bridge_states (
        bridge TEXT PRIMARY KEY,
        position TEXT NOT NULL DEFAULT '',
        paused INTEGER NOT NULL DEFAULT 0
    ) STRICT""",
    # A body longer than the network takes goes out in parts, in order; buttons and media are JSON lists.
    "ALTER TABLE outbox ADD COLUMN parts_sent INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE outbox ADD COLUMN buttons TEXT NOT NULL DEFAULT '[]'",
    "ALTER TABLE outbox ADD COLUMN media TEXT NOT NULL DEFAULT '[]'",
    # What a terminal that comes again has missed.
    "CREATE INDEX outbox_shown ON outbox (session, bridge, id)",
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
)


_ARCHIVE_TABLES: tuple[str, ...] = (
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

RESET_TABLES: tuple[str, ...] = (
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
    *_ARCHIVE_TABLES,
)


SPENDING_TABLES: tuple[str, ...] = (
    # name: what was said, as in "near:daily_usd:2026-11-20:5"; written with the notice that says it.
    """CREATE TABLE spending_marks (
        name TEXT PRIMARY KEY,
        at TEXT NOT NULL
    ) STRICT""",
    # fingerprint: of purpose, model and prompt. sent: times since first_at, within an hour; a request that is sent too
    # often is stopped_until then. Rows of the past are taken out.
    """CREATE TABLE repeated_requests (
        fingerprint TEXT PRIMARY KEY,
        purpose TEXT NOT NULL,
        first_at TEXT NOT NULL,
        sent INTEGER NOT NULL,
        stopped_until TEXT
    ) STRICT""",
    "CREATE INDEX repeated_stopped ON repeated_requests (stopped_until) WHERE stopped_until IS NOT NULL",
)
