"""Quiet hours: from a time of day to another, by the clock of the home. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from assistant.core.wall import local_of, moment_of

_A_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Quiet:
    """`begin` is in the quiet hours, `end` is not; the same time twice is no quiet hours."""

    begin: time
    end: time
    zone: ZoneInfo

    def window(self, at: datetime) -> tuple[datetime, datetime] | None:
        """Begin and end of the quiet hours that a moment falls into; None outside of them."""
        today = local_of(at, self.zone).replace(hour=0, minute=0, second=0, microsecond=0)
        for day in (today - _A_DAY, today):
            last = day if self.begin < self.end else day + _A_DAY
            begin = moment_of(datetime.combine(day, self.begin), self.zone)
            end = moment_of(datetime.combine(last, self.end), self.zone)
            if self.begin != self.end and begin <= at < end:
                return begin, end
        return None

    def over(self, at: datetime) -> datetime:
        """The moment itself, or the end of the quiet hours that it falls into."""
        window = self.window(at)
        return at if window is None else window[1]

    def __str__(self) -> str:
        return f"{self.begin:%H:%M}-{self.end:%H:%M}"


def quiet_of(hours: str, zone: ZoneInfo) -> Quiet | None:
    """The quiet hours written as in "22:00-07:00"; None for ""."""
    if not hours:
        return None
    begin, end = (time.fromisoformat(part.strip().zfill(5)) for part in hours.split("-"))
    return Quiet(begin, end, zone)
