"""Clock and local-time functions, English day and month names, the sleep schedule, and when a quiet conversation may be
compacted.

Only the daemon and the command line read the clock; everything else takes `now`. Invariants:
- A local time maps to exactly one moment: the first of two if ambiguous (autumn), the moment of the clock change if it
  does not exist (spring).
- There is one night per day of the home's zone, also across clock changes. Timestamps from a wrong clock in the future
  do not suppress a night.
"""

from __future__ import annotations

import re
import time as clocks
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal
from zoneinfo import ZoneInfo

from assistant.core.dataclass import dataclass
from assistant.core.records import SessionInfo

_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"
_MONTHS = "january february march april may june july august september october november december"
_NUMBERS = "one two three four five six seven eight nine ten eleven twelve"
WEEKDAYS = tuple(_WEEKDAYS.split())
MONTHS = tuple(_MONTHS.split())
NUMBER_WORDS = {word: number for number, word in enumerate(_NUMBERS.split(), start=1)}
# Regular expressions of full and abbreviated names, in lower case.
WEEKDAY_PATTERN = (
    r"(?:mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)"
)
MONTH_PATTERN = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)


def weekday_number(name: str) -> int:
    """Return 0 (Monday) to 6 for a name or its first three letters."""
    return [day[:3] for day in WEEKDAYS].index(name[:3].lower())


def month_number(name: str) -> int:
    """Return 1 to 12 for a name or its first three letters."""
    return [month[:3] for month in MONTHS].index(name[:3].lower()) + 1


# What a machine shows whose clock was never set. From then to the end there is room for all that is planned, a hundred
# years ahead, in every time zone.
UNSET_CLOCK, _LATEST_NOW = datetime(1970, 1, 1, tzinfo=UTC), datetime(9800, 1, 1, tzinfo=UTC)


# A wall clock that is put right goes back by less all the time.
CLOCK_TOLERANCE = timedelta(minutes=2)


def is_still_ahead(until: datetime, now: datetime, longest: timedelta) -> bool:
    """Return whether a moment that was put at most `longest` ahead is still to come. One that is farther ahead was put
    there by a clock that was set back since: who waited for it would wait for years."""
    return now < until <= now + longest + CLOCK_TOLERANCE


def is_valid_at(now: datetime, made_at: datetime, until: datetime) -> bool:
    """Return whether what ends at `until` is valid: not before it was made, as by a clock that was set back since."""
    return made_at - CLOCK_TOLERANCE <= now < until


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long something is valid, by two clocks: by the wall clock, which may be set back, and by the time since boot,
    which may not. It ends by the one that ends it first."""

    made_at: datetime
    made_after: timedelta  # since boot
    length: timedelta

    def is_over(self, now: datetime, since_boot: timedelta) -> bool:
        is_valid = is_valid_at(now, self.made_at, self.made_at + self.length)
        return not is_valid or since_boot - self.made_after >= self.length


def utc_now() -> datetime:
    return possible_now(datetime.now(UTC))


def since_boot() -> timedelta:
    """Return how long the machine has been on, including suspended time."""
    # macOS has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC continues while it sleeps.
    return timedelta(seconds=clocks.clock_gettime(getattr(clocks, "CLOCK_BOOTTIME", clocks.CLOCK_MONOTONIC)))


def possible_now(shown: datetime) -> datetime:
    """Return what a clock shows; in a year at an end of the calendar, where nothing can be planned, `UNSET_CLOCK`."""
    return shown if UNSET_CLOCK < shown < _LATEST_NOW else UNSET_CLOCK


def local_to_utc(local: datetime, zone: tzinfo) -> datetime:
    """Convert a naive local time to UTC. Where the calendar ends before, in year 1 or 9999, return its end."""
    first = local.replace(tzinfo=zone, fold=0)
    try:
        at = first.astimezone(UTC)
    except OverflowError:
        return _end_of_calendar(local).replace(tzinfo=UTC)
    if utc_to_local(at, zone) == local:
        return at
    return _clock_change(first.replace(fold=1).astimezone(UTC), at, zone)


def utc_to_local(at: datetime, zone: tzinfo) -> datetime:
    """Return the naive local time of a moment in the zone. Where the calendar ends before, return its end."""
    try:
        return at.astimezone(zone).replace(tzinfo=None, fold=0)
    except OverflowError:
        return _end_of_calendar(at)


def _end_of_calendar(near: datetime) -> datetime:
    return datetime.min if near.year == datetime.min.year else datetime.max  # noqa: DTZ901 -- local times are naive


def local_slot_key(local: datetime) -> str:
    """Return the key of a local time slot (ISO format)."""
    return local.isoformat(timespec="seconds" if local.second else "minutes")


def _clock_change(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """Return the moment, to the second, at which the zone changes to the UTC offset of `after` (binary search)."""
    offset = after.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = (before + (after - before) / 2).replace(microsecond=0)
        if middle <= before:
            break
        if middle.astimezone(zone).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return after


_UTC_NAMES = frozenset(["Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "UCT", "Universal", "Zulu"])


def format_moment(at: datetime, zone: tzinfo) -> str:
    """Format a moment for people: "Saturday 2026-11-21 09:00"."""
    local = utc_to_local(at, zone)
    return f"{local:%A %Y-%m-%d %H:%M}" + (f":{local:%S}" if local.second else "")


def format_zone(zone: ZoneInfo) -> str:
    """Format a time zone for people: "Europe/Berlin"; "UTC" for "Etc/UTC", which nobody types."""
    return "UTC" if zone.key in _UTC_NAMES else zone.key


def format_due(due: str) -> str:
    """Format a local day or time for people: "Friday 2026-03-13", "Friday 2026-03-13 17:00"."""
    return f"{datetime.fromisoformat(due):%A} {due[:16].replace('T', ' ')}"


def format_local_time(moment: datetime, zone: tzinfo) -> str:
    """Format a moment in `zone`: "Fri 2026-11-20 14:03"."""
    return moment.astimezone(zone).strftime("%a %Y-%m-%d %H:%M")


_ON_TIME = timedelta(minutes=10)
_A_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class SleepSchedule:
    """When the nightly sleep is due."""

    at: str  # time of day, e.g. "03:30"; "" disables automatic sleep
    zone: tzinfo

    def find_due_night(self, slept_at: datetime | None, since: datetime | None, now: datetime) -> datetime | None:
        """Return the latest scheduled night if it was not slept yet, else None. `slept_at` is the start of the last
        complete sleep, `since` the start of the home: nights before it do not count, and None means there are none."""
        if not self.at or since is None:
            return None
        slot = max(moment for moment in self._nights_around(now) if moment <= now)
        awake = [moment for moment in (slept_at, since) if moment is not None and not _is_of_a_wrong_clock(moment, now)]
        return slot if all(moment < slot for moment in awake) else None

    def find_next_night(self, slept_at: datetime | None, since: datetime | None, now: datetime) -> datetime | None:
        """Return when the next nightly sleep starts: a time before `now` where one is due already, None if it is off.
        Arguments as in `find_due_night`."""
        if not self.at:
            return None
        due = self.find_due_night(slept_at, since, now)
        return due or min(moment for moment in self._nights_around(now) if moment > now)

    def find_missed_night(self, slept_at: datetime | None, since: datetime | None, now: datetime) -> datetime | None:
        """Return the first night that was not slept if that is more than a day ago, else None."""
        if slept_at is not None and _is_of_a_wrong_clock(slept_at, now):
            slept_at = None
        awake = _later(slept_at, since)
        if not self.at or awake is None:
            return None
        slot = min(night for night in self._nights_around(awake) if night > awake)
        return slot if now - slot > _A_DAY else None

    def _nights_around(self, moment: datetime) -> Iterator[datetime]:
        """The nights within two days of a moment, in UTC."""
        day = moment.astimezone(self.zone).date()
        return (self._night_of_day(day + timedelta(days=days)) for days in range(-2, 3))

    def _night_of_day(self, day: date) -> datetime:
        return datetime.combine(day, time.fromisoformat(self.at), self.zone).astimezone(UTC)


def next_time_of_day(at: str, zone: tzinfo, now: datetime) -> datetime:
    """Return when it is next that time of day, such as "03:30", in `zone`, after `now`; in UTC."""
    today, of_day = now.astimezone(zone).date(), time.fromisoformat(at.zfill(5))
    moments = (datetime.combine(today + timedelta(days=days), of_day, zone).astimezone(UTC) for days in range(3))
    return next(moment for moment in moments if moment > now)


def find_first_message_time(sessions: Sequence[SessionInfo]) -> datetime | None:
    """Return when the first session with messages began, or None if there is none."""
    return min((info.started_at for info in sessions if info.messages), default=None)


def is_late_start(slot: datetime, now: datetime) -> bool:
    """Return whether a night starting now was missed at its scheduled time."""
    return now - slot > _ON_TIME


def _is_of_a_wrong_clock(moment: datetime, now: datetime) -> bool:
    return moment - now > _A_DAY


def _later(slept_at: datetime | None, since: datetime | None) -> datetime | None:
    return since if since is None or slept_at is None else max(slept_at, since)


def is_nap_due(last_at: datetime | None, nap_minutes: float, running: bool, now: datetime) -> bool:
    """Return whether the session was silent for `nap_minutes` (0: never) and no turn is running. A clock that was set
    back only delays a nap."""
    return nap_minutes > 0 and last_at is not None and not running and now - last_at >= timedelta(minutes=nap_minutes)


def read_date_phrase(
    text: str, base: datetime, languages: Sequence[str], *, prefer: Literal["past", "future"], parts: Sequence[str] = ()
) -> tuple[datetime | None, str]:
    """Parse a date phrase with dateparser, relative to the local time `base`. Returns the local time and its precision
    ("time", "part_of_day", "day", "week", "month", "year"); None if nothing was parsed or one of `parts` ("day",
    "month") is missing."""
    from dateparser.date import DateDataParser  # slow to import

    settings = {
        "PREFER_DATES_FROM": prefer,
        "RETURN_TIME_AS_PERIOD": True,
        "RETURN_AS_TIMEZONE_AWARE": False,
        "RELATIVE_BASE": base,
        "REQUIRE_PARTS": list(parts),
    }
    try:
        data = DateDataParser(languages=list(languages), settings=settings).get_date_data(text)
    except (ValueError, OverflowError, TypeError, KeyError, AttributeError, re.error):
        # dateparser raises these for some texts that are not dates.
        return None, "day"
    return data.date_obj, str(data.period)
