"""The wall clock, local times of a zone and the moments they stand for, and the names of days and months in English.

Only the daemon and the command line read the clock; everything else is given the time as `now`. Each local time is
exactly one moment: one that comes twice in autumn is the first of the two; one that spring leaves out is the moment
at which the clocks were put forward.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"
_MONTHS = "january february march april may june july august september october november december"
_NUMBERS = "one two three four five six seven eight nine ten eleven twelve"
WEEKDAYS = tuple(_WEEKDAYS.split())
MONTHS = tuple(_MONTHS.split())
NUMBER_WORDS = {word: number for number, word in enumerate(_NUMBERS.split(), start=1)}
# Regular expressions of their names, whole or shortened, in small letters.
WEEKDAY_PATTERN = (
    r"(?:mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)"
)
MONTH_PATTERN = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)


def weekday_number(name: str) -> int:
    """0 (Monday) to 6, for a name or its first three letters."""
    return [day[:3] for day in WEEKDAYS].index(name[:3].lower())


def month_number(name: str) -> int:
    """1 to 12, for a name or its first three letters."""
    return [month[:3] for month in MONTHS].index(name[:3].lower()) + 1


def utc_now() -> datetime:
    return datetime.now(UTC)


def local_to_utc(local: datetime, zone: tzinfo) -> datetime:
    """The moment, in UTC, that a local (naive) time stands for."""
    first = local.replace(tzinfo=zone, fold=0)
    at = first.astimezone(UTC)
    if utc_to_local(at, zone) == local:
        return at
    return _clock_change(first.replace(fold=1).astimezone(UTC), at, zone)


def utc_to_local(at: datetime, zone: tzinfo) -> datetime:
    """What the clocks of the zone show, naive."""
    return at.astimezone(zone).replace(tzinfo=None, fold=0)


def local_slot_key(local: datetime) -> str:
    """The name of a slot."""
    return local.isoformat(timespec="seconds" if local.second else "minutes")


def _clock_change(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The first moment, to the second, at which the clocks of the zone are as they are `after`."""
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


def format_moment(at: datetime, zone: ZoneInfo) -> str:
    """A moment as people read it: "Saturday 2026-11-21 09:00"."""
    local = utc_to_local(at, zone)
    return f"{local:%A %Y-%m-%d %H:%M}" + (f":{local:%S}" if local.second else "")


def format_local_time(moment: datetime, zone: tzinfo) -> str:
    """`moment` as people of `zone` read it: "Fri 2026-11-20 14:03"."""
    return moment.astimezone(zone).strftime("%a %Y-%m-%d %H:%M")
