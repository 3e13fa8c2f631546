"""Tools for time: what time it is where the person lives, and reminders set, listed and cancelled.

What always holds: the result of setting one says when it is due, in full, so that a model which misread a person can
see it; the reminder comes to where it was asked for; a call repeated after a crash sets it once, and once cancelled
under a call's key, the same call answers the same.
"""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field, StringConstraints

from assistant.agenda.service import AgendaService
from assistant.core.errors import ToolError, UsageError
from assistant.core.jobs import MAX_REMINDER_CHARACTERS
from assistant.core.ports import Tool, ToolContext
from assistant.core.quoting import quote_text
from tools.declaration import ALL_ROLES, StorableInt, tool


def current_time_tool(zone: ZoneInfo) -> Tool:
    @tool(roles=ALL_ROLES)
    def current_time(context: ToolContext) -> str:
        """The date and time now, where the owner lives."""
        now = context.now.astimezone(zone)
        return f"{now:%A %Y-%m-%d %H:%M} ({zone.key}, UTC{now:%z}, week {now.isocalendar().week})"

    return current_time


ReminderText = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_REMINDER_CHARACTERS)
]
TimePhrase = Annotated[str, Field(max_length=400)]


def set_reminder_tool(reminders: AgendaService) -> Tool:
    @tool(effects="keyed", roles=ALL_ROLES)
    async def set_reminder(context: ToolContext, text: ReminderText, when: TimePhrase, repeat: TimePhrase = "") -> str:
        """Remind the person here, at a time. when: as they said it ("in 20 minutes", "tomorrow at 9", "every weekday at
        8:30"), or ISO 8601 in their zone. repeat, if any: "every Monday", an RRULE or a line of cron."""
        try:
            job = await reminders.create_reminder_from_tool(context, text, when, repeat)
        except UsageError as error:
            raise ToolError(str(error)) from None
        return f"Reminder {job.id} is set: {quote_text(job.text)}, {reminders.describe_due(job)}."

    return set_reminder


_SHOWN = 50
_FIRST_WORDS = 200


def list_reminders_tool(reminders: AgendaService) -> Tool:
    @tool(roles=ALL_ROLES)
    def list_reminders(context: ToolContext) -> str:
        """The reminders that wait, the next one first."""
        waiting = reminders.list_reminders(context.scope)
        if not waiting:
            return "No reminder is set."
        lines = [
            f"- {job.id}: {quote_text(job.text[:_FIRST_WORDS])}, {reminders.describe_due(job)}"
            for job in waiting[:_SHOWN]
        ]
        more = [f"(… {len(waiting) - _SHOWN:,} more, not shown)"] if len(waiting) > _SHOWN else []
        return "\n".join([f"Reminders that wait: {len(waiting):,}", *lines, *more])

    return list_reminders


def cancel_reminder_tool(reminders: AgendaService) -> Tool:
    @tool(effects="keyed", roles=ALL_ROLES)
    def cancel_reminder(context: ToolContext, id: StorableInt) -> str:
        """Cancel a reminder by its number."""
        try:
            job = reminders.cancel_reminder(id, context.scope, context.key, context.now)
        except UsageError as error:
            raise ToolError(str(error)) from None
        return f"Reminder {job.id} is cancelled: {quote_text(job.text)}."

    return cancel_reminder
