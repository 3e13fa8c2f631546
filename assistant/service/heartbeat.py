"""The daemon's pulse: at every beat the runtime is asked to pass, and only while it does is the watchdog fed (F40).

A timer that feeds would beat on over a runtime that stands still. Here a loop that is blocked does not come to its next
beat, and a runtime that fails, or a conversation that nobody takes up, is found by the probe; then nothing is fed, and
the service manager starts the daemon again. Without a manager the pulse only tells `status`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NoReturn

import structlog

from assistant.core.progress import Lanes, Progress
from assistant.service import notify
from assistant.service.notify import Notifier

log = structlog.get_logger()

# Beats within the time after which the manager kills: one may be missed, and what is wrong is seen at the third.
_BEATS = 4


@dataclass(frozen=True, slots=True)
class Pulse:
    """`lanes` tells what the runtime is at, `wake` asks it to pass; `serving` tells the status
    while it gets on; `feed` is called at each beat that finds nothing wrong."""

    progress: Progress
    lanes: Callable[[], Lanes]
    wake: Callable[[], None]
    manager: Notifier
    serving: Callable[[], str]
    feed: Callable[[], None]

    async def run(self, every: float) -> NoReturn:
        """Beat until cancelled, the first time at once."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            self.beat(loop.time(), due, every)
            due = loop.time() + every
            await asyncio.sleep(every)

    async def hold(self, ending: Awaitable[None], every: float) -> None:
        """Keep the watchdog quiet until `ending` is over; that has a limit of its own."""
        task = asyncio.ensure_future(ending)
        while not task.done():
            self.manager.tell(**{notify.WATCHDOG: "1"})
            await asyncio.wait([task], timeout=every)
        await task

    def beat(self, at: float, due: float, every: float) -> None:
        known = self.progress.fault
        fault = self.progress.beat(self.lanes(), at, late=at - due, every=every)
        self.wake()
        if not fault:
            self.feed()
            self.manager.tell(**{notify.WATCHDOG: "1", notify.STATUS: self.serving()})
        else:
            self.manager.tell(**{notify.STATUS: fault})
        if fault and not known:
            log.error("the daemon does not get on", fault=fault)
        elif known and not fault:
            log.info("the daemon gets on again")


def seconds_between(watchdog_seconds: float, watch_seconds: float) -> float:
    """The time between two beats; `watchdog_seconds` is 0 where no manager watches."""
    return min(watch_seconds, watchdog_seconds / _BEATS) if watchdog_seconds else watch_seconds
