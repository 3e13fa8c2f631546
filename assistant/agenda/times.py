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
from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast
from zoneinfo import ZoneInfo

from assistant.agenda.wall import local_of, moment_of
from assistant.errors import UsageError

LONGEST = 200
MORNING = 9
_LANGUAGES = ["en", "de", "es", "fr", "it", "pt", "nl", "sv", "da", "nb", "pl"]
_SETTINGS = {"PREFER_DATES_FROM": "future", "RETURN_TIME_AS_PERIOD": True, "RETURN_AS_TIMEZONE_AWARE": False}
_FARTHEST = timedelta(days=36_525)
# By how much the clock is moved to see whether a text counts from now.
_NUDGE = timedelta(minutes=7)
_AT = r"(?:at|um|gegen|a las?|alas|à|kl\.?|klokken|alle(?: ore)?|às|om|@|o)"
_HALF = r"(?:a\.?m\.?|p\.?m\.?)"
_SPELLED = (
    (r"\b(?:tmrw|tmr|tomorow)\b", "tomorrow"),
    (r"\bhalf an hour\b", "30 minutes"),
    (r"\ban hour and a half\b", "90 minutes"),
    (r"\beine(?:r)? halben? stunde\b", "30 Minuten"),
    (r"\bmedia hora\b", "30 minutos"),
    (r"\b(?:um |at )?(?:mitternacht|midnight)\b", "00:00"),
    (r"\b(?:at noon|noon|midday|mittags)\b", "12:00"),
    (r"\b(?:nächste[nrs]?|kommende[nrs]?|diese[nrs]?|próximo|prochain|this coming)\b", ""),
    (r"\b(\d{1,2})\s*uhr\s*(\d{2})\b", r"\1:\2"),
    (r"\b(\d{1,2}(?::\d{2})?)\s*(?:uhr\b|o['’]?clock\b)", r"um \1"),
    (rf"\b{_AT}\s+um\s+", "um "),
    (r"\b(\d{1,2}(?::\d{2})?) (?:in the morning|de la mañana)\b", r"\1 am"),
    (r"\b(\d{1,2}(?::\d{2})?) (?:in the (?:afternoon|evening)|at night|de la (?:tarde|noche))\b", r"\1 pm"),
    (rf"(?:^|(?<=\s)){_AT}\s*(\d{{1,2}})(?![\d:./h-])(?:\s*({_HALF})(?!\w))?", r"\1:00 \2"),
    (rf"(?:^|(?<=\s)){_AT}\s*(\d{{1,2}}[:.h]\d{{2}})", r"\1"),
    (r"^\s*(\d{1,2})\s*$", r"\1:00"),
    (r"^(?:on|am|el|le)\s+", ""),
)
_EITHER = re.compile(r"\b(\d{1,2})[/-](\d{1,2})(?:[/-]\d{2,4})?\b")
_DOTTED = re.compile(r"\b(\d{1,2})\.\s?(\d{1,2})\.(?:(\d{4})\b)?")
_CLOCK = re.compile(r"\d:\d")
_EXAMPLES = '"in 20 minutes", "tomorrow at 9", "next Friday at 18:00", "2026-12-24 18:00", "every weekday at 8:30"'


class _Data(Protocol):
    """What dateparser gives."""

    date_obj: datetime | None
    period: str


@dataclass(frozen=True, slots=True)
class Moment:
    """What a text means; `exact` unless it named a day only, or a part of it."""

    at: datetime
    exact: bool


def moment_in(text: str, zone: ZoneInfo, now: datetime) -> Moment:
    """The moment to come that a text means, in UTC. Raises `UsageError`."""
    text = " ".join(text.split())
    if not text or len(text) > LONGEST:
        raise _not_understood(text)
    found = _iso(text, zone) or _spoken(text, zone, now)
    if found.at <= now:
        raise UsageError(
            f"{text!r} was understood as {told(found.at, zone)}, which is past. Nothing was set; name a time to come."
        )
    if found.at - now > _FARTHEST:
        raise UsageError(f"{text!r} is more than a hundred years away. Nothing was set.")
    return found


def told(at: datetime, zone: ZoneInfo) -> str:
    """A moment as people read it: "Saturday 2026-11-21 09:00"."""
    local = local_of(at, zone)
    return f"{local:%A %Y-%m-%d %H:%M}" + (f":{local:%S}" if local.second else "")


def _iso(text: str, zone: ZoneInfo) -> Moment | None:
    """A date, or a date and a time, as computers write them; with an offset, exactly that moment."""
    if not re.match(r"\d{4}-\d{2}-\d{2}", text):
        return None
    try:
        read = datetime.fromisoformat(text)
        if len(text) == 10:
            return Moment(moment_of(read.replace(hour=MORNING), zone), False)
        return Moment(moment_of(read, zone) if read.tzinfo is None else read.astimezone(UTC), True)
    except (ValueError, OverflowError):
        return None


def _spoken(text: str, zone: ZoneInfo, now: datetime) -> Moment:
    spelled = _spelled(text)
    base = local_of(now, zone)
    data = _read(spelled, base)
    local, period = data.date_obj, data.period
    if local is None:
        raise _not_understood(text)
    try:
        if period in ("day", "week") and not _CLOCK.search(spelled):
            morning = local.replace(hour=MORNING, minute=0, second=0, microsecond=0)
            return Moment(moment_of(morning, zone), False)
        if period not in ("time", "part_of_day"):
            raise UsageError(
                f"{text!r} was understood as {local:%B %Y} or so. Nothing was set; name a day and a time, such as "
                f"{_EXAMPLES}."
            )
        if period == "time" and _read(spelled, base + _NUDGE).date_obj == local + _NUDGE:
            # So many hours from now are as many hours in a night in which the clocks change.
            return Moment(_whole(now + (local - base)), True)
        return Moment(moment_of(_whole(local), zone), period == "time")
    except OverflowError:
        raise _not_understood(text) from None


def _whole(at: datetime) -> datetime:
    return at.replace(microsecond=0)


def _spelled(text: str) -> str:
    """`text` as dateparser reads it. Raises `UsageError` for a date that can be read two ways."""
    for pair in _EITHER.finditer(text):
        first, second = int(pair[1]), int(pair[2])
        if first != second and 1 <= first <= 12 and 1 <= second <= 12:
            months = calendar.month_name
            raise UsageError(
                f"{pair[0]!r} may be {first} {months[second]} or {second} {months[first]}. Nothing was set; write the "
                'month as a word, or the date as in "2026-12-24".'
            )
    text = _DOTTED.sub(_dotted, text)
    for pattern, instead in _SPELLED:
        text = re.sub(pattern, instead, text, flags=re.IGNORECASE)
    return " ".join(text.split())


def _dotted(found: re.Match[str]) -> str:
    """A date with dots: day, then month, wherever it is written so."""
    day, month = int(found[1]), int(found[2])
    if not 1 <= month <= 12:
        return found[0]
    return f"{day} {calendar.month_name[month]} {found[3] or ''}"


@cache
def _parser_class() -> Any:
    return import_module("dateparser.date").DateDataParser


def _read(text: str, base: datetime) -> _Data:
    parser = _parser_class()(languages=_LANGUAGES, settings={**_SETTINGS, "RELATIVE_BASE": base})
    try:
        return cast(_Data, parser.get_date_data(text))
    except (ValueError, OverflowError, TypeError, KeyError, AttributeError, re.error):
        # Some texts that are no dates make it stumble.
        raise _not_understood(text) from None


def _not_understood(text: str) -> UsageError:
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return UsageError(f"{shown!r} is no time that I understand. Nothing was set; write it as in {_EXAMPLES}.")
