"""When the home is backed up by itself, and which backups may go. Pure.

What always holds: there is one backup for each day of the home's zone, whatever its clocks do; one that was missed is
made once, late. Only what was made by itself is ever removed by itself, and never the newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from assistant.core.backups import Backup
from sleep.cycle.nights import Nights

AGAIN_AFTER = timedelta(hours=1)


def due(days: Nights, backups: Sequence[Backup], since: datetime | None, now: datetime) -> bool:
    """Whether a backup should have been made by now. `days` tells the time of day, `since` when the home was begun."""
    return days.due(_last(backups, now), since, now) is not None


def overdue(days: Nights, backups: Sequence[Backup], since: datetime | None, now: datetime) -> datetime | None:
    """When the first backup was due that was not made, where that is more than a day ago."""
    return days.missed(_last(backups, now), since, now)


def surplus(backups: Sequence[Backup], keep: int, now: datetime) -> list[Backup]:
    """Of those that were made by themselves all but the newest `keep`, oldest first. What is dated after `now` was made
    before it, by a clock that was wrong."""
    own = (one for one in backups if one.kind == "daily")
    daily = sorted(own, key=lambda one: (one.made_at <= now, one.made_at, one.name))
    return daily[: max(0, len(daily) - max(1, keep))]


def _last(backups: Sequence[Backup], now: datetime) -> datetime | None:
    return max((one.made_at for one in backups if one.made_at <= now), default=None)
