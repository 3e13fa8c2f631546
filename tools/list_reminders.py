"""What reminders wait in a scope. Only reads."""

from __future__ import annotations

from assistant.core.agenda_ports import Reminders
from assistant.core.ports import Tool, ToolContext
from assistant.core.quotes import quoted
from tools.declaration import EVERYONE, tool

_SHOWN = 50
_FIRST_WORDS = 200


def list_reminders_tool(reminders: Reminders) -> Tool:
    @tool(roles=EVERYONE)
    def list_reminders(context: ToolContext) -> str:
        """The reminders that wait, the next one first."""
        waiting = reminders.reminders(context.scope)
        if not waiting:
            return "No reminder is set."
        lines = [
            f"- {job.id}: {quoted(job.text[:_FIRST_WORDS])}, {reminders.told(job)}" for job in waiting[:_SHOWN]
        ]  # fmt: skip
        more = [f"(… {len(waiting) - _SHOWN:,} more, not shown)"] if len(waiting) > _SHOWN else []
        return "\n".join([f"Reminders that wait: {len(waiting):,}", *lines, *more])

    return list_reminders
