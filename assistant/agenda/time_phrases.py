"""Moments as people write them: "in 20 minutes", "tomorrow at 9", "nächsten Freitag um 18 Uhr", "2026-12-24 18:00".

What always holds: a text means a moment to come, told in full, or an error that says how it was understood; nothing is
guessed where a date can be read two ways. A day without an hour is nine in the morning. Pure; dateparser, which knows
the languages, is heavy and loaded by the first text that needs it.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from assistant.agenda.normalise_time_text import normalise_time_text
from assistant.core.calendar import format_moment, local_to_utc, utc_to_local
from assistant.core.errors import UsageError
from assistant.core.text import lazy_regex, shorten

MAX_PHRASE_CHARACTERS = 200
DEFAULT_HOUR = 9
_LANGUAGES = ["en", "de", "es", "fr", "it", "pt", "nl", "sv", "da", "nb", "pl"]
_SETTINGS = {"PREFER_DATES_FROM": "future", "RETURN_TIME_AS_PERIOD": True, "RETURN_AS_TIMEZONE_AWARE": False}
_MOST_NUMBERS = 8
_FARTHEST = timedelta(days=36_525)
# By how much the clock is moved to see whether a text counts from now.
_NUDGE = timedelta(minutes=7)
_EITHER = lazy_regex(r"\b(\d{1,2})[/-](\d{1,2})(?:[/-]\d{2,4})?\b")
_DOTTED = lazy_regex(r"\b(\d{1,2})\.\s?(\d{1,2})\.(?:(\d{4})\b)?")
_CLOCK = lazy_regex(r"\d:\d")
_ALONE = lazy_regex(r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>[ap]\.?m\.?)?", re.IGNORECASE)
_EXAMPLES = '"in 20 minutes", "tomorrow at 9", "next Friday at 18:00", "2026-12-24 18:00", "every weekday at 8:30"'


@dataclass(frozen=True, slots=True)
class ParsedMoment:
    """What a text means, in UTC and by the clock of the zone (naive), which spring may have left out; `exact` unless it
    named a day only, or a part of it."""

    at: datetime
    local: datetime
    is_exact: bool


def parse_moment(text: str, zone: ZoneInfo, now: datetime) -> ParsedMoment:
    """The moment to come that a text means, in UTC. Raises `UsageError`."""
    text = " ".join(text.split())
    if not text or len(text) > MAX_PHRASE_CHARACTERS:
        raise _not_understood(text)
    found = _iso(text, zone) or _natural_language(text, zone, now)
    if found.at <= now:
        raise UsageError(
            f"{text!r} was understood as {format_moment(found.at, zone)}, which is past. Nothing was set; name a "
            f"time to come."
        )
    if found.at - now > _FARTHEST:
        raise UsageError(f"{text!r} is more than a hundred years away. Nothing was set.")
    return found


def _iso(text: str, zone: ZoneInfo) -> ParsedMoment | None:
    """A date, or a date and a time, as computers write them; with an offset, exactly that moment."""
    if not re.match(r"\d{4}-\d{2}-\d{2}", text):
        return None
    try:
        read = datetime.fromisoformat(text)
        if len(text) == 10:
            return _by_the_clock(read.replace(hour=DEFAULT_HOUR), zone, exact=False)
        if read.tzinfo is None:
            return _by_the_clock(read, zone, exact=True)
        return ParsedMoment(read.astimezone(UTC), utc_to_local(read, zone), True)
    except (ValueError, OverflowError):
        return None


def _natural_language(text: str, zone: ZoneInfo, now: datetime) -> ParsedMoment:
    base = utc_to_local(now, zone)
    written = normalise_time_text(_dated(text), base.date())
    alone = _next_clock(written.text, base)
    if alone is not None:
        return _by_the_clock(alone, zone, exact=written.assumed_hour is None)
    data = _read(written.text, base)
    local, period = data.date_obj, data.period
    if local is None or not _all_of_it_counts(written.text, base, data):
        raise _not_understood(text)
    try:
        if period in ("day", "week") and not _CLOCK.search(written.text):
            morning = local.replace(hour=DEFAULT_HOUR, minute=0, second=0, microsecond=0)
            return _by_the_clock(morning, zone, exact=False)
        if period not in ("time", "part_of_day") or _names_no_day(written.text, base):
            raise UsageError(
                f"{text!r} was understood as {local:%B %Y} or so. Nothing was set; name a day and a time, such as "
                f"{_EXAMPLES}."
            )
        if period == "time" and _read(written.text, base + _NUDGE).date_obj == local + _NUDGE:
            # So many hours from now are as many hours in a night in which the clocks change.
            at = _whole(now + (local - base))
            return ParsedMoment(at, utc_to_local(at, zone), True)
        return _by_the_clock(_whole(local), zone, exact=period == "time" and written.assumed_hour is None)
    except OverflowError:
        raise _not_understood(text) from None


def _by_the_clock(local: datetime, zone: ZoneInfo, *, exact: bool) -> ParsedMoment:
    return ParsedMoment(local_to_utc(local, zone), local, exact)


def _next_clock(text: str, base: datetime) -> datetime | None:
    """An hour alone is today's or tomorrow's; None for any other text."""
    found = _ALONE.fullmatch(text)
    if found is None:
        return None
    hour, minute, half = int(found["hour"]), int(found["minute"] or 0), (found["half"] or "").lower()
    if (half and not 1 <= hour <= 12) or hour > 23 or minute > 59 or not (half or found["minute"]):
        return None
    if half:
        hour = hour % 12 + (12 if half[0] == "p" else 0)
    at = base.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return at if at > base else at + timedelta(days=1)


def _whole(at: datetime) -> datetime:
    return at.replace(microsecond=0)


def _dated(text: str) -> str:
    """`text` with its dates in words. Raises `UsageError` for a date that can be read two ways."""
    for pair in _EITHER.finditer(text):
        first, second = int(pair[1]), int(pair[2])
        if first != second and 1 <= first <= 12 and 1 <= second <= 12:
            months = calendar.month_name
            raise UsageError(
                f"{pair[0]!r} may be {first} {months[second]} or {second} {months[first]}. Nothing was set; write the "
                'month as a word, or the date as in "2026-12-24".'
            )
    return _DOTTED.sub(_dotted, text)


def _all_of_it_counts(text: str, base: datetime, data: Any) -> bool:
    """dateparser passes over numbers that it has no place for: each of them must make a difference."""
    numbers = list(re.finditer(r"\d+", text))
    others = (f"{text[: one.start()]}{_other(one[0])}{text[one.end() :]}" for one in numbers)
    return len(numbers) <= _MOST_NUMBERS and all(_read(other, base).date_obj != data.date_obj for other in others)


def _other(number: str) -> str:
    """A number beside this one, as long as it is."""
    return str(int(number) + (-1 if number[-1] in "49" else 1)).zfill(len(number))


def _dotted(found: re.Match[str]) -> str:
    """A date with dots: day, then month, wherever it is written so."""
    day, month = int(found[1]), int(found[2])
    if not 1 <= month <= 12:
        return found[0]
    return f"{day} {calendar.month_name[month]} {found[3] or ''}"


def _names_no_day(text: str, base: datetime) -> bool:
    """Whether a text names a month without a day of it, for which dateparser takes today's."""
    return _read(text, base, "month").date_obj is not None and _read(text, base, "day").date_obj is None


def _read(text: str, base: datetime, *parts: str) -> Any:
    """What dateparser reads (`date_obj`, None where one of `parts` is not named; and `period`)."""
    from dateparser.date import DateDataParser  # takes a while to import

    settings = {**_SETTINGS, "RELATIVE_BASE": base, "REQUIRE_PARTS": list(parts)}
    parser = DateDataParser(languages=_LANGUAGES, settings=settings)
    try:
        return parser.get_date_data(text)
    except (ValueError, OverflowError, TypeError, KeyError, AttributeError, re.error):
        # Some texts that are no dates make it stumble.
        raise _not_understood(text) from None


def _not_understood(text: str) -> UsageError:
    return UsageError(
        f"{shorten(text, MAX_PHRASE_CHARACTERS)!r} is no time that I understand. Nothing was set; write it as in {_EXAMPLES}."
    )
