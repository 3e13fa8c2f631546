"""What another process and a folder take of the machine."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def measure_memory(pid: int) -> int:
    """Return the bytes of a process and its children, of shared ones its part; 0 where the system does not tell."""
    size = 0
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                size += int(line.split()[1]) * 1024
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            size += measure_memory(int(child))
    return size


def measure_folder(folder: Path) -> int:
    """Return the bytes that the files of a folder take on the disk."""
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += Path(parent, name).lstat().st_blocks * 512
    return size
