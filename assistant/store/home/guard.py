"""The state of a home: whether it is still there and can be written, who may read its files, whether a database is
intact, how fast the disk is.

What always holds: under an assistant that runs for months, disks are unmounted, folders renamed, and file systems
become
read-only after an error. Nothing is written to a home that is not at its place (see `Database.write`), and none is
created in its stead. One that comes back is used again; another one at the same place is not touched by this process.
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
_MOST_FILES = 50_000
# As much as a message and its records take.
_PROBE = 1 << 16


def find_exposed_files(home: Path) -> dict[str, str]:
    """What others than the owner could get at: paths within the home, and their modes in octal. A home that is closed
    itself keeps everything in it closed; what is in it is looked at all the same, as a copy of it would be open. Links
    lead elsewhere, and the workspace is the owner's to share. Raises `StoreError`."""
    try:
        return {
            str(path.relative_to(home)): f"{mode & 0o777:03o}"
            for path, mode in _walk(home)
            if mode & _OTHERS and not stat.S_ISLNK(mode)
        }
    except OSError as error:
        raise StoreError(f"{error.filename} cannot be read: {error.strerror}. Nothing was changed.") from error


def restrict_permissions(home: Path, paths: Iterable[str]) -> None:
    """Take from others what they may do with these. Raises `StoreError`."""
    for name in paths:
        path = home / name
        try:
            path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~_OTHERS)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StoreError(f"{path} could not be closed to others: {error.strerror}.") from error


def check_database_pages(path: Path) -> list[str]:
    """What SQLite finds wrong with a database; [] for one that is whole. Reads it all, some 500 MB a second. Raises
    `StoreError` for one that cannot be read at all."""
    database = Database.open_reader(path)
    try:
        problems = [str(row[0]) for row in database.rows("PRAGMA quick_check(10)")]
    finally:
        database.close()
    return [] if problems == ["ok"] else problems


def measure_sync_seconds(home: Path) -> float:
    """How long the disk takes to keep a few bytes for certain. Raises `StoreError` where it does not."""
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


def _walk(home: Path) -> Iterator[tuple[Path, int]]:
    """Path and mode of the home and of what is in it, as far as that is a reasonable number."""
    yield home, home.lstat().st_mode
    count = 0
    for folder, folders, files in os.walk(home):
        if Path(folder) == home and "workspace" in folders:
            folders.remove("workspace")
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


def remember_home(home: Path, folder_list: Path) -> None:
    """Note that there is a data folder, so that it is missed once it is away. One among temporary files is not: it is
    expected to go. Nobody is kept from anything where the note cannot be written."""
    line = f"{home}\n"
    if "\n" in str(home) or home.is_relative_to(tempfile.gettempdir()):
        return
    with contextlib.suppress(OSError, UnicodeError):
        folder_list.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with folder_list.open("a+", encoding="utf-8") as file:
            file.seek(0)
            if line not in file.readlines():
                file.write(line)


def is_home_missing(home: Path, folder_list: Path) -> bool:
    """Whether a data folder was here once, and now there is nothing, not even settings."""
    if any((home / name).exists() for name in (*DATABASE_NAMES, "config.toml")):
        return False
    try:
        return f"{home}\n" in folder_list.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, UnicodeError):
        return False


class HomeGuard:
    """What a home stands on: its folder, and the files of its databases."""

    def __init__(self, home: Path, databases: Sequence[Database]) -> None:
        self._home = home
        self._databases = tuple(databases)

    def require_present(self, after_failure: bool = False) -> None:
        """Raises `StoreError` while the home is away, `HomeReplaced` where another one is at its place. After it
        `refused` something, the disk has to keep a few bytes for certain before it counts as well again."""
        for database in self._databases:
            database.require_same_file()
        if after_failure:
            measure_sync_seconds(self._home)

    def require_writable(self) -> None:
        """Raises `StoreError` where nothing can be written now. Writes nothing, and finds no disk that is just full."""
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
