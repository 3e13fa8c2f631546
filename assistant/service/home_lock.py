"""The lock of a data folder: the process that holds it serves the folder.

The kernel releases the lock however the process ends; the number in its file only shows people which process to look
for.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, get_args

from assistant.core.errors import HomeError, HomeLocked
from assistant.core.plain_files import open_plain_file, read_own_file

# What the process with the lock does: the daemon serves until it is stopped; a chat serves as long as someone talks,
# and yields to a waiting daemon; a command is done soon.
LockRole = Literal["daemon", "chat", "command"]


@contextmanager
def home_lock(home: Path, role: LockRole = "command") -> Iterator[None]:
    """Hold the lock of the data folder in this context; the kernel releases it however the process ends.

    Where nothing was, and what is done fails, nothing is left. Raises `HomeLocked` (naming the holder, or a daemon that
    waits for it) or `HomeError` (not writable)."""
    made = [folder for folder in ((home / _LOCK).parent, home) if not folder.exists()]
    file = _open_lock(home, _LOCK)
    logs = _open_logs(home)
    try:
        holder = None if role == "daemon" else _claimant(home)
        if holder is not None or not _try_lock(file) or not _is_at(file, home / _LOCK):
            raise HomeLocked(
                f"Process {holder or lock_holder(home) or '?'} uses the data folder {home} already. "
                "Talk to it with `assistant chat`, or stop it with `assistant stop`."
            )
        if not _try_lock_logs(logs):
            raise HomeLocked(
                f"Another process uses the data folder {home} already, but {home / 'run'} was removed or replaced. "
                "Stop that process, then start again."
            )
        _write_holder(file, home / _LOCK, role)
        try:
            yield
        except BaseException:
            if _is_at(file, home / _LOCK):  # and no other data folder was put in its place
                _remove_made(made, home / _LOCK)
            raise
    finally:
        if logs is not None:
            os.close(logs)
        os.close(file)


@contextmanager
def claim_home(home: Path) -> Iterator[None]:
    """Announce in this context that a daemon waits for the data folder: a chat that has it yields, and only a daemon
    may take it. Raises `HomeLocked` if another daemon waits already, or `HomeError`."""
    file = _open_lock(home, _CLAIM)
    try:
        if not _try_lock(file):
            raise HomeLocked(f"Another `assistant run` waits for {home} already. Nothing was started.")
        _write_holder(file, home / _CLAIM, "daemon")
        yield
    finally:
        os.close(file)


_LOCK, _CLAIM, _LOGS = Path("run", "lock"), Path("run", "next"), Path("log")


def _open_lock(home: Path, name: Path) -> int:
    lock = home / name
    try:
        lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return open_plain_file(lock, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        if home.is_symlink() and not home.exists():
            raise HomeError(
                f"The data folder {home} is a link to {home.readlink()}, which is not there. Nothing was started; "
                "mount or make it, or set ASSISTANT_HOME."
            ) from None
        raise HomeError(
            f"The data folder {home} cannot be written ({error.strerror}). Nothing was started; "
            "make it writable or set ASSISTANT_HOME."
        ) from None


def _remove_made(folders: Sequence[Path], lock: Path) -> None:
    """Remove the folders that were made for the lock, as far as nothing but the lock, which is held, is in them."""
    if lock.parent in folders:
        with contextlib.suppress(OSError):
            if list(lock.parent.iterdir()) == [lock]:
                lock.unlink()
            for folder in folders:
                folder.rmdir()


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(file: int, path: Path) -> bool:
    """Whether an open file is the one at `path`: whoever made it may have removed it since."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except OSError:
        return False


def _open_logs(home: Path) -> int | None:
    try:
        return os.open(home / _LOGS, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def _try_lock_logs(logs: int | None) -> bool:
    """Lock the folder of the message logs, too, which nobody removes by mistake: else two processes would answer each
    message once somebody cleans up `run/`. There is none before the first message, and some network file systems lock
    no folders."""
    try:
        return logs is None or _try_lock(logs)
    except OSError:
        return True


def _write_holder(file: int, lock: Path, role: LockRole) -> None:
    """Record who holds the lock. Raises `HomeError`: if this cannot be written, nothing can."""
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()} {role}\n".encode(), 0)
    except OSError as error:
        raise HomeError(
            f"{lock} cannot be written ({error.strerror}). Nothing was started; make room, or make the data "
            "folder writable, then start again."
        ) from None


def lock_holder(home: Path) -> int | None:
    """Return the process that holds the lock, or None. Only a hint unless the lock is held."""
    return _holder(home / _LOCK)


def _holder(lock: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(read_own_file(lock).split()[0])
    return None


def lock_role(home: Path) -> LockRole:
    """Return what the process with the lock does; also only a hint."""
    with contextlib.suppress(OSError, ValueError):
        words = read_own_file(home / _LOCK).decode().split()
        return next((role for role in get_args(LockRole) if role in words[1:]), "daemon")
    return "daemon"


def is_home_served(home: Path) -> bool:
    """Return whether a process holds the lock now."""
    return _is_locked(home / _LOCK)


def is_home_claimed(home: Path) -> bool:
    """Return whether a daemon waits for the data folder now (`claim_home`)."""
    return _is_locked(home / _CLAIM)


def _claimant(home: Path) -> int | None:
    return _holder(home / _CLAIM) if is_home_claimed(home) else None


def _is_locked(lock: Path) -> bool:
    try:
        # It may be on a file system that became read-only under the process that holds it.
        file = open_plain_file(lock, os.O_RDONLY)
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
# Length that `short_address` adds to the name of the temporary directory.
_LINK_LENGTH = 50


@contextmanager
def short_address(path: Path) -> Iterator[str]:
    """Yield a short address for `path`, to bind or connect to, valid in this context."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="nocturne-", dir=_short_temporary()) as folder:
        link = Path(folder) / "run"
        link.symlink_to(path.parent, target_is_directory=True)
        yield str(link / path.name)


def is_listening(path: Path) -> bool:
    """Return whether a living process listens at `path`."""
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
