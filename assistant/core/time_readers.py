"""Interprets matches of `time_language` as `TimePiece` values. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import Literal

from assistant.core.dataclass import dataclass
from assistant.core.text import fold_text, lazy_regex
from assistant.core.time_language import (
    ADVERBS,
    ANY_UNIT,
    DAY_CODES,
    DAYS,
    FREQUENCIES,
    LENGTH,
    NTHS,
    PARTS,
    SHORT_DAYS,
    SPOKEN_LENGTH,
    UNITS,
    N,
)
from assistant.core.time_names import HOLIDAYS, MONTH_NAMES, NUMBERS

_UNITS = {name: lazy_regex(words) for name, words in UNITS.items()}
_MONTHS = [lazy_regex(words) for words in MONTH_NAMES]
_HOLIDAYS = [(month, day, lazy_regex(rf"\b(?:{names})\b")) for month, day, names in HOLIDAYS]
_DAY_NAMES = {code: lazy_regex(rf"\b(?:{DAYS[code]}|{SHORT_DAYS[code]})\b") for code in DAYS}
_MORE_OF = lazy_regex(rf"\b({N}) (?:more|extra|further|weitere|mehr|autres|mas) (?={ANY_UNIT})")
_ANOTHER = lazy_regex(rf"\b(?:another|an extra|otr[oa]) (?={ANY_UNIT}\b)")
_TWO_WORDS = lazy_regex(r"\b(twenty|forty) (?=five\b)")
_LENGTH = lazy_regex(rf"(?<!\w){LENGTH}(?!\w)")
_SPOKEN_LENGTH = lazy_regex(rf"\b{SPOKEN_LENGTH}\b")
SPOKEN_MINUTES = {"half": 30, "threequarters": 45, "quarter": 15, "seventyfive": 75, "ninety": 90}
LAST_DAY = 32
"""The last day of any month."""
PieceKind = Literal["clock", "part", "day", "span", "delta", "repeat", "before", "until"]


@dataclass(frozen=True, slots=True)
class TimePiece:
    """One expression of time in a text, with its span."""

    kind: PieceKind
    start: int
    end: int
    minutes: int = 0  # clock: minute of the day; before and delta: length in minutes
    days: int = 0  # delta, before and until: length in days
    months: int = 0
    part: str = ""
    rule: str = ""
    weekday: int | None = None
    weeks: int = 0  # additional weeks after the weekday
    on: tuple[int, int, int] | None = None  # year (0: next), month (0: next), day
    offset: int | None = None  # days from today
    half: bool = False  # a clock that is unambiguous on a 24-hour dial; a day given with its hour
    is_coming: bool = False  # a weekday that excludes today
    is_ambiguous: bool = False


def number_of(word: str | None) -> int:
    """Return the number of digits or of a number word; 1 for any other word and None ("an hour")."""
    word = (word or "").strip().lower()
    return int(word) if word.isdigit() else NUMBERS.get(word, 1)


def _group(match: re.Match[str], name: str) -> str:
    """Return the first matched group among `name`, `name2`, ..."""
    groups = match.groupdict()
    return next((text for key, text in groups.items() if text and re.fullmatch(rf"{name}\d*", key)), "")


def _read_clock(match: re.Match[str]) -> TimePiece | None:
    name, half = _group(match, "name"), _group(match, "ap").strip().replace(".", "")
    hour = (12 if name == "midi" else 0) if name else number_of(_group(match, "hour"))
    minute = int(_group(match, "minute") or 0)
    by, which, added = _group(match, "by"), _group(match, "which"), _group(match, "and")
    total = hour * 60 + minute
    if half_past := _group(match, "halfhour"):
        hour = number_of(half_past)
        total = hour * 60 + 30
    if halb := _group(match, "halb"):
        total -= {"halb": 30, "dreiviertel": 15, "viertel": 45}[halb]
    if by:
        distance = {"half": 30, "quarter": 15, "viertel": 15}.get(by) or number_of(by.split()[0])
        if which == "to" and distance % 5 and " " not in by:
            return None  # "9 to 5" are hours
        total += distance if which in ("past", "after", "nach") else -distance
    total += _added(added)
    if hour > 24 or minute > 59 or (half and not 1 <= hour <= 12):
        return None
    if half:
        total = total % 720 + (720 if half[0] == "p" else 0)
    return TimePiece("clock", match.start(), match.end(), minutes=total % 1440, half=bool(half or name))


def _added(words: str) -> int:
    """Return minutes relative to the hour: "et demie", "menos cuarto", "y 20", "30"."""
    if not words or words in ("en punto", "y pico"):
        return 0
    sign = -1 if words.startswith(("moins", "menos")) else 1
    last = words.split()[-1]
    return sign * ({"quart": 15, "cuarto": 15, "demi": 30, "demie": 30, "media": 30}.get(last) or number_of(last))


def _read_part(match: re.Match[str]) -> TimePiece:
    words = match[0]
    if words.startswith(("tonig", "tonit", "2nite")) or re.match(r"heute nacht|esta noche|cette nuit", words):
        return TimePiece("part", match.start(), match.end(), part="night", offset=0)
    part = next((name for name, pattern in PARTS.items() if pattern.search(words)), "morning")
    today = re.match(r"(?:heute?|ce|cet|cette|this|esta|este) ", words)
    return TimePiece("part", match.start(), match.end(), part=part, offset=0 if today else None)


def _unit_of(word: str) -> str:
    return next((name for name, pattern in _UNITS.items() if pattern.fullmatch(word)), "minutes")


def find_length(text: str) -> TimePiece | None:
    """Return the duration that `text` mentions: "for 20 minutes", "1 h 30"."""
    folded = _TWO_WORDS.sub(r"\1-", fold_text(text))
    folded = _MORE_OF.sub(lambda match: f"{match[1]:>{len(match[0]) - 1}} ", folded)
    folded = _ANOTHER.sub(lambda match: f"{'one':>{len(match[0]) - 1}} ", folded)
    match = _SPOKEN_LENGTH.search(folded) or _LENGTH.search(folded)
    if match is None:
        return None
    start, written = match.start(), fold_text(text)
    while start and folded[start - 1] == " " and written[start - 1] != " ":
        start -= 1  # what stands between the number and its unit: "5 more minutes"
    return replace(_read_delta(match), start=start)


def _read_delta(match: re.Match[str]) -> TimePiece:
    groups = match.groupdict()
    for name, minutes in SPOKEN_MINUTES.items():
        if groups.get(name):
            return TimePiece("delta", match.start(), match.end(), minutes=minutes)
    if "fortnight" in match[0]:
        return TimePiece("delta", match.start(), match.end(), days=14)
    if not _group(match, "dunit"):
        return TimePiece("delta", match.start(), match.end(), days=7)
    number, unit = number_of(_group(match, "dnumber")), _unit_of(_group(match, "dunit"))
    more, half = number_of(_group(match, "more") or "0"), bool(_group(match, "andhalf"))
    return _length("delta", match, number, unit, more, half=half)


def _length(
    kind: PieceKind, match: re.Match[str], number: int, unit: str, more: int = 0, *, half: bool = False
) -> TimePiece:
    piece = TimePiece(kind, match.start(), match.end())
    match unit:
        case "minutes":
            return replace(piece, minutes=number)
        case "hours":
            return replace(piece, minutes=number * 60 + more + (30 if half else 0))
        case "months":
            return replace(piece, months=number)
        case "years":
            return replace(piece, months=12 * number)
        case _:
            return replace(piece, days=number * (7 if unit == "weeks" else 1))


def read_so_long(match: re.Match[str]) -> TimePiece:
    """Read how long something repeats."""
    return _length("until", match, number_of(_group(match, "long")), _unit_of(_group(match, "longunit")))


def _read_before(match: re.Match[str]) -> TimePiece:
    if not match["bunit"]:
        spoken = next((minutes for name, minutes in SPOKEN_MINUTES.items() if match[name]), 0)
        part = "evening" if _group(match, "beforeeve") else ""
        return TimePiece("before", match.start(), match.end(), minutes=spoken, days=0 if spoken else 1, part=part)
    return _length("before", match, number_of(match["bnumber"]), _unit_of(match["bunit"]))


def _read_date(match: re.Match[str]) -> TimePiece | None:
    day, month, year = _group(match, "day"), _group(match, "month"), int(_group(match, "year") or 0)
    number = int(day) if day.isdigit() else 1
    by_name = next((n for n, words in enumerate(_MONTHS, 1) if words.fullmatch(month)), 0)
    return _date_piece(match, year, int(month) if month.isdigit() else by_name, number)


def _date_piece(match: re.Match[str], year: int, month: int, day: int) -> TimePiece | None:
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    year += 2000 if 0 < year < 100 else 0
    return TimePiece("day", match.start(), match.end(), on=(year, month, day))


def _read_month_end(match: re.Match[str]) -> TimePiece:
    month = _group(match, "month")
    number = next((n for n, words in enumerate(_MONTHS, 1) if month and words.fullmatch(month)), 0)
    return TimePiece("day", match.start(), match.end(), on=(0, number, LAST_DAY))


def _read_holiday(match: re.Match[str]) -> TimePiece | None:
    on = next(((0, month, day) for month, day, names in _HOLIDAYS if names.search(match[0])), None)
    return TimePiece("day", match.start(), match.end(), on=on) if on else None


def _read_slash(match: re.Match[str]) -> TimePiece | None:
    """Mark the date as ambiguous if day and month could be swapped."""
    first, second, year = int(match["day4"]), int(match["month4"]), int(match["year4"] or 0)
    day, month = (second, first) if second > 12 else (first, second)
    piece = _date_piece(match, year, month, day)
    both = first != second and first <= 12 and second <= 12
    return replace(piece, is_ambiguous=both) if piece else None


def _read_iso(match: re.Match[str]) -> TimePiece | None:
    try:
        at = datetime.fromisoformat(match[0].strip())
    except ValueError:
        return None
    has_hour = len(match[0].strip()) > 10
    minutes = at.hour * 60 + at.minute
    return TimePiece("day", match.start(), match.end(), on=(at.year, at.month, at.day), minutes=minutes, half=has_hour)


def _read_month_day(match: re.Match[str]) -> TimePiece | None:
    number = int(re.sub(r"\D", "", _group(match, "mday")))
    return TimePiece("day", match.start(), match.end(), on=(0, 0, number)) if 1 <= number <= 31 else None


def _weekday_of(words: str) -> str:
    return next((code for code, names in _DAY_NAMES.items() if names.search(words)), "MO")


_COMING = lazy_regex(r"\b(?:next|coming|nachste[nrsm]?|kommende[nrsm]?|proxim[oa])\b")


def _read_weekday(match: re.Match[str]) -> TimePiece:
    day = DAY_CODES.index(_weekday_of(match["weekday"]))
    words = match["next"] or ""
    of_next_week = "nextweek" if re.search("week|woche|sema", words) else ""
    if match["afternext"] or re.match("d'apres|suivant|siguiente|danach|after", words):
        return TimePiece("day", match.start(), match.end(), weekday=day, weeks=1)
    is_coming = bool(words) or _COMING.search(match[0]) is not None
    return TimePiece("day", match.start(), match.end(), weekday=day, part=of_next_week, is_coming=is_coming)


def _read_weeks_after(match: re.Match[str]) -> TimePiece:
    word = match["afterday"] or match["afterday2"]
    days = 14 if match["eight"] == "quinze" else 7
    near = {"today": 0, "heute": 0, "hoy": 0, "aujourd'hui": 0, "tomorrow": 1, "morgen": 1, "demain": 1}
    if word in near:
        return TimePiece("day", match.start(), match.end(), offset=near[word] + days)
    return TimePiece("day", match.start(), match.end(), weekday=DAY_CODES.index(_weekday_of(word)), weeks=days // 7)


def _read_relative(match: re.Match[str]) -> TimePiece:
    word = match.groupdict().get("rel")
    offset = 2 if not word else 0 if word in ("today", "heute", "heut", "hoy", "aujourd'hui", "auj") else 1
    return TimePiece("day", match.start(), match.end(), offset=offset)


def _read_span(match: re.Match[str]) -> TimePiece:
    name = next(key for key, text in match.groupdict().items() if text)
    return TimePiece("span", match.start(), match.end(), part=name)


def _read_weekly(match: re.Match[str]) -> TimePiece | None:
    days = ",".join(code for code, names in _DAY_NAMES.items() if names.search(match["days"]))
    step = number_of(re.sub(r"(?<=\d)\D+$", "", match["step"])) if match["step"] else 1
    if match[0].startswith("on ") and not re.search(r"days\b", match["days"]) and "," not in days:
        return None
    return _rule(match, f"FREQ=WEEKLY;{f'INTERVAL={step};' if step > 1 else ''}BYDAY={days}")


def _read_day_range(match: re.Match[str]) -> TimePiece | None:
    first, last = (DAY_CODES.index(_weekday_of(_group(match, name))) for name in ("from", "until"))
    days = ",".join(DAY_CODES[first : last + 1])
    return _rule(match, f"FREQ=WEEKLY;BYDAY={days}") if first < last else None


def _read_interval(match: re.Match[str]) -> TimePiece:
    number = number_of(match["number"]) if match.groupdict().get("number") else 1
    unit = _unit_of(_group(match, "unit"))
    if unit == "days" and number % 7 == 0:  # "alle 14 Tage montags"
        number, unit = number // 7, "weeks"
    rule = f"FREQ={FREQUENCIES[unit]}"
    return _rule(match, rule if number == 1 else f"{rule};INTERVAL={number}")


_RINGS = (
    r"(?:reminders?|alarms?|timers?|alerts?|erinnerung\w*|wecker|rappels?|alarmes?|reveils?|recordatorios?|avisos?"
    r"|alarmas?)"
)
# Names that contain a frequency but do not request one: "the weekly report", "le rapport annuel".
_CALLED_SO = (
    lazy_regex(r"\b(?:the|my|our|this|that|den|die|das|der|dem|meine[nmr]?|unsere[nmr]?|zum|beim) \Z"),
    lazy_regex(rf" (?!{_RINGS}\b)[^\W\d_]{{3,}}"),
    lazy_regex(rf"\b(?:le |la |l'|mon |ma |du |el |mi |del |al |au )(?!{_RINGS}\b)[^\W\d_]{{3,40}} \Z"),
)


def _read_adverb(match: re.Match[str]) -> TimePiece | None:
    word, before = match["adverb"], match.string[max(0, match.start() - 60) : match.start()]
    of_noun, noun, behind_noun = _CALLED_SO
    if (of_noun.search(before) and noun.match(match.string, match.end())) or behind_noun.search(before):
        return None
    return _rule(match, f"FREQ={next(f for f, starts in ADVERBS if word.startswith(tuple(starts.split())))}")


def _read_nth_day(match: re.Match[str]) -> TimePiece:
    words = _group(match, "nth")
    number = next((number for number, names in NTHS.items() if re.fullmatch(names, words)), "1")
    return _rule(match, f"FREQ=MONTHLY;BYDAY={number}{_weekday_of(_group(match, 'days'))}")


def _read_monthly(match: re.Match[str]) -> TimePiece | None:
    number = int(re.sub(r"\D", "", _group(match, "date")) or 1)
    return _rule(match, f"FREQ=MONTHLY;BYMONTHDAY={number}") if 1 <= number <= 31 else None


def _read_part_daily(match: re.Match[str]) -> TimePiece:
    part = next((name for name, pattern in PARTS.items() if pattern.search(match[0])), "morning")
    return replace(_rule(match, "FREQ=DAILY"), part=part)


def _rule(match: re.Match[str], rule: str) -> TimePiece:
    return TimePiece("repeat", match.start(), match.end(), rule=rule)


READERS = {
    "iso": _read_iso,
    "workdays": lambda match: _rule(match, "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
    "day_range": _read_day_range,
    "weekends": lambda match: _rule(match, "FREQ=WEEKLY;BYDAY=SA,SU"),
    "nth_day": _read_nth_day,
    "last_day": lambda match: _rule(match, "FREQ=MONTHLY;BYMONTHDAY=-1"),
    "monthly": _read_monthly,
    "alternate": lambda match: _rule(match, "FREQ=DAILY;INTERVAL=2"),
    "weekly": _read_weekly,
    "part_daily": _read_part_daily,
    "interval": _read_interval,
    "adverb": _read_adverb,
    "before": _read_before,
    "delta": _read_delta,
    "weeks_after": _read_weeks_after,
    "clock": _read_clock,
    "date": _read_date,
    "dotted": _read_date,
    "slash": _read_slash,
    "relative": _read_relative,
    "next_week_end": lambda match: TimePiece("day", match.start(), match.end(), weekday=4, part="nextweek"),
    "weekday": _read_weekday,
    "part": _read_part,
    "span": _read_span,
    "biweekly": lambda match: _rule(match, f"FREQ=WEEKLY;INTERVAL=2;BYDAY={_weekday_of(_group(match, 'biweekday'))}"),
    "half_hourly": lambda match: _rule(match, "FREQ=MINUTELY;INTERVAL=30"),
    "month_end": _read_month_end,
    "holiday": _read_holiday,
    "yearly": lambda match: _rule(match, "FREQ=YEARLY"),
    "fortnightly": lambda match: _rule(match, "FREQ=WEEKLY;INTERVAL=2"),
    "month_day": _read_month_day,
}
