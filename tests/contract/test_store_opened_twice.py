"""A database that a process opens twice keeps the locks of both: no other process takes the write-ahead log away."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from assistant.store.database import Database
from assistant.store.schema.migrations import search_migrations
from tests.support.store_home import NOW

OTHER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("INSERT INTO collections (name, made_by, total) VALUES ('theirs', 'x', x'')")
db.commit()
db.close()
"""


def test_what_another_process_writes_is_seen_by_a_database_that_was_opened_twice(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    first, second = Database.open(path, search_migrations, NOW), Database.open(path, search_migrations, NOW)
    try:
        with first.write() as db:
            db.execute("INSERT INTO collections (name, made_by, total) VALUES ('ours', 'x', x'')")
        subprocess.run([sys.executable, "-c", OTHER, str(path)], check=True)
        assert path.with_name("search.db-wal").exists()
        for one in (first, second):
            assert [row["name"] for row in one.rows("SELECT name FROM collections ORDER BY id")] == ["ours", "theirs"]
    finally:
        first.close()
        second.close()
