"""Tables of script.db for what is due at a time: jobs, and the slots in which they were due."""

TABLES: tuple[str, ...] = ()
