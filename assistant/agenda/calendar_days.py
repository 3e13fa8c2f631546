"""What calendars have of some days, and whose birthdays they are, by the clock of the home.

What always holds: each event on every day that it touches, also over midnight and when the clocks change; a day that a
calendar has whole is that day in any zone. A calendar that cannot be read keeps nothing else from being shown, and what
is shown of it says how old it is.
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
# Of readings that were left out: after so many, the age of what is shown is said.
_OLD_AFTER = 4


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """An event, or a birthday, on one day."""

    kind: Literal["event", "birthday"]
    text: str
    day: date
    time: str = ""  # when it begins on that day; "" where it lasts the whole day, or goes on from the day before
    until: str = ""  # the time at which it ends; the last day of one that ends on another day
    calendar: str = ""
    place: str = ""
    note: str = ""
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class CalendarDays:
    """`settings`: as they are now; what is not in them is not shown."""

    reader: CalendarReader
    zone: ZoneInfo
    settings: Callable[[], CalendarSettings]

    def read(self, days: DayRange, now: datetime) -> tuple[list[CalendarEntry], tuple[str, ...]]:
        """What is on, and what is to be said of calendars that are not as they are now."""
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
                until = last.isoformat()
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
    """What is to be known of an event beside its time; "" for nothing."""
    if event.state == "cancelled":
        return "cancelled"
    if event.answer == "needs-action":
        return f"invitation from {event.organizer}, not answered" if event.organizer else "invitation, not answered"
    if event.answer in ("declined", "tentative"):
        return f"you {'declined' if event.answer == 'declined' else 'said maybe'}"
    return "tentative" if event.state == "tentative" else ""
