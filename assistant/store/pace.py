"""Writing much without anybody having to wait behind it.

What always holds: only a little that was written is not on the disk yet, so that another's fsync never queues behind
hundreds of megabytes; and after each push to the disk there is a rest as long as the push took, so that a busy disk is
used the less. `alive` is asked all along: whoever wanted the work may be gone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from assistant.core.errors import StoreError

_PUSH = 1 << 20
_LONGEST_REST = 0.25
_ADVISE = getattr(os, "posix_fadvise", None)
_DONE_WITH = getattr(os, "POSIX_FADV_DONTNEED", 0)
# macOS has no fdatasync; its fsync stops at the drive's cache, which is enough for pacing.
_PUSHING: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


def always() -> bool:
    return True


class Pace:
    """One for all that a piece of work writes. `unhurried` False: no rests, where nobody else writes meanwhile."""

    def __init__(self, alive: Callable[[], bool] = always, *, unhurried: bool = True) -> None:
        self._alive = alive
        self._unhurried = unhurried
        self._since = 0

    def wrote(self, descriptor: int, count: int) -> None:
        """`count` more bytes were written to an open file. Raises `OSError`, and `StoreError` where nobody wants the
        work any more."""
        self._since += count
        if self._since < _PUSH:
            return
        self._since = 0
        self.go_on()
        if self._unhurried:
            begun = time.monotonic()
            _PUSHING(descriptor)
            if _ADVISE is not None:
                _ADVISE(descriptor, 0, 0, _DONE_WITH)
            time.sleep(min(_LONGEST_REST, time.monotonic() - begun))

    def go_on(self) -> None:
        """Raises `StoreError` where nobody wants the work any more."""
        if not self._alive():
            raise StoreError("The assistant ended meanwhile, and the work with it. Nothing was changed.")


class PacedFile:
    """A new file (0600), written at a pace. `path` must not exist."""

    def __init__(self, path: Path, pace: Pace, mode: int = 0o600) -> None:
        self._pace = pace
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)

    def write(self, data: bytes) -> int:
        written = 0
        while written < len(data):
            count = os.write(self._file, memoryview(data)[written:])
            written += count
            self._pace.wrote(self._file, count)
        return written

    def flush(self) -> None:
        """Nothing is held back."""

    def fileno(self) -> int:
        return self._file

    def close(self) -> None:
        os.close(self._file)
