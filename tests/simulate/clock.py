"""Time that passes only when everybody waits: an event loop whose clock jumps to the next timer, and a machine whose
wall clock can be set and which can be suspended.

What always holds: nothing depends on how fast this computer is. A day costs what is done in it. Work that the program
gives to a thread is done by the loop itself, a moment later, so that others come in between, and always the same ones.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import Any

# A reading of the clock, and work in a thread, take a moment: two things never happen at the same time.
_READING = 0.0005
_THREAD = 0.02
# So many rounds of the loop in which no time passes are an endless loop.
_MAX_ROUNDS = 200_000


class StandsStill(AssertionError):
    """Somebody waits for what never comes, or goes round without end."""


class _TimeSelector(selectors.DefaultSelector):
    """Waits for nobody: where the loop would wait, its time passes."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise StandsStill("Everybody waits, and no timer is set.")
            self.loop.skip(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with a time of its own, in seconds from 0."""

    def __init__(self) -> None:
        self._time = 0.0
        self._rounds = 0
        selector = _TimeSelector()
        selector.loop = self
        super().__init__(selector)
        # How late a timer may be: after half a year a nanosecond is lost when it is added to the time.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._time

    def read(self) -> float:
        """The time, which is a little later with each reading."""
        self._time += _READING
        return self._time

    def skip(self, seconds: float) -> None:
        self._rounds = 0 if seconds > 0 else self._rounds + 1
        if self._rounds > _MAX_ROUNDS:
            # Whoever ends what is left has as many again.
            self._rounds = 0
            raise StandsStill(f"{_MAX_ROUNDS:,} rounds in which no time passed: something goes round without end.")
        self._time += seconds

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = self.create_future()
        self.call_later(_THREAD, _do, future, func, args)
        return future


def _do(future: asyncio.Future[Any], func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if future.cancelled():
        return
    try:
        result = func(*args)
    except Exception as error:  # noqa: BLE001 -- whatever it is, whoever waits gets it
        future.set_exception(error)
    else:
        future.set_result(result)


class Machine:
    """The computer that the assistant runs on: its wall clock, and how long it has been on."""

    def __init__(self, loop: VirtualLoop, began: datetime) -> None:
        self._loop = loop
        # Not by the clock on the wall: a time zone adds hours as if its clocks were never changed.
        self._began = began.astimezone(UTC)
        self._suspended = timedelta()
        self._set_by = timedelta()

    def true_time(self) -> datetime:
        """What the clock on the wall of the room shows, which nobody sets."""
        return self._began + self._suspended + timedelta(seconds=self._loop.time())

    def wall(self) -> datetime:
        return self.true_time() + self._set_by

    def elapsed(self) -> timedelta:
        """Since boot, suspended or not."""
        return self._suspended + timedelta(seconds=self._loop.read() + 3600)

    def set_clock(self, by: timedelta) -> None:
        """Somebody, or something, sets the wall clock to `by` beside the true time."""
        self._set_by = by

    def suspend(self, time: timedelta) -> None:
        """Its lid is closed: no timer runs meanwhile."""
        self._suspended += time
