"""The settings of a connection to a database of a data folder (https://www.sqlite.org/pragma.html)."""

from __future__ import annotations

WRITER = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA journal_size_limit = 16777216",
    # After so many pages a commit moves the WAL into the database, which takes tens of milliseconds: SQLite's own 1,000
    # are 16 turns. `Database.checkpoint` does it every few minutes, while nobody waits.
    "PRAGMA wal_autocheckpoint = 8000",
)
CONNECTION = ("PRAGMA busy_timeout = 5000", "PRAGMA foreign_keys = ON", "PRAGMA temp_store = MEMORY")
# A daemon keeps some ten connections open for years, each with its cache; the OS caches the file anyway.
WRITER_CACHE, READER_CACHE = "PRAGMA cache_size = -2048", "PRAGMA cache_size = -1024"
