"""Analyses a message: whether it is a question, what to search for, and which past period it refers to ("last spring",
"in March", "on Tuesday", "two weeks ago"). Pure.

A period is in the past or has begun; if the words may refer to the future ("what do I have on Friday?") or to several
times there is none, and only the words are searched. Seasons are those of the northern hemisphere, in whole months.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta, tzinfo

from assistant.core.calendar import MONTH_PATTERN, NUMBER_WORDS, WEEKDAYS, month_number, weekday_number
from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex

_QUESTION_LENGTH = 400
_EDGE_LENGTH = 2_000

_QUESTION = lazy_regex(
    r"(?<![^.!?？؟。！\n])[^.!?？؟。！\n]*+[?？؟]"
    # Without a question mark: starts with a question word or a request to find something.
    r"|(?:^|(?<=[.!\n]))[^\S\n]*+(?:(?:please|and|so|ok|hey)[, ]+)*(?:who|what|when|where|which|why|how|whose|find|show"
    r"|tell|remind|give|look up|wer|was|wann|wo|welche\w*|warum|wie|finde|zeig\w*|qui|quand|où|combien|quel\w*"
    r"|trouve|qué|quién|cuándo|dónde|cuál|cómo|hvem|hva|når|hvor|hvilke\w*|finn)\b[^.!?\n]*",
    re.IGNORECASE,
)
_PLEASANT_TEXT = (
    "hi hello hey bye goodbye welcome thank thanks thx please sorry yes yeah yep nop nope ok okay sure fine great nice"
    " cool wow lol well right good morning afternoon evening night"
    " hallo guten morgen abend tag danke bitte ja nein schön schon gut"
    " bonjour bonsoir salut merci oui non bien hola buenos buenas días dias noches gracias sí si"
    " ciao buongiorno buonasera grazie prego hei takk tack hej"
    " привет здравствуйте добрый доброе утро день вечер спасибо пожалуйста да нет"
)
_PLEASANT_WORDS = frozenset(_PLEASANT_TEXT.split())
# In scripts without spaces.
_PLEASANTRIES = lazy_regex(
    r"こんにちは|こんばんは|おはよう(?:ございます)?|ありがとう(?:ございます)?|はい|いいえ|你好|您好|谢谢|早上好|晚安|好的|再见"
    r"|안녕(?:하세요)?|감사합니다"
)


def is_question(text: str) -> bool:
    """Return whether it asks for something, with or without a question mark."""
    return bool(_QUESTION.search(text))


def searchable_text(question: str) -> str:
    """Return the part of a message to search for: of a long one its questions (only start and end are examined); "" if
    it is only pleasantries."""
    if len(question) > 2 * _EDGE_LENGTH:
        question = f"{question[:_EDGE_LENGTH]}\n{question[-_EDGE_LENGTH:]}"
    text = question.strip()
    if len(text) > _QUESTION_LENGTH:
        asking = " ".join(match[0].strip() for match in _QUESTION.finditer(text))
        text = (asking or text)[:_QUESTION_LENGTH]
    return text if any(map(_says_something, re.findall(r"\w\w+", text))) else ""


def _says_something(word: str) -> bool:
    folded = word.lower()
    if folded in _PLEASANT_WORDS or set(folded) == set("ha"):
        return False
    return word.isascii() or re.search(r"\w\w", _PLEASANTRIES.sub(" ", word)) is not None


_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_NUMBERS = {**NUMBER_WORDS, "a": 1, "an": 1, "couple of": 2, "couple": 2, "few": 3}

_MONTH = rf"(?P<month>{MONTH_PATTERN})\b\.?"
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
class PastPeriod:
    """A period [after, before)."""

    after: datetime
    before: datetime
    matched_words: str  # the words that name it


_Days = tuple[date, date]
_Reading = Callable[[re.Match[str], date], _Days | None]


def find_past_period(question: str, now: datetime, zone: tzinfo) -> PastPeriod | None:
    """Return the past period that a question names, with days in `zone`, or None."""
    if _TO_COME.search(question):
        return None
    today = now.astimezone(zone).date()
    text = _SPACE.sub(" ", question)
    for pattern, reading, needs_past in _FORMS:
        match = pattern.search(text)
        if match is None or (needs_past and not _PAST.search(text)):
            continue
        try:
            days = reading(match, today)
        except OverflowError:
            # The last day of the calendar has no next one.
            return None
        if days is None or days[0] > today:
            return None
        return PastPeriod(_start_of_day(days[0], zone), _start_of_day(days[1], zone), match[0].strip())
    return None


def names_date_within(text: str, after: datetime | None, before: datetime | None) -> bool:
    """Return whether a text names a day, month or year within a period."""
    return any(
        (after is None or after.date() <= last) and (before is None or first < before.date())
        for first, last in _dates_named(text)
    )


def _dates_named(text: str) -> Iterator[_Days]:
    """Yield first and last day of each date with a year in a text."""
    for match in _DATED.finditer(text):
        year = int(match["y1"] or match["y2"])
        number = int(match["m2"]) if match["m2"] else month_number(match["m1"])
        day = int(match["d1"] or match["d2"] or 0)
        try:
            yield (date(year, number, day or 1), date(year, number, day or calendar.monthrange(year, number)[1]))
        except (ValueError, calendar.IllegalMonthError):
            continue


# ---------------------------------------------------------------------------------------------------------------- forms


def _read_recent_day(match: re.Match[str], today: date) -> _Days:
    back = {"the day before yesterday": 2, "yesterday": 1, "last night": 1}.get(match[0].lower(), 0)
    if back == 0 and match[0].lower().startswith("yesterday"):
        back = 1
    day = today - timedelta(back)
    # A night continues into the next day.
    return day, day + timedelta(2 if match[0].lower() == "last night" else 1)


def _read_unit(match: re.Match[str], today: date) -> _Days:
    last = match["which"].lower() != "this"
    match match["unit"].lower():
        case "week":
            start = today - timedelta(today.weekday() + 7 * last)
            return start, start + timedelta(7)
        case "weekend":
            saturday = today - timedelta((today.weekday() - 5) % 7)
            saturday -= timedelta(7 if last and today.weekday() >= 5 else 0)
            return saturday, saturday + timedelta(2)
        case "month":
            return _month_span(today.year, today.month - last)
        case _:
            return date(today.year - last, 1, 1), date(today.year - last + 1, 1, 1)


def _read_last_units(match: re.Match[str], today: date) -> _Days:
    """Return the last few units, up to now."""
    return _days_back(today, _count(match), match["unit"]), today + timedelta(1)


def _read_units_ago(match: re.Match[str], today: date) -> _Days:
    """Return a period around an approximate time; the tolerance grows with the unit."""
    unit, day = match["unit"].lower(), _days_back(today, _count(match), match["unit"])
    tolerance = {"day": 0, "week": 4, "month": 16, "year": 120}[unit.rstrip("s")]
    return day - timedelta(tolerance), min(day + timedelta(tolerance + 1), today + timedelta(1))


def _read_season(match: re.Match[str], today: date) -> _Days | None:
    year = int(match["year"]) if match["year"] else None
    first = _SEASONS[match["season"].lower()]
    of = year or today.year
    start, end = _month_span(of, first)[0], _month_span(of, first + 2)[1]
    while year is None and (start > today or ((match["which"] or "").lower() == "last" and end > today)):
        of -= 1
        start, end = _month_span(of, first)[0], _month_span(of, first + 2)[1]
    return start, end


def _read_month(match: re.Match[str], today: date) -> _Days:
    month = month_number(match["month"])
    if match["year"]:
        start, end = _month_span(int(match["year"]), month)
    else:
        running = (match["which"] or "").lower() != "last"
        back = month > today.month or (month == today.month and not running)
        start, end = _month_span(today.year - back, month)
    part = (match["part"] or "").lower()
    third = (end - start).days // 3
    first = start + timedelta({"": 0, "early": 0, "mid": third, "late": 2 * third}[part])
    return first, end if part in ("", "late") else first + timedelta(third + 1)


def _read_day(match: re.Match[str], today: date) -> _Days | None:
    month, of_month = month_number(match["month"]), int(match["day"])
    years = [int(match["year"])] if match["year"] else [today.year, today.year - 1]
    for year in years:
        try:
            day = date(year, month, of_month)
        except ValueError:
            continue
        if match["year"] or day <= today:
            return day, day + timedelta(1)
    return None


def _read_weekday(match: re.Match[str], today: date) -> _Days:
    back = (today.weekday() - weekday_number(match["day"])) % 7 or 7
    day = today - timedelta(back)
    return day, day + timedelta(1)


def _read_iso(match: re.Match[str], today: date) -> _Days | None:
    try:
        if match["day"]:
            day = date(int(match["year"]), int(match["month"]), int(match["day"]))
            return day, day + timedelta(1)
        return _month_span(int(match["year"]), int(match["month"]))
    except (ValueError, calendar.IllegalMonthError):
        return None


def _read_year(match: re.Match[str], today: date) -> _Days:
    year = int(match["year"])
    return date(year, 1, 1), date(year + 1, 1, 1)


def _read_since(match: re.Match[str], today: date) -> _Days:
    return _read_month(match, today)[0], today + timedelta(1)


_WHICH = r"(?:(?P<which>last|this|past) )"
_FORMS: tuple[tuple[re.Pattern[str], _Reading, bool], ...] = tuple(
    (lazy_regex(pattern, re.IGNORECASE), reading, needs_past)
    for pattern, reading, needs_past in (
        (rf"\b{_YEAR}-(?P<month>\d\d)(?:-(?P<day>\d\d))?\b", _read_iso, False),
        (
            r"\bthe day before yesterday\b|\byesterday(?: (?:morning|afternoon|evening))?\b|\blast night\b",
            _read_recent_day,
            False,
        ),
        (r"\b(?:today|this (?:morning|afternoon|evening))\b", _read_recent_day, True),
        (rf"\b{_COUNT} (?P<unit>days?|weeks?|months?|years?) (?:ago|back|earlier)\b", _read_units_ago, False),
        (
            rf"\b(?:in|over|during|for) the (?:last|past) (?:{_COUNT} )?(?P<unit>days?|weeks?|months?|years?)\b",
            _read_last_units,
            False,
        ),
        (rf"\bthe (?:last|past) {_COUNT} (?P<unit>days?|weeks?|months?|years?)\b", _read_last_units, False),
        (rf"\b{_WHICH}(?P<unit>week|weekend|month|year)\b", _read_unit, False),
        (
            rf"\b(?:{_WHICH}|(?:in|during) (?:the )?)(?P<season>spring|summer|autumn|fall|winter)\b(?: (?:of "
            rf")?{_YEAR})?",
            _read_season,
            False,
        ),
        (rf"\b(?:on (?:the )?)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? {_YEAR})?\b", _read_day, False),
        (rf"\b{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? {_YEAR})?", _read_day, False),
        (rf"\bsince (?P<part>)(?P<which>)?{_MONTH}(?: {_YEAR})?", _read_since, False),
        (
            rf"\b(?:in|during|back in|for|of) (?:{_WHICH}|the )?(?:(?P<part>early|mid|late)[ -])?{_MONTH}"
            rf"(?: (?:of )?{_YEAR})?",
            _read_month,
            False,
        ),
        (rf"\b(?P<which>last|this) (?P<part>)?{_MONTH}(?P<year>(?!))?", _read_month, False),
        (rf"\b(?:last |on |this past |past )(?P<day>{'|'.join(WEEKDAYS)})\b", _read_weekday, True),
        (rf"\b(?:in|during|of|throughout|back in) {_YEAR}\b", _read_year, False),
    )
)
_DATED = lazy_regex(
    rf"\b(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)? )?(?P<m1>{MONTH_PATTERN})\.?,? "
    r"(?:(?P<d2>\d{1,2})(?:st|nd|rd|th)?,? )?(?P<y1>(?:19|20)\d\d)\b"
    r"|\b(?P<y2>(?:19|20)\d\d)-(?P<m2>\d\d)(?:-\d\d)?\b",
    re.IGNORECASE,
)


# ------------------------------------------------------------------------------------------------------------- calendar


def _start_of_day(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone)


def _month_span(year: int, month: int) -> _Days:
    """Return the first days of a month and of the next; months outside 1-12 carry over into adjacent years."""
    years, index = divmod(year * 12 + month - 1, 12)
    after, following = divmod(year * 12 + month, 12)
    return date(years, index + 1, 1), date(after, following + 1, 1)


def _days_back(today: date, count: int, unit: str) -> date:
    match unit.lower().rstrip("s"):
        case "day":
            return today - timedelta(count)
        case "week":
            return today - timedelta(7 * count)
        case "month":
            first = _month_span(today.year, today.month - count)[0]
            return first.replace(day=min(today.day, calendar.monthrange(first.year, first.month)[1]))
        case _:
            year = max(1, today.year - count)
            return today.replace(year=year, day=min(today.day, calendar.monthrange(year, today.month)[1]))


def _count(match: re.Match[str]) -> int:
    count = (match["count"] or "1").lower()
    return int(count) if count.isdecimal() else _NUMBERS[count]
