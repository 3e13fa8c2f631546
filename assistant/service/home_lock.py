"""One process serves a data folder: the one that holds its lock.

What always holds: the lock is the kernel's, released however the process ends; the number in its file only tells people
which process to look for.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assistant.core.errors import HomeError, HomeLocked


@contextmanager
def home_lock(home: Path) -> Iterator[None]:
    """Hold the data folder for this process; the kernel releases it however the process ends.

    Raises `HomeLocked` (naming the holder) or `HomeError` (not writable)."""
    lock = _lock_file(home)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise HomeError(
            f"The data folder {home} cannot be written ({error.strerror}). Nothing was started; "
            "make it writable or set ASSISTANT_HOME."
        ) from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HomeLocked(
                f"Process {lock_holder(home) or '?'} uses the data folder {home} already. "
                "Talk to it with `assistant chat`, or stop it with `assistant stop`."
            ) from None
        _write_holder(file, lock)
        yield
    finally:
        os.close(file)


def _lock_file(home: Path) -> Path:
    return home / "run" / "lock"


def _write_holder(file: int, lock: Path) -> None:
    """Note who holds the lock. Raises `HomeError`: where not even that can be written, nothing can."""
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        raise HomeError(
            f"{lock} cannot be written ({error.strerror}). Nothing was started; make room, or make the data "
            "folder writable, then start again."
        ) from None


def lock_holder(home: Path) -> int | None:
    """The process that holds the lock, or None. Only a hint unless the lock is held."""
    with contextlib.suppress(OSError, ValueError):
        return int(_lock_file(home).read_text())
    return None


def is_home_served(home: Path) -> bool:
    """Whether a process holds the lock now."""
    try:
        file = os.open(_lock_file(home), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


_LONGEST = 103
# What `short_address` adds to the temporary directory's own name.
_LINK_LENGTH = 50


@contextmanager
def short_address(path: Path) -> Iterator[str]:
    """An address that reaches `path` for as long as the context is open: to bind, or to connect."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="nocturne-", dir=_short_temporary()) as folder:
        link = Path(folder) / "run"
        link.symlink_to(path.parent, target_is_directory=True)
        yield str(link / path.name)


def is_listening(path: Path) -> bool:
    """Whether a living process listens at `path`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, short_address(path) as address:
        probe.setblocking(False)
        try:
            probe.connect(address)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


def _short_temporary() -> str:
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) + _LINK_LENGTH <= _LONGEST else "/tmp"
