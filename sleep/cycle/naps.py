"""When a conversation is quiet enough to be compacted during the day. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta


def nap_due(last_at: datetime | None, nap_minutes: float, running: bool, now: datetime) -> bool:
    """Whether nothing was said for long enough, and nothing is being answered. `nap_minutes` 0: never. A clock that was
    set back makes a nap due later, never sooner."""
    return nap_minutes > 0 and last_at is not None and not running and now - last_at >= timedelta(minutes=nap_minutes)
