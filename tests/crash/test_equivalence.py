"""What recovery sees of a home decides which points are one class: what it ignores changes nothing, all else does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.crash.equivalence import PointClass, RecoveredHomes, _told_of, classes_of, draw_pairs
from tests.crash.points import Point, parse
from tests.crash.power import Content, HomeFiles
from tests.crash.strace import SystemCall


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A database with a write-ahead log that nothing empties."""
    with closing(sqlite3.connect(tmp_path / "one.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("CREATE TABLE words (word TEXT)")
        yield connection


def files_of(home: Path) -> HomeFiles:
    files = {path: Content(0o600, path.read_bytes()) for path in home.iterdir()}
    return HomeFiles(frozenset({home}), files)


def changed(home: HomeFiles, path: Path, content: Content) -> HomeFiles:
    return HomeFiles(home.directories, {**home.files, path: content})


def test_a_commit_is_another_world_and_what_was_not_committed_is_none(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    wal = tmp_path / "one.db-wal"
    with RecoveredHomes(tmp_path) as recovered:
        before = files_of(tmp_path)
        database.execute("INSERT INTO words VALUES ('new')")
        after = files_of(tmp_path)
        begun = len(before.files[wal].data) + 2048
        torn = changed(before, wal, Content(0o600, after.files[wal].data[:begun]))
        assert recovered.digest(torn) == recovered.digest(before) != recovered.digest(after)


def test_pages_that_a_checkpoint_copied_change_nothing(tmp_path: Path, database: sqlite3.Connection) -> None:
    with RecoveredHomes(tmp_path) as recovered:
        before = files_of(tmp_path)
        database.execute("PRAGMA wal_checkpoint(PASSIVE)")
        after = files_of(tmp_path)
        assert before.files[tmp_path / "one.db"].data != after.files[tmp_path / "one.db"].data
        assert recovered.digest(before) == recovered.digest(after)


def test_permissions_and_content_of_other_files_count(tmp_path: Path) -> None:
    note = tmp_path / "note"
    homes = [
        HomeFiles(frozenset({tmp_path}), {note: content}) for content in (Content(0o600, b"a"), Content(0o644, b"a"))
    ]
    homes.append(HomeFiles(frozenset({tmp_path}), {note: Content(0o600, b"ab")}))
    homes.append(HomeFiles(frozenset({tmp_path, tmp_path / "new"}), {note: Content(0o600, b"a")}))
    with RecoveredHomes(tmp_path) as recovered:
        assert len({recovered.digest(home) for home in homes}) == len(homes)


def test_a_database_that_cannot_be_read_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    homes = [
        HomeFiles(frozenset({tmp_path}), {path: Content(0o600, b"SQLite format 3\0" + end)}) for end in (b"a", b"b")
    ]
    with RecoveredHomes(tmp_path) as recovered:
        assert recovered.digest(homes[0]) != recovered.digest(homes[1])


def test_a_full_disk_is_another_error_only_where_sqlite_says_so() -> None:
    def told_of(error: str, name: str, file: str, times: int = 1) -> str:
        return _told_of(Point(error, name, 1, times), SystemCall(1, name, 1, (Path("/home") / file,), "", 0))

    one = [("fdatasync", "a.db-wal"), ("openat", "a.db-shm"), ("pwrite64", "a.db-shm"), ("unlink", "a.db-journal")]
    two = [("pwrite64", "a.db-wal"), ("pwrite64", "a.db"), ("fsync", "log"), ("openat", "a.db")]
    assert all(told_of("EIO", *call) == told_of("ENOSPC", *call) for call in one)
    assert not any(told_of("EIO", *call) == told_of("ENOSPC", *call) for call in two)
    assert not any(told_of("EIO", *call, 12) == told_of("ENOSPC", *call, 12) for call in one)


def test_pairs_are_two_points_of_one_class_and_the_same_for_a_seed() -> None:
    points = [parse(f"kill:write:{number}") for number in range(1, 8)]
    classes = classes_of({point: "alone" if point.number == 7 else f"{point.number % 2}" for point in points})
    assert classes[2] == PointClass((points[6],))
    pairs = draw_pairs(classes, 5, seed=3)
    assert pairs == draw_pairs(classes, 5, seed=3)
    assert len(pairs) == 2 and all(first.number % 2 == second.number % 2 for first, second in pairs)
    assert all(first != second for first, second in pairs)
