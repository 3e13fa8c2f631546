"""The mark of a data folder that has a replica: while it is there, no connection checkpoints a write-ahead log by
itself, in this process or another. The replica does, once it has read the log.
"""

from __future__ import annotations

import os
from pathlib import Path

_MARK = "run/replicated"


def is_replicated(home: Path) -> bool:
    return (home / _MARK).exists()


def read_checkpoint_mark(home: Path) -> bytes:
    """Differs after a checkpoint that the replica did not make."""
    try:
        return (home / _MARK).read_bytes()
    except FileNotFoundError:
        return b""


def change_checkpoint_mark(home: Path) -> None:
    """After a checkpoint that the replica did not make. Raises `OSError`."""
    if is_replicated(home):
        (home / _MARK).write_bytes(os.urandom(8).hex().encode())


def set_replicated(home: Path, *, replicated: bool) -> None:
    """Before any database of the data folder is opened. Raises `OSError`."""
    mark = home / _MARK
    if not replicated:
        mark.unlink(missing_ok=True)
    elif not mark.exists():
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark.touch(mode=0o600)
