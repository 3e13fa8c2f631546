"""The control socket: bound at once, served from the first connection on.

Binding is cheap and tells other processes that the home is served; the web framework costs a quarter of a second to
load, and a process that answers one question and leaves never needs it. A caller waits in the kernel's queue meanwhile.

The socket is the owner's alone: the directory has mode 0700 before it exists, the socket 0600. Whoever serves holds the
home's lock, so a socket that is found there belongs to a process that died; it is removed only if nobody answers on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import structlog

from assistant.core.errors import HomeError, HomeLocked
from assistant.core.shutdown import SHUTDOWN_TIMEOUTS, finish_within
from assistant.service.unix_socket import is_listening, short_address

log = structlog.get_logger()

# What serves an open listening socket for as long as the context is open.
Serving = Callable[[socket.socket], AbstractAsyncContextManager[None]]

_BACKLOG = 128


@asynccontextmanager
async def serve_control(load: Callable[[], Serving], path: Path) -> AsyncIterator[None]:
    """Listen at `path`; at the first connection call `load` (in a worker thread) and let what it gives serve.

    The caller holds the home's lock. Raises `HomeLocked` when a living process answers there, `HomeError` when the
    socket cannot be made."""
    listening = listen(path)
    mine = _identity(path)
    end = asyncio.Event()
    server = asyncio.create_task(serve_until(end, load, listening), name="control socket")
    server.add_done_callback(lambda task: _report(task, listening))
    try:
        yield
    finally:
        end.set()
        await finish_within(SHUTDOWN_TIMEOUTS.serving, asyncio.wait([server]), "the control socket")
        listening.close()
        _remove(path, mine)


async def serve_until(end: asyncio.Event, load: Callable[[], Serving], listening: socket.socket) -> None:
    """Serve from the first connection until `end`; what serves is loaded in a worker thread."""
    await _first_connection(listening, end)
    if end.is_set():
        return
    serving = await asyncio.to_thread(load)
    async with serving(listening):
        await end.wait()


def listen(path: Path) -> socket.socket:
    """A socket that listens at `path`, readable and writable by the owner alone from its first moment on."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.parent.chmod(0o700)
        _remove_stale(path)
        with contextlib.suppress(OSError):
            os.fchmod(listening.fileno(), 0o600)
        with short_address(path) as address:
            listening.bind(address)
        path.chmod(0o600)
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise HomeError(f"The control socket {path} cannot be made ({error.strerror or error}).") from None
    except HomeError:
        listening.close()
        raise
    return listening


def _identity(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino


def _remove(path: Path, mine: tuple[int, int]) -> None:
    """Take the socket away, unless another one stands there by now."""
    with contextlib.suppress(OSError):
        if _identity(path) == mine:
            path.unlink()


def _remove_stale(path: Path) -> None:
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise HomeError(f"{path} is in the way of the control socket and is no socket; move it, then start again.")
    if is_listening(path):
        raise HomeLocked()
    path.unlink()


async def _first_connection(listening: socket.socket, end: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    somebody = asyncio.Event()
    loop.add_reader(listening.fileno(), somebody.set)
    waiting = [asyncio.create_task(event.wait()) for event in (somebody, end)]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(listening.fileno())
        for task in waiting:
            task.cancel()


def _report(task: asyncio.Task[None], listening: socket.socket) -> None:
    """A server that failed must not leave callers waiting in the kernel's queue for ever."""
    if not task.cancelled() and (error := task.exception()) is not None:
        listening.close()
        log.error("control socket failed", error=f"{type(error).__name__}: {error}")
