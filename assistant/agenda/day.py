"""The agenda of some days: reminders, scheduled prompts, to-dos, dates mentioned in messages, calendar events and
birthdays in one list, in the time zone of the data folder.

Only items of one scope, each occurrence once, on its local day, also across clock changes; overdue items are listed
under today and marked. Something that repeats often in a day is one line. Calendars are only the owner's; data not read
recently is marked with its age.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Literal
from zoneinfo import ZoneInfo

from assistant.agenda.calendar_days import CalendarDays, CalendarEntry
from assistant.agenda.day_phrases import DayRange, local_day
from assistant.agenda.mentioned_dates import DatedMention, MentionedDates, subject_words
from assistant.agenda.recurrence import describe_recurrence, next_due, next_due_after
from assistant.core.calendar import format_due, local_slot_key, utc_to_local
from assistant.core.dataclass import dataclass
from assistant.core.jobs import Job
from assistant.core.quoting import quote_text
from assistant.core.records import TodoItem
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import shorten_line
from assistant.store.character.todos import StoredTodos
from assistant.store.script.jobs import Jobs

AgendaKind = Literal["reminder", "schedule", "todo", "told", "event", "birthday"]
_MOST_A_DAY = 4
_FIRST_WORDS = 120
_MOST_CAME = 50
_AN_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class AgendaItem:
    """One item on one day."""

    kind: AgendaKind
    id: int  # of the reminder, schedule or to-do; of the message that mentioned it; 0 for calendar entries
    text: str
    day: date  # local
    time: str = ""  # local, such as "09:30"; "" for the whole day
    name: str = ""  # of a schedule, a to-do's list, or a calendar
    repeats: str = ""  # how often, in words
    late: bool = False  # its time has passed, and it is not done or sent
    came: bool = False  # a reminder that was sent today
    since: str = ""  # local due time of an item late since another day; when it was mentioned
    until: str = ""  # local end of an event: a time, or on another day the day, with the time if it has one
    place: str = ""  # of an event
    note: str = ""  # of an event: cancelled, tentative, or an invitation not answered; someone's age


@dataclass(frozen=True, slots=True)
class DayAgenda:
    """The agenda of some days."""

    days: DayRange
    items: tuple[AgendaItem, ...]
    remarks: tuple[str, ...] = ()  # calendars that are not up to date, one line each


class AgendaDays:
    """Reads the agenda. `zone` is that of the data folder."""

    def __init__(
        self,
        jobs: Jobs,
        todos: StoredTodos,
        mentions: MentionedDates,
        zone: ZoneInfo,
        calendars: CalendarDays | None = None,
    ) -> None:
        self._jobs = jobs
        self._todos = todos
        self._mentions = mentions
        self._calendars = calendars
        self.zone = zone

    async def read(self, scope: str, days: DayRange, now: datetime) -> DayAgenda:
        """Raises `StoreError`."""
        things = await self._mentions.read(scope, now)
        items = [*self._jobs_on(scope, days, now), *self._todos_on(scope, days, now)]
        items += [
            item for item in self._mentioned_on(things, days) if not any(_is_made_of(other, item) for other in items)
        ]
        remarks: tuple[str, ...] = ()
        if self._calendars is not None and scope == OWNER_SCOPE:
            entries, remarks = self._calendars.read(days, now)
            items += [_entry_item(entry) for entry in entries]
        in_order = sorted(items, key=lambda item: (item.day, item.time, item.kind, item.id, item.text))
        return DayAgenda(days, tuple(in_order), remarks)

    def _jobs_on(self, scope: str, days: DayRange, now: datetime) -> Iterator[AgendaItem]:
        for job in (*self._jobs.list_waiting(scope, "reminder"), *self._jobs.list_waiting(scope, "schedule")):
            if job.state == "active":
                yield from self._occurrences(job, days, now)
        today = local_day(now, self.zone)
        if days.first <= today <= days.last:
            midnight, _ = DayRange(today, today).bounds(self.zone)
            for job, at in self._jobs.list_recent(scope, midnight, limit=_MOST_CAME):
                yield AgendaItem("reminder", job.id, job.text, today, f"{utc_to_local(at, self.zone):%H:%M}", came=True)

    def _occurrences(self, job: Job, days: DayRange, now: datetime) -> Iterator[AgendaItem]:
        assert job.due is not None
        zone, spec, (start, end) = ZoneInfo(job.zone), job.spec, days.bounds(self.zone)
        today = local_day(now, self.zone)
        since = utc_to_local(job.due.at, self.zone)
        item = AgendaItem(job.kind, job.id, job.text, today, name=job.name, repeats=describe_recurrence(spec))
        if since.date() < today and days.first <= today <= days.last:
            yield replace(item, late=True, since=local_slot_key(since))
        due = next_due_after(spec, zone, job.due, start - _AN_INSTANT)
        while due is not None and due.at < end:
            day = local_day(due.at, self.zone)
            _, day_end = DayRange(day, day).bounds(self.zone)
            times: list[datetime] = []
            while due is not None and due.at < day_end and len(times) <= _MOST_A_DAY:
                times.append(due.at)
                due = next_due(spec, zone, due)
            for at in times[:1] if len(times) > _MOST_A_DAY else times:
                yield replace(item, day=day, time=f"{utc_to_local(at, self.zone):%H:%M}", late=at < now)
            if due is not None and due.at < day_end:
                due = next_due_after(spec, zone, due, day_end - _AN_INSTANT)

    def _todos_on(self, scope: str, days: DayRange, now: datetime) -> Iterator[AgendaItem]:
        today = local_day(now, self.zone)
        for todo in self._todos.list_due(scope, days.last.isoformat()):
            day, late = date.fromisoformat((todo.due or "")[:10]), is_overdue(todo, now, self.zone)
            item = AgendaItem("todo", todo.id, todo.text, day, (todo.due or "")[11:16], name=todo.list, late=late)
            if day >= days.first:
                yield item
            elif late and days.first <= today <= days.last:
                yield replace(item, day=today, time="", since=todo.due or "")

    def _mentioned_on(self, things: Sequence[DatedMention], days: DayRange) -> Iterator[AgendaItem]:
        for thing in things:
            said_on = local_day(thing.said_at, self.zone)
            item = AgendaItem("told", thing.source, thing.text, said_on, thing.when.time, repeats=thing.when.repeats)
            for day in days:
                if thing.when.is_on(day, said_on):
                    yield replace(item, day=day, since=said_on.isoformat())


def _is_made_of(item: AgendaItem, mention: AgendaItem) -> bool:
    """Return whether a reminder or to-do covers what was mentioned: the same topic, and the same time if any."""
    if item.day != mention.day or mention.time not in ("", item.time):
        return False
    words = subject_words(item.text)
    return bool(words) and words <= subject_words(mention.text)


def _entry_item(entry: CalendarEntry) -> AgendaItem:
    return AgendaItem(
        entry.kind,
        0,
        entry.text,
        entry.day,
        entry.time,
        name=entry.calendar,
        repeats="repeats" if entry.repeats else "",
        until=entry.until,
        place=entry.place,
        note=entry.note,
    )


def is_overdue(todo: TodoItem, now: datetime, zone: ZoneInfo) -> bool:
    """Return whether a to-do is overdue; a day ends when the next one begins."""
    here = utc_to_local(now, zone)
    return todo.due is not None and not todo.done and todo.due < here.isoformat()[: len(todo.due)]


def format_agenda(agenda: DayAgenda) -> str:
    """Format by day, for people and models. Texts are quoted, since they are data."""
    first, last = (format_due(day.isoformat()) for day in (agenda.days.first, agenda.days.last))
    blocks = [
        "\n".join([f"{format_due(day.isoformat())}:", *map(format_item, items)])
        for day, items in groupby(agenda.items, lambda item: item.day)
    ]
    span = first if first == last else f"{first} to {last}"
    return "\n\n".join([*(blocks or [f"Nothing is planned for {span}."]), *agenda.remarks])


def format_item(item: AgendaItem) -> str:
    """Format as one line of a list."""
    name = quote_text(item.name)
    about = {
        "reminder": f"reminder {item.id}",
        "schedule": f"schedule {name}",
        "todo": f"to-do {item.id}" + (f", list {name}" if item.name else ""),
        "told": f"told on {format_due(item.since)}" if item.kind == "told" else "",
        "event": f"calendar {name}",
        "birthday": "birthday",
    }
    late = ("overdue" if item.kind == "todo" else "not sent yet") if item.late else ""
    since = f"since {format_due(item.since)}" if item.late and item.since else ""
    place = f"at {quote_text(item.place)}" if item.place else ""
    until = f"until {format_due(item.until)}" if "-" in item.until else ""
    notes = filter(
        None, [place, about[item.kind], item.repeats, until, item.note, f"{late} {since}".strip(), "came" * item.came]
    )
    time = f"{item.time} " if item.time else ""
    if item.time and item.until and not until:
        time = f"{item.time}-{item.until} "
    return f"- {time}{quote_text(shorten_line(item.text, _FIRST_WORDS))} ({', '.join(notes)})"
