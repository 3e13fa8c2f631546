"""What reminders wait in a scope. Only reads."""

from __future__ import annotations

from assistant.agenda.jobs import RemindersPort
from assistant.core.ports import Tool, ToolContext
from assistant.core.tool_results import quote_text
from tools.declaration import EVERYONE, tool

_SHOWN = 50
_FIRST_WORDS = 200


def list_reminders_tool(reminders: RemindersPort) -> Tool:
    @tool(roles=EVERYONE)
    def list_reminders(context: ToolContext) -> str:
        """The reminders that wait, the next one first."""
        waiting = reminders.reminders(context.scope)
        if not waiting:
            return "No reminder is set."
        lines = [
            f"- {job.id}: {quote_text(job.text[:_FIRST_WORDS])}, {reminders.told(job)}" for job in waiting[:_SHOWN]
        ]  # fmt: skip
        more = [f"(… {len(waiting) - _SHOWN:,} more, not shown)"] if len(waiting) > _SHOWN else []
        return "\n".join([f"Reminders that wait: {len(waiting):,}", *lines, *more])

    return list_reminders
