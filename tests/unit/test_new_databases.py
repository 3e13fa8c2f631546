"""What `tests.support.new_databases` copies is what the migrations make."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import sqlite_utils
from sqlite_utils import Migrations

from assistant.store.database import Database
from tests.support import new_databases
from tests.support.new_databases import _COPIED, _migrate
from tests.support.store_home import NOW


def _contents(connection: sqlite3.Connection) -> tuple[list[object], dict[str, object], list[object]]:
    """All tables with their rows, but for the time at which a migration was run, and what a header says."""
    tables = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid").fetchall()
    rows: dict[str, object] = {
        name: [
            tuple(value for value, column in zip(row, row.keys(), strict=True) if column != "applied_at")
            for row in connection.execute(f"SELECT * FROM [{name}]")
        ]
        for kind, name, *_ in tables
        if kind == "table"
    }
    header = [
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "page_size", "auto_vacuum", "encoding", "user_version", "page_count")
    ]
    return [tuple(row) for row in tables], rows, header


@pytest.mark.parametrize("migrations", _COPIED, ids=lambda migrations: migrations.name)
def test_a_copied_database_is_one_that_was_migrated(
    migrations: Migrations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = Database.open(tmp_path / "copied.db", migrations, NOW)
    monkeypatch.setattr(Migrations, "apply", _migrate)
    migrated = Database.open(tmp_path / "migrated.db", migrations, NOW)
    try:
        assert _contents(copied.connection) == _contents(migrated.connection)
        assert [path.stat().st_mode for path in sorted(tmp_path.glob("copied.db*"))] == [0o100600] * 3
    finally:
        copied.close()
        migrated.close()


def test_one_that_draws_a_token_is_not_copied(tmp_path: Path) -> None:
    databases = [Database.open(tmp_path / name, new_databases.schema.files_migrations, NOW) for name in ("a", "b")]
    tokens = {database.value("SELECT token FROM origin") for database in databases}
    for database in databases:
        database.close()
    assert len(tokens) == 2


def test_an_older_database_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "script.db"
    older = sqlite_utils.Database(path)
    new_databases.schema.script_migrations.apply(older, stop_before="0010_outbox_parts")
    applied = [migration.name for migration in new_databases.schema.script_migrations.applied(older)]
    older.close()
    database = Database.open(path, new_databases.schema.script_migrations, NOW)
    try:
        assert applied == ["0009_made_by"]
        assert database.applied_migrations()[:2] == ["0009_made_by", "0010_outbox_parts"]
        assert list(tmp_path.glob("backups/*before-0010_outbox_parts.db")) != []
    finally:
        database.close()
