"""What somebody wants to be reminded of, and when, as two texts: "call mum tomorrow at 9". Pure.

Only words that are nothing but time are taken for it, at the end or at the beginning; so a text is never cut in two
by a day that it speaks about.
"""

from __future__ import annotations

import re

from assistant.core.calendar import MONTH_PATTERN, NUMBER_WORDS, WEEKDAY_PATTERN
from assistant.core.text import lazy_regex

_NUMBER = rf"(?:\d{{1,4}}|an?|{'|'.join(NUMBER_WORDS)}|fifteen|twenty|thirty|half|other)"
_UNIT = r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?)"
_DAY = rf"{WEEKDAY_PATTERN}s?"
_PART = r"(?:morning|noon|midday|afternoon|evening|night|midnight|weekday|weekdays|workday|workdays|weekend|weekends)"
_CLOCK = r"(?:\d{1,2}(?::\d{2})?\s?(?:am|pm|a\.m\.|p\.m\.|h|o'clock)?)"
_DATE = r"(?:\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}\S*)?|\d{1,2}\.\d{1,2}\.(?:\d{4})?|\d{1,2}/\d{1,2}(?:/\d{2,4})?)"
# Words that a time may begin with; after them come these and the others.
_FIRST = (
    rf"(?:today|tonight|tomorrow|tmrw|the day after tomorrow|day after tomorrow|daily|hourly|weekly|monthly|yearly"
    rf"|in (?:{_NUMBER}|the) |in half an|at (?:{_CLOCK}|noon|midnight|night)"
    rf"|on (?:the )?(?:{_DAY}|{MONTH_PATTERN}|{_PART}|first|last|\d{{1,2}}(?:st|nd|rd|th)?)(?!\w)"
    rf"|next |this (?={_DAY}|{_PART}|week)|every |each |{_DATE}|{_DAY}\b|(?:mon|tues|wednes|thurs|fri|satur|sun)days"
    rf"|weekdays|noon|midnight|\d{{1,2}}(?::\d{{2}}|\s?[ap]m)|{MONTH_PATTERN} \d"
    rf"|\d{{1,2}}(?:st|nd|rd|th)? {MONTH_PATTERN}\b)"
)
_WORD = (
    rf"(?:{_DATE}|{_CLOCK}|\d{{1,2}}(?:st|nd|rd|th)|{_NUMBER}|{_UNIT}|{_DAY}|{MONTH_PATTERN}|{_PART}|today|tonight"
    r"|tomorrow|tmrw|daily|hourly|weekly|monthly|yearly|day|after|in|at|on|the|of|next|this|every|each|and|from|starting|first|second"
    r"|third|fourth|last|am|pm|o'clock|now|past|quarter(?: to)?|to (?=fri))"
)
# Possessive: what was taken for time is never taken back, so that no text takes long.
_ONLY_TIME = lazy_regex(rf"(?>{_FIRST})\s*(?:(?>{_WORD}(?!\w))[\s,]*)*+", re.IGNORECASE)
_WORD_STARTS = lazy_regex(r"(?<![^\s,:-])\w")
_REQUEST = lazy_regex(r"^(?:please )?(?:remind me|me)\b[\s,:]*", re.IGNORECASE)
_TO = lazy_regex(r"^(?:to|that|about|of)\s+", re.IGNORECASE)
_LONGEST = 2000


def split_reminder(text: str) -> tuple[str, str]:
    """What, and when; "" for a time that is not there."""
    request = _REQUEST.sub("", text.strip(), count=1).rstrip(" .!?")
    if len(request) > _LONGEST:
        return request, ""
    before = _ONLY_TIME.match(request)
    if before and (to := _TO.match(request[before.end() :].lstrip(",:- "))):
        what = request[before.end() :].lstrip(",:- ")[to.end() :]
        return what.strip(), before[0].strip(" ,")
    for start in (match.start() for match in _WORD_STARTS.finditer(request)):
        time = _ONLY_TIME.fullmatch(request, start)
        if start and time:
            return _TO.sub("", request[:start].rstrip(" ,:-")), time[0].strip(" ,")
    return _TO.sub("", request), ""
