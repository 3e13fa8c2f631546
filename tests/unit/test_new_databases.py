"""A new database is put in place whole, and is as its migrations make it, which are not run for it."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import sqlite_utils
from sqlite_utils import Migrations

from assistant.core.errors import HomeError, StoreError
from assistant.store.database import Database
from assistant.store.derived import open_derived
from assistant.store.schema import migrations as schema
from assistant.store.schema.library import migration_names
from tests.support import new_databases
from tests.support.store_home import NOW

SETS = [value for value in vars(schema).values() if isinstance(value, Migrations)]
# Each database of files draws a token of its own.
ALIKE = [migrations for migrations in SETS if migrations is not schema.files_migrations]


def _contents(path: Path) -> tuple[list[object], dict[str, object], list[object]]:
    """All tables with their rows, but for the time at which a migration was run, and what a header says."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        tables = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()
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
            for name in ("journal_mode", "page_size", "auto_vacuum", "encoding", "application_id")
        ]
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    # What stands between two statements of a file belongs to none.
    return [(*row[:3], str(row[3] or "").rstrip()) for row in tables], rows, header


@pytest.mark.parametrize("migrations", ALIKE, ids=lambda migrations: migrations.name)
def test_a_new_database_is_one_that_was_migrated_step_by_step(migrations: Migrations, tmp_path: Path) -> None:
    """Where this fails after a migration was added, `make docs` has not written what they make together."""
    migrated, new = tmp_path / "migrated.db", tmp_path / "new.db"
    with closing(sqlite3.connect(migrated)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    with sqlite_utils.Database(migrated) as database:
        migrations.apply(database)
    Database.open(new, migrations, NOW).close()
    assert _contents(new) == _contents(migrated)


@pytest.mark.parametrize("migrations", SETS, ids=lambda migrations: migrations.name)
def test_a_new_database_has_no_log_and_waits_for_no_step_of_its_making(migrations: Migrations, tmp_path: Path) -> None:
    path = tmp_path / f"{migrations.name}.db"
    with closing(Database.open(path, migrations, NOW)) as database:
        assert database.applied_migrations() == migration_names(migrations)
        assert database.value("PRAGMA journal_mode") == "wal"
        assert not path.with_name(f"{path.name}-wal").stat().st_size
    assert [(file.name, file.stat().st_mode) for file in tmp_path.iterdir()] == [(path.name, 0o100600)]


def test_each_database_of_files_draws_a_token(tmp_path: Path) -> None:
    databases = [Database.open(tmp_path / name, schema.files_migrations, NOW) for name in ("a", "b")]
    tokens = {database.value("SELECT token FROM origin") for database in databases}
    for database in databases:
        database.close()
    assert len(tokens) == 2


def test_these_tests_make_the_file_of_one_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making it for each data folder once took a tenth of all tests, and nothing told."""
    paths = [tmp_path / folder / "script.db" for folder in ("a", "b")]
    Database.open(paths[0], schema.script_migrations, NOW).close()
    monkeypatch.setattr(new_databases, "_make", None)
    Database.open(paths[1], schema.script_migrations, NOW).close()
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_an_older_database_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "script.db"
    older = sqlite_utils.Database(path)
    schema.script_migrations.apply(older, stop_before="0010_outbox_parts")
    applied = [migration.name for migration in schema.script_migrations.applied(older)]
    older.close()
    database = Database.open(path, schema.script_migrations, NOW)
    try:
        assert applied == ["0009_made_by"]
        assert database.applied_migrations()[:2] == ["0009_made_by", "0010_outbox_parts"]
        assert list(tmp_path.glob("backups/*before-0010_outbox_parts.db")) != []
    finally:
        database.close()


def test_what_a_crash_left_of_one_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "script.db"
    path.with_name("script.db.new").write_bytes(b"half of a database")
    Database.open(path, schema.script_migrations, NOW).close()
    assert [file.name for file in tmp_path.iterdir()] == ["script.db"]


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "script.db"
    path.touch(mode=0o600)
    with closing(Database.open(path, schema.script_migrations, NOW)) as database:
        assert database.applied_migrations() == migration_names(schema.script_migrations)


def test_the_log_of_a_database_that_is_gone_is_not_taken_into_a_new_one(tmp_path: Path) -> None:
    """SQLite would write the pages of the former one over those of the new one."""
    path = tmp_path / "memory.db"
    former = Database.open(path, schema.memory_migrations, NOW)
    with former.write() as db:
        db.execute("CREATE TABLE former (id INTEGER PRIMARY KEY) STRICT")
    log = path.with_name("memory.db-wal").read_bytes()
    former.close()
    path.unlink()
    path.with_name("memory.db-wal").write_bytes(log)
    with closing(Database.open(path, schema.memory_migrations, NOW)) as database:
        assert database.value("PRAGMA integrity_check") == "ok"
        assert not database.column_names("former")
        assert database.column_names("memories")


def test_one_that_cannot_be_written_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "script.db"
    path.with_name("script.db.new").mkdir()
    with pytest.raises(HomeError, match=r"cannot be created: .*\. Nothing was changed; move .*script\.db\.new away\.$"):
        Database.open(path, schema.script_migrations, NOW)
    assert not path.exists()


def _refuse(monkeypatch: pytest.MonkeyPatch, call: str, *, folders: bool) -> None:
    """From now on the disk refuses this call, on folders or on files."""
    made: Callable[..., int] = getattr(os, call)

    def refused(descriptor: int, *data: bytes) -> int:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) == folders:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return made(descriptor, *data)

    monkeypatch.setattr(os, call, refused)


STEPS = [("write", False), ("fsync", False), ("fsync", True)]


@pytest.mark.parametrize(("call", "folders"), STEPS, ids=["writing", "syncing the file", "syncing its name"])
@pytest.mark.parametrize("migrations", SETS, ids=lambda migrations: migrations.name)
def test_a_disk_that_refuses_a_step_of_making_one_is_told_and_leaves_nothing(
    migrations: Migrations, call: str, folders: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who can do without a derived one expect `StoreError`; without the others nothing starts."""
    path = tmp_path / f"{migrations.name}.db"
    is_derived = migrations not in (schema.script_migrations, schema.character_migrations)
    opened = open_derived if is_derived else Database.open
    with monkeypatch.context() as disk:
        _refuse(disk, call, folders=folders)
        with pytest.raises(
            StoreError if is_derived else HomeError, match=r"cannot be created: .*\. Nothing was changed\.$"
        ):
            opened(path, migrations, NOW)
    assert list(tmp_path.iterdir()) == []
    with closing(opened(path, migrations, NOW)) as database:
        assert database.applied_migrations() == migration_names(migrations)


def test_a_link_to_what_is_not_there_is_named_with_what_to_do(tmp_path: Path) -> None:
    """As of a disk that is not mounted. Nothing is created there."""
    path = tmp_path / "script.db"
    path.symlink_to(tmp_path / "disk" / "script.db")
    with pytest.raises(
        HomeError, match=r"is a link to .*disk/script\.db, which is not there\. Nothing was changed; mount"
    ):
        Database.open(path, schema.script_migrations, NOW)
    assert path.is_symlink() and not path.exists()
