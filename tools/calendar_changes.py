"""Tools that change calendars.

The owner approves each change, and is shown the result with day and hour in full; it is made once, under the key of the
action. Times named by a model are in the owner's time zone.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Annotated, Literal

from assistant.agenda.day_phrases import parse_days
from assistant.agenda.time_phrases import parse_moment
from assistant.calendars.service import CalendarError, CalendarService
from assistant.core.calendar import utc_to_local
from assistant.core.calendar_events import CalendarChange, CalendarEvent
from assistant.core.dataclass import dataclass
from assistant.core.errors import OutcomeUnknown, ToolError, UsageError
from assistant.core.permissions import OWNER_ONLY
from assistant.core.ports import Tool, ToolContext
from assistant.core.quoting import quote_text
from assistant.store.calendars import StoredCollection
from tools.argument_schema import Limits
from tools.calendar import MOST_MINUTES, TOPIC, Minutes, Phrase, Title, describe_span, format_span, local_text
from tools.declaration import tool

CALENDAR_CHANGES = frozenset({"add_event", "move_event", "cancel_event", "answer_invitation"})
"""What a calendar's server may take longer for than a tool that only computes."""
_SECONDS = 3_600.0  # `CalendarService` ends it much earlier
_UNCHANGED = "Nothing was changed."

LongText = Annotated[str, Limits(max_length=2_000)]
EventRef = Annotated[str, Limits(max_length=20)]


def calendar_changing_tools(calendars: CalendarService) -> list[Tool]:
    """Each call is asked about, and makes its change once per key."""
    changes = _Changes(calendars)
    return [
        _add_event_tool(changes),
        _move_event_tool(changes),
        _cancel_event_tool(changes),
        _answer_invitation_tool(changes),
    ]


@dataclass(frozen=True, slots=True)
class _Changes:
    """Converts calls to changes and to texts for people. Methods raise `ToolError`."""

    calendars: CalendarService

    async def adding(
        self,
        context: ToolContext,
        title: str,
        when: str,
        minutes: int,
        all_day: bool,
        place: str,
        notes: str,
        calendar: str,
    ) -> CalendarChange:
        source, collection = self._find_calendar(calendar)
        starts, ends = await self._times(context, when, minutes, all_day)
        return CalendarChange(
            "add",
            context.key,
            source,
            collection=collection.url,
            title=title,
            place=" ".join(place.split()),
            notes=notes.strip(),
            starts=starts,
            ends=ends,
        )

    async def moving(
        self, context: ToolContext, event: str, when: str, minutes: int, all_day: bool, whole_series: bool
    ) -> CalendarChange:
        found = self.find(event)
        if whole_series and found.repeats:
            raise ToolError("a whole series is not moved from here; single events of it are. Nothing was changed.")
        kept = round((found.ends - found.starts) / timedelta(minutes=1))
        starts, ends = await self._times(context, when, minutes or kept or 60, all_day)
        return self._of_event(context, "move", found, starts=starts, ends=ends)

    def cancelling(self, context: ToolContext, event: str, whole_series: bool) -> CalendarChange:
        found = self.find(event)
        change = self._of_event(context, "cancel", found)
        return (
            change
            if not whole_series
            else CalendarChange("cancel", context.key, found.source, url=found.url, uid=found.uid)
        )

    def answering(self, context: ToolContext, event: str, answer: str) -> CalendarChange:
        found = self.find(event)
        if not found.answer:
            raise ToolError("nobody invited the person to this event. Nothing was changed.")
        return self._of_event(context, "answer", found, answer=answer)

    def find(self, ref: str) -> CalendarEvent:
        found = self.calendars.reader.find_event(ref.strip())
        if found is None:
            raise ToolError(f"there is no event {quote_text(ref)}. Nothing was changed; find_events lists them.")
        source = self.calendars.find_source(found.source)
        if source.kind != "caldav" or not source.writable:
            raise ToolError(f"the calendar {quote_text(found.calendar)} is only read. Nothing was changed.")
        return found

    def describe(self, change: CalendarChange, event: CalendarEvent | None = None) -> str:
        where = event.calendar if event else self._name_of(change)
        place = f" at {quote_text(change.place)}" if change.place else ""
        notes = f", with the notes {quote_text(change.notes)}" if change.notes else ""
        if event is None:
            span = format_span(change.starts, change.ends)
            return f"add to the calendar {quote_text(where)}: {quote_text(change.title)}, {span}{place}{notes}"
        others = f"; others are invited ({event.guests}), and their calendars are told" if event.guests else ""
        what = f"{quote_text(event.title)}, {describe_span(event, self.calendars)}, in the calendar {quote_text(where)}"
        if change.action == "move":
            return f"move {what}, to {format_span(change.starts, change.ends)}{others}"
        if change.action == "cancel":
            whole = event.repeats and not change.occurrence
            return f"cancel {'every event of the series ' if whole else ''}{what}{others}"
        said = {"accepted": "yes", "declined": "no", "tentative": "maybe"}[change.answer]
        return f"answer {said} to the invitation of {quote_text(event.organizer)}: {what}"

    def _of_event(
        self,
        context: ToolContext,
        action: Literal["move", "cancel", "answer"],
        event: CalendarEvent,
        *,
        starts: str = "",
        ends: str = "",
        answer: str = "",
    ) -> CalendarChange:
        return CalendarChange(
            action,
            context.key,
            event.source,
            url=event.url,
            uid=event.uid,
            occurrence=event.occurrence,
            starts=starts,
            ends=ends,
            answer=answer,  # type: ignore[arg-type]  # the tool's own argument was checked
        )

    def _find_calendar(self, name: str) -> tuple[str, StoredCollection]:
        writable = {it.name for it in self.calendars.settings.sources if it.kind == "caldav" and it.writable}
        known = [
            (source, it)
            for source, it in self.calendars.reader.list_collections()
            if source in writable and it.writable and it.kind == "calendar"
        ]
        named = [pair for pair in known if name.strip().casefold() in (pair[1].name.casefold(), pair[0].casefold())]
        chosen = named if name.strip() else known
        if len(chosen) == 1:
            return chosen[0]
        names = ", ".join(quote_text(it.name) for _, it in known) or "none"
        which = "which calendar?" if chosen else "there is no such calendar that can be written to."
        raise ToolError(f"{which} There are: {names}. Nothing was changed.")

    def _name_of(self, change: CalendarChange) -> str:
        known = self.calendars.reader.list_collections(change.source)
        return next((it.name for _, it in known if it.url == change.collection), change.source)

    async def _times(self, context: ToolContext, when: str, minutes: int, all_day: bool) -> tuple[str, str]:
        zone = self.calendars.zone
        try:
            if all_day:
                days = await asyncio.to_thread(parse_days, when, zone, context.now)
                return days.first.isoformat(), (days.last + timedelta(days=1)).isoformat()
            moment = await asyncio.to_thread(parse_moment, when, zone, context.now)
        except UsageError as error:
            raise ToolError(str(error)) from None
        ends = moment.at + timedelta(minutes=minutes)
        return local_text(utc_to_local(moment.at, zone), False), local_text(utc_to_local(ends, zone), False)

    async def carry_out(self, change: CalendarChange) -> None:
        try:
            await self.calendars.change(change)
        except CalendarError as error:
            if error.unsure:
                raise OutcomeUnknown(str(error)) from None
            unchanged = "" if _UNCHANGED in str(error) else f" {_UNCHANGED}"
            raise ToolError(f"{error}{unchanged}") from None
        except UsageError as error:
            raise ToolError(str(error)) from None


def _add_event_tool(changes: _Changes) -> Tool:
    async def adding(context: ToolContext, **arguments: object) -> str:
        return changes.describe(await changes.adding(context, **arguments))  # type: ignore[arg-type]

    @tool(
        effects="keyed",
        roles=OWNER_ONLY,
        timeout_seconds=_SECONDS,
        touches={"writes", "network"},
        effect=adding,
        topic=TOPIC,
        asked_each_time=True,
    )
    async def add_event(
        context: ToolContext,
        title: Title,
        when: Phrase,
        minutes: Minutes = 60,
        all_day: bool = False,
        place: Phrase = "",
        notes: LongText = "",
        calendar: Phrase = "",
    ) -> str:
        """Add an event to the person's calendar. when: as they said it ("friday at 10"), or ISO 8601 in their zone;
        with all_day a day or days. calendar: its name, where there are several."""
        change = await changes.adding(context, title, when, minutes, all_day, place, notes, calendar)
        await changes.carry_out(change)
        return f"It is in the calendar: {quote_text(title)}, {format_span(change.starts, change.ends)}."

    return add_event


def _move_event_tool(changes: _Changes) -> Tool:
    async def moving(context: ToolContext, event: str, **arguments: object) -> str:
        change = await changes.moving(context, event, **arguments)  # type: ignore[arg-type]
        return changes.describe(change, changes.find(event))

    @tool(
        effects="keyed",
        roles=OWNER_ONLY,
        timeout_seconds=_SECONDS,
        touches={"reads", "writes", "network", "people"},
        effect=moving,
        topic=TOPIC,
        asked_each_time=True,
    )
    async def move_event(
        context: ToolContext,
        event: EventRef,
        when: Phrase,
        minutes: Annotated[int, Limits(ge=0, le=MOST_MINUTES)] = 0,
        all_day: bool = False,
        whole_series: bool = False,
    ) -> str:
        """Move an event of the calendar, or one of a series. event: its reference. minutes: how long it is; as long as
        before if 0."""
        found = changes.find(event)
        change = await changes.moving(context, event, when, minutes, all_day, whole_series)
        await changes.carry_out(change)
        return f"It is moved: {quote_text(found.title)}, {format_span(change.starts, change.ends)}."

    return move_event


def _cancel_event_tool(changes: _Changes) -> Tool:
    def cancelling(context: ToolContext, event: str, whole_series: bool) -> str:
        return changes.describe(changes.cancelling(context, event, whole_series), changes.find(event))

    @tool(
        effects="keyed",
        roles=OWNER_ONLY,
        timeout_seconds=_SECONDS,
        touches={"reads", "writes", "network", "people"},
        effect=cancelling,
        topic=TOPIC,
        asked_each_time=True,
    )
    async def cancel_event(context: ToolContext, event: EventRef, whole_series: bool = False) -> str:
        """Remove an event from the calendar: of a series only this one, unless whole_series. event: its reference."""
        if changes.calendars.reader.find_event(event.strip()) is None:
            return "That event is not in the calendar any more."
        found = changes.find(event)
        await changes.carry_out(changes.cancelling(context, event, whole_series))
        return f"It is cancelled: {quote_text(found.title)}, {describe_span(found, changes.calendars)}."

    return cancel_event


def _answer_invitation_tool(changes: _Changes) -> Tool:
    def answering(context: ToolContext, event: str, answer: str) -> str:
        return changes.describe(changes.answering(context, event, answer), changes.find(event))

    @tool(
        effects="keyed",
        roles=OWNER_ONLY,
        timeout_seconds=_SECONDS,
        touches={"reads", "writes", "network", "people"},
        effect=answering,
        topic=TOPIC,
        asked_each_time=True,
    )
    async def answer_invitation(
        context: ToolContext, event: EventRef, answer: Literal["accepted", "declined", "tentative"]
    ) -> str:
        """Answer an invitation in the calendar. event: its reference."""
        found = changes.find(event)
        await changes.carry_out(changes.answering(context, event, answer))
        return f"Your answer is in the calendar: {answer}, {quote_text(found.title)}."

    return answer_invitation
