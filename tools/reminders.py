"""Tools for reminders, and for the agenda of some days.

Setting or changing a reminder returns its due time in full, so that misunderstandings are visible. A reminder is sent
to where it was requested; a call repeated after a crash takes effect once.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Annotated

from assistant.agenda.day import AgendaDays, format_agenda
from assistant.agenda.day_phrases import DayRange, parse_days
from assistant.agenda.service import AgendaService
from assistant.core.calendar import format_moment
from assistant.core.dataclass import dataclass
from assistant.core.errors import ToolError, UsageError
from assistant.core.jobs import MAX_REMINDER_CHARACTERS, Job
from assistant.core.permissions import ALL_ROLES
from assistant.core.ports import Tool, ToolContext, WordsOfCall
from assistant.core.quoting import RECENT_HEADING, quote_text
from assistant.core.text import pluralize
from tools.argument_schema import Limits
from tools.declaration import StorableInt, tool

ReminderText = Annotated[str, Limits(strip=True, min_length=1, max_length=MAX_REMINDER_CHARACTERS)]
TimePhrase = Annotated[str, Limits(max_length=400)]

_SHOWN = 50
_CAME_SHOWN = 5
_CAME_LATELY = timedelta(days=1)
_FIRST_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class _Effects:
    """Describes for people what a call will do."""

    reminders: AgendaService

    def setting(self, context: ToolContext, text: str, when: str, repeat: str) -> str:
        times = f"{quote_text(when)}{f', repeated {quote_text(repeat)}' if repeat else ''}"
        said = format_moment(context.now, self.reminders.zone)
        return f"set a reminder {quote_text(text)} for {times}, as seen from {said}"

    def changing(self, context: ToolContext, id: int, when: str, text: str, repeat: str) -> str:
        given = {"text": text, "time": when, "repeat": repeat}
        changes = ", ".join(f"{name} {quote_text(value)}" for name, value in given.items() if value)
        said = format_moment(context.now, self.reminders.zone)
        return f"change {self._name_of(id, context.scope)}: {changes}, as seen from {said}"

    def cancelling(self, context: ToolContext, id: int) -> str:
        return f"cancel {self._name_of(id, context.scope)}"

    def _name_of(self, id: int, scope: str) -> str:
        """Return the text of a reminder. Raises `ToolError` if the number does not exist."""
        came = [job for job, _ in self.reminders.list_recent(scope, datetime.min.replace(tzinfo=UTC), limit=_SHOWN)]
        job = next((job for job in (*self.reminders.list_reminders(scope), *came) if job.id == id), None)
        if job is None:
            raise ToolError(f"There is no reminder {id} here. Nothing was changed.")
        return f"reminder {id}, {quote_text(job.text)}, {self.reminders.describe_due(job)}"


def reminder_tools(reminders: AgendaService, days: AgendaDays) -> list[Tool]:
    """Each change is made once per key. A result also warns if nothing will run when it is due."""
    effects = _Effects(reminders)

    @tool(
        effects="keyed",
        roles=ALL_ROLES,
        touches={"writes"},
        words=WordsOfCall(words=("text",), times=("when", "repeat")),
        effect=effects.setting,
    )
    async def set_reminder(context: ToolContext, text: ReminderText, when: TimePhrase, repeat: TimePhrase = "") -> str:
        """Remind the person here, at a time. when: as they said it ("in 20 minutes", "tomorrow at 9", "every weekday at
        8:30"), or ISO 8601 in their zone. repeat, if any: "every Monday", an RRULE or a line of cron."""
        try:
            job = await reminders.create_reminder_from_tool(context, text, when, repeat)
        except UsageError as error:
            raise ToolError(str(error)) from None
        return set_as(context, job, "set")

    @tool(effects="keyed", roles=ALL_ROLES, touches={"reads", "writes"}, effect=effects.changing)
    async def change_reminder(
        context: ToolContext, id: StorableInt, when: TimePhrase = "", text: TimePhrase = "", repeat: TimePhrase = ""
    ) -> str:
        """Move or snooze a reminder (when; also one that came already; "skip" leaves out the next time of one that
        repeats), reword it (text), make it repeat ("every Monday") or not ("once")."""
        try:
            job = await reminders.change_reminder_from_tool(context, id, text, when, repeat)
        except UsageError as error:
            raise ToolError(str(error)) from None
        return set_as(context, job, "changed")

    @tool(effects="keyed", roles=ALL_ROLES, touches={"reads", "writes"}, effect=effects.cancelling)
    def cancel_reminder(context: ToolContext, id: StorableInt) -> str:
        """Cancel a reminder by its number."""
        try:
            job = reminders.cancel_reminder(id, context.scope, context.key, context.now)
        except UsageError as error:
            raise ToolError(str(error)) from None
        return f"Reminder {job.id} is cancelled: {quote_text(job.text)}."

    def set_as(context: ToolContext, job: Job, done: str) -> str:
        text = f"Reminder {job.id} is {done}: {quote_text(job.text)}, {reminders.describe_due(job)}."
        return "\n".join(filter(None, [text, reminders.warning(context.scope)]))

    list_reminders, show_agenda = _reading_tools(reminders, days)
    return [set_reminder, list_reminders, change_reminder, cancel_reminder, show_agenda]


def _reading_tools(reminders: AgendaService, days: AgendaDays) -> tuple[Tool, Tool]:
    @tool(roles=ALL_ROLES, touches={"reads"})
    async def list_reminders(context: ToolContext, when: TimePhrase = "") -> str:
        """List pending reminders, and those delivered in the last day. when: only those due on these days."""
        waiting = reminders.list_reminders(context.scope)
        if when:
            span = await _parse_days(when, days, context)
            items = (await days.read(context.scope, span, context.now)).items
            on = {item.id for item in items if item.kind == "reminder"}
            waiting = [job for job in waiting if job.id in on]
        lines = [f"{_line(job)}, {reminders.describe_due(job)}" for job in waiting[:_SHOWN]]
        more = [f"(… {len(waiting) - _SHOWN:,} more, not shown)"] if len(waiting) > _SHOWN else []
        heading = f"{pluralize(len(waiting), 'reminder')} set:" if waiting else "No reminder is set."
        came = [] if when else reminders.list_recent(context.scope, context.now - _CAME_LATELY, limit=_CAME_SHOWN)
        lately = [f"{_line(job)}, {format_moment(at, reminders.zone)}" for job, at in came]
        return "\n".join([heading, *lines, *more, *([RECENT_HEADING, *lately] if lately else [])])

    @tool(roles=ALL_ROLES, touches={"reads"})
    async def show_agenda(context: ToolContext, when: TimePhrase = "") -> str:
        """What is on: reminders, schedules, dated to-dos and what was told. when: a day or days as the person said it;
        the next seven days if empty."""
        span = await _parse_days(when, days, context)
        return format_agenda(await days.read(context.scope, span, context.now))

    return list_reminders, show_agenda


def _line(job: Job) -> str:
    return f"- {job.id}: {quote_text(job.text[:_FIRST_CHARACTERS])}"


async def _parse_days(when: str, days: AgendaDays, context: ToolContext) -> DayRange:
    try:
        return await asyncio.to_thread(parse_days, when, days.zone, context.now)
    except UsageError as error:
        raise ToolError(str(error)) from None
