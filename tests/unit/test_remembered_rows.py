"""Rows that are read once for each change, whoever makes it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlite_utils
from sqlite_utils import Migrations

from assistant.store.database import Database
from tests.support.store_home import NOW

SELECT = "SELECT text FROM notes ORDER BY text"

migrations = Migrations("notes")


@migrations(name="0001_notes")
def _notes(db: sqlite_utils.Database) -> None:
    db.execute("CREATE TABLE notes (text TEXT NOT NULL) STRICT")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    db = Database.open(tmp_path / "home" / "notes.db", migrations, NOW)
    yield db
    db.close()


def texts(db: Database, *, read: bool) -> list[str]:
    """What is there; `read` is whether the database was asked for it."""
    statements: list[str] = []
    db.connection.set_trace_callback(statements.append)
    rows = db.remembered.rows("notes", SELECT)
    db.connection.set_trace_callback(None)
    assert (SELECT in statements) == read
    return [row["text"] for row in rows]


def test_they_are_read_again_after_a_write_and_after_it_was_rolled_back(db: Database) -> None:
    assert texts(db, read=True) == texts(db, read=False) == []
    with db.write():
        db.insert_row("notes", text="a")
        assert texts(db, read=True) == ["a"]
    with pytest.raises(ZeroDivisionError), db.write():
        db.update_rows("notes", {"text": "a"}, text="b")
        assert texts(db, read=True) == ["b"]
        raise ZeroDivisionError
    assert texts(db, read=True) == texts(db, read=False) == ["a"]


def test_they_are_read_again_once_anybody_else_has_committed(db: Database) -> None:
    assert texts(db, read=True) == []
    # Whether another process has this connection makes no difference to SQLite.
    with closing(sqlite3.connect(db.path)) as other, other:
        other.execute("INSERT INTO notes VALUES ('c')")
    with db.write():
        pass
    assert texts(db, read=True) == texts(db, read=False) == ["c"]
