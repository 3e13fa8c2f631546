"""Parses points in time for "what was known then": "2026-03-01", "2026-03-01 14:00", "last monday".

A day, week, month or year means its end in the home's zone, or now if that is in the future; a time of day means that
moment. Ambiguous dates are rejected. Pure; dateparser is imported on first use.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from assistant.core.calendar import read_date_phrase
from assistant.core.errors import UsageError
from assistant.core.text import lazy_regex, shorten

AS_OF_EXAMPLES = '"2026-03-01", "2026-03-01 14:00", "last monday" or "3 weeks ago"'
_LONGEST = 60
_MOST_WORDS = 6
_ISO = lazy_regex(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{1,2}:\d{2}(?::\d{2})?)?(?=$|\s)")
_EITHER = lazy_regex(r"(?<![\d/.-])(\d{1,2})[/.-](\d{1,2})[/.-]\d{2,4}\b")
# Offset for detecting texts that are relative to now.
_NUDGE = timedelta(minutes=7)
_Span = tuple[datetime, datetime]


def split_as_of(words: str, now: datetime, zone: tzinfo) -> tuple[datetime, str]:
    """Split a leading time (returned in UTC) from the rest of the words. Raises `UsageError`."""
    words = " ".join(words.split())
    iso = _ISO.match(words)
    if iso is not None:
        return parse_as_of(iso[0], now, zone), words[iso.end() :].strip()
    parts = words.split(" ")
    for count in range(min(len(parts), _MOST_WORDS), 0, -1):
        beginning = " ".join(parts[:count])
        if _read_phrase(beginning, now, zone) is not None:
            return parse_as_of(beginning, now, zone), " ".join(parts[count:])
    return parse_as_of(words, now, zone), ""


def parse_as_of(text: str, now: datetime, zone: tzinfo) -> datetime:
    """Parse a point in time, in UTC. Raises `UsageError` if it is invalid, ambiguous or in the future."""
    text = " ".join(text.split())
    either = _EITHER.search(text)
    if either and either[1] != either[2] and max(int(either[1]), int(either[2])) <= 12:
        raise UsageError(f"{either[0]} may be read two ways. Write the year first, as in 2026-03-01.")
    span = _read_iso(text, zone) if _ISO.fullmatch(text) else _read_phrase(text, now, zone)
    if span is None:
        raise UsageError(f"{shorten(text, _LONGEST)!r} is not a time that I understand. Write {AS_OF_EXAMPLES}.")
    first, last = span
    if first > now:
        raise UsageError(f"{first.astimezone(zone):%Y-%m-%d %H:%M} is in the future; `list` shows what is known now.")
    return min(last, now)


def _read_iso(text: str, zone: tzinfo) -> _Span | None:
    day, _, clock = text.replace("T", " ").partition(" ")
    try:
        at = datetime.fromisoformat(f"{day} {clock.zfill(5)}" if clock else day)
        return _first_and_last(at, "time" if clock else "day", zone)
    except (ValueError, OverflowError):
        return None


def _read_phrase(text: str, now: datetime, zone: tzinfo) -> _Span | None:
    if not text or len(text) > _LONGEST:
        return None
    local = now.astimezone(zone).replace(tzinfo=None)
    at, period = read_date_phrase(text, local, ["en"], prefer="past")
    if at is None:
        return None
    counted_back = read_date_phrase(text, local + _NUDGE, ["en"], prefer="past")[0] == at + _NUDGE
    if counted_back and period == "time":
        # "Two hours ago" is elapsed time, also across a clock change.
        moment = now + (at - local)
        return moment, moment
    try:
        return _first_and_last(at, "day" if counted_back else period, zone)
    except (ValueError, OverflowError):
        return None


def _first_and_last(at: datetime, period: str, zone: tzinfo) -> _Span:
    """Return the first and last moment of the named period, in UTC."""
    if period in ("time", "part_of_day"):
        moment = at.replace(tzinfo=zone).astimezone(UTC)
        return moment, moment
    first = datetime(at.year, at.month, at.day, tzinfo=zone)
    after = first + timedelta(1)
    if period == "month":
        first = first.replace(day=1)
        after = first.replace(year=at.year + at.month // 12, month=at.month % 12 + 1)
    elif period == "year":
        first = first.replace(month=1, day=1)
        after = first.replace(year=at.year + 1)
    return first.astimezone(UTC), after.astimezone(UTC) - timedelta(microseconds=1)
