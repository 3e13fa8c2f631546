"""Times as files of LoCoMo's form write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_FORMS = ("%I:%M %p on %d %B, %Y", "%H:%M on %d %B, %Y", "%d %B, %Y", "%B %d, %Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d")


def read_time(written: str | None, before: datetime) -> datetime:
    """A time in UTC. What is missing or cannot be read is a day after `before`."""
    for form in _FORMS:
        try:
            return datetime.strptime((written or "").strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return before + timedelta(days=1)
