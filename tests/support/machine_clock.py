"""A machine whose wall clock can be set, and whose time since boot cannot."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from assistant.service.clock import SteadyClock


class MachineClock:
    def __init__(self, now: datetime) -> None:
        self._wall = now
        self._elapsed = timedelta(hours=1)

    def wall(self) -> datetime:
        return self._wall

    def elapsed(self) -> timedelta:
        return self._elapsed

    def run(self, time: timedelta) -> None:
        """Time passes; a clock at the end of the calendar stands still."""
        self._wall += min(time, datetime.max.replace(tzinfo=UTC) - self._wall)
        self._elapsed += time

    def set_to(self, moment: datetime) -> None:
        """It shows this, whatever it showed."""
        self._wall = moment

    def set_clock(self, by: timedelta) -> None:
        """Somebody, or something, sets the wall clock."""
        self._wall += by


class SteadyMachineClock(SteadyClock):
    """The clock of an app on such a machine."""

    def __init__(self, now: datetime) -> None:
        self.machine = MachineClock(now)
        super().__init__(self.machine.wall, self.machine.elapsed)
