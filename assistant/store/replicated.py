"""Marks a data folder as replicated: while the mark exists, no connection in any process checkpoints a write-ahead log
automatically. The replica does, after reading the log.
"""

from __future__ import annotations

import os
from pathlib import Path

from assistant.core.plain_files import read_own_file

_MARK = "run/replicated"


def is_replicated(home: Path) -> bool:
    return (home / _MARK).exists()


def read_checkpoint_mark(home: Path) -> bytes:
    """Return the mark's content, which changes with each checkpoint that the replica did not make."""
    try:
        return read_own_file(home / _MARK)
    except FileNotFoundError:
        return b""


def change_checkpoint_mark(home: Path) -> None:
    """Change the mark after a checkpoint that the replica did not make. Raises `OSError`."""
    if is_replicated(home):
        (home / _MARK).write_bytes(os.urandom(8).hex().encode())


def set_replicated(home: Path, *, replicated: bool) -> None:
    """Create or remove the mark, before any database of the data folder is opened. Raises `OSError`."""
    mark = home / _MARK
    if not replicated:
        mark.unlink(missing_ok=True)
    elif not mark.exists():
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark.touch(mode=0o600)
