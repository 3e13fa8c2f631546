"""Which night is due and which was missed, and when a conversation is quiet enough to be compacted during the day.
Pure.

What always holds: there is one night for each day of the home's zone, whatever its clocks do: an hour that comes
twice has one, and in an hour that is left out it comes when that hour would have been. What a clock that was wrong
dated in the future keeps no night from coming.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from assistant.core.records import SessionInfo

_ON_TIME = timedelta(minutes=10)
_A_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class SleepSchedule:
    """The time of day at which a home in `zone` sleeps, as in "03:30"; "" for a home that never sleeps by itself."""

    at: str
    zone: tzinfo

    def find_due_night(self, slept_at: datetime | None, since: datetime | None, now: datetime) -> datetime | None:
        """The night that should have begun by now and was not slept. `slept_at` is when the last whole sleep began,
        `since` when the home was begun: before that there were no nights, and none where it is None."""
        if not self.at or since is None:
            return None
        slot = max(one for one in self._around(now) if one <= now)
        awake = [one for one in (slept_at, since) if one is not None and not _is_of_a_wrong_clock(one, now)]
        return slot if all(one < slot for one in awake) else None

    def find_missed_night(self, slept_at: datetime | None, since: datetime | None, now: datetime) -> datetime | None:
        """The first night that was not slept, where that is more than a day ago."""
        if slept_at is not None and _is_of_a_wrong_clock(slept_at, now):
            slept_at = None
        awake = _later(slept_at, since)
        if not self.at or awake is None:
            return None
        slot = min(one for one in self._around(awake) if one > awake)
        return slot if now - slot > _A_DAY else None

    def _around(self, moment: datetime) -> Iterator[datetime]:
        """The nights close to a moment, in UTC."""
        day = moment.astimezone(self.zone).date()
        return (self._night_of_day(day + timedelta(days=days)) for days in range(-2, 3))

    def _night_of_day(self, day: date) -> datetime:
        return datetime.combine(day, time.fromisoformat(self.at), self.zone).astimezone(UTC)


def find_first_message_time(sessions: Sequence[SessionInfo]) -> datetime | None:
    """Since when something is said in a home; None where nothing ever was."""
    return min((info.started_at for info in sessions if info.messages), default=None)


def is_late_start(slot: datetime, now: datetime) -> bool:
    """Whether a night that begins now is one that was missed when it was due."""
    return now - slot > _ON_TIME


def _is_of_a_wrong_clock(moment: datetime, now: datetime) -> bool:
    return moment - now > _A_DAY


def _later(slept_at: datetime | None, since: datetime | None) -> datetime | None:
    return since if since is None or slept_at is None else max(slept_at, since)


def is_nap_due(last_at: datetime | None, nap_minutes: float, running: bool, now: datetime) -> bool:
    """Whether nothing was said for long enough, and nothing is being answered. `nap_minutes` 0: never. A clock that was
    set back makes a nap due later, never sooner."""
    return nap_minutes > 0 and last_at is not None and not running and now - last_at >= timedelta(minutes=nap_minutes)
