"""Resolves the times found in a text relative to a local time (naive, in the person's zone). Pure.

Results are in the future; a day without an hour means nine in the morning, or keeps the hour of what is moved; an hour
with a part of the day lies in that part; an hour alone means its next occurrence, on a dial of twelve hours where it
can be of one ("at 6", said at 15:00, is 18:00; "6 Uhr" and "6h" are of 24); None if no time is named or it is
ambiguous.
"""

from __future__ import annotations

import calendar
import re
from datetime import date, datetime, time, timedelta

from assistant.core.dataclass import dataclass
from assistant.core.text import fold_text, lazy_regex
from assistant.core.time_language import DAY_CODES
from assistant.core.time_names import HOURS_OF_PARTS
from assistant.core.time_pieces import FoundTimes
from assistant.core.time_readers import LAST_DAY, TimePiece

DEFAULT_HOUR = 9
_FILLER = lazy_regex(
    r"(?:[\s,.;:-]|\b(?:on|at|by|the|and|in|from|starting|beginning|of|for|until|am|um|ab|und|den|der|dem|von|bis"
    r"|le|la|les|a|et|de|du"
    r"|el|los|las|y|en|desde|para|pour|des|uhr|o'?clock|h|please|bitte|only|nur)\b)*"
)
_SPAN_DAYS = ("weekend", "nextweek", "thisweek", "thismonth")
_FIRST_OF_PARTS = {"afternoon": 1, "evening": 1, "night": 5, "afterlunch": 1, "afterwork": 1, "afterdinner": 5}
_FIRST_HOUR = 6
# On a 12-hour dial, "quarter past four" means the afternoon for a reminder, but the morning for an alarm.
_OF_TWELVE = lazy_regex(
    r"\b(?:half|quarter|past|cuarto|media|menos|(?:une|deux|trois|quatre|cinq|[1-5]) (?:heures?|h) moins|halb|viertel"
    r"|dreiviertel|quart|demie?)\b"
)
_ENGLISH_HOUR = lazy_regex(r"\bat [1-9]:\d\d")
_OF_TWENTY_FOUR = lazy_regex(r"\d ?h|uhr|\d[:.]\d|\b0\d|heures?|horas?|midi|minuit|midnight|mitternacht|medianoche")
_WAKES = lazy_regex(
    r"\b(?:alarms?|alarmes?|alarmas?|wak(?:e|ing)|woken|get up|weck\w*|aufsteh\w*|reveil\w*|lever?|despert\w*"
    r"|despiert\w*|levant\w*)"
)


@dataclass(frozen=True, slots=True)
class ResolvedTime:
    at: datetime
    rule: str = ""  # RRULE parts if it repeats; then `at` is the start


def is_only_time(found: FoundTimes) -> bool:
    """Return whether a text consists of one moment or rule and nothing else."""
    kinds = [piece.kind for piece in found.pieces]
    named_once = len(set(kinds)) == len(kinds) and not ("BY" in found.rule and found.has_day)
    return found.names_moment and named_once and _FILLER.fullmatch(fold_text(found.words)) is not None


def resolve_times(
    found: FoundTimes,
    now: datetime,
    moved: datetime | None = None,
    *,
    wakes: bool = False,
    repeats: bool = False,
) -> ResolvedTime | None:
    """Return the moment and rule, or None. `moved`: the previous due time, whose day or hour is kept where the text
    names none; `wakes`: it is an alarm to get up, so "at five" is in the morning; `repeats`: it is the hour of what
    repeats, so it does not depend on what time it is now."""
    if not found.pieces or any(piece.is_ambiguous for piece in found.pieces):
        return None
    try:
        wakes = wakes or _WAKES.search(fold_text(found.text)) is not None
        at = _moment(found, now, moved, _clock(found, now, moved, wakes=wakes, repeats=repeats))
    except (ValueError, OverflowError):
        return None
    if at is None:
        return None
    for before in found.of_kind("before"):
        if found.has_clock or before.days:
            at = _shift(at, before, -1)
    if not found.rule:
        return ResolvedTime(at) if at > now else None
    ends = next(iter(found.of_kind("until")), None)
    try:
        return ResolvedTime(at, f"{found.rule}{end_of_rule(ends, at, now)}" if ends else found.rule)
    except (ValueError, OverflowError):
        return None


def end_of_rule(ends: TimePiece, start: datetime, now: datetime) -> str:
    """Return the part of an RRULE by which what begins at `start` ends with the day, or at the hour of its first day,
    that `ends` names. Raises `ValueError` or `OverflowError` if there is no such day."""
    if ends.minutes and not ends.on:
        clock = time(*divmod(ends.minutes, 60))
        clock = clock if ends.half or clock >= start.time() or clock.hour >= 12 else time(clock.hour + 12, clock.minute)
        return f";UNTIL={datetime.combine(start.date(), clock):%Y%m%dT%H%M%S}"
    if ends.part in _SPAN_DAYS and ends.weekday is None:
        sunday = now.date() + timedelta(days=6 - now.weekday())
        month_end = add_months(now.date().replace(day=1), 1) - timedelta(days=1)
        last = {"nextweek": sunday + timedelta(days=7), "thismonth": month_end}.get(ends.part, sunday)
    elif ends.days or ends.months:
        last = _shift(start, ends, 1).date() - timedelta(days=1)
    else:
        last = _on_day(ends, time(23, 59), now if ends.offset is not None else max(start, now)).date()
    return f";UNTIL={last:%Y%m%d}T235959"


def _moment(found: FoundTimes, now: datetime, moved: datetime | None, clock: time | None) -> datetime | None:
    delta = next(iter(found.of_kind("delta")), None)
    if delta is not None and delta.minutes:
        return _shift(now, delta, 1).replace(microsecond=0)
    days = found.of_kind("day")
    # "on Sunday the 22nd": the date is more precise.
    day = next((piece for piece in days if piece.on is not None), next(iter(days), None))
    if delta is not None:
        return datetime.combine(_shift(now, delta, 1).date(), clock or time(DEFAULT_HOUR))
    if day is not None and day.half and clock is None:
        clock = time(*divmod(day.minutes, 60))
    if found.rule and day is None:
        return _start(found, now, clock, moved)
    span = next((piece for piece in found.of_kind("span") if piece.part in ("weekend", "nextweek")), None)
    if day is None and span is not None:
        # What is moved to next week keeps its day of the week.
        weekday = 5 if span.part == "weekend" else moved.weekday() if moved else 0
        day = TimePiece("day", 0, 0, weekday=weekday, part="" if span.part == "weekend" else span.part)
    hour = clock or (moved.time() if moved else time(DEFAULT_HOUR))
    if day is not None:
        return _on_day(day, hour, now)
    if clock is None:
        return None
    today = any(piece.offset == 0 for piece in found.of_kind("part"))
    if today and clock.hour < _FIRST_HOUR and found.of_kind("clock"):
        # "Tonight at midnight" is the start of the next day.
        return datetime.combine(now.date() + timedelta(days=1), clock)
    at = datetime.combine(moved.date() if moved and not today else now.date(), clock)
    return at if at > now or today else datetime.combine(now.date(), clock) + timedelta(days=int(clock <= now.time()))


def _clock(found: FoundTimes, now: datetime, moved: datetime | None, *, wakes: bool, repeats: bool) -> time | None:
    clock = next(iter(found.of_kind("clock")), None)
    part = next((piece.part for piece in found.of_kind("part", "repeat", "before") if piece.part), "")
    evening = next((piece for piece in found.of_kind("before") if piece.part), None)
    if evening and clock and any(day.start < clock.start < evening.start for day in found.of_kind("day")):
        # "On Monday at 10:20, remind me the evening before": the hour is that of the appointment.
        clock = next((own for own in found.of_kind("clock") if own.start > evening.start), None)
    if clock is None:
        return time(HOURS_OF_PARTS[part]) if part else None
    hour, minute = divmod(clock.minutes, 60)
    if part and not clock.half and _FIRST_OF_PARTS.get(part, 12) <= hour < 12:
        hour += 12
    if not (part or clock.half or wakes) and 1 <= hour < 12 and _is_of_twelve(found, clock):
        is_later = hour < _FIRST_HOUR and not _ENGLISH_HOUR.search(_words_of(found, clock))
        if moved is not None:
            # What was at 18:30 is moved "to 8": the evening.
            was = moved.hour * 60 + moved.minute
            is_later = abs(clock.minutes + 720 - was) <= abs(clock.minutes - was)
        elif not (repeats or found.rule) and all(day.offset == 0 for day in found.of_kind("day", "delta")):
            is_later |= time(hour, minute) <= now.time() < time(hour + 12, minute)
        if is_later:
            hour += 12
    return time(hour, minute)


def _is_of_twelve(found: FoundTimes, clock: TimePiece) -> bool:
    """Return whether an hour may be of a dial of twelve hours."""
    words = _words_of(found, clock)
    return any(p.search(words) for p in (_OF_TWELVE, _ENGLISH_HOUR)) or not _OF_TWENTY_FOUR.search(words)


def _words_of(found: FoundTimes, piece: TimePiece) -> str:
    return fold_text(found.text[piece.start : piece.end])


def _start(found: FoundTimes, now: datetime, clock: time | None, moved: datetime | None) -> datetime:
    """Return the start of a rule for which no day is named."""
    if clock is None and re.search("HOURLY|MINUTELY", found.rule):
        step = re.search(r"INTERVAL=(\d+)", found.rule)
        minutes = (60 if "HOURLY" in found.rule else 1) * int(step[1] if step else 1)
        return now.replace(second=0, microsecond=0) + timedelta(minutes=minutes)
    hour = clock or (moved.time() if moved else time(DEFAULT_HOUR))
    if moved and "BY" not in found.rule:
        return datetime.combine(moved.date(), hour)
    at = datetime.combine(now.date(), hour)
    at = at if at > now else at + timedelta(days=1)
    days = re.search(r"FREQ=WEEKLY;INTERVAL=\d+;BYDAY=([A-Z,]+)$", found.rule)
    if days:  # every other Tuesday starts on the next Tuesday
        codes = days[1].split(",")
        at += timedelta(days=next(n for n in range(7) if DAY_CODES[(at.weekday() + n) % 7] in codes))
    return at


def _on_day(day: TimePiece, hour: time, now: datetime) -> datetime:
    if day.offset is not None:
        return datetime.combine(now.date() + timedelta(days=day.offset), hour)
    if day.weekday is not None:
        if day.part == "nextweek":
            monday = now.date() + timedelta(days=7 - now.weekday())
            return datetime.combine(monday + timedelta(days=day.weekday), hour)
        at = datetime.combine(now.date() + timedelta(days=(day.weekday - now.weekday()) % 7), hour)
        passed = at <= now or (day.is_coming and at.date() == now.date())
        return at + timedelta(days=7 * (day.weeks + passed))
    year, month, number = day.on or (0, 0, 0)
    if year:
        return datetime.combine(date(year, month, number), hour)
    if month:
        return _next_date(now, month, number, hour)
    for ahead in range(3):
        first = add_months(now.date().replace(day=1), ahead)
        if number == LAST_DAY:
            return datetime.combine(first.replace(day=calendar.monthrange(first.year, first.month)[1]), hour)
        if number <= calendar.monthrange(first.year, first.month)[1]:
            at = datetime.combine(first.replace(day=number), hour)
            if at > now:
                return at
    raise ValueError(number)


def _next_date(now: datetime, month: int, number: int, hour: time) -> datetime:
    """Return the date in this year, or in the first later year that has it."""
    for year in range(now.year, now.year + 9):
        number = calendar.monthrange(year, month)[1] if number == LAST_DAY else number
        if number <= calendar.monthrange(year, month)[1]:
            at = datetime.combine(date(year, month, number), hour)
            if at > now:
                return at
    raise ValueError(f"{number}.{month}.")


def _shift(at: datetime, length: TimePiece, sign: int) -> datetime:
    at += sign * timedelta(minutes=length.minutes, days=length.days)
    if length.months:
        at = datetime.combine(add_months(at.date(), sign * length.months), at.time())
    return at


def add_months(day: date, months: int) -> date:
    """Return the same day of a later, or earlier, month; the last of one that is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return day.replace(year=year, month=month + 1, day=min(day.day, calendar.monthrange(year, month + 1)[1]))


def day_range(found: FoundTimes, now: datetime) -> tuple[datetime, datetime] | None:
    """Return the period that a question asks about, as [start, end), or None if it names none."""
    today = datetime.combine(now.date(), time())
    monday = today - timedelta(days=now.weekday())
    span = next(iter(found.of_kind("span")), None)
    days = found.of_kind("day")
    if days and (at := resolve_times(FoundTimes(found.text, (days[-1],)), now)) is not None:
        start = datetime.combine(at.at.date(), time())
    elif days and days[0].offset == 0:
        start = today
    elif span is not None:
        first, length = {
            "weekend": (monday + timedelta(days=5), 2),
            "nextweek": (monday + timedelta(days=7), 7),
            "thisweek": (today, 7 - now.weekday()),
            "thismonth": (today, 31 - now.day + 1),
        }[span.part]
        return first, first + timedelta(days=length)
    elif found.of_kind("part"):
        start = today
    elif weekly := re.search(r"BYDAY=([A-Z]{2})((?:,[A-Z]{2})*)$", found.rule):
        number = DAY_CODES.index(weekly[1])
        start = today + timedelta(days=(number - now.weekday()) % 7)
        return start, start + timedelta(days=1 + len(weekly[2]) // 3)
    else:
        return None
    part = next((piece.part for piece in found.of_kind("part")), "")
    first_hour, last_hour = {
        "morning": (0, 12),
        "noon": (11, 15),
        "afternoon": (12, 19),
        "evening": (17, 24),
        "night": (18, 24),
    }.get(part, (0, 24))
    try:
        return start + timedelta(hours=first_hour), start + timedelta(hours=last_hour)
    except OverflowError:
        # The last day of the calendar has no next one.
        return None
