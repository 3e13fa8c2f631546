"""Events and birthdays of some days, in the time zone of the data folder.

Each event is listed on every day it touches, also across midnight and clock changes; an all-day event is on the same
day in any zone. An unreadable calendar does not affect others, and its cached events are shown with their age.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from assistant.agenda.day_phrases import DayRange, local_day
from assistant.core.calendar import format_local_time, utc_to_local
from assistant.core.calendar_events import CalendarEvent, SourceState, age_on
from assistant.core.dataclass import dataclass
from assistant.core.errors import StoreError
from assistant.settings.calendar_sources import CalendarSettings
from assistant.store.calendars import MOST_EVENTS, CalendarReader

_AN_INSTANT = timedelta(microseconds=1)
# After this many failed reads, the age of the data is shown.
_OLD_AFTER = 4


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """An event, or a birthday, on one day."""

    kind: Literal["event", "birthday"]
    text: str
    day: date
    time: str = ""  # its start on that day; "" if it lasts all day, or began the day before
    until: str = ""  # its end time; of an event that ends on another day also that day, or only it if it lasts all day
    calendar: str = ""
    place: str = ""
    note: str = ""
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class CalendarDays:
    """Reads calendars. `settings` returns the current ones; calendars not in them are not shown."""

    reader: CalendarReader
    zone: ZoneInfo
    settings: Callable[[], CalendarSettings]

    def read(self, days: DayRange, now: datetime) -> tuple[list[CalendarEntry], tuple[str, ...]]:
        """Return the entries, and remarks on calendars that are not up to date."""
        names = [source.name for source in self.settings().sources]
        if not names:
            return [], ()
        try:
            states, events = self.reader.list_sources(), self.reader.list_events(*days.bounds(self.zone))
            birthdays = self.reader.list_birthdays(days.first, days.last)
        except StoreError as error:
            return [], (f"The calendars cannot be shown: {error}",)
        entries = [entry for event in events if event.source in names for entry in self._days_of(event, days)]
        entries += [
            CalendarEntry(
                "birthday", contact.name, day, note=f"turns {age}" if (age := age_on(contact.birthday, day)) else ""
            )
            for day, contact in birthdays
            if contact.source in names
        ]
        remarks = [self._describe_age(states.get(name), name, now) for name in names]
        if len(events) == MOST_EVENTS:
            remarks.append(f"There is more in the calendars: the first {MOST_EVENTS:,} events are shown.")
        return entries, tuple(filter(None, remarks))

    def _days_of(self, event: CalendarEvent, days: DayRange) -> Iterator[CalendarEntry]:
        begins, ends = utc_to_local(event.starts, self.zone), utc_to_local(event.ends, self.zone)
        last = local_day(max(event.starts, event.ends - _AN_INSTANT), self.zone)
        for day in days:
            if not begins.date() <= day <= last:
                continue
            is_first = day == begins.date() and not event.all_day
            until = f"{ends:%H:%M}" if is_first and event.ends > event.starts else ""
            if last > begins.date():
                until = last.isoformat() if event.all_day else f"{ends:%Y-%m-%dT%H:%M}"
            yield CalendarEntry(
                "event",
                event.title,
                day,
                f"{begins:%H:%M}" if is_first else "",
                until,
                event.calendar,
                event.place,
                describe_state(event),
                event.repeats,
            )

    def _describe_age(self, state: SourceState | None, name: str, now: datetime) -> str:
        if state is None:
            return f"Calendar {name} was not read yet."
        if state.read_at is None:
            return f"Calendar {name} was not read yet: {state.error}"
        if now - state.read_at <= timedelta(minutes=self.settings().interval_minutes) * _OLD_AFTER and not state.error:
            return ""
        return f"Calendar {name} is as of {format_local_time(state.read_at, self.zone)}. {state.error}".strip()


def describe_state(event: CalendarEvent) -> str:
    """Return remarks on an event besides its time; "" for none."""
    if event.state == "cancelled":
        return "cancelled"
    if event.answer == "needs-action":
        return f"invitation from {event.organizer}, not answered" if event.organizer else "invitation, not answered"
    if event.answer in ("declined", "tentative"):
        return f"you {'declined' if event.answer == 'declined' else 'said maybe'}"
    return "tentative" if event.state == "tentative" else ""
