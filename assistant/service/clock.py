"""The clock of the daemon: wall time, unless it jumps.

Wall time is compared with the time since boot, which cannot be set and continues while a laptop sleeps. If they diverge
by more than `TOLERANCE`, the wall clock is ignored for `HOLD` and time continues as before, so that a clock that is
wrong for a minute has no effect. A lasting change is accepted, and reported by a `ClockStep` to code that plans by the
clock. A year at an end of the calendar is never accepted, since nothing could be planned in it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

from assistant.core.calendar import CLOCK_TOLERANCE, UNSET_CLOCK, possible_now, since_boot, utc_now
from assistant.core.dataclass import dataclass

TOLERANCE = CLOCK_TOLERANCE
HOLD = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class ClockStep:
    """A jump of the wall clock."""

    kind: Literal["held", "refused", "returned", "accepted"]  # not accepted yet; never accepted; reverted; accepted
    time: datetime  # the time without the jump
    shown: datetime  # the wall clock at that moment


class SteadyClock:
    """Returns the time, in UTC."""

    def __init__(self, wall: Callable[[], datetime] = utc_now, elapsed: Callable[[], timedelta] = since_boot) -> None:
        self._wall = wall
        self._elapsed = elapsed
        self._boot = possible_now(wall()) - elapsed()  # boot time by the accepted clock
        self._held: tuple[datetime, timedelta] | None = None  # boot time by the wall clock, and since when
        self._ended: list[ClockStep] = []

    def __call__(self) -> datetime:
        elapsed, wall = self._elapsed(), possible_now(self._wall())
        boot, is_set = wall - elapsed, wall > UNSET_CLOCK
        if is_set and abs(boot - self._boot) <= TOLERANCE:
            if self._held is not None:
                self._end("returned", elapsed, self._held[0])
            self._boot = boot
            return wall
        if self._held is None or abs(boot - self._held[0]) > TOLERANCE:
            self._held = (boot, elapsed)
        if not is_set or elapsed - self._held[1] < HOLD:
            return self._boot + elapsed
        self._end("accepted", elapsed, boot)
        self._boot = boot
        return wall

    def _end(self, kind: Literal["returned", "accepted"], elapsed: timedelta, boot: datetime) -> None:
        self._ended.append(ClockStep(kind, self._boot + elapsed, boot + elapsed))
        self._held = None

    def take_ended(self) -> list[ClockStep]:
        """Return the steps that ended since the last call, oldest first."""
        self()
        ended, self._ended = self._ended, []
        return ended

    def held_step(self) -> ClockStep | None:
        """Return the step that is not accepted yet."""
        now, shown = self(), possible_now(self._wall())
        return None if self._held is None else ClockStep("held" if shown > UNSET_CLOCK else "refused", now, shown)
