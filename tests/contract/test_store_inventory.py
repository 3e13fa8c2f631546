"""The inventory of the stores: what a start and an end record of them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from assistant.core.errors import StoreError
from assistant.store.database import Database
from assistant.store.home.closed_file import read_mark
from assistant.store.home.inventory import (
    CHARACTER_DB,
    SCRIPT_DB,
    StoreCheck,
    StoreRecorder,
    check_stores,
    raise_mark,
    read_inventory,
)
from assistant.store.schema.migrations import character_migrations, script_migrations
from tests.support.store_home import NOW


def test_a_first_start_that_is_killed_before_it_has_an_inventory_is_no_loss(tmp_path: Path) -> None:
    Database.open(tmp_path / SCRIPT_DB, script_migrations, NOW).close()
    assert check_stores(tmp_path).remarks == ()
    Database.open(tmp_path / CHARACTER_DB, character_migrations, NOW).close()
    assert check_stores(tmp_path).remarks == ()


def test_databases_that_were_begun_without_a_mark_get_it_before_the_inventory(tmp_path: Path) -> None:
    script = Database.open(tmp_path / SCRIPT_DB, script_migrations, NOW)
    character = Database.open(tmp_path / CHARACTER_DB, character_migrations, NOW)
    for database in (script, character):
        raise_mark(database, 0)
    with closing(script), closing(character), closing(sqlite3.connect(character.path)) as other:
        other.execute("BEGIN IMMEDIATE")
        character.set_lock_timeout(0)
        with pytest.raises(StoreError):
            StoreRecorder(tmp_path, (script, character), StoreCheck(None)).record(NOW)
    assert read_mark(tmp_path / SCRIPT_DB) == 1
    assert check_stores(tmp_path).remarks == ()


def test_only_what_was_changed_gets_a_higher_mark(tmp_path: Path) -> None:
    script = Database.open(tmp_path / SCRIPT_DB, script_migrations, NOW)
    character = Database.open(tmp_path / CHARACTER_DB, character_migrations, NOW)
    recorder = StoreRecorder(tmp_path, (script, character), StoreCheck(None))
    with closing(script), closing(character):
        for database in (script, script, character):
            recorder.record(NOW)
            with database.write() as db:
                db.execute("CREATE TABLE IF NOT EXISTS extra (id INTEGER PRIMARY KEY) STRICT")
                db.execute("INSERT INTO extra DEFAULT VALUES")
        recorder.record(NOW)
        recorder.record(NOW)
        marks = [read_mark(database.path) for database in (script, character)]
    assert marks == [3, 2]


def test_a_start_moves_nothing_into_the_files_and_an_end_records_once_that_they_have_all(tmp_path: Path) -> None:
    script = Database.open(tmp_path / SCRIPT_DB, script_migrations, NOW)
    character = Database.open(tmp_path / CHARACTER_DB, character_migrations, NOW)
    recorder = StoreRecorder(tmp_path, (script, character), StoreCheck(None))
    with closing(script), closing(character):
        recorder.record_opened(NOW)
        opened = read_inventory(tmp_path)
        recorder.record_closing(NOW)  # also where nothing has changed
        assert read_inventory(tmp_path) == opened
    recorder.record_closed()
    closed = read_inventory(tmp_path)
    assert opened is not None and closed is not None
    for name in (SCRIPT_DB, CHARACTER_DB):
        assert (opened.entry(name).mark, opened.entry(name).settled) == (1, 0)
        assert closed.entry(name).settled == closed.entry(name).mark == read_mark(tmp_path / name) == 1
        assert closed.entry(name).fingerprint
    assert check_stores(tmp_path).remarks == ()
