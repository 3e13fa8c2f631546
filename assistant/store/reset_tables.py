"""Tables of script.db for the ends of sessions: resets under way, and where each generation was archived."""

TABLES: tuple[str, ...] = ()
