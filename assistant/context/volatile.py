"""The volatile block: what changes from turn to turn and stands with the newest message, behind everything cached."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo


def volatile_block(now: datetime, zone: ZoneInfo) -> str:
    """The time as the person's clock shows it, to the minute, with its zone."""
    local = now.astimezone(zone)
    return f"Now: {local:%A} {local.day} {local:%B %Y, %H:%M} ({zone.key}, UTC{local:%z})"
