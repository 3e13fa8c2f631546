"""What time a question is about: "last spring", "in March", "on Tuesday", "two weeks ago" as a period of the calendar.
Pure.

What always holds: a period lies in the past, or has begun; where words could name a time to come ("what do I have on
Friday?"), or several times, there is none, and the question is looked up by its words alone. Seasons are those of the
northern hemisphere, by whole months.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo

from assistant.core.text import lazy_regex

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTHS |= {"jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9, "oct": 10}
_MONTHS |= {"nov": 11, "dec": 12}
_DAYS = {name.lower(): number for number, name in enumerate(calendar.day_name)}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "couple of": 2, "couple": 2, "few": 3, "three": 3, "four": 4, "five": 5,
    "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
}  # fmt: skip

_MONTH = "(?P<month>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_COUNT = r"(?:(?:a|the) )?(?P<count>\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_TO_COME = lazy_regex(
    r"\b(?:will|shall|won't|going to|gonna|tomorrow|tonight|next|upcoming|coming|plan(?:s|ned|ning)? (?:for|to|on)|due"
    r"|scheduled|free|busy|remind|should|from now)\b|'ll\b",
    re.IGNORECASE,
)
_PAST = lazy_regex(
    r"\b(?:did|didn't|was|wasn't|were|had|been|done|went|said|told|ago|last|past|happened|lived|used to|earlier"
    r"|talked|discussed|mentioned|bought|met|saw|made)\b",
    re.IGNORECASE,
)
_SPACE = lazy_regex(r"\s+")


@dataclass(frozen=True, slots=True)
class Period:
    """A time, [after, before), and the words of the question that name it."""

    after: datetime
    before: datetime
    words: str


_Days = tuple[date, date]
_Reading = Callable[[re.Match[str], date], _Days | None]


def period_of(question: str, now: datetime, zone: tzinfo) -> Period | None:
    """The past time that a question names, days being those of `zone`; None where it names none, or another one."""
    if _TO_COME.search(question):
        return None
    today = now.astimezone(zone).date()
    text = _SPACE.sub(" ", question)
    for pattern, reading, needs_past in _FORMS:
        found = pattern.search(text)
        if found is None or (needs_past and not _PAST.search(text)):
            continue
        days = reading(found, today)
        if days is None or days[0] > today:
            return None
        return Period(_midnight(days[0], zone), _midnight(days[1], zone), found[0].strip())
    return None


def names_day_in(text: str, after: datetime | None, before: datetime | None) -> bool:
    """Whether a text names a day, a month or a year that lies within a time."""
    return any(
        (after is None or after.date() <= last) and (before is None or first < before.date())
        for first, last in _named(text)
    )


def _named(text: str) -> Iterator[_Days]:
    """First and last day of each date in a text that has its year."""
    for found in _DATED.finditer(text):
        year, month = int(found["y1"] or found["y2"]), found["m1"] or found["m2"]
        number = _MONTHS.get(month.lower().rstrip("."), 0) or int(month if month.isdecimal() else 0)
        day = int(found["d1"] or found["d2"] or 0)
        try:
            yield (date(year, number, day or 1), date(year, number, day or calendar.monthrange(year, number)[1]))
        except (ValueError, calendar.IllegalMonthError):
            continue


# ---------------------------------------------------------------------------------------------------------------- forms


def _near(found: re.Match[str], today: date) -> _Days:
    back = {"the day before yesterday": 2, "yesterday": 1, "last night": 1}.get(found[0].lower(), 0)
    if back == 0 and found[0].lower().startswith("yesterday"):
        back = 1
    day = today - timedelta(back)
    # A night goes on into the next day.
    return day, day + timedelta(2 if found[0].lower() == "last night" else 1)


def _unit(found: re.Match[str], today: date) -> _Days:
    last = found["which"].lower() != "this"
    match found["unit"].lower():
        case "week":
            start = today - timedelta(today.weekday() + 7 * last)
            return start, start + timedelta(7)
        case "weekend":
            saturday = today - timedelta((today.weekday() - 5) % 7)
            saturday -= timedelta(7 if last and today.weekday() >= 5 else 0)
            return saturday, saturday + timedelta(2)
        case "month":
            return _month(today.year, today.month - last)
        case _:
            return date(today.year - last, 1, 1), date(today.year - last + 1, 1, 1)


def _recent(found: re.Match[str], today: date) -> _Days:
    """The last few days, up to now."""
    return _back(today, _count(found), found["unit"]), today + timedelta(1)


def _ago(found: re.Match[str], today: date) -> _Days:
    """Around a time that is told roughly: the rougher, the larger the unit."""
    unit, day = found["unit"].lower(), _back(today, _count(found), found["unit"])
    around = {"day": 0, "week": 4, "month": 16, "year": 120}[unit.rstrip("s")]
    return day - timedelta(around), min(day + timedelta(around + 1), today + timedelta(1))


def _season(found: re.Match[str], today: date) -> _Days | None:
    year = int(found["year"]) if found["year"] else None
    first = _SEASONS[found["season"].lower()]
    of = year or today.year
    start, end = _month(of, first)[0], _month(of, first + 2)[1]
    while year is None and (start > today or ((found["which"] or "").lower() == "last" and end > today)):
        of -= 1
        start, end = _month(of, first)[0], _month(of, first + 2)[1]
    return start, end


def _of_month(found: re.Match[str], today: date) -> _Days:
    month = _MONTHS[found["month"].lower()]
    if found["year"]:
        start, end = _month(int(found["year"]), month)
    else:
        running = (found["which"] or "").lower() != "last"
        back = month > today.month or (month == today.month and not running)
        start, end = _month(today.year - back, month)
    part = (found["part"] or "").lower()
    third = (end - start).days // 3
    first = start + timedelta({"": 0, "early": 0, "mid": third, "late": 2 * third}[part])
    return first, end if part in ("", "late") else first + timedelta(third + 1)


def _day(found: re.Match[str], today: date) -> _Days | None:
    month, of_month = _MONTHS[found["month"].lower()], int(found["day"])
    years = [int(found["year"])] if found["year"] else [today.year, today.year - 1]
    for year in years:
        try:
            day = date(year, month, of_month)
        except ValueError:
            continue
        if found["year"] or day <= today:
            return day, day + timedelta(1)
    return None


def _weekday(found: re.Match[str], today: date) -> _Days:
    back = (today.weekday() - _DAYS[found["day"].lower()]) % 7 or 7
    day = today - timedelta(back)
    return day, day + timedelta(1)


def _iso(found: re.Match[str], today: date) -> _Days | None:
    try:
        if found["day"]:
            day = date(int(found["year"]), int(found["month"]), int(found["day"]))
            return day, day + timedelta(1)
        return _month(int(found["year"]), int(found["month"]))
    except (ValueError, calendar.IllegalMonthError):
        return None


def _year(found: re.Match[str], today: date) -> _Days:
    year = int(found["year"])
    return date(year, 1, 1), date(year + 1, 1, 1)


def _since(found: re.Match[str], today: date) -> _Days:
    return _of_month(found, today)[0], today + timedelta(1)


_WHICH = r"(?:(?P<which>last|this|past) )"
_FORMS: tuple[tuple[re.Pattern[str], _Reading, bool], ...] = tuple(
    (lazy_regex(pattern, re.IGNORECASE), reading, needs_past)
    for pattern, reading, needs_past in (
        (rf"\b{_YEAR}-(?P<month>\d\d)(?:-(?P<day>\d\d))?\b", _iso, False),
        (r"\bthe day before yesterday\b|\byesterday(?: (?:morning|afternoon|evening))?\b|\blast night\b", _near, False),
        (r"\b(?:today|this (?:morning|afternoon|evening))\b", _near, True),
        (rf"\b{_COUNT} (?P<unit>days?|weeks?|months?|years?) (?:ago|back|earlier)\b", _ago, False),
        (rf"\b(?:in|over|during|for) the (?:last|past) (?:{_COUNT} )?(?P<unit>days?|weeks?|months?|years?)\b", _recent,
         False),
        (rf"\bthe (?:last|past) {_COUNT} (?P<unit>days?|weeks?|months?|years?)\b", _recent, False),
        (rf"\b{_WHICH}(?P<unit>week|weekend|month|year)\b", _unit, False),
        (rf"\b(?:{_WHICH}|(?:in|during) (?:the )?)(?P<season>spring|summer|autumn|fall|winter)\b(?: (?:of )?{_YEAR})?",
         _season, False),
        (rf"\b(?:on (?:the )?)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? {_YEAR})?\b", _day, False),
        (rf"\b{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? {_YEAR})?", _day, False),
        (rf"\bsince (?P<part>)(?P<which>)?{_MONTH}(?: {_YEAR})?", _since, False),
        (rf"\b(?:in|during|back in|for|of) (?:{_WHICH}|the )?(?:(?P<part>early|mid|late)[ -])?{_MONTH}"
         rf"(?: (?:of )?{_YEAR})?", _of_month, False),
        (rf"\b(?P<which>last|this) (?P<part>)?{_MONTH}(?P<year>(?!))?", _of_month, False),
        (rf"\b(?:last |on |this past |past )(?P<day>{'|'.join(_DAYS)})\b", _weekday, True),
        (rf"\b(?:in|during|of|throughout|back in) {_YEAR}\b", _year, False),
    )
)  # fmt: skip
_DATED = lazy_regex(
    rf"\b(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)? )?(?P<m1>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\.?,? "
    r"(?:(?P<d2>\d{1,2})(?:st|nd|rd|th)?,? )?(?P<y1>(?:19|20)\d\d)\b"
    r"|\b(?P<y2>(?:19|20)\d\d)-(?P<m2>\d\d)(?:-\d\d)?\b",
    re.IGNORECASE,
)


# ------------------------------------------------------------------------------------------------------------- calendar


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone)


def _month(year: int, month: int) -> _Days:
    """First day of a month and of the next; months beyond the year are those of the years beside it."""
    years, index = divmod(year * 12 + month - 1, 12)
    after, following = divmod(year * 12 + month, 12)
    return date(years, index + 1, 1), date(after, following + 1, 1)


def _back(today: date, count: int, unit: str) -> date:
    match unit.lower().rstrip("s"):
        case "day":
            return today - timedelta(count)
        case "week":
            return today - timedelta(7 * count)
        case "month":
            first = _month(today.year, today.month - count)[0]
            return first.replace(day=min(today.day, calendar.monthrange(first.year, first.month)[1]))
        case _:
            year = max(1, today.year - count)
            return today.replace(year=year, day=min(today.day, calendar.monthrange(year, today.month)[1]))


def _count(found: re.Match[str]) -> int:
    said = (found["count"] or "1").lower()
    return int(said) if said.isdecimal() else _NUMBERS[said]
