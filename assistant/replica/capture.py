"""Reads what changed in a data folder since the last shipment: database pages, log bytes, files.

Databases are read first and logs last, so the result is a state that a crash could have left, which every start can
recover. A database is only opened through SQLite, since closing another descriptor of its file would release the
process's locks; its write-ahead log has no locks.

Only this module checkpoints: other connections to a replicated folder do not (`Database`), so no frame is overwritten
before it was read. If somebody else made a checkpoint, `CaptureGap` is raised, and a new base is needed.
"""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from assistant.core.backups import BACKUP_DATABASES, BACKUP_FILES
from assistant.core.dataclass import dataclass
from assistant.core.errors import StoreError
from assistant.replica.shipment import DatabasePages, Shipment
from assistant.replica.wal import WalPosition, WalRestarted, read_changes, wal_path
from assistant.store.backup.make import length_of_whole_lines
from assistant.store.database import Database
from assistant.store.erasure.plan import PLAN_FILES
from assistant.store.files import find_files
from assistant.store.log.reader import LOG_NAME
from assistant.store.replicated import read_checkpoint_mark

SECRETS = "secrets.toml"
_FOLDERS = ("prompts", "memory", "archive", "bridges", "workspace")
_WORKSPACE = "workspace"
# Checkpoint once a write-ahead log is longer than this.
_CHECKPOINT_BYTES = 4 << 20
_TRANSIENT = ("-wal", "-shm", "-journal")


class CaptureGap(StoreError):
    """Changes were overwritten before they were read. A new base has all of them."""


@dataclass(slots=True)
class _Source:
    """A database to read. `reader` keeps SQLite from deleting the write-ahead log when all other connections close."""

    path: Path
    reader: Database
    position: WalPosition = field(default_factory=WalPosition)
    sealed: bool = False  # all of the write-ahead log was read and checkpointed


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Which files leave the machine."""

    secrets: bool  # whether secrets.toml does
    max_bytes: int  # of a workspace file
    at_once: int = 32 << 20  # bytes of files in one shipment, which is made in memory


class HomeCapture:
    """Reads a data folder while others write to it. Not thread-safe."""

    def __init__(self, home: Path, limits: FileLimits) -> None:
        self._home = home
        self._limits = limits
        self._sources: dict[str, _Source] = {}
        self._log_lengths: dict[str, int] = {}
        self._files: dict[str, str] = {}
        self._mark = b""
        self.has_more = False
        """Whether changed files were left for the next `read`."""

    def close(self) -> None:
        for source in self._sources.values():
            source.reader.close()
        self._sources.clear()

    def begin(self) -> None:
        """Start again before a base is made: from the oldest frame in each write-ahead log, and with all files. Raises
        `StoreError`."""
        self._open_readers()
        self._log_lengths, self._files = self.measure_logs(), {}

    def resume(self, remembered: Mapping[str, Any]) -> bool:
        """Continue where `remember` ended, in another process. False if changes in between may have been overwritten
        unread; then `begin`. Raises `StoreError`."""
        self._open_readers()
        # With readers open, nobody moves a write-ahead log into its database after this look.
        databases = {path.name: _stamp(path.stat()) for path in self.list_databases()}
        if (self._mark.decode(), databases) != (remembered["mark"], remembered["databases"]):
            return False
        self._log_lengths, self._files = {**remembered["logs"]}, {**remembered["files"]}
        return True

    def remember(self) -> Mapping[str, Any] | None:
        """Return how far everything was read, after `checkpoint(-1)`; None if a write-ahead log was not moved
        whole. Each database gets a time of change of its own: whatever is moved into it later gives it another."""
        if not all(source.sealed for source in self._sources.values()):
            return None
        databases = {name: give_own_time(source.path) for name, source in self._sources.items()}
        return {"mark": self._mark.decode(), "databases": databases, "logs": self._log_lengths, "files": self._files}

    def resend_files(self) -> None:
        """Ship all files again, since a base does not contain all of them."""
        self._files = {}

    def _open_readers(self) -> None:
        self.close()
        self._mark = read_checkpoint_mark(self._home)
        for path in self.list_databases():
            reader = Database.open_reader(path)
            reader.row("SELECT count(*) FROM sqlite_master")
            self._sources[path.name] = _Source(path, reader)

    def read(self) -> Shipment:
        """Return what changed since the last call. Raises `CaptureGap`, `StoreError`, `OSError`."""
        if read_checkpoint_mark(self._home) != self._mark:
            raise CaptureGap
        if any(name not in self._sources and (self._home / name).exists() for name in BACKUP_DATABASES):
            raise CaptureGap
        databases = {name: pages for name, source in self._sources.items() if (pages := _read_pages(source))}
        logs = self.read_logs(self._log_lengths)
        self._log_lengths |= {name: start + len(data) for name, (start, data) in logs.items()}
        return Shipment(databases, logs, *self._read_files())

    # ------------------------------------------------------------------------------------------------------------ files

    def measure_logs(self) -> dict[str, int]:
        """Return the length of each log in bytes, up to its last whole line."""
        return {name: length_of_whole_lines(path, path.stat().st_size) for name, path in self._logs()}

    def list_stamps(self) -> dict[str, str]:
        """Return the stamp of each file, which changes with it."""
        return {name: _stamp(state) for name, state in self._list_files()}

    def _logs(self) -> Iterator[tuple[str, Path]]:
        for path in find_files(self._home / "log", f"*/{LOG_NAME}"):
            yield path.relative_to(self._home).as_posix(), path

    def read_logs(self, lengths: Mapping[str, int]) -> dict[str, tuple[int, bytes]]:
        """Return what each log has beyond a length, without a record that is still being written. Raises `CaptureGap`
        if one is shorter."""
        found = {}
        for name, path in self._logs():
            start, size = lengths.get(name, 0), path.stat().st_size
            if size < start:
                raise CaptureGap
            if size > start:
                with path.open("rb") as file:
                    file.seek(start)
                    data = file.read(size - start)
                if whole := data[: data.rfind(b"\n") + 1]:
                    found[name] = (start, whole)
        return found

    def _read_files(self) -> tuple[dict[str, bytes], tuple[str, ...]]:
        found: dict[str, str] = {}
        changed: dict[str, bytes] = {}
        self.has_more, size = False, 0
        for name, state in self._list_files():
            found[name] = _stamp(state)
            if found[name] == self._files.get(name):
                continue
            if changed and size + state.st_size > self._limits.at_once:
                self.has_more = True
                found[name] = self._files.get(name, "")
                continue
            try:
                changed[name] = _read_file(self._home, name)
                size += len(changed[name])
            except FileNotFoundError:
                del found[name]
        removed = tuple(name for name in self._files if name not in found)
        self._files = found
        return changed, removed

    def _list_files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the files that leave the machine, by their paths in the folder."""
        wanted = {*BACKUP_FILES, *((SECRETS,) if self._limits.secrets else ())}
        for at, folders, names in os.walk(self._home):
            folder = Path(at).relative_to(self._home)
            if folder == Path():
                folders[:] = [name for name in folders if name in _FOLDERS]
                names = [name for name in names if name in wanted or fnmatch(name, PLAN_FILES)]
            for name in sorted(names):
                with suppress(FileNotFoundError):
                    state = os.lstat(Path(at, name))
                    is_large = _WORKSPACE in folder.parts[:1] and state.st_size > self._limits.max_bytes
                    if stat.S_ISREG(state.st_mode) and not name.endswith(_TRANSIENT) and not is_large:
                        yield (folder / name).as_posix(), state

    # ------------------------------------------------------------------------------------------------------ checkpoints

    def checkpoint(self, least: int = _CHECKPOINT_BYTES) -> Shipment:
        """Checkpoint the databases whose write-ahead log is longer than `least`, with a write lock on each; return what
        was written just before the lock, to be shipped. Raises `CaptureGap`, `StoreError`."""
        rest = {}
        for name, source in self._sources.items():
            if not source.sealed and source.position.end > least and (pages := _checkpoint(source)):
                rest[name] = pages
        return Shipment(rest)

    def abandon(self) -> None:
        """Checkpoint frames that were never shipped, before they fill the disk; a new base has them."""
        for path in self.list_databases():
            with closing(Database.open_unmigrated(path)) as database:
                database.move_wal()

    def count_unread(self) -> int:
        """Return the size of the write-ahead logs in bytes."""
        return sum(path.stat().st_size for path in map(wal_path, self.list_databases()) if path.exists())

    def list_databases(self) -> list[Path]:
        """Return those that exist."""
        return [path for name in BACKUP_DATABASES if (path := self._home / name).is_file()]


def give_own_time(path: Path) -> str:
    """Give a database a time of change that nothing else gives it, so whatever is written to it later is noticed."""
    state = path.stat()
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns - random.randrange(1, 10**9)))
    return _stamp(path.stat())


def _stamp(state: os.stat_result) -> str:
    """Return the time, size and number of a file."""
    return f"{state.st_mtime_ns} {state.st_size} {state.st_ino}"


def _read_file(home: Path, name: str) -> bytes:
    """Return the content of a file. SQLite copies the database of a bridge, so that it is consistent and keeps its
    locks."""
    if not (name.startswith("bridges/") and name.endswith(".db")):
        return (home / name).read_bytes()
    with closing(Database.open_reader(home / name)) as database:
        return database.serialize()


def _read_pages(source: _Source) -> DatabasePages | None:
    try:
        changes = read_changes(wal_path(source.path), source.position, sealed=source.sealed)
    except WalRestarted as error:
        raise CaptureGap from error
    if changes.position != source.position:
        source.sealed = False
    source.position = changes.position
    if not changes.pages:
        return None
    return DatabasePages(changes.position.page_size, changes.position.page_count, changes.pages)


def _checkpoint(source: _Source) -> DatabasePages | None:
    with ExitStack() as stack:
        holder = stack.enter_context(closing(Database.open_unmigrated(source.path)))
        mover = stack.enter_context(closing(Database.open_unmigrated(source.path)))
        with holder.write():
            rest = _read_pages(source)
            frames, moved = mover.move_wal()
            # A reader of an earlier state prevents a full checkpoint; the next one tries again.
            source.sealed = frames == moved == source.position.frames
    return rest
