"""Opens the link that a command uses: over the control socket where a daemon runs, else within this process.

Only one process serves a home; one that comes second while the first is still starting waits for its socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from assistant.cli.daemon_link import open_daemon_link, wait_for_daemon
from assistant.cli.handover import serve_in_process
from assistant.cli.link import InProcessLink, Link
from assistant.core.calendar import utc_now
from assistant.core.errors import AssistantError, HomeLocked
from assistant.core.sessions import MAIN_SESSION
from assistant.service.home_lock import home_lock, is_home_served, is_listening
from assistant.settings.settings import Settings

if TYPE_CHECKING:
    from assistant.commands.table import CommandResult

T = TypeVar("T")
# A link that needs no daemon; it raises `HomeLocked` when another process has the home.
LocalLinkFactory = Callable[[Settings], AbstractAsyncContextManager[Link]]


@asynccontextmanager
async def open_link(
    settings: Settings, inside: LocalLinkFactory | None = None, *, stays: bool = False
) -> AsyncIterator[Link]:
    """The daemon's link when one runs, else `inside` this process: `handover.serve_in_process` by default. One that
    `stays` serves here when the daemon is gone. Raises `HomeError`, `StoreError`, `SettingsError`."""
    home, open_here = settings.home, inside or serve_in_process
    async with contextlib.AsyncExitStack() as stack:
        link: Link | None = None
        while link is None and not is_listening(home.socket):
            try:
                link = await stack.enter_async_context(open_here(settings))
            except HomeLocked:
                if not await wait_for_daemon(home) and is_home_served(home.path):
                    raise
        if link is None:
            beside = serve_in_process(settings, follows=True) if stays else open_daemon_link(home)
            link = await stack.enter_async_context(beside)
        yield link


def run_once(
    settings: Settings, argv: Sequence[str], *, creates_home: bool = False, max_seconds: float = 300.0
) -> CommandResult:
    """Run one command of the table on the daemon, or else in this process, which then opens the data folder. So what a
    command line changes goes one way."""

    async def run() -> CommandResult:
        async with open_link(settings, partial(open_home_locally, begins=creates_home)) as link:
            return await link.run_argv(argv, MAIN_SESSION, max_seconds)

    return run_with_signals(run())


@asynccontextmanager
async def open_home_locally(settings: Settings, *, begins: bool = True) -> AsyncIterator[Link]:
    """The data folder, open under its lock, without answering messages or listening on its socket. Raises `HomeLocked`
    when another process has it, `HomeError` where there is none and the command does not create it (`begins`)."""
    # The stores are loaded where they have to be opened here.
    from assistant.cli.home_stores import remark_missing_home, require_home
    from assistant.service.presence import will_stay
    from assistant.wire.app import build_app

    check_home = remark_missing_home if begins else require_home
    check_home(settings)
    with home_lock(settings.home.path):
        app = build_app(settings, utc_now)
        app.agenda.stays = partial(will_stay, settings.home.path)
        try:
            app.stores.conversation.recover_after_crash(utc_now())
            yield InProcessLink(app.control, app.terminal)
        finally:
            await app.sleep.scheduler.stop()
            await app.backup_scheduler.stop()
            await app.mcp.aclose()
            await app.models.aclose()
            app.close()


class ProcessTerminated(AssistantError):
    """The process was asked to end before it was done. What was accepted is kept."""


def run_with_signals(main: Coroutine[None, None, T]) -> T:
    """Run to the end in a new event loop. Ctrl-C is `KeyboardInterrupt`; SIGTERM and SIGHUP cancel and are
    `ProcessTerminated`."""
    was_signalled = threading.Event()

    async def with_signals() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end() -> None:
            was_signalled.set()
            task.cancel()

        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, end)
        return await main

    try:
        return asyncio.run(with_signals())
    except asyncio.CancelledError:
        if was_signalled.is_set():
            raise ProcessTerminated() from None
        raise
