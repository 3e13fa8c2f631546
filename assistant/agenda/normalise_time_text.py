"""Moments in the words of several languages, put into words that dateparser reads as they are meant. Pure.

What always holds: an hour that stands beside a part of the day is an hour of that part ("tomorrow afternoon at 3" is
15:00, "heute Abend um 8" is 20:00), and a part without an hour has one of its own.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date, timedelta

from assistant.core.text import lazy_regex

# Hours of the parts of a day, where none is named.
PART_OF_DAY_HOURS = {"morning": 9, "noon": 12, "afternoon": 15, "evening": 18, "night": 20}
_PARTS = {
    "afternoon": r"(?:in the |this )?afternoons?|(?:am )?nachmittags?|(?:cet |de l['’])?après-midi"
    r"|(?:de|por) la tarde|(?:di |nel )?pomeriggio|(?:à|da|de) tarde|(?:'s )?middags|namiddag",
    "morning": r"(?:in the |this )?mornings?|früh|morgens|am morgen|in der früh(?:e)?|(?:am )?vormittags?"
    r"|(?:de|por) la mañana|(?:ce |du )?matin|(?:di |nella )?mattin[ao]|(?:da|de) manhã|(?:'s )?ochtends?",
    "noon": r"(?:at )?(?:noon|midday|lunchtime)|(?:am |zu )?mittags?|(?:à )?midi|(?:al )?mediodía|mezzogiorno|meio-dia",
    "evening": r"(?:in the |this )?evenings?|(?:am )?abends?|(?:ce |du )?soir|(?:di |in )?sera|(?:'s )?avonds?",
    "night": r"(?:at |in the )?nights?|(?:in der )?nachts?|(?:de|por) la noche|notte|(?:à|da) noite|(?:in de )?nacht",
}
_PART = lazy_regex("|".join(rf"(?P<{name}>\b(?:{words})\b)" for name, words in _PARTS.items()), re.IGNORECASE)
_WORDS = (
    ("one", "eins", "ein"),
    ("two", "zwei"),
    ("three", "drei"),
    ("four", "vier"),
    ("five", "fünf"),
    ("six", "sechs"),
    ("seven", "sieben"),
    ("eight", "acht"),
    ("nine", "neun"),
    ("ten", "zehn"),
    ("eleven", "elf"),
    ("twelve", "zwölf"),
)
_HOUR_WORDS = {word: number for number, words in enumerate(_WORDS, 1) for word in words}
_HOUR = rf"(?P<hour>\d{{1,2}}|{'|'.join(_HOUR_WORDS)})\b"
# What is "at" in one language and "in" in another is "in" before a number of units.
_UNITS = r"(?:tim|min|sek|dag|veck|uge|uke|mån|måned|år)"
AT_WORDS = rf"(?:at|um|gegen|a las?|alas|à|kl\.?|klokken|alle(?: ore)?|às|om(?!\s+\d+\s*{_UNITS})|@|o)"
_HALF = r"(?:a\.?m\.?|p\.?m\.?)"
_DAYS = r"(?:\w*(?:tag|mittwoch)|heute)"
_REPLACED = (
    (r"\b(?:tmrw|tmr|tomorow)\b", "tomorrow"),
    (r"\btonight\b", "today night"),
    (r"\bthis (?=morning|afternoon|evening)", "today "),
    (r"\bce (?=matin|soir)|\bcet (?=après-midi)", "aujourd'hui "),
    (r"\besta noche\b", "hoy por la noche"),
    (r"\bstasera\b", "oggi sera"),
    (r"\bvanavond\b", "vandaag avond"),
    (r"\bpasado mañana\b", "en 2 días"),
    (r"\bdopodomani\b", "tra 2 giorni"),
    (r"\bovermorgen\b", "over 2 dagen"),
    (rf"\b({_DAYS})\s*(früh|vormittag|mittag|nachmittag|abend)s?\b", r"\1 \2"),
    (rf"\b({_DAYS})\s*morgen\b", r"\1 früh"),
    (r"\bmorgen (?=om\b|.*\buur\b)", "tomorrow "),
    (r"\b(?:an |one )hour and a half\b", "90 minutes"),
    (r"\bhalf an hour\b", "30 minutes"),
    (r"\b(?:three quarters of an hour|(?:einer )?dreiviertelstunde)\b", "45 minutes"),
    (r"\b(?:a quarter of an hour|(?:einer )?viertelstunde)\b", "15 minutes"),
    (r"\beine(?:r)? halben? stunde\b", "30 minutes"),
    (r"\b(?:anderthalb|eineinhalb) stunden\b", "90 minutes"),
    (r"\bdans une demi-heure\b", "in 30 minutes"),
    (r"\bmedia hora\b", "30 minutos"),
    (r"\b(?:fra|daqui a) (?=\d)", "in "),
    (r"\b(in|dans|en) (\d+)\s?h\s?(\d{1,2})(?:m|min)?\b", r"in \2 hours \3 minutes"),
    (r"\b(?:um |at )?(?:mitternacht|midnight)\b", "00:00"),
    (r"\b(?:nächste[nrs]?|kommende[nrs]?|diese[nrs]?|próximo|prochain|this coming)\b", ""),
    (r"\b(\d{1,2}) y media\b|\b(\d{1,2}) ?h(?:eures?)? et demie?\b", r"\1\2:30"),
    (r"\b(\d{1,2})\s*uhr\s*(\d{2})\b", r"\1:\2"),
    (r"\b(\d{1,2}(?::\d{2})?)\s*(?:uhr\b|o['’]?clock\b)", r"um \1"),
    (rf"\b{AT_WORDS}\s+um\s+", "um "),
    # A clock with a dot, where it can be no date.
    (r"(?<![\d.])(\d{1,2})\.(00|1[3-9]|[2-5]\d)(?![\d.])", r"\1:\2"),
    (r"\b(?!(?:in|after|dans|en|de|tra|em|om|over|za|and|und|et|y|e)\b)([^\W\d_]+) (\d{1,2})\s?h(?!\w)", r"\1 \2:00"),
    (rf"(?:^|(?<=\s)){AT_WORDS}\s*(\d{{1,2}})(?![\d:./h-])(?:\s*({_HALF})(?!\w))?", r"\1:00 \2"),
    (rf"(?:^|(?<=\s)){AT_WORDS}\s*(\d{{1,2}}[:.h]\d{{2}})", r"\1"),
    (r"^\s*(\d{1,2})\s*$", r"\1:00"),
    (r"^(?:on|am|el|le)\s+", ""),
)
_REPLACE = tuple((lazy_regex(pattern, re.IGNORECASE), instead) for pattern, instead in _REPLACED)
_PAST = lazy_regex(
    rf"\b(?:(?:at|um) )?(?P<by>\d+|half|quarter|viertel|five|ten|twenty|fünf|zehn|zwanzig)"
    rf" (?:minutes |minuten )?(?P<which>past|to|nach|vor) {_HOUR}",
    re.IGNORECASE,
)
_TO_COME = lazy_regex(rf"\b(?:um )?(?P<by>dreiviertel|halb) {_HOUR}", re.IGNORECASE)
_MINUTES = {
    "half": 30,
    "quarter": 15,
    "viertel": 15,
    "five": 5,
    "ten": 10,
    "twenty": 20,
    "fünf": 5,
    "zehn": 10,
    "zwanzig": 20,
}
_NAMED_HOUR = lazy_regex(
    rf"\b{AT_WORDS} {_HOUR}|\b(?P<bare>{'|'.join(_HOUR_WORDS)})(?= (?:uhr|o['’]?clock)\b)", re.IGNORECASE
)
_CLOCK = lazy_regex(rf"(?<![\d:])(\d{{1,2}}):(\d{{2}})(?!\d)(?!\s*{_HALF})", re.IGNORECASE)
_ORDINAL = lazy_regex(
    r"^(?:on |am )?(?:the |den )?(\d{1,2})(?:st|nd|rd|th|\.)(?=$|\s+(?:um|at|\d{1,2}:))", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class NormalisedTimeText:
    """`text` as dateparser reads it. `part` is the hour of a part of the day that had to stand for one; None where an
    hour was named, or neither."""

    text: str
    assumed_hour: int | None


def normalise_time_text(text: str, today: date) -> NormalisedTimeText:
    for pattern, make in ((_PAST, _past), (_TO_COME, _to_come), (_NAMED_HOUR, _named_hour)):
        text = pattern.sub(make, text)
    text = _ORDINAL.sub(lambda found: _day_to_come(int(found[1]), today), text)
    for pattern, instead in _REPLACE:
        text = pattern.sub(instead, text)
    found = _PART.search(text)
    if found is None or found.lastgroup is None:
        return NormalisedTimeText(" ".join(text.split()), None)
    name = found.lastgroup
    text = f"{text[: found.start()]} {text[found.end() :]}"
    # "at 3" beside a part was "at 3" to none of the patterns above, if the part stood between.
    text = " ".join(re.sub(r"(?<=\s)(?:in the|am|um|at)\s*$", "", text).split())
    if re.search(rf"\d\s*{_HALF}(?!\w)", text, re.IGNORECASE):
        return NormalisedTimeText(text, None)
    clock = _CLOCK.search(text)
    if clock is None:
        return NormalisedTimeText(f"{text} {PART_OF_DAY_HOURS[name]}:00".strip(), PART_OF_DAY_HOURS[name])
    hour = _hour_of(int(clock[1]), name)
    return NormalisedTimeText(f"{text[: clock.start()]}{hour}:{clock[2]}{text[clock.end() :]}", None)


def _hour_of(hour: int, part: str) -> int:
    first = {"afternoon": 1, "evening": 1, "night": 6}.get(part, 12)
    return hour + 12 if first <= hour < 12 else hour


def _past(found: re.Match[str]) -> str:
    by = _MINUTES.get(found["by"].lower()) or int(found["by"])
    hour = _number(found["hour"])
    if by > 59:
        return found[0]
    return _at(hour * 60 + (by if found["which"].lower() in ("past", "nach") else -by))


def _to_come(found: re.Match[str]) -> str:
    return _at(_number(found["hour"]) * 60 - (30 if found["by"].lower() == "halb" else 15))


def _named_hour(found: re.Match[str]) -> str:
    if found["bare"]:
        return str(_number(found["bare"]))
    return f"{found[0][: found.start('hour') - found.start()]}{_number(found['hour'])}"


def _number(word: str) -> int:
    return _HOUR_WORDS.get(word.lower()) or int(word)


def _at(minutes: int) -> str:
    return f"{minutes // 60 % 24}:{minutes % 60:02}"


def _day_to_come(day: int, today: date) -> str:
    """The next day of a month with this number, today among them; as it was written where no month has it."""
    at = today
    for _ in range(62 if 1 <= day <= 31 else 0):
        if at.day == day:
            return f"{day} {calendar.month_name[at.month]} {at.year}"
        at += timedelta(days=1)
    return f"{day}."
