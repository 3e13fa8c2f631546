"""Checks the state of a data folder: whether it is present and writable, who can read its files, whether a database is
intact, and how fast the disk is.

While an assistant runs for months, disks are unmounted, folders renamed, and file systems become read-only after an
error. Nothing is written to a data folder that is not at its place (see `Database.write`), and none is created instead.
One that reappears is used again; a different one at the same place is not touched by this process.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from assistant.core.errors import StoreError
from assistant.store.database import Database
from assistant.store.files import sync, write_all

DATABASE_NAMES = ("script.db", "character.db", "memory.db")
_OTHERS = 0o077
PROGRAM_FILES = frozenset((*DATABASE_NAMES, "search.db", "files.db", "stores.json"))
# What reads them tells it.
READ_AS_TEXT = frozenset(("config.toml", "secrets.toml", "MEMORY.md", "PERSONA.md"))
_MOVE_AWAY = "It is not read and in no backup; move it away, then restart the assistant."
_MOST_FILES = 50_000
# About the size of a message and its records.
_PROBE = 1 << 16


def find_exposed_files(home: Path) -> dict[str, str]:
    """Return files that other users can access: paths within the data folder, and their octal modes. A closed data
    folder protects its content; its files are checked all the same, since a copy of them would be open. Links, and the
    workspace, which the owner may share, are skipped. Raises `StoreError`."""
    try:
        return {
            str(path.relative_to(home)): f"{mode & 0o777:03o}"
            for path, mode in _walk(home)
            if mode & _OTHERS and not stat.S_ISLNK(mode)
        }
    except OSError as error:
        raise _unreadable(error) from error


def find_special_files(home: Path, *, deep: bool = False) -> Iterator[str]:
    """Yield a line for each pipe, socket or device in the data folder, and for each folder in the place of a file that
    the program keeps: nothing of that name is read, written or backed up. With `deep`, also below its folders, except
    for the workspace, which the owner fills, and `run/`, which has the control socket. Raises `StoreError`."""
    try:
        for path in (path for path, _ in _walk(home, ("workspace", "run"))) if deep else home.iterdir():
            name = path.relative_to(home).as_posix()
            with contextlib.suppress(FileNotFoundError):
                mode = path.stat().st_mode
                if stat.S_ISDIR(mode) and name in PROGRAM_FILES:
                    yield f"{name} is a folder, not a file. {_MOVE_AWAY}"
                elif not stat.S_ISREG(mode) and not stat.S_ISDIR(mode) and name not in READ_AS_TEXT:
                    yield f"{name} is a pipe, a socket or a device, not a file. {_MOVE_AWAY}"
    except OSError as error:
        raise _unreadable(error) from error


def restrict_permissions(home: Path, paths: Iterable[str]) -> None:
    """Remove other users' permissions on these paths. Raises `StoreError`."""
    for name in paths:
        path = home / name
        try:
            path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~_OTHERS)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StoreError(f"{path} could not be closed to others: {error.strerror}.") from error


def check_database_pages(path: Path) -> list[str]:
    """Return the problems SQLite finds in a database, [] if it is intact. Reads the whole file, about 500 MB per
    second. Raises `StoreError` if it cannot be read at all."""
    database = Database.open_reader(path)
    try:
        problems = [str(row[0]) for row in database.rows("PRAGMA quick_check(10)")]
    finally:
        database.close()
    return [] if problems == ["ok"] else problems


def measure_sync_seconds(home: Path) -> float:
    """Measure how long the disk takes to sync a few bytes. Raises `StoreError` if it fails."""
    probe = home / f".probe-{os.getpid()}"
    began = time.perf_counter()
    try:
        descriptor = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            write_all(descriptor, bytes(_PROBE))
            sync(descriptor)
        finally:
            os.close(descriptor)
            probe.unlink()
    except OSError as error:
        raise StoreError(
            f"{home} cannot be written: {error.strerror}. What was accepted is kept; make room, or the disk well again."
        ) from error
    return time.perf_counter() - began


def sqlite_version() -> str:
    return sqlite3.sqlite_version


def has_fts5() -> bool:
    """Whether SQLite was built with FTS5."""
    with contextlib.closing(sqlite3.connect(":memory:")) as memory:
        return bool(memory.execute("SELECT sqlite_compileoption_used('ENABLE_FTS5')").fetchone()[0])


def _unreadable(error: OSError) -> StoreError:
    return StoreError(f"{error.filename} cannot be read: {error.strerror}. Nothing was changed.")


def _walk(home: Path, skipped: Sequence[str] = ("workspace",)) -> Iterator[tuple[Path, int]]:
    """Yield path and mode of the data folder and its content, up to a limit, without the `skipped` folders in it."""
    yield home, home.lstat().st_mode
    count = 0
    for folder, folders, files in os.walk(home):
        if Path(folder) == home:
            folders[:] = [name for name in folders if name not in skipped]
        for name in (*folders, *files):
            path = Path(folder) / name
            with contextlib.suppress(FileNotFoundError):
                yield path, path.lstat().st_mode
            count += 1
        if count > _MOST_FILES:
            return


HOME_MISSING = (
    "There was a data folder at {home}, and it is not there now. Bring it back first (is its disk mounted?); if you "
    "removed it, `assistant chat` begins a new one."
)


def remember_home(home: Path, folder_list: Path | None) -> None:
    """Record that a data folder exists, so that its absence is noticed. Temporary folders are not recorded. Errors are
    ignored."""
    line = f"{home}\n"
    with contextlib.suppress(OSError, UnicodeError):
        if folder_list is None or "\n" in str(home) or home.is_relative_to(tempfile.gettempdir()):
            return
        folder_list.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with folder_list.open("a+", encoding="utf-8") as file:
            file.seek(0)
            if line not in file.readlines():
                file.write(line)


def is_home_missing(home: Path, folder_list: Path | None) -> bool:
    """Return whether a data folder was recorded here, and now nothing is left, not even settings."""
    if folder_list is None or any((home / name).exists() for name in (*DATABASE_NAMES, "config.toml")):
        return False
    try:
        return f"{home}\n" in folder_list.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, UnicodeError):
        return False


class HomeGuard:
    """Checks a data folder and the files of its databases before writes."""

    def __init__(self, home: Path, databases: Sequence[Database]) -> None:
        self._home = home
        self._databases = tuple(databases)

    def require_present(self, after_failure: bool = False) -> None:
        """Raises `StoreError` while the data folder is missing, `HomeReplaced` if another one is at its place. After a
        failed write, the disk must first sync a few bytes before it counts as working."""
        for database in self._databases:
            database.require_same_file()
        if after_failure:
            measure_sync_seconds(self._home)

    def require_writable(self) -> None:
        """Raises `StoreError` if nothing can be written now. Writes nothing, so it does not detect a full disk."""
        for database in self._databases:
            database.require_writable()
        try:
            read_only = os.statvfs(self._home).f_flag & os.ST_RDONLY
        except OSError as error:
            raise StoreError(f"{self._home} cannot be read: {error.strerror}. What was accepted is kept.") from error
        if read_only:
            raise StoreError(
                f"{self._home} is on a file system that can only be read. What was accepted is kept; make it writable "
                "(`mount -o remount,rw`; the kernel's log says why it is not), and the assistant continues."
            )
