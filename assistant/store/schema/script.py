"""The schema of script.db, as numbered migrations: append new ones, never change one that was released.

Every table that holds words has `scope` and `generation`, and every query over them names a scope (I10). Times are
UTC ISO-8601 text of a fixed width, so that they sort as text. The tables of conversations are in
`script_conversation`.
"""

from __future__ import annotations

from sqlite_utils import Database, Migrations

from assistant.store.schema.script_conversation import CONVERSATION_TABLES, TURN_TABLES

script_migrations = Migrations("script")


# It has the name of the last migration that it replaced: where that is applied, nothing is missing.
@script_migrations(name="0009_made_by")
def create_tables(db: Database) -> None:
    """All tables as they were when migrations were counted anew."""
    for statement in (*CONVERSATION_TABLES, *TURN_TABLES, *PEOPLE_TABLES, *AGENDA_TABLES, *RESET_TABLES, *USAGE_TABLES):
        db.execute(statement)


@script_migrations(name="0010_outbox_parts")
def add_outbox_parts(db: Database) -> None:
    """The parts of a long message are stored before the first is sent. Where some were sent already, nobody can tell
    any more what the others are: the owner decides about these."""
    # parts: JSON list of texts; empty for a message that is short, was not tried yet, or was sent.
    db.execute("ALTER TABLE outbox ADD COLUMN parts TEXT NOT NULL DEFAULT '[]'")
    db.execute(
        "UPDATE outbox SET state = 'ambiguous', parts_sent = 0, error = 'an earlier version sent some of its parts'"
        " WHERE state IN ('pending', 'sending') AND parts_sent > 0"
    )


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
    # position: where the bridge goes on receiving, in its own words; written with what was kept of a message.
    """CREATE TABLE bridge_states (
        bridge TEXT PRIMARY KEY,
        position TEXT NOT NULL DEFAULT '',
        paused INTEGER NOT NULL DEFAULT 0
    ) STRICT""",
)


AGENDA_TABLES: tuple[str, ...] = (
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
    "CREATE INDEX jobs_made_by ON jobs (made_by) WHERE made_by IS NOT NULL",
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


RESET_TABLES: tuple[str, ...] = (
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


USAGE_TABLES: tuple[str, ...] = (
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
    # What each role has cost in each calendar day and month, so that its share is checked without adding up.
    """CREATE TABLE usage_by_role (
        role TEXT NOT NULL,
        period TEXT NOT NULL,
        usd REAL NOT NULL DEFAULT 0,
        unpriced_tokens INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (role, period)
    ) STRICT""",
    """CREATE TABLE breakers (
        name TEXT PRIMARY KEY,
        failures INTEGER NOT NULL,
        opened_at TEXT,
        last_error TEXT NOT NULL
    ) STRICT""",
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
