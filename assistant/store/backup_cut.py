"""One instant of a home that somebody serves: its databases and the lengths of its logs, all as they were then.

What always holds: what is copied is what a crash at that instant would have left, which every start can settle. For the
instant itself, some milliseconds, all databases are locked for writing; none is waited for while another is held, so
that nobody waits for whoever writes longest. Afterwards they are read from their snapshots while everybody writes on.

Nothing here opens a database but through SQLite: whoever closes another descriptor of such a file in the process that
serves the home lets go of all its locks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from assistant.core.backups import BACKUP_DATABASES
from assistant.core.errors import CorruptStore, StoreError
from assistant.store.database import Database
from assistant.store.log.reader import LOG_NAME

_TRIES = 400
_APART = 0.025
_BLOCK = 1 << 16
# What was learned is in the journal too: one that is damaged is made again from there.
_DISPENSABLE = "memory.db"


@dataclass(frozen=True, slots=True)
class Cut:
    """`databases` are open in their snapshots, by name; `logs` are lengths in bytes by path in the home, at the end of
    a line; `damaged` are databases that cannot be read and are made again from others, with what is wrong."""

    databases: Mapping[str, Database]
    logs: Mapping[str, int]
    damaged: Mapping[str, str]


@contextmanager
def cut(home: Path) -> Iterator[Cut]:
    """Open while the snapshots are copied. Raises `StoreError`, also where somebody writes all the time."""
    with ExitStack() as stack:
        readers: dict[str, Database] = {}
        damaged: dict[str, str] = {}
        holders = []
        for path in (home / name for name in BACKUP_DATABASES if (home / name).is_file()):
            try:
                reader = stack.enter_context(closing(Database.reader(path)))
                reader.row("SELECT count(*) FROM sqlite_master")
                holders.append(stack.enter_context(closing(Database.as_it_is(path))))
            except CorruptStore as error:
                if path.name != _DISPENSABLE:
                    raise
                damaged[path.name] = str(error)
            else:
                readers[path.name] = reader
        with _held(holders):
            for reader in readers.values():
                stack.enter_context(reader.snapshot())
                # A snapshot begins with the first thing that is read.
                reader.row("SELECT count(*) FROM sqlite_master")
            sizes = {path: path.stat().st_size for path in (home / "log").glob(f"*/{LOG_NAME}")}
        logs = {path.relative_to(home).as_posix(): _whole_lines(path, size) for path, size in sizes.items()}
        yield Cut(readers, logs, damaged)


@contextmanager
def _held(databases: Sequence[Database]) -> Iterator[None]:
    """Nobody writes to any of them meanwhile."""
    for database in databases:
        database.wait_for_locks(0)
    tries = 0
    while True:
        with ExitStack() as stack:
            try:
                for database in databases:
                    stack.enter_context(database.write())
            except StoreError:
                tries += 1
                if tries == _TRIES:
                    raise
            else:
                yield
                return
        time.sleep(_APART)


def _whole_lines(path: Path, size: int) -> int:
    """The end of the last whole line within `size` bytes: a record that is being written is none yet."""
    with path.open("rb") as file:
        while size > 0:
            start = max(0, size - _BLOCK)
            file.seek(start)
            newline = file.read(size - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            size = start
    return 0
