"""Whether the home is still there and takes what it is given, under an assistant that runs for months: disks are
unmounted, folders renamed, file systems become read-only after an error.

What always holds: nothing is written to a home that is not at its place (see `Database.write`), and none is made anew
in its stead. One that comes back is gone on with; another one at the same place is not touched by this process.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from assistant.core.errors import StoreError
from assistant.store.database import Database
from assistant.store.soundness import sync_seconds


class Ground:
    """What a home stands on: its folder, and the files of its databases."""

    def __init__(self, home: Path, databases: Sequence[Database]) -> None:
        self._home = home
        self._databases = tuple(databases)

    def must_stand(self, refused: bool = False) -> None:
        """Raises `StoreError` while the home is away, `HomeReplaced` where another one is at its place. After it
        `refused` something, the disk has to keep a few bytes for certain before it counts as well again."""
        for database in self._databases:
            database.must_stand()
        if refused:
            sync_seconds(self._home)

    def must_be_writable(self) -> None:
        """Raises `StoreError` where nothing can be written now. Writes nothing, and finds no disk that is just full."""
        for database in self._databases:
            database.must_be_writable()
        try:
            read_only = os.statvfs(self._home).f_flag & os.ST_RDONLY
        except OSError as error:
            raise StoreError(
                f"{self._home} cannot be looked at: {error.strerror}. What was accepted is kept."
            ) from error
        if read_only:
            raise StoreError(
                f"{self._home} lies on a file system that can only be read. What was accepted is kept; make it "
                "writable (`mount -o remount,rw`; the kernel's log tells why it is not), and it goes on by itself."
            )
