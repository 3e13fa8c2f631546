"""The way from a terminal to the runtime: the same few calls, within this process or over the control socket.

A message is told apart by its `external_id`: said again after a broken connection it is accepted once, so nobody is
answered twice. Only one process serves a home; one that comes second while the first is still starting waits for its
socket. The HTTP client (`cli.client`) and the daemon are loaded where they are needed, and only then.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from assistant.core.calendar import utc_now
from assistant.core.errors import AssistantError, HomeLocked
from assistant.core.records import InboxReceipt, IncomingMessage
from assistant.core.sessions import MAIN_SESSION, session_scope
from assistant.service.home_lock import home_lock, is_home_claimed, is_home_served, is_listening
from assistant.settings.home import Home
from assistant.settings.settings import Settings

if TYPE_CHECKING:  # the daemon is loaded only where this process serves the home
    from assistant.bridges.terminal.bridge import TerminalBridge
    from assistant.commands.table import CommandResult
    from assistant.web.deps import DaemonControl

# A name and its data: `hello`, the kinds of `records.TurnEvent`, and `deliver`.
LinkEvent = tuple[str, Mapping[str, Any]]


class LinkLost(AssistantError):
    """The assistant stopped before it answered. What it accepted is kept and answered when it runs again."""


class Link(Protocol):
    """Every method raises `LinkLost` when the other end is gone, `AssistantError` with its words when it refuses."""

    async def send_message(self, text: str, external_id: str, session: str) -> InboxReceipt:
        """Returns once the message is durable."""
        ...

    def events(self, session: str, inbox_id: int | None = None) -> AsyncGenerator[LinkEvent]:
        """What happens in the session from now on, after a `hello`, and the deliveries that wait; with `inbox_id`,
        only those that answer that message. Ends when the other end detaches us."""
        ...

    async def acknowledge(self, key: str) -> None:
        """A delivery stands on the screen."""
        ...

    async def run_command(self, text: str, session: str) -> str:
        """A slash command as typed; its answer is Markdown."""
        ...

    async def run_argv(self, argv: Sequence[str], session: str, max_seconds: float) -> CommandResult:
        """A command of the table, as typed in a shell."""
        ...

    async def stop(self, session: str) -> bool:
        """Stop the session's running turn; returns whether there was one."""

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        """The state of an accepted message and, once it is answered, the reply: the fields of `GET /v1/results/ID`."""

    async def status(self) -> Mapping[str, Any]:
        """What `assistant status --json` shows of the running assistant."""

    async def unattended(self) -> str:
        """What waits while nothing will run, once this process has ended; "" where something will."""


class InProcessLink:
    """A `Link` to the runtime of this very process."""

    def __init__(self, control: DaemonControl, terminals: TerminalBridge) -> None:
        self._control = control
        self._terminals = terminals

    async def send_message(self, text: str, external_id: str, session: str) -> InboxReceipt:
        bridge, scope = self._terminals.name, session_scope(session)
        message = IncomingMessage(bridge, external_id, session, scope, "owner", "owner", text, target=session)
        return await self._control.accept(message)

    async def events(self, session: str, inbox_id: int | None = None) -> AsyncGenerator[LinkEvent]:
        with self._terminals.attach(session, inbox_id) as attached:
            async for event in attached.events():
                yield event

    async def acknowledge(self, key: str) -> None:
        self._terminals.acknowledge(key)

    async def run_command(self, text: str, session: str) -> str:
        return await self._control.command(text, session, bridge=self._terminals.name)

    async def run_argv(self, argv: Sequence[str], session: str, max_seconds: float) -> CommandResult:
        return await self._control.run_argv(argv, session, bridge=self._terminals.name)

    async def stop(self, session: str) -> bool:
        return await self._control.stop_turn(session)

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        return await self._control.result(inbox_id)

    async def status(self) -> Mapping[str, Any]:
        return self._control.status()

    async def unattended(self) -> str:
        return self._control.health.unattended()


T = TypeVar("T")
# A link that needs no daemon; it raises `HomeLocked` when another process has the home.
LocalLinkFactory = Callable[[Settings], AbstractAsyncContextManager[Link]]

_STARTS_WITHIN = 15.0
_LOOK_EVERY = 0.05


@asynccontextmanager
async def open_link(
    settings: Settings, inside: LocalLinkFactory | None = None, *, stays: bool = False
) -> AsyncIterator[Link]:
    """The daemon's link when one runs, else `inside` this process: `handover.serve_in_process` by default. One that
    `stays` serves here when the daemon is gone. Raises `HomeError`, `StoreError`, `SettingsError`."""
    from assistant.cli.handover import serve_in_process  # is a link itself

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


def open_daemon_link(home: Home) -> AbstractAsyncContextManager[Link]:
    """The link over the home's socket."""
    from assistant.cli.client import open_socket_link  # an HTTP client, which the serving process never needs

    return open_socket_link(home.socket)


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


async def wait_for_daemon(home: Home) -> bool:
    """Wait for the socket of the process that holds the home's lock, or is next to; False when there is none, or it
    takes too long."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_STARTS_WITHIN):
            while is_home_served(home.path) or is_home_claimed(home.path):
                if is_listening(home.socket):
                    return True
                await asyncio.sleep(_LOOK_EVERY)
    return False


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
