"""Days as a model writes them. Pure."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo


def midnight(day: date | None, zone: ZoneInfo) -> datetime | None:
    """When a day begins in a zone, in UTC."""
    return datetime.combine(day, time.min, zone).astimezone(UTC) if day else None
