"""What bridges need in script.db: how far each has come, which of them the owner paused, and how much of what goes out
did."""

TABLES: tuple[str, ...] = (
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
