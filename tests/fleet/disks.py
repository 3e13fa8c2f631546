"""Disks of a few hundred megabytes that can be filled: file systems in memory, which only root may mount."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_MEGABYTES = 600
_FILLER = "filler"


def can_mount() -> bool:
    """Return whether this user may mount a file system here."""
    if os.geteuid():
        return False
    with TemporaryDirectory() as folder, contextlib.suppress(subprocess.CalledProcessError), small_disk(Path(folder)):
        return True
    return False


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A disk of its own for a folder, which is empty and keeps its owner."""
    state = folder.stat()
    options = f"size={_MEGABYTES}m,uid={state.st_uid},gid={state.st_gid},mode={state.st_mode & 0o777:o}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "disk", folder], check=True, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        # Whoever still has a file there keeps it.
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Not a byte more fits on the disk of a folder."""
    filler = folder / _FILLER
    try:
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\1" * (1 << 16))
        yield
    finally:
        filler.unlink()
