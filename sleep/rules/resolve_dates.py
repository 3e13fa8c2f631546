"""Resolves days that depend on when they were said: appends the date of "tomorrow" or "the 14th" in brackets. Pure.

A date is only added, nothing is changed; at most two are added, and none if it is ambiguous (a weekday that recurs
every week, a day that is over).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta

from assistant.core.calendar import MONTH_PATTERN, MONTHS, WEEKDAY_PATTERN, month_number, weekday_number
from assistant.core.text import lazy_regex

_DAY = rf"(?P<{{0}}>{WEEKDAY_PATTERN})"
_MONTH = rf"(?P<{{0}}>{MONTH_PATTERN})"
_RELATIVE = lazy_regex(
    r"\b(?:(?P<near>tomorrow|yesterday|today|tonight|the day after tomorrow|the day before yesterday)"
    r"|(?P<span>next|last) (?P<unit>week|month|year)"
    r"|in (?P<ahead>\d{1,2}|a|two|three|four|five|six) (?P<units>days?|weeks?|months?)(?!['’])"
    rf"|(?:(?P<which>next|this|last|on|by|until|till|to) )(?:the )?{_DAY.format('weekday')}\b(?!s)(?! the \d)(?!,?"
    rf" \d{{1,2}}(?:st|nd|rd|th)?\b)"
    rf"|(?P<dom>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH.format('month')}\b(?!,? (?:19|20)\d\d)"
    rf"|{_MONTH.format('month_first')} (?:the )?(?P<dom_second>\d{{1,2}})(?:st|nd|rd|th)?\b(?![:.\d])(?!,? (?:19"
    rf"|20)\d\d)"
    r"|the (?P<nth>\d{1,2})(?:st|nd|rd|th)\b(?! (?:of\b|century|floor|time|row|grade|edition|place"
    r"|year))"
    rf"|(?P<which_month>next|this|last) {_MONTH.format('month_alone')}\b)",
    re.IGNORECASE,
)
_REPEATED = lazy_regex(
    r"\b(?:every|each|always|usually|per|annual\w*|yearly|monthly|birthday|anniversary|born)\b"
    r"|\b\w+days\b(?<!todays)(?<!holidays)",
    re.IGNORECASE,
)
_PAST = lazy_regex(
    r"\b(?:was|were|moved|had|did|went|got|left|died|started|stopped|sold|signed|bought|happened"
    r"|quit|came|gave|passed away|broke|fell|lost|won|crashed|failed|finished|arrived|returned|last)\b",
    re.IGNORECASE,
)
_CLAUSE = lazy_regex(r"[,;:.!?–—()]\s+|\s(?:and|but|so|because|cos)\s")
_ON_WEEKDAY = lazy_regex(rf"\b{_DAY.format('weekday')},? $", re.IGNORECASE)
_COUNTED = {"a": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_MOST = 2
_MOST_AHEAD = 300
_MONTHS_AHEAD = 7


def append_dates(content: str, said_on: date) -> str:
    """Append the dates of the days a sentence names to it, in brackets; `said_on` is the day it was said."""
    if _REPEATED.search(content):
        return content
    dates = list(dict.fromkeys(_resolved(content, said_on)))[:_MOST]
    if not dates:
        return content
    return f"{content} ({'; '.join(dates)})"


def _resolved(content: str, said_on: date) -> Iterator[str]:
    for match in _RELATIVE.finditer(content):
        # The event is named in the same clause as the day.
        past = bool(_PAST.search(_CLAUSE.split(content[: match.start()])[-1]))
        shown = _near(match, said_on) or _of_week(match, said_on, past) or _of_month(match, said_on, past)
        if shown:
            yield shown


def _near(match: re.Match[str], said_on: date) -> str:
    if match["near"]:
        days = {"tomorrow": 1, "yesterday": -1, "the day after tomorrow": 2, "the day before yesterday": -2}
        return _shown(said_on + timedelta(days.get(match["near"].lower(), 0)))
    if match["span"]:
        step = 1 if match["span"].lower() == "next" else -1
        unit = match["unit"].lower()
        if unit == "week":
            return f"week of {_shown(said_on - timedelta(said_on.weekday()) + timedelta(7 * step))}"
        if unit == "month":
            return _month_shown(said_on.year, said_on.month + step)
        return str(said_on.year + step)
    if match["ahead"]:
        many = _COUNTED.get(match["ahead"].lower()) or int(match["ahead"])
        unit = match["units"].lower().rstrip("s")
        if unit == "month":
            return _month_shown(said_on.year, said_on.month + many)
        day = _shown(said_on + timedelta(many * (7 if unit == "week" else 1)))
        return day if unit == "day" else f"about {day}"
    return ""


def _of_week(match: re.Match[str], said_on: date, past: bool) -> str:
    if not match["weekday"]:
        return ""
    ahead = (weekday_number(match["weekday"]) - said_on.weekday()) % 7
    which = match["which"].lower()
    if which == "last" or (past and which == "on"):
        return _shown(said_on - timedelta((7 - ahead) % 7 or 7))
    if which == "next" and ahead + said_on.weekday() < 7:
        ahead += 7
    return _shown(said_on + timedelta(ahead or (7 if which == "next" else 0)))


def _of_month(match: re.Match[str], said_on: date, past: bool) -> str:
    name = match["month"] or match["month_first"]
    if name:
        return _day_of(said_on, month_number(name), int(match["dom"] or match["dom_second"]), past)
    if match["nth"]:
        named = _ON_WEEKDAY.search(match.string[: match.start()])
        weekday = weekday_number(named["weekday"]) if named else None
        return _nth(said_on, int(match["nth"]), weekday, past=past and weekday is None)
    if match["month_alone"]:
        month = month_number(match["month_alone"])
        which = match["which_month"].lower()
        year = (
            said_on.year + (which == "next" and month <= said_on.month) - (which == "last" and month >= said_on.month)
        )
        return f"{MONTHS[month - 1].capitalize()} {year}"
    return ""


def _day_of(said_on: date, month: int, day: int, past: bool) -> str:
    """Return the next such day, or the last one if it is in the past."""
    for year in (said_on.year, said_on.year + 1, said_on.year - 1):
        try:
            candidate = date(year, month, day)
        except ValueError:
            continue
        ahead = (candidate - said_on).days
        if (-_MOST_AHEAD < ahead <= 0) if past else (0 <= ahead < 366):
            return _shown(candidate)
    return ""


def _nth(said_on: date, day: int, weekday: int | None, *, past: bool) -> str:
    """Return the next such day of the month, on the weekday if one is given, or the last one if it is in the past."""
    for step in (0, -1) if past else range(_MONTHS_AHEAD if weekday is not None else 3):
        year, month = divmod(said_on.year * 12 + said_on.month - 1 + step, 12)
        try:
            candidate = date(year, month + 1, day)
        except ValueError:
            continue
        if weekday is not None and candidate.weekday() != weekday:
            continue
        if (candidate <= said_on) if past else (candidate >= said_on):
            return _shown(candidate)
    return ""


def _month_shown(year: int, month: int) -> str:
    years, index = divmod(month - 1, 12)
    return f"{MONTHS[index].capitalize()} {year + years}"


def _shown(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1].capitalize()} {day.year}"
