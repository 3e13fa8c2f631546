"""Derived databases, which can be rebuilt from other data: checked on opening, set aside when damaged, and rebuilt.

A damaged database is kept next to the new one until that is complete, so that its presence tells any process, also
after a crash, that a rebuild is in progress; then it is deleted, since it may contain erased text.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from assistant.core.errors import CorruptStore, HomeError, StoreError
from assistant.store.database import Database
from assistant.store.files import require_plain_database, sync_directory, write_file
from assistant.store.home.guard import check_database_pages
from assistant.store.schema.library import Migrations

SEARCH_DB, MEMORY_DB, FILES_DB = "search.db", "memory.db", "files.db"
DERIVED_DATABASES = (MEMORY_DB, SEARCH_DB, FILES_DB)
_SOURCES = {
    SEARCH_DB: "the message log and the journal, so some of what was said may not be found yet",
    MEMORY_DB: "the journal, which is searched meanwhile",
    FILES_DB: "the files, so some of them may not be found yet",
}
_ASIDE = ".damaged"
_PARTS = ("-wal", "-shm", "")


def open_derived(path: Path, migrations: Migrations, now: datetime) -> Database:
    """Open like `Database.open`, after checking every page. Raises only `StoreError`, which those who can do without it
    expect: `CorruptStore` if it is damaged (see `set_aside`), `NewerSchema`."""
    try:
        require_plain_database(path)
    except StoreError as error:
        raise CorruptStore(f"{error} It is made again.") from error
    # Check before migrating, which would raise arbitrary errors on a damaged database.
    if path.is_file() and path.stat().st_size and (problems := check_database_pages(path)):
        raise CorruptStore(f"{path}: {problems[0]}. It is made again.")
    try:
        return Database.open(path, migrations, now, keep_copy=path.name == MEMORY_DB)
    except HomeError as error:
        raise StoreError(str(error)) from error


def set_aside(path: Path) -> None:
    """Move a damaged database with its WAL files aside, replacing an earlier one; for a missing one an empty file is
    created. Raises `StoreError`."""
    try:
        for part in _PARTS:
            whole = path.with_name(path.name + part)
            if whole.exists() and not whole.is_file() and not whole.is_dir():
                # A pipe, a socket or a device has nothing to keep.
                whole.unlink()
            elif whole.exists():
                whole.replace(path.with_name(path.name + _ASIDE + part))
        if not is_set_aside(path):
            write_file(path.with_name(path.name + _ASIDE), b"")
        sync_directory(path.parent)
    except OSError as error:
        raise StoreError(
            f"{path} is damaged and could not be set aside: {error.strerror}. Remove it and the files next to it "
            f"({path.name}-*); it is made again."
        ) from error


def is_set_aside(path: Path) -> bool:
    """Return whether a rebuild is in progress."""
    return path.with_name(path.name + _ASIDE).exists()


def was_set_aside(database: Database) -> bool:
    """Return whether the open database was set aside meanwhile by another process."""
    return database.is_at(database.path.with_name(database.path.name + _ASIDE))


def remove_set_aside(path: Path) -> None:
    """Delete the set-aside database after the rebuild. Raises `StoreError`."""
    try:
        for part in _PARTS:
            path.with_name(path.name + _ASIDE + part).unlink(missing_ok=True)
        sync_directory(path.parent)
    except OSError as error:
        raise StoreError(f"{path}{_ASIDE} was not removed: {error.strerror}. Remove it; nothing needs it.") from error


def remake_problems(home: Path) -> Iterator[str]:
    """Yield a line for each rebuild in progress."""
    for name, source in _SOURCES.items():
        if is_set_aside(home / name):
            yield (
                f"{name} was damaged or missing. While the assistant runs, it is made again from {source}; nothing is "
                "lost."
            )
