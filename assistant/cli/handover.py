"""The daemon within the process of a chat, and how it changes hands: one that starts (`assistant run`, a service) gets
the data folder from the chat that has it, and the chat continues as its client. When that daemon is gone, the chat
serves again.

What always holds: at each moment one process serves. The chat finishes its running turns and commands first; what is
typed meanwhile is kept here, or in the inbox, and answered once by the next process.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from assistant.cli.daemon_link import open_daemon_link, wait_for_daemon
from assistant.cli.link import InProcessLink, Link, LinkEvent, LinkLost
from assistant.cli.output import print_remark
from assistant.cli.silence import tell_nobody
from assistant.core.errors import HomeLocked
from assistant.core.messages import Media
from assistant.core.records import InboxReceipt
from assistant.core.shutdown import service_manager_timeout
from assistant.core.text import format_duration
from assistant.service.heartbeat import SystemdNotifier
from assistant.service.home_lock import claim_home, is_home_claimed, is_home_served, lock_holder, lock_role
from assistant.service.idle_note import IdleOptions
from assistant.settings.home import NotifyTarget
from assistant.settings.settings import Settings

if TYPE_CHECKING:  # the daemon is loaded only where this process serves the home
    from assistant.commands.table import CommandResult
    from assistant.daemon import Daemon

T = TypeVar("T")

# Whoever asks one thing is answered first, and most who talk take longer to type.
_WARM_AFTER = 1.0
_LOOK_EVERY = 0.2
# A daemon that is restarted is back sooner (seconds).
_GONE_AFTER = 3.0


class HandedOver(LinkLost):
    """`assistant run` takes over; this chat stays connected."""


@asynccontextmanager
async def serve_in_process(
    settings: Settings, *, follows: bool = False, on_page: Callable[[str], None] | None = None, warms: bool = True
) -> AsyncIterator[Link]:
    """The whole daemon within this process, until another one wants to serve. Raises `HomeLocked` when another process
    has the home; if the runtime ends by itself, this task is cancelled and what ended it is raised.

    - `follows`: one serves now, and this process does when it is gone.
    - `on_page`: it serves the page as well, and this gets its address, "" for none.
    - `warms`: what later messages need is loaded before they come."""
    from assistant.cli.home_stores import remark_missing_home

    remark_missing_home(settings)
    link, task = HandoverLink(settings, follows=follows, on_page=on_page, warms=warms), asyncio.current_task()
    assert task is not None
    serving = asyncio.create_task(link.serve(), name="serving")
    try:
        await link.wait_until_linked(serving)
        serving.add_done_callback(lambda _: link.is_left or task.cancel())
        yield link
    finally:
        link.leave()
        await serving


class HandoverLink:
    """A `Link` to the runtime of this process, and after a handover, or from the start where it `follows`, to the
    daemon that serves. What is asked while the home changes hands waits."""

    def __init__(
        self,
        settings: Settings,
        *,
        follows: bool = False,
        on_page: Callable[[str], None] | None = None,
        warms: bool = True,
    ) -> None:
        self._settings = settings
        self._warm_after = _WARM_AFTER if warms else None
        self._follows = follows
        self._on_page = on_page
        self._link: Link | None = None
        self._linked = asyncio.Event()
        # Set while new work is taken: not while this process ends what it is at.
        self._open = asyncio.Event()
        self._leaving = asyncio.Event()
        self._commands: set[asyncio.Task[Any]] = set()
        self.handed_over = asyncio.Event()
        # Once it served or followed, somebody else may serve when it wants to.
        self._may_be_locked_out = follows

    async def serve(self) -> None:
        """Serve the home until the chat is left; where somebody else wants to, follow them for as long as they serve.
        Raises `HomeLocked` where the home is served already."""
        while not self._leaving.is_set():
            if not self._follows:
                await self._serve_here()
            if not self._leaving.is_set() and await wait_for_daemon(self._settings.home):
                async with open_daemon_link(self._settings.home, tell_nobody) as link:
                    self._attach(link)
                    await self._wait_until_daemon_ends()
                    self._detach()
            self._follows = False

    async def _serve_here(self) -> None:
        from assistant.daemon import serve_daemon  # all of the program: loaded where it has to run here, and only then

        try:
            listens = self._on_page is not None
            async with serve_daemon(
                self._settings, warm_after=self._warm_after, role="chat", listens=listens
            ) as daemon:
                self.handed_over.clear()
                if self._on_page is not None:
                    self._on_page(await daemon.app.web.first_url())
                self._attach(InProcessLink(daemon.app.control, daemon.app.terminal))
                self._may_be_locked_out = True
                await self._serve_until_wanted(daemon)
        except HomeLocked:
            # Another chat of the same daemon, or its successor, was quicker: it is followed.
            if not self._may_be_locked_out:
                raise
        self._detach()

    async def _wait_until_daemon_ends(self) -> None:
        """Until nobody serves the home, nor is about to, for a while, or the chat is left."""
        home, loop = self._settings.home.path, asyncio.get_running_loop()
        served_at = loop.time()
        while not self._leaving.is_set() and loop.time() - served_at < _GONE_AFTER:
            if is_home_served(home) or is_home_claimed(home):
                served_at = loop.time()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY):
                    await self._leaving.wait()

    async def wait_until_linked(self, serving: asyncio.Task[None]) -> None:
        """Raises what `serving` raised, if it ended before."""
        linked = asyncio.create_task(self._linked.wait())
        try:
            await asyncio.wait([linked, serving], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            serving.cancel()
            raise
        finally:
            linked.cancel()
        if serving.done():
            serving.result()

    @property
    def serves_here(self) -> bool:
        """Whether this process answers, which leaving ends."""
        return isinstance(self._link, InProcessLink)

    @property
    def is_left(self) -> bool:
        return self._leaving.is_set()

    def leave(self) -> None:
        self._leaving.set()

    async def _serve_until_wanted(self, daemon: Daemon) -> None:
        """Until the chat is left, or a daemon claims the home and what was under way then is done. Raises what the
        runtime raised if it ended by itself."""
        leaving = asyncio.create_task(self._leaving.wait())
        under_way: set[asyncio.Task[Any]] = set()
        try:
            while not leaving.done():
                if not is_home_claimed(self._settings.home.path):
                    # Also where the one who claimed it is gone again.
                    self._open.set()
                elif self._open.is_set():
                    self._open.clear()
                    under_way = {*self._commands, *daemon.app.running_turns.tasks()}
                elif all(task.done() for task in under_way):
                    self.handed_over.set()
                    return
                await asyncio.wait([leaving, daemon.worker], timeout=_LOOK_EVERY, return_when=asyncio.FIRST_COMPLETED)
                if daemon.worker.done():
                    daemon.worker.result()
        finally:
            leaving.cancel()

    def _attach(self, link: Link) -> None:
        self._link = link
        self._linked.set()
        self._open.set()

    def _detach(self) -> None:
        self._link = None
        self._linked.clear()
        self._open.clear()

    async def _current(self) -> Link:
        while self._link is None:
            await self._linked.wait()
        return self._link

    async def _command(self, run: Callable[[Link], Coroutine[Any, Any, T]]) -> T:
        """Something new, which waits while the home changes hands."""
        await self._open.wait()
        command = asyncio.ensure_future(run(await self._current()))
        self._commands.add(command)
        command.add_done_callback(self._commands.discard)
        return await command

    async def send_message(
        self, text: str, external_id: str, session: str, media: Sequence[Media] = ()
    ) -> InboxReceipt:
        return await self._command(lambda link: link.send_message(text, external_id, session, media))

    async def events(self, session: str, inbox_id: int | None = None) -> AsyncGenerator[LinkEvent]:
        """As `Link.events`; raises `HandedOver` when the home changed hands, and then may be asked for again."""
        link = await self._current()
        async with aclosing(link.events(session, inbox_id)) as events:
            async for event in events:
                yield event
        if self.handed_over.is_set() and isinstance(link, InProcessLink) and not self._leaving.is_set():
            # Its stores are about to be closed.
            self._detach()
            raise HandedOver()

    async def acknowledge(self, key: str) -> None:
        await (await self._current()).acknowledge(key)

    async def run_command(self, text: str, session: str) -> str:
        return await self._command(lambda link: link.run_command(text, session))

    async def run_argv(self, argv: Sequence[str], session: str, max_seconds: float) -> CommandResult:
        return await self._command(lambda link: link.run_argv(argv, session, max_seconds))

    async def stop(self, session: str) -> bool:
        return await (await self._current()).stop(session)

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        return await (await self._current()).result(inbox_id)

    async def status(self) -> Mapping[str, Any]:
        return await (await self._current()).status()

    async def unattended(self) -> str:
        return await (await self._current()).unattended()


# ------------------------------------------------------------------------------------------- the daemon that takes over

_HOLDERS = {"chat": "a chat, which hands it over after its answer", "command": "a command, which has to end first"}
# A service manager is told this often (seconds) that the start goes on, and that it takes this much longer at most.
_TELL_EVERY, _EXTEND_BY = 10.0, 60.0


async def serve_when_free(
    settings: Settings, on_ready: Callable[[str], None], manager: NotifyTarget, idle: IdleOptions | None = None
) -> None:
    """Serve in the foreground until told to stop. A chat or a command that has the data folder is waited for: under a
    service manager for as long as it takes, else for the longest turn and a stop.

    Raises `HomeLocked` where it is served already, or where it did not become free."""
    from assistant.daemon import main

    home, values = settings.home.path, settings.values
    limit = round(values.turn.max_seconds) + service_manager_timeout(values.daemon.drain_seconds)
    with contextlib.ExitStack() as stack:
        stack.enter_context(claim_home(home))

        def ready(page_url: str) -> None:
            stack.close()
            on_ready(page_url)

        deadline = None if manager.address else asyncio.get_running_loop().time() + limit
        while True:
            await wait_until_free(settings, deadline, limit, SystemdNotifier(manager.address))
            try:
                return await main(settings, ready, manager, idle)
            except HomeLocked:
                # Somebody was quicker; a daemon is not waited for.
                if not is_home_served(home) or lock_role(home) == "daemon":
                    raise


async def wait_until_free(settings: Settings, deadline: float | None, limit: float, notifier: SystemdNotifier) -> None:
    """Raises `HomeLocked` after `deadline`; `limit` is how long that was."""
    home, loop = settings.home.path, asyncio.get_running_loop()
    told_at = -_TELL_EVERY
    said = ""
    while is_home_served(home) and (role := lock_role(home)) != "daemon":
        holder = f"Process {lock_holder(home) or '?'}"
        within = f" for {format_duration(limit)} at most" if deadline else ""
        waiting = f"{holder} uses the data folder {home}: {_HOLDERS[role]}. Waiting for it{within}."
        if waiting != said:
            print_remark(waiting)
            said = waiting
        if loop.time() - told_at >= _TELL_EVERY:
            notifier.notify(STATUS=waiting, EXTEND_TIMEOUT_USEC=str(round(_EXTEND_BY * 1_000_000)))
            told_at = loop.time()
        if deadline is not None and loop.time() > deadline:
            raise HomeLocked(
                f"{holder} still uses the data folder {home} after {format_duration(limit)}. Nothing was started. Wait "
                "until it is done, or end it with `assistant stop`; then start again."
            )
        await asyncio.sleep(_LOOK_EVERY)
