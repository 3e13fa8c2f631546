"""Migrations of each database, in order. The first one runs the SQL files with its tables."""

from __future__ import annotations

from assistant.store.schema.library import MigratedDatabase, Migrations, run_statements

script_migrations = Migrations("script")


# Has the name of the last migration it replaced, so it is not run where that was applied.
@script_migrations(name="0009_made_by")
def create_script_tables(db: MigratedDatabase) -> None:
    """Create all tables as of when the migrations were last merged into one."""
    run_statements(db, "script.sql")


@script_migrations(name="0010_outbox_parts")
def add_outbox_parts(db: MigratedDatabase) -> None:
    """Store the parts of a long message before the first is sent. If some were already sent, the others are unknown, so
    the owner decides."""
    # parts: JSON list of texts; empty for a short message, and before the first attempt or after sending.
    db.execute("ALTER TABLE outbox ADD COLUMN parts TEXT NOT NULL DEFAULT '[]'")
    db.execute(
        "UPDATE outbox SET state = 'ambiguous', parts_sent = 0, error = 'an earlier version sent some of its parts'"
        " WHERE state IN ('pending', 'sending') AND parts_sent > 0"
    )


@script_migrations(name="0011_started_is_the_lease")
def drop_noted_twice(db: MigratedDatabase) -> None:
    """Drop duplicated state: the lease of a compaction is its started checkpoint, and what waits for extraction is
    computed from checkpoints and ended conversations."""
    db.execute("ALTER TABLE checkpoints ADD COLUMN lease_until TEXT")
    for column in ("lease_holder", "lease_until"):
        db.execute(f"ALTER TABLE sessions DROP COLUMN {column}")
    db.execute("DROP TABLE extraction_queue")


@script_migrations(name="0012_unlearned_messages")
def add_unlearned(db: MigratedDatabase) -> None:
    """Someone who erases a memory may keep the message it came from: it is not learned again."""
    db.execute("ALTER TABLE messages ADD COLUMN unlearned INTEGER NOT NULL DEFAULT 0")


@script_migrations(name="0013_notices")
def add_notices(db: MigratedDatabase) -> None:
    """Send notices of every kind once, to where people last wrote; remember models that do not answer."""
    db.execute("ALTER TABLE spending_marks RENAME TO notice_marks")
    db.execute("CREATE INDEX inbox_scope ON inbox (scope, id)")
    # model: such as "anthropic:claude-sonnet-5"; kind and reason: of its last failure.
    db.execute(
        "CREATE TABLE model_outages (model TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL,"
        " reason TEXT NOT NULL, began_at TEXT NOT NULL) STRICT"
    )
    # Where an outage was reported, and where its end will be.
    db.execute(
        "CREATE TABLE model_outage_places (model TEXT NOT NULL REFERENCES model_outages(model), session TEXT NOT NULL,"
        " scope TEXT NOT NULL, bridge TEXT NOT NULL, target TEXT NOT NULL,"
        " PRIMARY KEY (model, session, bridge, target)) STRICT"
    )


@script_migrations(name="0014_job_changes")
def add_change_keys(db: MigratedDatabase) -> None:
    """Store the key of a job's latest change, so that a change repeated after a crash is made once."""
    db.execute("ALTER TABLE jobs ADD COLUMN change_key TEXT")
    db.execute("CREATE INDEX jobs_done ON jobs (scope, ended_at) WHERE state = 'done'")


@script_migrations(name="0015_late_is_seen")
def watch_late_slots(db: MigratedDatabase) -> None:
    """Late slots are shown to people like missed ones; those before this migration count as seen."""
    db.execute("UPDATE slots SET seen_at = ended_at WHERE state = 'late' AND seen_at IS NULL")
    db.execute("DROP INDEX slots_missed")
    db.execute("CREATE INDEX slots_unseen ON slots (scope, id) WHERE state <> 'ran' AND seen_at IS NULL")


@script_migrations(name="0016_request_numbers")
def give_request_numbers_once(db: MigratedDatabase) -> None:
    """Never reuse the number of a request. A reused number had the key of an earlier question, so it was not asked, and
    the buttons of the earlier question decided on it."""
    db.execute("ALTER TABLE pairings RENAME TO earlier_pairings")
    db.execute(
        "CREATE TABLE pairings (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, bridge TEXT NOT NULL,"
        " sender TEXT NOT NULL, room TEXT, target TEXT NOT NULL, name TEXT NOT NULL, salt BLOB NOT NULL,"
        " hash BLOB NOT NULL, state TEXT NOT NULL, tries INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL,"
        " expires_at TEXT NOT NULL) STRICT"
    )
    db.execute("INSERT INTO pairings SELECT * FROM earlier_pairings")
    db.execute("DROP TABLE earlier_pairings")
    db.execute("CREATE INDEX pairings_kind ON pairings (kind, expires_at)")
    # The questions show which numbers were used.
    numbers = "SELECT id FROM pairings UNION ALL SELECT CAST(substr(key, 7) AS INTEGER) FROM outbox"
    db.execute("DELETE FROM sqlite_sequence WHERE name = 'pairings'")
    db.execute(
        "INSERT INTO sqlite_sequence (name, seq)"
        f" SELECT 'pairings', coalesce(max(id), 0) FROM ({numbers} WHERE key GLOB 'knock:*')"
    )


@script_migrations(name="0017_clock_steps")
def record_clock_steps(db: MigratedDatabase) -> None:
    """Record jumps of the wall clock, so that jobs can be planned again after a wrong time."""
    # replanned: how often slots that a wrong clock had ended were restored.
    db.execute("ALTER TABLE jobs ADD COLUMN replanned INTEGER NOT NULL DEFAULT 0")
    db.execute(
        "CREATE TABLE clock_steps (id INTEGER PRIMARY KEY, before_at TEXT NOT NULL, after_at TEXT NOT NULL) STRICT"
    )


@script_migrations(name="0018_approvals")
def add_approvals(db: MigratedDatabase) -> None:
    """Actions that nobody asked for wait for the owner's approval, and a turn remembers which content its model has
    read."""
    # JSON list of sources read by the model that the person did not write now.
    db.execute("ALTER TABLE turns ADD COLUMN untrusted TEXT NOT NULL DEFAULT '[]'")
    # key: of the action. effect: what will happen, in words for people. decided_by: the turn that answered it.
    db.execute(
        "CREATE TABLE approvals (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, session TEXT NOT NULL,"
        " generation INTEGER NOT NULL, scope TEXT NOT NULL, turn TEXT NOT NULL, call_id TEXT NOT NULL,"
        " tool TEXT NOT NULL, arguments TEXT NOT NULL, effect TEXT NOT NULL, bridge TEXT NOT NULL,"
        " target TEXT NOT NULL, state TEXT NOT NULL, result TEXT NOT NULL DEFAULT '',"
        " decided_by TEXT NOT NULL DEFAULT '', created_at TEXT NOT NULL,"
        " expires_at TEXT NOT NULL, decided_at TEXT, ended_at TEXT) STRICT"
    )
    db.execute("CREATE INDEX approvals_open ON approvals (state, expires_at) WHERE state IN ('pending', 'approved')")
    db.execute("CREATE INDEX approvals_turn ON approvals (turn)")
    db.execute("CREATE INDEX approvals_decided_by ON approvals (decided_by) WHERE decided_by <> ''")


@script_migrations(name="0019_usage_parts")
def add_usage_parts(db: MigratedDatabase) -> None:
    """Store what each part of a prompt was billed, with the call."""
    # JSON: {part: [input, output, cache_read, cache_write, usd]}; '' where the provider reported nothing.
    db.execute("ALTER TABLE usage ADD COLUMN parts TEXT NOT NULL DEFAULT ''")


@script_migrations(name="0020_remembered_approvals")
def remember_approvals(db: MigratedDatabase) -> None:
    """An approval may permit further calls for some time; each use is counted."""
    # pattern: of the tool calls it covers; '' if each is asked about. allows: the same in words for people.
    db.execute("ALTER TABLE approvals ADD COLUMN pattern TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE approvals ADD COLUMN allows TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE approvals ADD COLUMN allowed_until TEXT")
    db.execute("ALTER TABLE approvals ADD COLUMN uses INTEGER NOT NULL DEFAULT 0")
    db.execute("ALTER TABLE approvals ADD COLUMN used_at TEXT")
    allowed = "ON approvals (tool, pattern, allowed_until) WHERE allowed_until IS NOT NULL"
    db.execute(f"CREATE INDEX approvals_allowed {allowed}")


@script_migrations(name="0021_mcp_tools")
def add_mcp_tools(db: MigratedDatabase) -> None:
    """Store MCP tool descriptions as last seen, and as the owner approved them."""
    # JSON; '' if the server no longer has the tool, or nothing is approved.
    db.execute(
        "CREATE TABLE mcp_tools (server TEXT NOT NULL, name TEXT NOT NULL, seen TEXT NOT NULL,"
        " approved TEXT NOT NULL DEFAULT '', approved_at TEXT, PRIMARY KEY (server, name)) STRICT"
    )


@script_migrations(name="0022_imports")
def add_imports(db: MigratedDatabase) -> None:
    """Conversations imported from other programs."""
    # The other program's id of a message, so that reading the same export twice adds nothing.
    db.execute("ALTER TABLE messages ADD COLUMN external_id TEXT")
    db.execute("CREATE INDEX messages_external ON messages (session, external_id) WHERE external_id IS NOT NULL")
    # name: of the file. state: running, done, undone.
    db.execute(
        "CREATE TABLE imports (id INTEGER PRIMARY KEY, source TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL,"
        " scope TEXT NOT NULL, begun_at TEXT NOT NULL, ended_at TEXT, rejected INTEGER NOT NULL DEFAULT 0) STRICT"
    )
    # id: the number in the session's key.
    db.execute(
        "CREATE TABLE imported_conversations (id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL,"
        " source TEXT NOT NULL, external_id TEXT NOT NULL, title TEXT NOT NULL) STRICT"
    )
    db.execute("CREATE INDEX imported_conversations_known ON imported_conversations (source, external_id)")
    # Which import added which records of a conversation.
    db.execute(
        "CREATE TABLE imported_ranges (import_id INTEGER NOT NULL REFERENCES imports(id), session TEXT NOT NULL,"
        " from_seq INTEGER NOT NULL, to_seq INTEGER NOT NULL, PRIMARY KEY (session, from_seq)) STRICT"
    )
    db.execute("CREATE INDEX imported_ranges_import ON imported_ranges (import_id)")


@script_migrations(name="0023_pushes")
def add_pushes(db: MigratedDatabase) -> None:
    """Push notifications to external services, each sent once per service; without text."""
    # service: a name derived from its address. state: sending, sent, failed, uncertain.
    db.execute(
        "CREATE TABLE pushes (key TEXT NOT NULL, service TEXT NOT NULL, state TEXT NOT NULL,"
        " attempts INTEGER NOT NULL, error TEXT NOT NULL, retry_at TEXT, updated_at TEXT NOT NULL,"
        " PRIMARY KEY (key, service)) STRICT"
    )
    db.execute("CREATE INDEX pushes_service ON pushes (service, updated_at)")


@script_migrations(name="0024_inbox_words")
def move_inbox_words(db: MigratedDatabase) -> None:
    """Move texts of received messages into their own table: SQLite rewrites a whole row when its state changes, and a
    message may be very long."""
    # body: JSON of content, media, name.
    db.execute(
        "CREATE TABLE inbox_words (inbox_id INTEGER PRIMARY KEY REFERENCES inbox(id) ON DELETE CASCADE,"
        " scope TEXT NOT NULL, generation INTEGER NOT NULL, body TEXT NOT NULL) STRICT"
    )
    db.execute("INSERT INTO inbox_words SELECT id, scope, generation, body FROM inbox")
    # has_data: whether the body has pictures, which only the log keeps once the message has ended.
    db.execute("ALTER TABLE inbox ADD COLUMN has_data INTEGER NOT NULL DEFAULT 0")
    db.execute("UPDATE inbox SET has_data = 1 WHERE instr(body, '\"data\":')")
    db.execute("ALTER TABLE inbox DROP COLUMN body")
    db.execute(
        "CREATE VIEW inbox_messages AS SELECT inbox.*, inbox_words.body FROM inbox"
        " LEFT JOIN inbox_words ON inbox_words.inbox_id = inbox.id"
    )


@script_migrations(name="0025_no_messages")
def index_what_is_no_message(db: MigratedDatabase) -> None:
    """Index the few records that are not messages or were undone: messages are counted by subtracting them."""
    db.execute(
        "CREATE INDEX messages_not_counted ON messages (session, generation, seq)"
        " WHERE kind <> 'message' OR hidden_by IS NOT NULL"
    )


@script_migrations(name="0026_outbox_tried_at")
def add_outbox_tried_at(db: MigratedDatabase) -> None:
    """Store when a delivery, or its next part, was first attempted."""
    db.execute("ALTER TABLE outbox ADD COLUMN tried_at TEXT")
    db.execute("UPDATE outbox SET tried_at = created_at WHERE state = 'sending'")


@script_migrations(name="0027_dated_texts")
def add_dated_texts(db: MigratedDatabase) -> None:
    """Keep what was read of days in texts: reading a thousand of them takes a second."""
    # made_of: a digest of the text, when it was said, the time zone and the rules. mentions: JSON.
    db.execute(
        "CREATE TABLE dated_texts (scope TEXT NOT NULL, made_of BLOB NOT NULL, mentions TEXT NOT NULL,"
        " checksum INTEGER NOT NULL, PRIMARY KEY (scope, made_of)) STRICT, WITHOUT ROWID"
    )


@script_migrations(name="0028_reserved_ahead")
def mark_what_is_reserved_ahead(db: MigratedDatabase) -> None:
    """Mark what is reserved before its call is known: where no call followed, the next start deletes it."""
    # The boot of the machine in which it was reserved, '' if unknown; NULL for a call.
    db.execute("ALTER TABLE usage ADD COLUMN boot TEXT")
    db.execute("CREATE INDEX usage_boot ON usage (boot) WHERE boot IS NOT NULL")


character_migrations = Migrations("character")


# Has the name of the last migration it replaced, so it is not run where that was applied.
@character_migrations(name="0004_as_of")
def create_character_tables(db: MigratedDatabase) -> None:
    """Create all tables as of when the migrations were last merged into one."""
    run_statements(db, "character.sql")


@character_migrations(name="0005_without_full_text")
def drop_journal_full_text(db: MigratedDatabase) -> None:
    """Drop full-text search from character.db: entries are found through the search index."""
    db.execute("DROP TABLE journal_fts")


@character_migrations(name="0007_todo_lists")
def add_todo_lists(db: MigratedDatabase) -> None:
    """To-dos are on a list, which may have a name, and may be due on a day, or at a time."""
    db.execute("ALTER TABLE todos ADD COLUMN list TEXT NOT NULL DEFAULT ''")
    # Local time of the data folder: '2026-03-13', or '2026-03-13T17:00'.
    db.execute("ALTER TABLE todos ADD COLUMN due TEXT")
    db.execute("CREATE INDEX todos_due ON todos (scope, due) WHERE state = 'open' AND due IS NOT NULL")
    db.execute("CREATE INDEX todos_done ON todos (scope, done_at) WHERE state = 'done'")


@character_migrations(name="0008_notes_by_themselves")
def count_notes_apart(db: MigratedDatabase) -> None:
    """Daily notes are written after every compaction, profiles and MEMORY.md at night: store separate read positions,
    starting from the common one."""
    db.execute("INSERT INTO readings SELECT 'notes', session, generation, seq, at FROM readings WHERE phase = 'curate'")


@character_migrations(name="0009_accepted_changes")
def add_accepted_changes(db: MigratedDatabase) -> None:
    """A change made by a sleep cycle can be accepted individually; it is then no longer shown as new."""
    db.execute("ALTER TABLE change_plans ADD COLUMN accepted_at TEXT")
    db.execute("ALTER TABLE edits ADD COLUMN accepted_at TEXT")


@character_migrations(name="0010_plans_by_sleep")
def index_plans_by_sleep(db: MigratedDatabase) -> None:
    """Find the changes of a sleep cycle without reading those of others."""
    db.execute("CREATE INDEX change_plans_cycle ON change_plans (cycle, state, scope, id)")
    db.execute("CREATE INDEX change_plans_accepted ON change_plans (cycle, key) WHERE accepted_at IS NOT NULL")


memory_migrations = Migrations("memory")


@memory_migrations(name="0001_initial")
def create_memory_tables(db: MigratedDatabase) -> None:
    """Memories with their vectors and full text, their earlier versions, and the active embedder."""
    run_statements(db, "memory.sql")


@memory_migrations(name="0002_without_full_text")
def drop_full_text(db: MigratedDatabase) -> None:
    """Drop full-text search from memory.db: memories are found through the journal."""
    db.execute("DROP TABLE memories_fts")


search_migrations = Migrations("search")


@search_migrations(name="0001_initial")
def create_search_tables(db: MigratedDatabase) -> None:
    """Units, their pages, postings and vectors, all derived from the log, the journal and the memories."""
    run_statements(db, "search.sql")


@search_migrations(name="0002_checksums")
def add_checksums(db: MigratedDatabase) -> None:
    """Add a checksum to each row, to detect damaged bytes. Earlier entries are indexed again."""
    for table in ("names", "fresh", "pages", "vectors", "terms", "postings", "read_to"):
        db.execute(f"DELETE FROM {table}")
        db.execute(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
    db.execute("UPDATE collections SET total = x''")


@search_migrations(name="0003_passed_over")
def add_passed_over(db: MigratedDatabase) -> None:
    """Messages and journal entries that could not be indexed, or only in part, with the reasons."""
    db.execute(
        "CREATE TABLE passed_over (collection INTEGER NOT NULL, source INTEGER NOT NULL, reason TEXT NOT NULL,"
        " checksum INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (collection, source)) STRICT, WITHOUT ROWID"
    )


@search_migrations(name="0004_vectors_apart_from_keys")
def keep_vectors_apart_from_keys(db: MigratedDatabase) -> None:
    """Keep vectors apart from their keys: in a table without row ids they stand between these, so that finding one of
    two million took some ten pages, and three quarters of the time."""
    db.execute("ALTER TABLE vectors RENAME TO former_vectors")
    db.execute(
        "CREATE TABLE vectors (collection INTEGER NOT NULL, block INTEGER NOT NULL, body BLOB NOT NULL,"
        " checksum INTEGER NOT NULL, PRIMARY KEY (collection, block)) STRICT"
    )
    db.execute("INSERT INTO vectors SELECT collection, block, body, checksum FROM former_vectors")
    db.execute("DROP TABLE former_vectors")


calendar_migrations = Migrations("calendars")


@calendar_migrations(name="0001_initial")
def create_calendar_tables(db: MigratedDatabase) -> None:
    """Cache of calendars and address books."""
    run_statements(db, "calendars.sql")


files_migrations = Migrations("files")


@files_migrations(name="0001_initial")
def create_file_tables(db: MigratedDatabase) -> None:
    """Files of the workspace and of the owner's folders, and their text by page, all derived from them."""
    run_statements(db, "files.sql")
