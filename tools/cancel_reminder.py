"""Cancelling a reminder. Once cancelled under a call's key, the same call answers the same."""

from __future__ import annotations

from assistant.agenda.jobs import RemindersPort
from assistant.core.errors import ToolError, UsageError
from assistant.core.ports import Tool, ToolContext
from assistant.core.tool_results import quote_text
from tools.declaration import EVERYONE, Count, tool


def cancel_reminder_tool(reminders: RemindersPort) -> Tool:
    @tool(effects="keyed", roles=EVERYONE)
    def cancel_reminder(context: ToolContext, id: Count) -> str:
        """Cancel a reminder by its number."""
        try:
            job = reminders.cancel_reminder(id, context.scope, context.key, context.now)
        except UsageError as error:
            raise ToolError(str(error)) from None
        return f"Reminder {job.id} is cancelled: {quote_text(job.text)}."

    return cancel_reminder
