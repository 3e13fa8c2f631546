"""Parses repeating times as people write them: "every weekday at 8:30", "alle 2 Stunden", "on the 1st of each month".
Pure.

The words that say how often become an RRULE; the rest gives start and hour and is parsed as a moment (`time_phrases`).
Words left over are an error, never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from assistant.agenda.recurrence import first_due, parse_cron, parse_rrule, parse_rule
from assistant.agenda.time_phrases import MAX_PHRASE_CHARACTERS, parse_moment, read_spoken, require_near, too_far
from assistant.core.calendar import NUMBER_WORDS, local_slot_key, utc_to_local
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.jobs import CronSpec, DueSlot, OneTimeSpec, RRuleSpec, ScheduleSpec
from assistant.core.text import lazy_regex
from assistant.core.time_resolve import DEFAULT_HOUR

_EVERY = r"(?:every|each|all|alle|jede[nrsm]?|cada|todos los|todas las|chaque|tous les)"
_DAY_NAMES = {
    "MO": r"mon(?:day)?s?|montags?|lunes|lundi",
    "TU": r"tue(?:s|sday)?s?|dienstags?|martes|mardi",
    "WE": r"wed(?:nesday)?s?|mittwochs?|mi[ée]rcoles|mercredi",
    "TH": r"thu(?:r|rs|rsday)?s?|donnerstags?|jueves|jeudi",
    "FR": r"fri(?:day)?s?|freitags?|viernes|vendredi",
    "SA": r"sat(?:urday)?s?|samstags?|sonnabends?|s[áa]bados?|samedi",
    "SU": r"sun(?:day)?s?|sonntags?|domingos?|dimanche",
}
_ANY_DAY = "|".join(_DAY_NAMES.values())
_AND = r"(?:\s*,\s*(?:and\s+|und\s+)?|\s+(?:and|und|y|et|&)\s+)"
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1, "ersten": 1, "letzten": -1}
_NUMBERS = {"other": 2, "second": 2, "zweiten": 2, "zweite": 2, "zwei": 2, "drei": 3, "vier": 4, "dos": 2, "tres": 3}
_UNITS = {
    "MINUTELY": r"min(?:ute)?s?|minuten?|minutos?",
    "HOURLY": r"hours?|stunden?|horas?|heures?",
    "DAILY": r"days?|tage?|d[íi]as?|jours?",
    "WEEKLY": r"weeks?|wochen?|semanas?|semaines?",
    "MONTHLY": r"months?|monate?|mes(?:es)?|mois",
    "YEARLY": r"years?|jahre?|años?|ans?",
}
_ANY_UNIT = "|".join(_UNITS.values())
_ADVERBS = {
    "HOURLY": r"hourly|stündlich",
    "DAILY": r"daily|täglich|diariamente",
    "WEEKLY": r"weekly|wöchentlich",
    "MONTHLY": r"monthly|monatlich",
    "YEARLY": r"yearly|annually|jährlich",
}
_PART_NAMES = {
    "morning": r"morning|morgen|vormittag|matin",
    "noon": r"noon|mittag",
    "afternoon": r"afternoon|nachmittag",
    "evening": r"evening|abend|soir",
    "night": r"night|nacht",
}
_ANY_PART = "|".join(_PART_NAMES.values())
_LEFT = lazy_regex(r"^(?:from|starting|beginning|ab|von|desde)(?:\s+(?:on|from|at))?\s+|^[\s,]+|[\s,]+$", re.IGNORECASE)
_NTH = r"(?:the\s+|am\s+|el\s+)?(\d{1,2})(?:st|nd|rd|th|\.)?"
_CRON_FIELD = r"[\d*/,\-A-Za-z#?]+"


@dataclass(frozen=True, slots=True)
class _Recurrence:
    """How often something repeats."""

    rrule: str  # parts of an RRULE
    part: str = ""  # a part of the day named in the text


def parse_schedule(when: str, repeat: str, zone: ZoneInfo, now: datetime) -> tuple[ScheduleSpec, DueSlot]:
    """Parse a time and a repetition, and return the first slot; either text may contain both, or be "". `repeat` may
    also be an RRULE or a cron line. Raises `UsageError`."""
    when, repeat = " ".join(when.split()), " ".join(repeat.split())
    if len(when) > MAX_PHRASE_CHARACTERS or len(repeat) > 2 * MAX_PHRASE_CHARACTERS:
        raise UsageError("That is too long for a time. Nothing was set.")
    spec = _spoken(f"{when} {repeat}", zone, now) or _repeating(when, repeat, zone, now)
    if isinstance(spec, OneTimeSpec):
        return spec, DueSlot(spec.at, local_slot_key(utc_to_local(spec.at, zone)))
    if spec is None:
        at = parse_moment(when, zone, now).at
        return OneTimeSpec(at), DueSlot(at, local_slot_key(utc_to_local(at, zone)))
    due = first_due(spec, zone, now)
    if due is None:
        raise UsageError(f"{repeat or when!r} has no time in the future. Nothing was set.")
    return spec, due


def _spoken(text: str, zone: ZoneInfo, now: datetime) -> OneTimeSpec | RRuleSpec | None:
    spoken = read_spoken(text, zone, now)
    if spoken is None:
        return None
    moment, rule = spoken
    require_near(moment.at, now, text)
    return parse_rrule(rule, _first_of(rule, moment.local)) if rule else OneTimeSpec(moment.at)


def _repeating(when: str, repeat: str, zone: ZoneInfo, now: datetime) -> RRuleSpec | CronSpec | None:
    for text, other in ((repeat, when), (when, repeat)):
        if re.match(r"(?:RRULE:)?[A-Z]+=", text, re.IGNORECASE):
            return parse_rrule(text, _start(other, text, zone, now))
        if re.fullmatch(rf"{_CRON_FIELD}(?: {_CRON_FIELD}){{4}}", text) and re.search(r"[\d*]", text.split()[0]):
            return parse_cron(text)
        often = _often(text)
        if often is not None:
            recurrence, rest = often
            if rest and other:
                raise UsageError(f"{when!r} and {repeat!r} both name a time. Nothing was set; name it once.")
            start = _start(f"{rest or other} {recurrence.part}".strip(), recurrence.rrule, zone, now)
            return parse_rrule(recurrence.rrule, _first_of(recurrence.rrule, start))
    if repeat:
        raise UsageError(
            f'{repeat!r} does not say how often. Nothing was set; write it as in "every day", "every weekday", '
            '"every 2 hours", "every Monday and Thursday", "on the 1st of each month", an RRULE or a line of cron.'
        )
    return None


def _start(text: str, rrule: str, zone: ZoneInfo, now: datetime) -> datetime:
    """Return the local start time of a rule."""
    text = _LEFT.sub("", text)
    here = utc_to_local(now, zone).replace(second=0, microsecond=0)
    if text:
        return parse_moment(text, zone, now, repeats=True).local
    if "HOURLY" in rrule or "MINUTELY" in rrule:
        step = re.search(r"INTERVAL=(\d+)", rrule)
        unit = timedelta(hours=1) if "HOURLY" in rrule else timedelta(minutes=1)
        try:
            return here + unit * int(step[1] if step else 1)
        except OverflowError:
            raise too_far(rrule) from None
    morning = here.replace(hour=DEFAULT_HOUR, minute=0)
    return morning if morning > here else morning + timedelta(days=1)


def _first_of(rrule: str, start: datetime) -> datetime:
    """Return where every second Tuesday begins: at the next one."""
    if "INTERVAL" not in rrule or "BYDAY" not in rrule:
        return start
    following: datetime | None = parse_rule(re.sub(r"INTERVAL=\d+;?", "", rrule), start).after(start, inc=True)
    return following or start


# ----------------------------------------------------------------------------------------------------------- how often


def _often(text: str) -> tuple[_Recurrence, str] | None:
    """Return the repetition in a text and the remaining text; None if there is none."""
    for pattern, make in _FORMS:
        match = pattern.search(text)
        recurrence = make(match) if match else None
        if match is not None and recurrence is not None:
            return recurrence, _LEFT.sub("", f"{text[: match.start()]} {text[match.end() :]}".strip())
    return None


def _days_in(text: str) -> str:
    return ",".join(day for day, names in _DAY_NAMES.items() if re.search(rf"\b(?:{names})\b", text, re.IGNORECASE))


def _named(word: str, table: dict[str, str]) -> str:
    return next(name for name, words in table.items() if re.fullmatch(words, word, re.IGNORECASE))


def _number(word: str | None) -> int | None:
    """Return the number a word means, 1 for an empty word; None if it is not a number."""
    if not word:
        return 1
    return int(word) if word.isdigit() else (NUMBER_WORDS | _NUMBERS).get(word.lower())


def _by_unit(match: re.Match[str]) -> _Recurrence | None:
    number = _number(match["number"])
    if number is None:
        return None
    rule = f"FREQ={_named(match['unit'], _UNITS)}"
    return _Recurrence(rule if number == 1 else f"{rule};INTERVAL={number}")


def _by_day(match: re.Match[str]) -> _Recurrence:
    number = _number(match.groupdict().get("number"))
    interval = f"INTERVAL={number};" if number and number > 1 else ""
    return _Recurrence(f"FREQ=WEEKLY;{interval}BYDAY={_days_in(match['days'])}")


def _by_nth_day(match: re.Match[str]) -> _Recurrence:
    return _Recurrence(f"FREQ=MONTHLY;BYDAY={_ORDINALS[match['nth'].lower()]}{_days_in(match['days'])}")


def _by_date(match: re.Match[str]) -> _Recurrence:
    days = ",".join(re.findall(r"\d+", match["dates"]))
    return _Recurrence(f"FREQ=MONTHLY;BYMONTHDAY={days}")


def _part_of_day(match: re.Match[str]) -> _Recurrence:
    return _Recurrence("FREQ=DAILY", _named(match["part"], _PART_NAMES))


def _fixed(rrule: str) -> Callable[[re.Match[str]], _Recurrence]:
    return lambda match: _Recurrence(rrule)


_MONTH = rf"(?:of|in|de|des|jeden|jedes)?\s*(?:{_EVERY}|the|a)?\s*(?:month|monats?|mes|mois)"
_DAYS = rf"(?P<days>(?:{_ANY_DAY})(?:{_AND}(?:on\s+)?(?:{_ANY_DAY}))*)"
_DATES = rf"(?P<dates>{_NTH}(?:{_AND}{_NTH})*)"
_SOURCES: tuple[tuple[str, Callable[[re.Match[str]], _Recurrence | None]], ...] = (
    (rf"\b(?:on )?(?:the )?last day {_MONTH}\b", _fixed("FREQ=MONTHLY;BYMONTHDAY=-1")),
    (rf"\b(?:on )?(?:the )?(?:am )?(?P<nth>{'|'.join(_ORDINALS)}) (?P<days>{_ANY_DAY}) {_MONTH}\b", _by_nth_day),
    (rf"\b(?:on )?{_DATES}\s+{_MONTH}\b", _by_date),
    (rf"\b(?:{_EVERY} month|monthly|jeden monat|cada mes) (?:on |am |el ){_DATES}(?![\d:])", _by_date),
    (
        rf"\b{_EVERY} (?:week|work)days?\b|\b(?:on )?(?:week|work)days\b|\bwerktags\b|\b{_EVERY} werktage?\b"
        r"|\b(?:from )?(?:mon(?:day)?|montag)\s*(?:to|through|bis|-|–)\s*(?:fri(?:day)?|freitag)\b|\bentre semana\b",
        _fixed("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
    ),
    (rf"\b{_EVERY} weekend\b|\b(?:on )?weekends\b", _fixed("FREQ=WEEKLY;BYDAY=SA,SU")),
    (rf"\b{_EVERY} (?:(?P<number>other|second|zweiten?|\d+\.?) )?{_DAYS}\b", _by_day),
    (rf"\b{_EVERY} (?P<part>{_ANY_PART})\b", _part_of_day),
    (rf"\b{_EVERY} (?:(?P<number>\w+) )?(?P<unit>{_ANY_UNIT})\b", _by_unit),
    (
        rf"\b(?:on )?(?P<days>(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days|(?:mon|diens|donners|frei|sams|sonn)tags"
        rf"|mittwochs)(?:{_AND}(?:{_ANY_DAY}))*)\b",
        _by_day,
    ),
    *((rf"\b(?:{words})\b", _fixed(f"FREQ={often}")) for often, words in _ADVERBS.items()),
)
_FORMS = tuple((lazy_regex(pattern, re.IGNORECASE), make) for pattern, make in _SOURCES)
