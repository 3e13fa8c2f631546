"""Parses moments as people write them: "in 20 minutes", "tomorrow at 9", "nächsten Freitag um 18 Uhr", "2026-12-24
18:00". Pure.

A text is either understood completely as a future moment, or is an error that says how it was understood; ambiguous
dates are not guessed. A day without an hour means 9:00. An hour with a part of the day is in that part ("tomorrow
afternoon at 3" is 15:00, "heute Abend um 8" is 20:00), and a part without an hour has a default hour. dateparser, which
supports the languages, is slow to import and loaded at first use. Texts it would misread are rephrased first
(`_normalise`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from assistant.core.calendar import MONTHS, NUMBER_WORDS, format_moment, local_to_utc, read_date_phrase, utc_to_local
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.text import lazy_regex, shorten
from assistant.core.time_pieces import find_times
from assistant.core.time_resolve import DEFAULT_HOUR, is_only_time, resolve_times

MAX_PHRASE_CHARACTERS = 200
_LANGUAGES = ["en", "de", "es", "fr", "it", "pt", "nl", "sv", "da", "nb", "pl"]
_MOST_NUMBERS = 8
_FARTHEST = timedelta(days=36_525)
# The clock is shifted by this to detect whether a text is relative to now.
_NUDGE = timedelta(minutes=7)
_EITHER = lazy_regex(r"\b(\d{1,2})[/-](\d{1,2})(?:[/-]\d{2,4})?\b")
_DOTTED = lazy_regex(r"\b(\d{1,2})\.\s?(\d{1,2})\.(?:(\d{4})\b)?")
_HAS_CLOCK = lazy_regex(r"\d:\d")
_ALONE = lazy_regex(r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>[ap]\.?m\.?)?", re.IGNORECASE)
_EXAMPLES = '"in 20 minutes", "tomorrow at 9", "next Friday at 18:00", "2026-12-24 18:00", "every weekday at 8:30"'
# Default hours of the parts of a day.
_HOURS_OF_PARTS = {"morning": 9, "noon": 12, "afternoon": 15, "evening": 18, "night": 20}
_PARTS_OF_DAY = {
    "afternoon": r"(?:in the |this )?afternoons?|(?:am )?nachmittags?|(?:cet |de l['’])?après-midi"
    r"|(?:de|por) la tarde|(?:di |nel )?pomeriggio|(?:à|da|de) tarde|(?:'s )?middags|namiddag",
    "morning": r"(?:in the |this )?mornings?|früh|morgens|am morgen|in der früh(?:e)?|(?:am )?vormittags?"
    r"|(?:de|por) la mañana|(?:ce |du )?matin|(?:di |nella )?mattin[ao]|(?:da|de) manhã|(?:'s )?ochtends?",
    "noon": r"(?:at )?(?:noon|midday|lunchtime)|(?:am |zu )?mittags?|(?:à )?midi|(?:al )?mediodía|mezzogiorno|meio-dia",
    "evening": r"(?:in the |this )?evenings?|(?:am )?abends?|(?:ce |du )?soir|(?:di |in )?sera|(?:'s )?avonds?",
    "night": r"(?:at |in the )?nights?|(?:in der )?nachts?|(?:de|por) la noche|notte|(?:à|da) noite|(?:in de )?nacht",
}
_PART = lazy_regex("|".join(rf"(?P<{name}>\b(?:{words})\b)" for name, words in _PARTS_OF_DAY.items()), re.IGNORECASE)
_GERMAN_HOURS = "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"
_HOUR_WORDS = {**NUMBER_WORDS, **{word: hour for hour, word in enumerate(_GERMAN_HOURS.split(), 1)}, "ein": 1}
_HOUR = rf"(?P<hour>\d{{1,2}}|{'|'.join(_HOUR_WORDS)})\b"
# "at" in one language may be "in" in another; before a number of units it means "in".
_UNITS = r"(?:tim|min|sek|dag|veck|uge|uke|mån|måned|år)"
_AT = rf"(?:at|um|gegen|a las?|alas|à|kl\.?|klokken|alle(?: ore)?|às|om(?!\s+\d+\s*{_UNITS})|@|o)"
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
    (rf"\b{_AT}\s+um\s+", "um "),
    # A time with a dot, if it cannot be a date.
    (r"(?<![\d.])(\d{1,2})\.(00|1[3-9]|[2-5]\d)(?![\d.])", r"\1:\2"),
    (r"\b(?!(?:in|after|dans|en|de|tra|em|om|over|za|and|und|et|y|e)\b)([^\W\d_]+) (\d{1,2})\s?h(?!\w)", r"\1 \2:00"),
    (rf"(?:^|(?<=\s)){_AT}\s*(\d{{1,2}})(?![\d:./h-])(?:\s*({_HALF})(?!\w))?", r"\1:00 \2"),
    (rf"(?:^|(?<=\s)){_AT}\s*(\d{{1,2}}[:.h]\d{{2}})", r"\1"),
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
_MINUTES = {"half": 30, "quarter": 15, "viertel": 15, "twenty": 20, "zwanzig": 20}
_NAMED_HOUR = lazy_regex(
    rf"\b{_AT} {_HOUR}|\b(?P<bare>{'|'.join(_HOUR_WORDS)})(?= (?:uhr|o['’]?clock)\b)", re.IGNORECASE
)
_CLOCK = lazy_regex(rf"(?<![\d:])(\d{{1,2}}):(\d{{2}})(?!\d)(?!\s*{_HALF})", re.IGNORECASE)
_ORDINAL = lazy_regex(
    r"^(?:on |am )?(?:the |den )?(\d{1,2})(?:st|nd|rd|th|\.)(?=$|\s+(?:um|at|\d{1,2}:))", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ParsedMoment:
    """The meaning of a text."""

    at: datetime
    local: datetime  # naive local time, which may be skipped in spring
    whole_day: bool = False  # no hour was named


def parse_moment(text: str, zone: ZoneInfo, now: datetime, *, repeats: bool = False) -> ParsedMoment:
    """Return the future moment a text means, in UTC; `repeats`: of something that repeats. Raises `UsageError`."""
    text = " ".join(text.split())
    if not text or len(text) > MAX_PHRASE_CHARACTERS:
        raise _not_understood(text)
    moment = _iso(text, zone)
    if moment is None:
        spoken = read_spoken(text, zone, now, repeats=repeats)
        moment = spoken[0] if spoken and not spoken[1] else _natural_language(text, zone, now)
    if moment.at <= now:
        raise UsageError(
            f"{text!r} was understood as {format_moment(moment.at, zone)}, which is past. Nothing was set; name a "
            f"time in the future."
        )
    require_near(moment.at, now, text)
    return moment


def require_near(at: datetime, now: datetime, text: str) -> None:
    """Raises `UsageError` for a moment that is more than a hundred years away."""
    if at - now > _FARTHEST:
        raise too_far(text)


def too_far(text: str) -> UsageError:
    """Return the error for a text that names no time within a hundred years."""
    return UsageError(f"{text.strip()!r} is more than a hundred years away. Nothing was set.")


def read_spoken(text: str, zone: ZoneInfo, now: datetime, *, repeats: bool = False) -> tuple[ParsedMoment, str] | None:
    """Parse words of English, German, French and Spanish, and the parts of an RRULE if they name a repetition; None if
    any word is not about time. Raises `UsageError` if it is beyond the calendar."""
    found = find_times(text)
    resolved = resolve_times(found, utc_to_local(now, zone), repeats=repeats) if is_only_time(found) else None
    if resolved is None:
        return None
    from_now = [piece.minutes for piece in found.of_kind("delta") if piece.minutes]
    try:
        if from_now and not found.of_kind("before"):
            # Hours from now are counted in elapsed time, also when the clocks change.
            at = _whole(now + timedelta(minutes=from_now[0]))
            return ParsedMoment(at, utc_to_local(at, zone)), resolved.rule
        moment = _by_the_clock(resolved.at, zone)
    except OverflowError:
        # The calendar ends with the year 9999.
        raise too_far(text) from None
    return replace(moment, whole_day=not found.has_clock), resolved.rule


def counts_from_now(text: str, zone: ZoneInfo, now: datetime) -> bool:
    """Return whether a text is relative to now, like "in 20 minutes"."""
    try:
        return parse_moment(text, zone, now + _NUDGE).at - parse_moment(text, zone, now).at == _NUDGE
    except UsageError:
        return False


def find_named_day(text: str, zone: ZoneInfo, now: datetime) -> date | None:
    """Return the day a text names; None for an hour alone. Raises `UsageError`."""
    found = find_times(text)
    if is_only_time(found) and not found.of_kind("day", "delta", "span"):
        return None
    return parse_moment(text, zone, now).local.date()


def _iso(text: str, zone: ZoneInfo) -> ParsedMoment | None:
    """Parse an ISO 8601 date or time; with an offset, exactly that moment."""
    if not re.match(r"\d{4}-\d{2}-\d{2}", text):
        return None
    try:
        read = datetime.fromisoformat(text)
        if len(text) == 10:
            return _by_the_clock(read.replace(hour=DEFAULT_HOUR), zone, whole_day=True)
        if read.tzinfo is None:
            return _by_the_clock(read, zone)
        return ParsedMoment(read.astimezone(UTC), utc_to_local(read, zone))
    except (ValueError, OverflowError):
        return None


def _natural_language(text: str, zone: ZoneInfo, now: datetime) -> ParsedMoment:
    base = utc_to_local(now, zone)
    written = _normalise(_dated(text), base.date())
    alone = _next_clock(written, base)
    if alone is not None:
        return _by_the_clock(alone, zone)
    local, period = _read(written, base)
    if local is None or not _all_of_it_counts(written, base, local):
        raise _not_understood(text)
    try:
        if period in ("day", "week") and not _HAS_CLOCK.search(written):
            morning = local.replace(hour=DEFAULT_HOUR, minute=0, second=0, microsecond=0)
            return _by_the_clock(morning, zone, whole_day=True)
        if period not in ("time", "part_of_day") or _names_no_day(written, base):
            raise UsageError(
                f"{text!r} was understood as {local:%B %Y} or so. Nothing was set; name a day and a time, such as "
                f"{_EXAMPLES}."
            )
        if period == "time" and _read(written, base + _NUDGE)[0] == local + _NUDGE:
            # Hours from now are counted in elapsed time, also when the clocks change.
            at = _whole(now + (local - base))
            return ParsedMoment(at, utc_to_local(at, zone))
        return _by_the_clock(_whole(local), zone)
    except OverflowError:
        raise _not_understood(text) from None


def _by_the_clock(local: datetime, zone: ZoneInfo, *, whole_day: bool = False) -> ParsedMoment:
    return ParsedMoment(local_to_utc(local, zone), local, whole_day)


def _next_clock(text: str, base: datetime) -> datetime | None:
    """Return an hour alone as today's or tomorrow's; None for any other text."""
    match = _ALONE.fullmatch(text)
    if match is None:
        return None
    hour, minute, half = int(match["hour"]), int(match["minute"] or 0), (match["half"] or "").lower()
    if (half and not 1 <= hour <= 12) or hour > 23 or minute > 59 or not (half or match["minute"]):
        return None
    if half:
        hour = hour % 12 + (12 if half[0] == "p" else 0)
    at = base.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return at if at > base else at + timedelta(days=1)


def _whole(at: datetime) -> datetime:
    return at.replace(microsecond=0)


def _dated(text: str) -> str:
    """Return `text` with its dates in words. Raises `UsageError` for an ambiguous date."""
    for pair in _EITHER.finditer(text):
        first, second = int(pair[1]), int(pair[2])
        if first != second and 1 <= first <= 12 and 1 <= second <= 12:
            months = [month.capitalize() for month in MONTHS]
            raise UsageError(
                f"{pair[0]!r} may be {first} {months[second - 1]} or {second} {months[first - 1]}. Nothing was set; "
                'write the month as a word, or the date as in "2026-12-24".'
            )
    return _DOTTED.sub(_dotted, text)


def _all_of_it_counts(text: str, base: datetime, local: datetime) -> bool:
    """Return whether every number matters: dateparser ignores numbers it cannot use."""
    numbers = list(re.finditer(r"\d+", text))
    variants = (f"{text[: number.start()]}{_other(number[0])}{text[number.end() :]}" for number in numbers)
    return len(numbers) <= _MOST_NUMBERS and all(_read(variant, base)[0] != local for variant in variants)


def _other(number: str) -> str:
    """Return another number of the same length."""
    return str(int(number) + (-1 if number[-1] in "49" else 1)).zfill(len(number))


def _dotted(match: re.Match[str]) -> str:
    """Convert a date with dots: day, then month, in any language."""
    day, month = int(match[1]), int(match[2])
    if not 1 <= month <= 12:
        return match[0]
    return f"{day} {MONTHS[month - 1].capitalize()} {match[3] or ''}"


def _names_no_day(text: str, base: datetime) -> bool:
    """Return whether a text names a month without a day, for which dateparser uses today's."""
    return _read(text, base, "month")[0] is not None and _read(text, base, "day")[0] is None


def _read(text: str, base: datetime, *parts: str) -> tuple[datetime | None, str]:
    return read_date_phrase(text, base, _LANGUAGES, prefer="future", parts=parts)


def _not_understood(text: str) -> UsageError:
    shown = shorten(text, MAX_PHRASE_CHARACTERS)
    return UsageError(f"{shown!r} is not a time that I understand. Nothing was set; write it as in {_EXAMPLES}.")


# ------------------------------------------------------------------------------------------------------- other words


def _normalise(text: str, today: date) -> str:
    """Rephrase `text` for dateparser."""
    for pattern, make in ((_PAST, _past), (_TO_COME, _to_come), (_NAMED_HOUR, _named_hour)):
        text = pattern.sub(make, text)
    text = _ORDINAL.sub(lambda match: _day_to_come(int(match[1]), today), text)
    for pattern, instead in _REPLACE:
        text = pattern.sub(instead, text)
    match = _PART.search(text)
    if match is None or match.lastgroup is None:
        return " ".join(text.split())
    name = match.lastgroup
    text = f"{text[: match.start()]} {text[match.end() :]}"
    # The patterns above do not match "at 3" if the part of the day is in between.
    text = " ".join(re.sub(r"(?<=\s)(?:in the|am|um|at)\s*$", "", text).split())
    if re.search(rf"\d\s*{_HALF}(?!\w)", text, re.IGNORECASE):
        return text
    clock = _CLOCK.search(text)
    if clock is None:
        return f"{text} {_HOURS_OF_PARTS[name]}:00".strip()
    hour = _hour_of(int(clock[1]), name)
    return f"{text[: clock.start()]}{hour}:{clock[2]}{text[clock.end() :]}"


def _hour_of(hour: int, part: str) -> int:
    first = {"afternoon": 1, "evening": 1, "night": 6}.get(part, 12)
    return hour + 12 if first <= hour < 12 else hour


def _past(match: re.Match[str]) -> str:
    by = _MINUTES.get(match["by"].lower()) or _number(match["by"])
    hour = _number(match["hour"])
    if by > 59:
        return match[0]
    return _clock_time(hour * 60 + (by if match["which"].lower() in ("past", "nach") else -by))


def _to_come(match: re.Match[str]) -> str:
    return _clock_time(_number(match["hour"]) * 60 - (30 if match["by"].lower() == "halb" else 15))


def _named_hour(match: re.Match[str]) -> str:
    if match["bare"]:
        return str(_number(match["bare"]))
    return f"{match[0][: match.start('hour') - match.start()]}{_number(match['hour'])}"


def _number(word: str) -> int:
    return _HOUR_WORDS.get(word.lower()) or int(word)


def _clock_time(minutes: int) -> str:
    return f"{minutes // 60 % 24}:{minutes % 60:02}"


def _day_to_come(day: int, today: date) -> str:
    """Return the next day with this number, today included; unchanged if no month has it."""
    at = today
    for _ in range(62 if 1 <= day <= 31 else 0):
        if at.day == day:
            return f"{day} {MONTHS[at.month - 1].capitalize()} {at.year}"
        at += timedelta(days=1)
    return f"{day}."
