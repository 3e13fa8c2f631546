"""Parses days named by people, to look at or as a due date: "tomorrow", "next week", "Freitag", "le week-end",
"2026-12-24". Pure.

Today is included, whatever the hour; moments are parsed as for reminders (`time_phrases`); a text that is not
understood is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from assistant.agenda.dated_phrases import find_day, month_of
from assistant.agenda.time_phrases import MAX_PHRASE_CHARACTERS, ParsedMoment, parse_moment
from assistant.core.calendar import local_slot_key, local_to_utc, utc_to_local
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.text import fold_text, lazy_regex, shorten
from assistant.core.time_spelling import spell_days

MAX_DAYS = 92
_A_DAY = timedelta(days=1)
# Case and accents are ignored.
_LEAD = lazy_regex(
    r"^(?:(?:on|for|during|am|an|im|fur|in|the|die|der|das|le|la|les|l['’]|el|los|para|pour|de|du|en|ce|this)\s+)+"
)
# What a deadline begins with.
_BY = lazy_regex(
    r"^\s*(?:due\s+)?(?:(?:by|before|until|till|due|fällig|bis|vor|avant|pour|d['’]ici|hasta|para|antes del?)\s+)?",
    re.IGNORECASE,
)
_NEXT = r"(?:next|coming|nachsten?[rs]?|kommenden?[rs]?|prochaine?s?|proxim[oa]s?)"
_SPANS = (
    ("next week", rf"{_NEXT} (?:week|woche|semaine|semana)|semaine prochaine|semana que viene|semana proxima"),
    ("week", r"(?:(?:this|diese[rn]?|cette|esta) )?(?:week|woche|semaine|semana)"),
    ("next weekend", rf"{_NEXT} (?:week-?end|wochenende|fin de semana)|week-?end prochain|fin de semana que viene"),
    ("weekend", r"(?:(?:this|dieses|diesem|cette?|este) )?(?:week-?end|wochenende|fin de semana)"),
    ("next month", rf"{_NEXT} (?:month|monat|mois|mes)|mois prochain|mes que viene|mes proximo"),
    ("month", r"(?:(?:this|dieser|diesen|diesem|ce|este) )?(?:month|monat|mois|mes)"),
    ("days", rf"(?:{_NEXT} )?(?P<days>\d{{1,6}}) (?:{_NEXT} )?(?:days?|tagen?|jours?|dias?)"),
)
_SPAN = tuple((name, lazy_regex(pattern)) for name, pattern in _SPANS)


# The calendar ends in both directions, and days at its ends have no midnight in UTC.
_MOST_YEARS = 100


@dataclass(frozen=True, slots=True)
class DayRange:
    """Consecutive days in a zone, both ends included."""

    first: date
    last: date

    def bounds(self, zone: ZoneInfo) -> tuple[datetime, datetime]:
        """Return the start of the first day, and of the day after the last."""
        return _midnight(self.first, zone), _midnight(self.last + _A_DAY, zone)

    def __iter__(self) -> Iterator[date]:
        return (self.first + count * _A_DAY for count in range((self.last - self.first).days + 1))


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return local_to_utc(datetime.combine(day, datetime.min.time()), zone)


def local_day(now: datetime, zone: ZoneInfo) -> date:
    return utc_to_local(now, zone).date()


def parse_days(text: str, zone: ZoneInfo, now: datetime) -> DayRange:
    """Return the days a text names; "" is a week from today. Raises `UsageError`."""
    today = local_day(now, zone)
    days = _days_named(text, zone, now, today)
    if max(abs(days.first.year - today.year), abs(days.last.year - today.year)) > _MOST_YEARS:
        raise UsageError(f"{days.first.isoformat()} is more than a hundred years away. Name another day.")
    return days


def _days_named(text: str, zone: ZoneInfo, now: datetime, today: date) -> DayRange:
    folded = fold_text(spell_days(" ".join(text.split()).strip(" ?!.,")))
    if not folded:
        return DayRange(today, today + 6 * _A_DAY)
    for words in (folded, _LEAD.sub("", folded)):
        for name, pattern in _SPAN:
            match = pattern.fullmatch(words)
            if match:
                return _span(name, int(match.groupdict().get("days") or 1), today)
        if month := month_of(words):
            first = today.replace(year=today.year + (month < today.month), month=month, day=1)
            return DayRange(max(today, first), (first + 31 * _A_DAY).replace(day=1) - _A_DAY)
    named = find_day(folded, today)
    if named.day and named.until:
        return DayRange(named.day, min(named.until, named.day + (MAX_DAYS - 1) * _A_DAY))
    day = _parse_day(text, zone, now, past_hours=True).local.date()
    return DayRange(day, day)


def _span(name: str, days: int, today: date) -> DayRange:
    monday = today - today.weekday() * _A_DAY
    next_month = (today.replace(day=1) + 31 * _A_DAY).replace(day=1)
    match name:
        case "week":
            return DayRange(today, monday + 6 * _A_DAY)
        case "next week":
            return DayRange(monday + 7 * _A_DAY, monday + 13 * _A_DAY)
        case "weekend":
            return DayRange(max(today, monday + 5 * _A_DAY), monday + 6 * _A_DAY)
        case "next weekend":
            return DayRange(monday + 12 * _A_DAY, monday + 13 * _A_DAY)
        case "month":
            return DayRange(today, next_month - _A_DAY)
        case "next month":
            return DayRange(next_month, (next_month + 31 * _A_DAY).replace(day=1) - _A_DAY)
    return DayRange(today, today + (min(max(days, 1), MAX_DAYS) - 1) * _A_DAY)


def parse_due(text: str, zone: ZoneInfo, now: datetime) -> str:
    """Return a local due date, such as "2026-03-13" or "2026-03-13T17:00". Raises `UsageError`."""
    moment = _parse_day(text, zone, now)
    return moment.local.date().isoformat() if moment.whole_day else local_slot_key(moment.local)


def _parse_day(text: str, zone: ZoneInfo, now: datetime, *, past_hours: bool = False) -> ParsedMoment:
    """Parse as for reminders, but accept all of today, and with `past_hours` also its past hours. Raises
    `UsageError`."""
    text = _BY.sub("", text)
    today = local_day(now, zone)
    try:
        return parse_moment(text, zone, now)
    except UsageError:
        # A time that has passed may name a day, which may be today.
        try:
            moment = parse_moment(text, zone, _midnight(today, zone))
        except UsageError:
            moment = None
        if moment is not None and (moment.whole_day or past_hours) and moment.local.date() == today:
            return moment
        shown = shorten(" ".join(text.split()), MAX_PHRASE_CHARACTERS)
        raise UsageError(
            f"{shown!r} is in the past, or not a day that I understand. Nothing was changed; write it as in "
            '"tomorrow", "Friday", "next week", "24 December", "2026-12-24".'
        ) from None
