"""Durable files: what the disk has when these return, it keeps through a power cut."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

_FULL_FSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


def sync(descriptor: int) -> None:
    """Flush an open file to the medium itself. On macOS plain fsync stops at the drive's cache."""
    if _FULL_FSYNC is not None:
        try:
            fcntl.fcntl(descriptor, _FULL_FSYNC)
            return
        except OSError:
            # Network and some external volumes do not know it; plain fsync is the most they offer.
            pass
    os.fsync(descriptor)


def file_identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from every other one, whatever its name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def sync_file(path: Path) -> None:
    _sync_path(path, os.O_RDONLY)


def sync_directory(path: Path) -> None:
    """Make names that were created, renamed or removed in a directory durable."""
    _sync_path(path, os.O_RDONLY | os.O_DIRECTORY)


def _sync_path(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, or raise `OSError`; a short write is taken up where it ended, which tells its cause."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


def make_directory(path: Path, *, home: Path | None = None) -> None:
    """Create a directory (0700) and its missing parents, each entry durable; `home` is never made anew, since one that
    is missing was taken away with all that is in it."""
    if path.is_dir():
        return
    if path == home:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    make_directory(path.parent, home=home)
    path.mkdir(mode=0o700, exist_ok=True)
    sync_directory(path.parent)
