"""Parses events of an iCalendar text (RFC 5545), and expands repeating ones within a time range.

Occurrences are in their own time zone, across clock changes; moved, changed and cancelled occurrences are applied.
Events that cannot be read, or repeat too often for an appointment, are skipped and counted, without affecting others.
Runs only in the child process, since a calendar may cause any error in the library.
"""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from types import FrameType
from typing import Any
from zoneinfo import ZoneInfo

import icalendar
import recurring_ical_events

from assistant.core.calendar_events import CalendarEvent
from assistant.core.dataclass import dataclass

_MOST_OCCURRENCES = 3_000
_MOST_A_DAY = 48
_SERIES_SECONDS = 2.0
_LONGEST_TITLE, _LONGEST_PLACE, _LONGEST_NOTES = 300, 300, 2_000
_STATES = {"TENTATIVE": "tentative", "CANCELLED": "cancelled"}
_ANSWERS = ("needs-action", "accepted", "declined", "tentative", "delegated")


class Unreadable(ValueError):
    """The text completes a sentence that begins with the name of the calendar."""


@dataclass(frozen=True, slots=True)
class EventContext:
    """The context of a text. `start` and `end`: range for occurrences of repeating events, UTC; `addresses`: the
    owner's, as in calendars ("mailto:...", lower case)."""

    source: str
    calendar: str
    zone: ZoneInfo
    start: datetime
    end: datetime
    addresses: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ParsedCalendar:
    name: str  # the calendar's own name
    events: tuple[CalendarEvent, ...]
    skipped: tuple[int, ...]  # positions, from 1, of events that could not be read
    repeats: bool


def read_events(text: str, context: EventContext, url: str = "") -> ParsedCalendar:
    """`url`: of the resource; without one, each event has its UID. Raises `Unreadable`."""
    calendar = parse_calendar(text)
    by_uid: dict[str, list[Any]] = defaultdict(list)
    numbers: dict[str, int] = {}
    for number, component in enumerate(calendar.walk("VEVENT"), 1):
        uid = str(component.get("UID") or f"{component.get('DTSTART')}-{number}")
        by_uid[uid].append(component)
        numbers.setdefault(uid, number)
    events: list[CalendarEvent] = []
    skipped: list[int] = []
    repeating = False
    for uid, components in by_uid.items():
        repeats = _repeats(components)
        repeating = repeating or repeats
        try:
            with _time_limit(_SERIES_SECONDS):
                occurrences = _expand(calendar, components, context) if repeats else components
                events += [_event(it, uid, context, url or uid, repeats=repeats) for it in occurrences]
        # An error in one event, of any type, must not affect the others.
        except Exception:  # noqa: BLE001
            skipped.append(numbers[uid])
    name = _text(calendar.get("X-WR-CALNAME"), _LONGEST_TITLE)
    return ParsedCalendar(name, tuple(events), tuple(skipped), repeating)


def parse_calendar(text: str) -> Any:
    """Raises `Unreadable`."""
    if "BEGIN:VCALENDAR" not in text[:10_000].upper():
        raise Unreadable("is no calendar: it does not begin as one")
    try:
        return icalendar.Calendar.from_ical(text)
    # Damaged text causes arbitrary errors in the parser.
    except Exception as error:  # noqa: BLE001
        raise Unreadable(f"is damaged and cannot be read as a calendar ({type(error).__name__})") from None


def _repeats(components: Sequence[Any]) -> bool:
    return len(components) > 1 or any(name in components[0] for name in ("RRULE", "RDATE", "RECURRENCE-ID"))


def _expand(calendar: Any, components: Sequence[Any], context: EventContext) -> list[Any]:
    """Yield the occurrences of a series in the range."""
    for component in components:
        rules = component.get("RRULE", [])
        for rule in rules if isinstance(rules, list) else [rules]:
            if _most_a_day(rule) > _MOST_A_DAY:
                raise Unreadable("repeats too often")
    series = icalendar.Calendar()
    for name in ("VERSION", "X-WR-TIMEZONE"):
        if name in calendar:
            series.add(name, calendar[name])
    series.subcomponents = [*components]
    found: list[Any] = recurring_ical_events.of(series).between(context.start, context.end)
    if len(found) > _MOST_OCCURRENCES:
        raise Unreadable("repeats too often")
    return found


def _most_a_day(rule: Any) -> int:
    """Return the maximum number of occurrences of a rule per day."""
    often = {"SECONDLY": 86_400, "MINUTELY": 1_440, "HOURLY": 24}.get(str(rule.get("FREQ", [""])[0]).upper(), 1)
    for name in ("BYHOUR", "BYMINUTE", "BYSECOND"):
        often *= max(1, len(rule.get(name, [])))
    return often


def _event(component: Any, uid: str, context: EventContext, url: str, *, repeats: bool) -> CalendarEvent:
    """Raises any error in the event."""
    start, end = component.start, component.end
    all_day = not isinstance(start, datetime)
    starts, ends = to_utc(start, context.zone), to_utc(end, context.zone)
    if ends < starts:
        raise Unreadable("ends before it begins")
    attendees = _as_list(component.get("ATTENDEE"))
    own = [it for it in attendees if str(it).lower() in context.addresses]
    answer = str(own[0].params.get("PARTSTAT", "NEEDS-ACTION")).lower() if own else ""
    return CalendarEvent(
        context.source,
        url,
        context.calendar,
        uid,
        occurrence_name(component, context.zone) if repeats else "",
        starts,
        ends,
        all_day,
        _text(component.get("SUMMARY"), _LONGEST_TITLE) or "(no title)",
        _text(component.get("LOCATION"), _LONGEST_PLACE),
        _text(component.get("DESCRIPTION"), _LONGEST_NOTES),
        _STATES.get(str(component.get("STATUS", "")).upper(), "confirmed"),  # type: ignore[arg-type]
        answer if answer in _ANSWERS else "",  # type: ignore[arg-type]
        _person(component.get("ORGANIZER")),
        len(attendees) - len(own),
        repeats,
    )


def occurrence_name(component: Any, zone: ZoneInfo) -> str:
    """Return the name of an occurrence within its series."""
    original = component.get("RECURRENCE-ID")
    value = original.dt if original is not None else component.start
    if not isinstance(value, datetime):
        return f"{value:%Y%m%d}"
    return f"{to_utc(value, zone):%Y%m%dT%H%M%SZ}"


def to_utc(value: date | datetime, zone: ZoneInfo) -> datetime:
    """Convert to UTC. A date begins at midnight in the zone of the data folder, which also applies to times without a
    zone."""
    if not isinstance(value, datetime):
        value = datetime.combine(value, time.min, zone)
    return (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _person(organizer: Any) -> str:
    if organizer is None:
        return ""
    address = str(organizer)
    named = str(getattr(organizer, "params", {}).get("CN", "") or "")
    return _text(named or address.removeprefix("mailto:").removeprefix("MAILTO:"), _LONGEST_PLACE)


def _text(value: Any, limit: int) -> str:
    """Return one line without control characters."""
    text = "" if value is None else str(value if not isinstance(value, list) else value[0])
    text = "".join(letter if letter.isprintable() else " " for letter in text[: limit * 4])
    return " ".join(text.encode("utf-8", "replace").decode().split())[:limit]


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` in the context after so many seconds. Only for the main thread."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before: Callable[..., Any] | int | None = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def mail_addresses(addresses: Collection[str]) -> frozenset[str]:
    """Return addresses in the form used by calendars."""
    return frozenset(
        address.lower() if ":" in address or "/" in address else f"mailto:{address.lower()}"
        for address in addresses
        if "@" in address or "/" in address
    )
