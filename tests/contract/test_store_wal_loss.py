"""What a database that was killed lost of its write-ahead log is noticed before it is opened, and nothing else is."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from assistant.store.database import Database
from assistant.store.home.wal_loss import has_lost_commits
from assistant.store.schema.migrations import character_migrations
from tests.support.store_home import NOW

_FRAME = 24 + 4096


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database.open(tmp_path / "character.db", character_migrations, NOW)) as database:
        for number in range(40):
            add(database, number)
        yield database


def add(database: Database, number: int) -> None:
    with database.write() as db:
        db.execute("CREATE TABLE IF NOT EXISTS words (word TEXT)")
        db.execute("INSERT INTO words VALUES (?)", (f"word {number} " * 500,))


def killed(database: Database, name: str = "killed") -> Path:
    """The files as a kill leaves them now."""
    folder = database.path.parent / name
    folder.mkdir()
    for path in database.path.parent.glob("character.db*"):
        shutil.copyfile(path, folder / path.name)
    return folder / "character.db"


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def test_a_log_that_is_whole_lost_nothing(database: Database) -> None:
    path = killed(database)
    assert log_of(path).stat().st_size > 10 * _FRAME and not has_lost_commits(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:-_FRAME],
        lambda data: b"",
        lambda data: b"nothing that anybody knows\n" * 400,
        lambda data: data[:9000] + data[9001:],
        lambda data: data[:8192] + bytes(4096) + data[12288:],
    ],
    ids=["a byte", "a frame", "empty", "text", "a byte of the middle", "zeros"],
)
def test_a_log_that_lost_a_commit_is_told(database: Database, damage: Callable[[bytes], bytes]) -> None:
    path = killed(database)
    log_of(path).write_bytes(damage(log_of(path).read_bytes()))
    assert has_lost_commits(path)
    # SQLite sees nothing wrong.
    with closing(Database.open_unmigrated(path)) as opened:
        assert opened.value("PRAGMA quick_check") == "ok"
    assert not has_lost_commits(path)


def test_a_log_that_is_gone_is_told_unless_the_database_has_it_all(database: Database) -> None:
    path = killed(database)
    log_of(path).unlink()
    assert has_lost_commits(path)
    database.checkpoint()
    later = killed(database, "checkpointed")
    log_of(later).unlink()
    assert not has_lost_commits(later)


def test_an_older_log_is_told(database: Database) -> None:
    older = log_of(killed(database, "older"))
    database.checkpoint()
    add(database, 41)
    path = killed(database)
    assert not has_lost_commits(path)
    shutil.copyfile(older, log_of(path))
    assert has_lost_commits(path)


def test_a_closed_database_and_one_whose_index_is_damaged_claim_nothing(database: Database, tmp_path: Path) -> None:
    path = killed(database)
    log_of(path).write_bytes(b"")
    index = path.with_name(f"{path.name}-shm")
    index.write_bytes(b"?" * index.stat().st_size)
    assert not has_lost_commits(path)
    database.close()
    assert not has_lost_commits(database.path) and not has_lost_commits(tmp_path / "none.db")
