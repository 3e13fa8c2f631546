"""What the guard over spending keeps in script.db: what was said once and is not said again, and which requests of the
background were sent how often of late."""

TABLES: tuple[str, ...] = (
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
