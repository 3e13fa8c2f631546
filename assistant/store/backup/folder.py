"""The folder of backups: lists them and ensures one operation on them at a time.

A backup gets its name only when it is complete and verified; an unfinished one has another name and is deleted at the
next start. Code that creates, rewrites or deletes a backup holds the lock, in any process; the kernel releases it when
the process ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assistant.core.backups import Backup, parse_backup_name
from assistant.core.errors import StoreError, UsageError
from assistant.core.plain_files import expand_home, open_plain_file
from assistant.store.files import make_directory, sync_directory

_PARTIAL = ".nocturne-backup-"
_LOCK = "backup.lock"
_LOOK_EVERY = 0.05


class BackupFolder:
    """`chosen` is the folder from the settings, "" for `backups/` in the data folder."""

    def __init__(self, home: Path, chosen: str = "") -> None:
        self.home = home
        self.is_in_home = not chosen
        self.path = expand_home(chosen).absolute() if chosen else home / "backups"

    def list_backups(self) -> list[Backup]:
        """Return backups, oldest first. Raises `StoreError` if a chosen folder is missing or cannot be read."""
        try:
            files = [entry for entry in os.scandir(self.path) if entry.is_file(follow_symlinks=False)]
            backups = filter(None, [parse_backup_name(entry.name, entry.stat().st_size) for entry in files])
        except FileNotFoundError:
            if self.is_in_home:
                return []
            raise self._absent() from None
        except OSError as error:
            raise StoreError(f"The folder of backups {self.path} cannot be read: {error.strerror}.") from error
        return sorted(backups, key=lambda backup: (backup.made_at, len(backup.name), backup.name))

    def find(self, name: str) -> Backup:
        """Return a backup. Raises `UsageError` if it does not exist."""
        for backup in self.list_backups():
            if backup.name == name:
                return backup
        raise UsageError(
            f"There is no backup {name!r} in {self.path}. Nothing was changed; `assistant backup list` shows all."
        )

    def remove(self, backup: Backup) -> None:
        """Raises `StoreError`."""
        try:
            (self.path / backup.name).unlink(missing_ok=True)
            sync_directory(self.path)
        except OSError as error:
            raise StoreError(f"{self.path / backup.name} was not removed: {error.strerror}.") from error

    def ensure_exists(self) -> None:
        """Create the data folder's own backup folder. Raises `StoreError` if a chosen folder is missing: its disk may
        not be mounted, and creating it would fill another disk."""
        try:
            if self.is_in_home:
                make_directory(self.path, home=self.path.parent)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be made: {error.strerror}. Nothing was changed.") from error
        if not self.path.is_dir():
            raise self._absent()

    def partial_path(self, what: str) -> Path:
        """Return the path of an unfinished backup; deleted at the next start."""
        return self.path / f"{_PARTIAL}{what}"

    def remove_partial(self) -> None:
        """Delete unfinished backups of an interrupted run. The caller holds the lock. Raises `StoreError`."""
        try:
            for path in self.path.glob(f"{_PARTIAL}*"):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(
                f"What a backup that was cut off left in {self.path} was not removed: {error.strerror}. Remove what "
                f"is called {_PARTIAL}* there."
            ) from error

    @contextmanager
    def lock(self, *, timeout_seconds: float = 0.0) -> Iterator[None]:
        """Hold the lock of the backups, waiting up to so many seconds for it. Raises `UsageError` if another process
        keeps it."""
        run = self.home / "run"
        try:
            run.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = open_plain_file(run / _LOCK, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise StoreError(f"{run / _LOCK} cannot be written: {error.strerror}. Nothing was changed.") from error
        try:
            until = time.monotonic() + timeout_seconds
            while not _has_taken(file):
                if time.monotonic() >= until:
                    raise UsageError(
                        "A backup is being made or changed just now. Nothing was changed; try again after that."
                    )
                time.sleep(_LOOK_EVERY)
            yield
        finally:
            os.close(file)

    def _absent(self) -> StoreError:
        return StoreError(
            f"The folder of backups {self.path} is not there. Nothing was written; connect its disk, or make it."
        )


def _has_taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
