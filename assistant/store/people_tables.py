"""Tables of script.db that tell who is who: people, their identities on bridges, rooms, what waits to be paired, where
the owner's places lead, and what was typed on a bridge and is not answered yet."""

TABLES: tuple[str, ...] = (
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
