"""Hours and days that do not exist: "at 25:00", "on February 30th", "am 31. April". Pure.

What always holds: a time that may be a length ("26h"), a score or a code is none of these; only what stands where an
hour or a day stands is.
"""

from __future__ import annotations

import calendar
import re

from assistant.core.calendar import MONTHS
from assistant.core.text import lazy_regex
from assistant.core.time_names import MONTH_NAMES
from assistant.models.offline.cues import fold

_ANY_MONTH = "|".join(MONTH_NAMES)
# A year in which February has 29 days.
_LEAP_YEAR = 2028
_NOON, _LAST_HOUR, _LAST_MINUTE = 12, 24, 59
_AT = r"(?:at|by|from|until|till?|for|um|ab|gegen|bis|auf|a|vers|a partir de|jusqu'a|a las|desde las|hasta las|to)"
_CLOCKS = tuple(
    lazy_regex(pattern)
    for pattern in (
        rf"\b{_AT} (?P<hour>\d{{1,2}})[:.h](?P<minute>\d\d)(?![\d.:/]| ?(?:%|€|euros?|kg|km))",
        r"(?<![\d:.,])\b(?P<hour>\d{1,2})(?:[:.](?P<minute>\d\d))? ?(?:uhr|o'clock)\b",
        rf"\b{_AT} (?P<hour>\d{{1,2}}) ?(?:h|heures?)\b(?! (?:de|du)\b)",
        r"\ba las (?P<hour>\d{1,2})(?![\d:.,]| (?!de la\b|del\b|para\b|que\b)\w)",
        r"\b(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?am\b(?= (?!\d|\w+tag\b)|$)",
    )
)
_DAYS = tuple(
    lazy_regex(pattern)
    for pattern in (
        r"(?:\b(?P<on>on|by|the|am|zum|vom|bis|le|el|dem|den|dia|due) |(?<![\d:.,/]))\b(?P<day>\d{1,2})"
        rf"(?:st|nd|rd|th|\.|er)? ?(?:of |de |du )?(?P<month>{_ANY_MONTH})\b\.?",
        rf"\b(?P<month>{_ANY_MONTH})\.? (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?![\d:.]| ?(?:uhr|h\b|[ap]m\b))",
        r"\b(?:am|zum|vom|bis|vor dem|on|by|before|due|le|el|avant le|antes del|pour le|para el)"
        r" (?P<day>\d{1,2})[./](?P<number>0?[1-9]|1[0-2])(?:[./](?:20)?\d\d)?(?![\d%])",
        r"\b20\d\d-(?P<number>\d\d)-(?P<day>\d\d)\b",
    )
)
_DAY_ALONE = lazy_regex(
    r"\b(?:on the (?P<en>\d\d)(?:st|nd|rd|th)|am (?P<de>\d\d)\.|le (?P<fr>\d\d)|el (?:dia )?(?P<es>\d\d))"
    r"(?=[\s.!?]*$| (?:at|to|um|an|daran|a|de|d'|pour|que|para)\b)"
)
_MOST_DAYS = 31


def find_impossible_time(text: str) -> str:
    """Return what there is not, and why, in words for people: "There is no 25:00: a day has 24 hours."; "" for none."""
    folded = fold(text)
    return _impossible_clock(folded) or _impossible_day(folded)


def _impossible_clock(folded: str) -> str:
    for pattern in _CLOCKS:
        for match in pattern.finditer(folded):
            hour, minute = int(match["hour"]), int(match.groupdict().get("minute") or 0)
            said = f"{hour}:{minute:02}"
            if match[0].endswith("am"):
                if hour > _NOON:
                    return f"There is no {hour} am: the morning ends at 12."
            elif "." in match[0] and hour <= _MOST_DAYS and 1 <= minute <= len(MONTHS):
                continue  # "bis 30.11."
            elif hour > _LAST_HOUR or (hour == _LAST_HOUR and minute):
                return f"There is no {said}: a day has 24 hours."
            elif minute > _LAST_MINUTE:
                return f"There is no {said}: an hour has 60 minutes."
    return ""


def _impossible_day(folded: str) -> str:
    for pattern in _DAYS:
        for match in pattern.finditer(folded):
            groups, day = match.groupdict(), int(match["day"])
            number = int(groups["number"]) if groups.get("number") else _number_of(match["month"])
            if not 1 <= number <= len(MONTHS):
                continue
            if day > _MOST_DAYS and not groups.get("on") and not groups.get("number"):
                continue  # a number of something
            most = calendar.monthrange(_LEAP_YEAR, number)[1]
            if not 1 <= day <= most:
                name = MONTHS[number - 1].capitalize()
                return f"There is no {day} {name}: {name} has {'28 or 29' if number == 2 else most} days."
    alone = _DAY_ALONE.search(folded)
    day = int(next(filter(None, alone.groups()))) if alone else 1
    return f"There is no day {day}: a month has at most 31 days." if day > _MOST_DAYS else ""


def _number_of(name: str) -> int:
    return next((number for number, names in enumerate(MONTH_NAMES, 1) if re.fullmatch(names, name)), 0)
