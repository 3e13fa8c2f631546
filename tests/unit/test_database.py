"""One database: how it is opened, migrated and written, and what its errors say."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlite_utils
from sqlite_utils import Migrations

from assistant.core.errors import CorruptStore, HomeError, NewerSchema, StoreError, UsageError
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations, script_migrations
from tests.support.store_home import NOW

first = Migrations("notes")


@first(name="0001_notes")
def _notes(db: sqlite_utils.Database) -> None:
    db.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT")


second = Migrations("notes")
second(name="0001_notes")(_notes)


@second(name="0002_tags")
def _tags(db: sqlite_utils.Database) -> None:
    db.execute("ALTER TABLE notes ADD COLUMN tag TEXT")


broken = Migrations("notes")
broken(name="0001_notes")(_notes)


@broken(name="0002_breaks")
def _breaks(db: sqlite_utils.Database) -> None:
    db.execute("ALTER TABLE notes ADD COLUMN half TEXT")
    db.execute("ALTER TABLE nowhere ADD COLUMN half TEXT")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    db = Database.open(tmp_path / "home" / "notes.db", first, NOW)
    yield db
    db.close()


def add(db: Database, text: str) -> None:
    with db.write():
        db.execute("INSERT INTO notes (text) VALUES (?)", (text,))


def texts(db: Database) -> list[str]:
    return [row["text"] for row in db.rows("SELECT text FROM notes ORDER BY id")]


def test_commits_are_full_and_references_are_checked(db: Database) -> None:
    pragmas = {name: db.rows(f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous", "foreign_keys")}
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_a_write_within_a_write_is_refused(db: Database) -> None:
    with pytest.raises(RuntimeError, match="within a transaction"), db.write(), db.write():
        pass
    add(db, "after")
    assert texts(db) == ["after"]


def test_a_statement_outside_of_a_write_is_refused(db: Database) -> None:
    with pytest.raises(RuntimeError, match="outside"):
        db.execute("INSERT INTO notes (text) VALUES ('x')")
    with pytest.raises(RuntimeError, match="outside"):
        db.execute_many("INSERT INTO notes (text) VALUES (?)", [("x",)])
    assert texts(db) == []


def test_an_error_rolls_back_everything(db: Database) -> None:
    with pytest.raises(KeyError), db.write():
        db.execute("INSERT INTO notes (text) VALUES ('x')")
        raise KeyError
    assert texts(db) == []


def test_what_waits_for_the_commit_is_forgotten_without_one(db: Database) -> None:
    seen: list[str] = []
    with pytest.raises(KeyError), db.write():
        db.after_commit(lambda: seen.append("never"))
        raise KeyError
    with db.write():
        db.after_commit(lambda: seen.append("then"))
        assert seen == []
    assert seen == ["then"]


def test_a_full_disk_is_told_in_one_line_and_passes_when_space_returns(db: Database) -> None:
    add(db, "kept")
    db.rows(f"PRAGMA max_page_count = {db.rows('PRAGMA page_count')[0][0]}")
    with pytest.raises(StoreError, match=r"disk is full.*kept; make room") as caught:
        add(db, "x" * 100_000)
    assert "\n" not in str(caught.value)
    db.rows("PRAGMA max_page_count = 1000000")
    add(db, "after")
    assert texts(db) == ["kept", "after"]


def test_a_database_locked_by_another_process_is_told(db: Database) -> None:
    db.rows("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(db.path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="Another process has locked it"):
        add(db, "x")
    other.rollback()
    other.close()
    add(db, "after")


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_bytes(b"hello " * 1000)
    with pytest.raises(CorruptStore, match="assistant verify --repair"):
        Database.open(tmp_path / "notes.db", first, NOW)


def test_a_reader_sees_commits_and_cannot_write(db: Database) -> None:
    reader = Database.open_reader(db.path)
    add(db, "seen")
    assert texts(reader) == ["seen"]
    with pytest.raises(StoreError, match="cannot be written"):
        add(reader, "x")
    reader.close()


def test_a_reader_opens_what_a_crash_cut_off_before_its_first_commit(tmp_path: Path) -> None:
    cut = tmp_path / "cut.db"
    with closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None)) as new:
        new.execute("PRAGMA cache_size = 1")
        new.execute("BEGIN")
        new.execute("CREATE TABLE words (word TEXT)")
        new.execute("INSERT INTO words SELECT hex(zeroblob(100000))")
        for end in ("", "-journal"):
            shutil.copyfile(tmp_path / f"new.db{end}", f"{cut}{end}")
    assert cut.stat().st_size > 0
    with closing(Database.open_reader(cut)) as reader:
        assert reader.value("SELECT count(*) FROM sqlite_master") == 0


def test_a_snapshot_shows_one_state_throughout(db: Database) -> None:
    reader = Database.open_reader(db.path)
    with reader.snapshot():
        assert texts(reader) == []
        add(db, "meanwhile")
        assert texts(reader) == []
    assert texts(reader) == ["meanwhile"]
    reader.close()


def test_a_snapshot_is_no_way_to_write(db: Database) -> None:
    with pytest.raises(RuntimeError, match="outside"), db.snapshot():
        db.execute("INSERT INTO notes (text) VALUES ('x')")


def test_a_reader_of_a_missing_home_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        Database.open_reader(tmp_path / "none" / "script.db")


def test_home_and_files_belong_to_their_owner_alone(db: Database) -> None:
    add(db, "x")
    modes = {path.name: path.stat().st_mode & 0o777 for path in db.path.parent.iterdir()}
    assert modes == {"notes.db": 0o600, "notes.db-wal": 0o600, "notes.db-shm": 0o600}
    assert db.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_home_open_to_others_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "wide").mkdir(mode=0o755)
    Database.open(tmp_path / "wide" / "notes.db", first, NOW).close()
    assert (tmp_path / "wide").stat().st_mode & 0o777 == 0o700


# ---------------------------------------------------------------------------------------------------------- migrations


def test_a_new_database_needs_no_backup(db: Database) -> None:
    assert not (db.path.parent / "backups").exists()


def test_a_backup_is_made_before_a_migration(db: Database) -> None:
    add(db, "old words")
    db.close()
    newer = Database.open(db.path, second, NOW)
    assert newer.row("SELECT text, tag FROM notes") is not None
    newer.close()
    (backup,) = (db.path.parent / "backups").iterdir()
    assert backup.name == "notes-20261120T100000Z-before-0002_tags.db"
    assert backup.stat().st_mode & 0o777 == 0o600
    old = Database.open(backup, first, NOW)
    assert texts(old) == ["old words"]
    old.close()


def test_a_migration_that_breaks_changes_nothing(db: Database) -> None:
    add(db, "kept")
    db.close()
    with pytest.raises(StoreError):
        Database.open(db.path, broken, NOW)
    again = Database.open(db.path, first, NOW)
    assert [row["name"] for row in again.rows("PRAGMA table_info(notes)")] == ["id", "text"]
    assert texts(again) == ["kept"]
    again.close()


def test_a_newer_schema_is_refused_and_left_alone(db: Database) -> None:
    add(db, "new words")
    db.close()
    Database.open(db.path, second, NOW).close()
    before = db.path.read_bytes()
    with pytest.raises(NewerSchema, match=r"0002_tags.*Nothing was changed"):
        Database.open(db.path, first, NOW)
    assert db.path.read_bytes() == before


def test_the_schemas_open_twice_and_hold_together(tmp_path: Path) -> None:
    for _ in range(2):
        for name, migrations in (("script", script_migrations), ("character", character_migrations)):
            db = Database.open(tmp_path / f"{name}.db", migrations, NOW)
            assert db.rows("PRAGMA foreign_key_check") == []
            assert db.rows("PRAGMA quick_check")[0][0] == "ok"
            db.close()


def test_every_table_that_holds_words_has_scope_and_generation(tmp_path: Path) -> None:
    wordless = {
        "breakers",
        "usage",
        "usage_totals",
        "model_facts",
        "slots",
        "clock_steps",
        "effects",
        "readings",
        "sleep_cycles",
        "_sqlite_migrations",
        "consolidated_entry_ids",
        "plan_subjects",
        "replacements",
        "people",
        "identities",
        "rooms",
        "pairings",
        "places",
        "accounts_at",
        "told",
        "usage_by_role",
        "notice_marks",
        "model_outages",
        "model_outage_places",
        "repeated_requests",
        "mcp_tools",
        "pushes",
        "imported_ranges",
        "bridge_states",
    }
    # What is known of somebody outlives the conversations in which it was told; a command ends with its answer, a file
    # with its turn, a change in the log; an import has a conversation of its own; what a text says of days is found by
    # a digest of the text, in whichever conversation that stands.
    lasting = {"typed_commands", "change_plans", "entity_profiles", "edits", "changes", "turn_files"}
    lasting |= {"imports", "imported_conversations", "dated_texts"}
    for name, migrations in (("script", script_migrations), ("character", character_migrations)):
        db = Database.open(tmp_path / f"{name}.db", migrations, NOW)
        for table in db.rows(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%\\_fts%' ESCAPE '\\'"
        ):
            columns = {row["name"] for row in db.rows(f"PRAGMA table_info({table['name']})")}
            if table["name"] not in wordless | {"sqlite_sequence"}:
                wanted = {"scope"} if table["name"] in lasting else {"scope", "generation"}
                assert wanted <= columns, table["name"]
        db.close()


# -------------------------------------------------------------------------------------------------------- unwritable

_AS_NOBODY = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from assistant.core.errors import HomeError, StoreError
from assistant.store.database import Database
from assistant.store.schema.migrations import script_migrations
os.setuid(65534) if os.geteuid() == 0 else None
try:
    Database.open(Path(sys.argv[1]), script_migrations, datetime.now(UTC))
except (HomeError, StoreError) as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A directory that every user can look into; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("existing", [False, True])
def test_a_home_that_cannot_be_written_is_told_in_one_line(reachable: Path, existing: bool) -> None:
    home = reachable / "home"
    home.mkdir()
    if existing:
        Database.open(home / "script.db", script_migrations, NOW).close()
    home.chmod(0o555)
    run = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, str(home / "script.db")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        check=True,
    )
    home.chmod(0o700)
    assert run.stdout.startswith(("HomeError", "StoreError"))
    assert run.stdout.count("\n") == 1
    assert "Nothing was changed" in run.stdout or "is kept" in run.stdout


def test_a_home_below_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HomeError, match="cannot be used"):
        Database.open(tmp_path / "file" / "script.db", script_migrations, NOW)


def test_one_of_an_earlier_version_is_told_to_whoever_reads(db: Database) -> None:
    reader = Database.open_reader(db.path)
    try:
        reader.require_schema(first)
        with pytest.raises(StoreError, match=r"earlier version\. Nothing was changed; restart"):
            reader.require_schema(second)
        Database.open(db.path, second, NOW).close()
        reader.require_schema(second)
    finally:
        reader.close()


def test_one_of_a_newer_version_is_told_to_whoever_reads(db: Database) -> None:
    Database.open(db.path, second, NOW).close()
    reader = Database.open_reader(db.path)
    try:
        with pytest.raises(NewerSchema, match=r"newer version \(it has 0002_tags\)\. Nothing was changed; install"):
            reader.require_schema(first)
    finally:
        reader.close()


def test_a_commit_that_need_not_last_waits_for_no_disk_and_the_next_one_does_again(db: Database) -> None:
    levels = []
    for durable in (True, False, False, True):
        with db.write(durable=durable):
            levels.append(db.value("PRAGMA synchronous"))
    normal, full = 1, 2
    assert levels == [full, normal, normal, full]


def test_a_commit_leaves_the_write_ahead_log_to_idle_work(db: Database) -> None:
    """A commit that moves it into the database waits for the disk twice more, and writes all pages of 16 turns."""
    assert db.checkpoint()
    size = db.path.stat().st_size
    add(db, "page " * 1_500_000)
    assert db.path.stat().st_size == size
    assert db.checkpoint() and db.path.stat().st_size > size + 7_000_000


def test_a_number_that_no_row_can_have_is_refused_in_words(db: Database) -> None:
    with pytest.raises(UsageError, match="no number that large here"):
        db.row("SELECT 1 WHERE 1 = ?", (10**30,))
