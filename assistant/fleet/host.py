"""A host of a fleet: takes homes that are free, runs each as a child process, and renews its leases. A home that nobody
needs is stopped until it has something to do.

Time is measured with the monotonic clock of this machine, from before a renewal was sent: whatever this machine takes
for the time of day, a child is killed before PostgreSQL lets its lease lapse.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path

from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, ReplicaUnavailable
from assistant.core.logger import get_logger
from assistant.fleet.running import OpenReplica, RunningHome, StartProcess
from assistant.fleet.tables import LEASE_SECONDS, FleetTables, HeldHome, Quota
from assistant.service.idle_note import IdleNote, IdleOptions

log = get_logger()

_LOOK_EVERY = 0.2
_RENEW_EVERY = 3.0
# Time to kill the children before the leases lapse.
_SPARE_SECONDS = 2.0
# Homes that load at the same time: more would all be ready later.
STARTS_AT_ONCE = 2 * (os.cpu_count() or 1)
_PORTS_END = 1 << 16
_MEASURE_EVERY = 30.0
# A home that has started, or was woken before it was stopped, stays for so long: what woke it is about to reach it.
_ACTIVE_SECONDS = 5.0
# One that cannot be restored here is left to other hosts for so long: one of them may have its folder.
_REFUSED_SECONDS = 15.0
_NO_ANSWER = "PostgreSQL does not answer, or waits for a standby that is gone"


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Who a host is."""

    name: str
    folder: Path  # has a folder for each home
    listen: str  # host name or address at which the pages of its homes are
    first_port: int  # of the first home; the next has the next free one
    most: int  # homes
    environment: Callable[[str, Path, int, Quota], Mapping[str, str]]  # of a home's commands: its name, folder and port
    idle: IdleOptions  # when a home that nobody needs is stopped; 0 minutes for never
    poll_seconds: float  # between looks whether the bridges of such a home have anything

    @property
    def command(self) -> tuple[str, ...]:
        """The command that serves a home."""
        polled = ("--polled",) if self.idle.polled else ()
        return ("run", "--note-idle", str(self.idle.minutes), *polled) if self.idle.minutes else ("run",)


@dataclass(slots=True)
class _News:
    """What a look at the homes has to tell PostgreSQL; of each home its epoch."""

    ended: dict[str, int] = field(default_factory=dict)
    asleep: dict[str, tuple[int, IdleNote]] = field(default_factory=dict)
    awake: list[str] = field(default_factory=list)


class FleetHost:
    def __init__(self, tables: FleetTables, options: HostOptions, replica: OpenReplica, start: StartProcess) -> None:
        self._tables, self._options, self._replica, self._start = tables, options, replica, start
        self._process = secrets.token_hex(8)
        self._homes: dict[str, RunningHome] = {}
        self._refused: dict[str, float] = {}  # until when others may take homes that cannot be restored here
        self._waiting = 0  # homes for which this host has no room; it stops as many that nobody uses
        self._measured_at = 0.0
        self._measuring: asyncio.Task[dict[str, tuple[int, int]]] | None = None
        self._renewed_at = 0.0  # when the last renewal that was confirmed was sent, by the loop's clock
        self._is_announced = False

    async def run(self, stop: asyncio.Event) -> None:
        """Run homes until `stop`, then end them all."""
        trouble = ""
        self._renewed_at = asyncio.get_running_loop().time()
        watching = asyncio.create_task(self._watch_leases(), name="leases")
        try:
            while self._homes or not stop.is_set():
                if stop.is_set():
                    for running in self._homes.values():
                        running.close()
                try:
                    async with asyncio.timeout(LEASE_SECONDS):
                        await self._tend_homes(takes_more=not stop.is_set())
                    trouble = ""
                except (AssistantError, OSError) as error:
                    if (text := str(error) or _NO_ANSWER) != trouble:
                        log.error("the homes cannot be looked after", error=text)
                    trouble = text
                    if stop.is_set() and all(running.is_ended for running in self._homes.values()):
                        break  # their leases lapse
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_EVERY):
                        await (asyncio.sleep(_LOOK_EVERY) if stop.is_set() else stop.wait())
        finally:
            watching.cancel()
            for running in self._homes.values():
                running.abandon()
                await running.wait()
        with contextlib.suppress(ReplicaUnavailable):
            await self._tables.withdraw(self._options.name)

    async def _tend_homes(self, *, takes_more: bool) -> None:
        """Renew the leases if it is time, end what was lost or moves, release what has ended, take what is free."""
        sent = asyncio.get_running_loop().time()
        if not self._is_announced:
            await self._tables.announce(self._options.name, self._options.listen)
            self._is_announced = True
        if sent - self._renewed_at >= _RENEW_EVERY:
            held = await self._tables.renew(self._options.name, self._process)
            self._renewed_at = sent
        else:
            held = await self._tables.read_held(self._options.name, self._process)
        news = _News()
        for home in held.keys() - self._homes.keys():
            # The answer was lost with which PostgreSQL gave it to this process.
            news.ended[home] = held[home].epoch
        for running in list(self._homes.values()):
            self._attend(running, held.get(running.home), news)
        await self._tell(news)
        if takes_more:
            await self._take_free()
        await self._note_sizes(sent)

    async def _note_sizes(self, now: float) -> None:
        """Measure the homes from time to time. No renewal waits for that: of many homes it takes long, and longer on a
        busy machine."""
        if self._measuring is not None:
            if self._measuring.done():
                measuring, self._measuring = self._measuring, None
                await self._tables.note_sizes(measuring.result(), self._process)
        elif now - self._measured_at >= _MEASURE_EVERY:
            self._measured_at = now
            self._measuring = asyncio.create_task(asyncio.to_thread(self._measure), name="sizes")

    def _measure(self) -> dict[str, tuple[int, int]]:
        return {home: running.measure() for home, running in list(self._homes.items())}

    async def _tell(self, news: _News) -> None:
        """Store what is new in a statement of each kind: a renewal must not wait for one of each home."""
        if news.ended:
            await self._tables.release(news.ended, self._process, self._options.poll_seconds)
            for home in news.ended:
                running = self._homes.pop(home, None)
                if running is None or not running.is_polling:
                    log.info("released a home", home=home)
        if news.asleep:
            await self._tables.mark_asleep(news.asleep, self._process, self._options.poll_seconds)
        if news.awake:
            await self._tables.wake(news.awake)

    def _attend(self, running: RunningHome, held: HeldHome | None, news: _News) -> None:
        if held is not None and held.epoch != running.epoch:
            held = None
        if running.is_ended:
            news.ended[running.home] = running.epoch
            if running.idle_step == "stopping" and running.has_left_something:
                log.warning("a home is started again, since it left something", home=running.home)
                news.awake.append(running.home.lower())
            if running.is_refused:
                self._refused[running.home] = asyncio.get_running_loop().time() + _REFUSED_SECONDS
        elif held is None:
            running.abandon()
        elif held.moves or held.is_full:
            if running.is_leaving:
                running.close()
            # Closed at the next look, when no router sends it new requests any more.
            running.is_leaving = True
        else:
            running.check_holder(held.holder)
            if running.take_quota(held.quota):
                self._measured_at = 0.0
            self._stop_if_idle(running, held.is_asleep, news)

    def _stop_if_idle(self, running: RunningHome, is_asleep: bool, news: _News) -> None:
        """Stop a home that nobody needs, after routers were told to wake it first, and once what they sent it before
        shows in its note."""
        now = asyncio.get_running_loop().time()
        if running.idle_step == "announced" and now < running.active_until:
            return
        if running.is_starting:
            running.active_until = now + _ACTIVE_SECONDS
        note = running.find_idle_note(early=self._waiting > 0 or running.idle_step == "announced")
        if running.idle_step == "announced":
            if note is not None and is_asleep:
                running.idle_step = "stopping"
                running.close()
                return
            # A router woke it in time, or somebody came to it by another way.
            running.idle_step, running.active_until = "active", now + _ACTIVE_SECONDS
        if is_asleep and running.idle_step != "stopping" and not running.is_polling:
            news.awake.append(running.home.lower())
        elif note is not None and running.idle_step == "active":
            self._waiting -= 1
            running.idle_step, running.active_until = "announced", now + self._options.idle.look_seconds
            news.asleep[running.home] = running.epoch, note

    async def _take_free(self) -> None:
        places = self._options.most - len(self._homes)
        room = min(places, STARTS_AT_ONCE - sum(running.is_starting for running in self._homes.values()))
        if room <= 0 < places:
            return
        free, now = await self._tables.find_free(self._options.name), asyncio.get_running_loop().time()
        free = [home for home in free if home not in self._homes and self._refused.get(home, 0.0) <= now]
        stopping = sum(running.idle_step != "active" for running in self._homes.values())
        self._waiting = len(free) - places - stopping
        if room > 0 and free:
            await self._take(free[:room])

    async def _take(self, homes: list[str]) -> None:
        options = self._options
        ports = dict(zip(homes, self._find_ports(), strict=False))
        places = {home: f"{options.listen}:{port}" for home, port in ports.items()}
        for home, taken in (await self._tables.take(places, options.name, self._process)).items():
            if not taken.is_asleep:
                log.info("took a home", home=home, epoch=taken.epoch)
            folder = options.folder / home
            environment = partial(options.environment, home, folder, ports[home])
            self._homes[home] = RunningHome(
                taken, folder, ports[home], environment, self._replica, self._start, options.command
            )

    def _find_ports(self) -> Iterator[int]:
        """Yield the ports that are free. Raises `OSError` after the last."""
        options, taken = self._options, {running.port for running in self._homes.values()}
        for port in range(options.first_port, _PORTS_END):
            if port not in taken:
                with contextlib.suppress(OSError), socket.create_server((options.listen, port)):
                    yield port
        raise OSError(f"no port from {options.first_port} on is free")

    async def _watch_leases(self) -> None:
        """Kill the children before leases lapse that cannot be renewed, even while a renewal waits for an answer."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            if loop.time() > self._renewed_at + LEASE_SECONDS - _SPARE_SECONDS:
                for running in self._homes.values():
                    running.abandon()
