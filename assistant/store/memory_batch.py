"""Writes to memory.db that belong together: the outermost `writing()` commits everything inside as one, or nothing.

The memory layer writes a memory, its vector and its history in steps of its own; only whoever drives it knows which of
them belong together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from assistant.store.database import Database


class MemoryBatch:
    """Of one open memory.db. Not for several threads at once."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self._open = False

    @contextmanager
    def writing(self) -> Iterator[Database]:
        """Part of the transaction that is open, else one of its own. Raises `StoreError`; then nothing was written."""
        if self._open:
            yield self.db
            return
        with self.db.write():
            self._open = True
            try:
                yield self.db
            finally:
                self._open = False
