"""The pages read from SQLite's write-ahead log make a copy of the database, whatever was written and checkpointed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.replica.wal import WalPosition, WalRestarted, apply_changes, read_changes, wal_path

Step = tuple[str, int, int]
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "update", "delete", "rollback", "vacuum", "ship", "checkpoint", "torn"]),
        st.integers(0, 40),
        st.integers(0, 9000),
    ),
    min_size=1,
    max_size=25,
)


class Replicated:
    """A database that is written, and its copy."""

    def __init__(self, folder: Path, page_size: int) -> None:
        self.path, self.copy = folder / "a.db", folder / "copy.db"
        self.connection = self.connect(page_size)
        self.connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v BLOB)")
        self.position = WalPosition()
        self.sealed = False

    def connect(self, page_size: int = 0) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None)
        if page_size:
            connection.execute(f"PRAGMA page_size = {page_size}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    def ship(self) -> None:
        changes = read_changes(wal_path(self.path), self.position, sealed=self.sealed)
        if changes.position != self.position:
            self.sealed = False
        self.position = changes.position
        if changes.pages:
            apply_changes(self.copy, changes.pages, self.position.page_size, self.position.page_count)

    def checkpoint(self) -> None:
        """As the owner of checkpoints does: all is read before, and nobody writes meanwhile."""
        with closing(self.connect()) as other:
            self.connection.execute("BEGIN IMMEDIATE")
            self.ship()
            busy, frames, moved = other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            assert (busy, frames) == (0, moved)
            self.sealed = True
            self.connection.execute("ROLLBACK")

    def take(self, step: Step) -> None:
        action, number, size = step
        run = self.connection.execute
        {
            "insert": lambda: run("INSERT OR REPLACE INTO t VALUES (?, randomblob(?))", (number, size)),
            "update": lambda: run("UPDATE t SET v = randomblob(?) WHERE id >= ?", (size // 8, number)),
            "delete": lambda: run("DELETE FROM t WHERE id >= ?", (number,)),
            "vacuum": lambda: run("VACUUM"),
            "ship": self.ship,
            "checkpoint": self.checkpoint,
            "rollback": lambda: self.roll_back(size),
            "torn": lambda: self.tear(size),
        }[action]()

    def roll_back(self, size: int) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute("UPDATE t SET v = randomblob(?)", (size,))
        self.connection.execute("ROLLBACK")

    def tear(self, size: int) -> None:
        """A commit half of which is there is not read, and read once it is whole."""
        self.ship()
        before, log = self.position, wal_path(self.path)
        self.connection.execute("INSERT INTO t (v) VALUES (randomblob(?))", (size,))
        cut = log.with_name("cut-wal")
        whole = log.read_bytes()
        changes = read_changes(log, before, sealed=self.sealed)
        cut.write_bytes(whole[: changes.position.end - 1])
        assert read_changes(cut, before, sealed=self.sealed).pages == {}

    def content(self, path: Path) -> list[tuple[int, bytes]]:
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            return connection.execute("SELECT id, v FROM t ORDER BY id").fetchall()


def _replicate(page_size: int, act: Callable[[Replicated], None]) -> None:
    with TemporaryDirectory() as folder:
        database = Replicated(Path(folder), page_size)
        with closing(database.connection):
            act(database)
            database.ship()
            opened = Path(folder) / "opened.db"
            shutil.copyfile(database.copy, opened)
            assert database.content(opened) == database.content(database.path)


@settings(max_examples=60, deadline=None)
@given(_STEPS, st.sampled_from([512, 1024, 4096, 65536]))
def test_a_copy_made_of_changed_pages_is_the_database(steps: list[Step], page_size: int) -> None:
    def act(database: Replicated) -> None:
        for step in steps:
            database.take(step)

    _replicate(page_size, act)


def test_a_log_that_somebody_else_started_again_is_noticed() -> None:
    def act(database: Replicated) -> None:
        database.take(("insert", 1, 100))
        database.ship()
        database.take(("insert", 2, 100))
        database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.ship()  # nothing to be seen yet
        database.take(("insert", 3, 100))
        with pytest.raises(WalRestarted):
            database.ship()
        database.position = WalPosition()
        shutil.copyfile(database.path, database.copy)

    _replicate(4096, act)


@settings(max_examples=60, deadline=None)
@given(st.integers(32, 20_000), st.integers(1, 255))
def test_an_altered_frame_ends_what_is_read(at: int, flip: int) -> None:
    with TemporaryDirectory() as folder:
        database = Replicated(Path(folder), 512)
        with closing(database.connection):
            for number in range(6):
                database.take(("insert", number, 2000))
            log = wal_path(database.path)
            data = bytearray(log.read_bytes())
            whole = read_changes(log, WalPosition())
            at = min(at, whole.position.end - 1)
            data[at] ^= flip
            altered = log.with_name("altered-wal")
            altered.write_bytes(data)
            read = read_changes(altered, WalPosition())
            assert read.position.end <= at
            assert all(content in data[: read.position.end] for content in read.pages.values())
