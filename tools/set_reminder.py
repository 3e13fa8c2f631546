"""Setting a reminder. The result says when it is due, in full, so that a model which misread a person can see it.

What always holds: the reminder comes to where it was asked for, and a call repeated after a crash sets it once.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from assistant.agenda.jobs import MAX_REMINDER_CHARACTERS, RemindersPort
from assistant.core.errors import ToolError, UsageError
from assistant.core.ports import Tool, ToolContext
from assistant.core.tool_results import quote_text
from tools.declaration import EVERYONE, tool

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_REMINDER_CHARACTERS)]
When = Annotated[str, Field(max_length=400)]


def set_reminder_tool(reminders: RemindersPort) -> Tool:
    @tool(effects="keyed", roles=EVERYONE)
    async def set_reminder(context: ToolContext, text: Text, when: When, repeat: When = "") -> str:
        """Remind the person here, at a time. when: as they said it ("in 20 minutes", "tomorrow at 9", "every weekday at
        8:30"), or ISO 8601 in their zone. repeat, if any: "every Monday", an RRULE or a line of cron."""
        try:
            job = await reminders.remind_from(context, text, when, repeat)
        except UsageError as error:
            raise ToolError(str(error)) from None
        return f"Reminder {job.id} is set: {quote_text(job.text)}, {reminders.told(job)}."

    return set_reminder
