"""A disk that is full for a while: a small file system of its own where we may mount one, else a limit on files."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

from structlog.testing import capture_logs

SIZE = 8 << 20
_BLOCK = 1 << 16


class FullableDisk(Protocol):
    """`place` is where homes can lie."""

    place: Path

    def fill(self) -> None:
        """From now on nothing can be written."""

    def free(self) -> None:
        """There is room again."""


class MountedDisk:
    """A file system of a few megabytes. Needs root."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._filler = place / "filler"

    def fill(self) -> None:
        with self._filler.open("ab", buffering=0) as file:
            size = _BLOCK
            while size:
                try:
                    file.write(bytes(size))
                except OSError:
                    size //= 2

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)

    def leave(self, room: int) -> None:
        """From now on this many bytes can be written, in whole pages."""
        self.fill()
        os.truncate(self._filler, max(0, self._filler.stat().st_size - room))


class FileSizeLimit:
    """No file of this process may be written any more, as by a quota. Needs no rights; ends with `free`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._usual = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, self._usual[1]))

    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._usual)


@contextmanager
def mounted_disk(place: Path) -> Iterator[MountedDisk]:
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)], check=True)
    try:
        yield MountedDisk(place)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def file_size_limit(place: Path) -> Iterator[FileSizeLimit]:
    disk = FileSizeLimit(place)
    try:
        # What this process logs would go to a file too: the one in which pytest keeps standard output.
        with capture_logs():
            yield disk
    finally:
        disk.free()


@contextmanager
def unlistable(folder: Path) -> Iterator[None]:
    """The disk has lost what is in this folder: who lists it is refused, as with a bad sector."""

    def refusing(listing: Callable[..., Any]) -> Callable[..., Any]:
        def refused(path: Any = ".") -> Any:
            if isinstance(path, str | Path) and Path(path) == folder:
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
            return listing(path)

        return refused

    with (
        patch.object(os, "scandir", refusing(os.scandir)),
        patch.object(os, "listdir", refusing(os.listdir)),
    ):
        yield


def can_mount() -> bool:
    """Whether this process may mount file systems (a container's root often may not)."""
    if os.geteuid():
        return False
    probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return probe.returncode == 0
