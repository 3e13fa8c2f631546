"""What time it is where the person lives."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from assistant.core.ports import Tool, ToolContext
from tools.declaration import EVERYONE, tool


def current_time_tool(zone: ZoneInfo) -> Tool:
    @tool(roles=EVERYONE)
    def current_time(context: ToolContext) -> str:
        """The date and time now, where the owner lives."""
        now = context.now.astimezone(zone)
        return f"{now:%A %Y-%m-%d %H:%M} ({zone.key}, UTC{now:%z}, week {now.isocalendar().week})"

    return current_time
