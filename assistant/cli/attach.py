"""A link to the home's runtime: to the daemon that serves the home, else to one within this process.

Only one process serves a home. Whoever comes second while the first is still starting waits for its socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

from assistant.cli.lazy import load
from assistant.cli.link import DirectLink, Link
from assistant.core.errors import AssistantError, HomeLocked
from assistant.service.home_lock import is_home_served
from assistant.service.unix_socket import is_listening
from assistant.settings.home import Home
from assistant.settings.settings import Settings

T = TypeVar("T")
# A link that needs no daemon; it raises `HomeLocked` when another process has the home.
Inside = Callable[[Settings], AbstractAsyncContextManager[Link]]

_STARTS_WITHIN = 15.0
_LOOK_EVERY = 0.05
# Whoever asks one thing is answered first, and most who talk take longer to type.
_WARM_AFTER = 1.0


@asynccontextmanager
async def home_link(settings: Settings, inside: Inside | None = None) -> AsyncIterator[Link]:
    """The daemon's link when one runs, else `inside` this process: `in_process`, unless told otherwise. Raises
    `HomeError`, `StoreError`, `SettingsError`."""
    async with contextlib.AsyncExitStack() as stack:
        yield await _reached(stack, settings, inside or in_process)


def daemon_link(home: Home) -> AbstractAsyncContextManager[Link]:
    """The link over the home's socket. Its HTTP client is loaded now, because whoever serves the home itself does
    without."""
    link: AbstractAsyncContextManager[Link] = load("assistant.cli.client:socket_link")(home.socket)
    return link


async def _reached(stack: contextlib.AsyncExitStack, settings: Settings, inside: Inside) -> Link:
    home = settings.home
    while not is_listening(home.socket):
        try:
            return await stack.enter_async_context(inside(settings))
        except HomeLocked:
            if not await daemon_appears(home) and is_home_served(home):
                raise
    return await stack.enter_async_context(daemon_link(home))


@asynccontextmanager
async def in_process(settings: Settings) -> AsyncIterator[Link]:
    """The whole daemon within this process. Raises `HomeLocked` when another process has the home; if the runtime ends
    by itself, this task is cancelled and what ended it is raised."""
    # All of the program is loaded where it has to run here, and only then.
    async with load("assistant.daemon:running")(settings, warm_after=_WARM_AFTER) as daemon:
        task = asyncio.current_task()
        assert task is not None
        watch = asyncio.create_task(_cancel_after(daemon.worker, task))
        try:
            yield DirectLink(daemon.house.control, daemon.house.terminal)
        finally:
            watch.cancel()
            if daemon.worker.done():
                daemon.worker.result()


async def _cancel_after(worker: asyncio.Task[None], task: asyncio.Task[T]) -> None:
    await asyncio.wait([worker])
    task.cancel()


async def daemon_appears(home: Home) -> bool:
    """Wait for the socket of the process that holds the home's lock; False when it gives the lock back or takes too
    long."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_STARTS_WITHIN):
            while is_home_served(home):
                if is_listening(home.socket):
                    return True
                await asyncio.sleep(_LOOK_EVERY)
    return False


class Ended(AssistantError):
    """The process was told to end before it was done. What was accepted is kept."""


def run(main: Coroutine[None, None, T]) -> T:
    """Run to the end in a new event loop. Ctrl-C is `KeyboardInterrupt`; SIGTERM and SIGHUP cancel and are `Ended`."""
    told = threading.Event()

    async def with_signals() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end() -> None:
            told.set()
            task.cancel()

        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, end)
        return await main

    try:
        return asyncio.run(with_signals())
    except asyncio.CancelledError:
        if told.is_set():
            raise Ended() from None
        raise
