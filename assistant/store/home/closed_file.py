"""What a database file says of itself while nothing has it open: its mark, and a fingerprint of its content."""

from __future__ import annotations

import os
import zlib
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.core.errors import StoreError
from assistant.core.plain_files import open_plain_file
from assistant.store.database import Database

if TYPE_CHECKING:
    from assistant.store.home.inventory import StoreEntry

# Files up to this size are hashed completely; larger ones in samples of this total size.
_MOST_READ = 256 << 20
_BLOCK = 1 << 20
# Where SQLite keeps `user_version`.
_MARK_AT, _MARK_BYTES = 60, 4


class ClosedFile:
    """A database that nothing has open: each thing that is compared is read once, as hashing a large file takes
    long."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def mark(self) -> int:
        return read_mark(self.path)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.path)

    def is_changed(self, entry: StoreEntry) -> bool:
        """Return whether it differs from the file that was closed with the same mark."""
        return bool(entry.fingerprint) and self.mark == entry.mark and self.fingerprint != entry.fingerprint


def read_mark(path: Path) -> int:
    """Return the mark, 0 if there is none. Raises `CorruptStore`, `StoreError`."""
    if not path.is_file() or not path.stat().st_size:
        return 0
    with closing(Database.open_reader(path)) as database:
        return int(database.value("PRAGMA user_version"))


def read_settled_mark(path: Path) -> int:
    """Return the mark in the file itself, whatever its write-ahead log says; see `fingerprint` for who may call it."""
    try:
        descriptor = open_plain_file(path)
        try:
            return int.from_bytes(os.pread(descriptor, _MARK_BYTES, _MARK_AT), "big", signed=True)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}. Nothing was changed.") from error


def fingerprint(path: Path) -> str:
    """Return a fingerprint of a file; "" if it does not exist or has a write-ahead log. No code in this process may
    have it open (see `create_private_file`). Raises `StoreError`."""
    wal = path.with_name(f"{path.name}-wal")
    try:
        if not path.is_file() or (wal.exists() and wal.stat().st_size):
            return ""
        size = path.stat().st_size
        step = _BLOCK if size <= _MOST_READ else size // (_MOST_READ // _BLOCK)
        checksum = 0
        with path.open("rb", buffering=0) as file:
            for start in range(0, size, step):
                file.seek(start)
                checksum = zlib.crc32(file.read(_BLOCK), checksum)
        return f"{size}:{checksum:08x}"
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}. Nothing was changed.") from error
