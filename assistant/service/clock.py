"""The clock of the daemon: the wall clock, unless that jumps.

Wall time is compared with the time since boot, which nobody can set and which counts the sleep of a laptop. A wall
clock that leaves it by more than `TOLERANCE` is not believed for `HOLD`; the time from before continues, so that a
clock that is wrong for a minute has no effect. One that stays is believed, and code that plans by the clock is told by
a `ClockStep`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

from assistant.core.calendar import utc_now
from assistant.core.dataclass import dataclass

TOLERANCE = timedelta(minutes=2)
HOLD = timedelta(minutes=5)


def since_boot() -> timedelta:
    """How long the machine has been on, suspended or not."""
    # macOS has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC continues while it sleeps.
    return timedelta(seconds=time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)))


@dataclass(frozen=True, slots=True)
class ClockStep:
    """The wall clock jumped."""

    kind: Literal["held", "returned", "accepted"]  # not believed yet; right again by itself; believed
    time: datetime  # what the time was, without the jump
    shown: datetime  # what the wall clock showed at that moment


class SteadyClock:
    """Gives the time, in UTC."""

    def __init__(self, wall: Callable[[], datetime] = utc_now, elapsed: Callable[[], timedelta] = since_boot) -> None:
        self._wall = wall
        self._elapsed = elapsed
        self._boot = wall() - elapsed()  # when the machine was started, by the time that is believed
        self._held: tuple[datetime, timedelta] | None = None  # the same by the wall clock's, and since when it is so
        self._ended: list[ClockStep] = []

    def __call__(self) -> datetime:
        elapsed, wall = self._elapsed(), self._wall()
        boot = wall - elapsed
        if abs(boot - self._boot) <= TOLERANCE:
            if self._held is not None:
                self._end("returned", elapsed, self._held[0])
            self._boot = boot
            return wall
        if self._held is None or abs(boot - self._held[0]) > TOLERANCE:
            self._held = (boot, elapsed)
        if elapsed - self._held[1] < HOLD:
            return self._boot + elapsed
        self._end("accepted", elapsed, boot)
        self._boot = boot
        return wall

    def _end(self, kind: Literal["returned", "accepted"], elapsed: timedelta, boot: datetime) -> None:
        self._ended.append(ClockStep(kind, self._boot + elapsed, boot + elapsed))
        self._held = None

    def take_ended(self) -> list[ClockStep]:
        """The steps that ended since the last look, oldest first."""
        self()
        ended, self._ended = self._ended, []
        return ended

    def held_step(self) -> ClockStep | None:
        """The step that is not believed yet."""
        now = self()
        return None if self._held is None else ClockStep("held", now, self._held[0] + self._elapsed())
