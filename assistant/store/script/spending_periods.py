"""The days and months that caps are for, and what becomes of them when the wall clock jumps.

They are those of the wall clock in the configured zone. Where it jumps, no time has passed, so what was spent counts in
the day and month that it shows then, too: a clock that is set forwards and back opens no second budget. Nothing is
counted for longer than for that day and month, so that no budget is used up for years.
"""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from assistant.store.database import Database
from assistant.store.script.notices import StoredNotices

# Tables, their keys and their sums.
_SUMS = (
    ("usage_totals", "period", ("usd", "tokens", "unpriced_tokens", "calls")),
    ("usage_by_role", "role, period", ("usd", "unpriced_tokens")),
)


def find_periods(now: datetime, zone: ZoneInfo) -> dict[str, str]:
    """Return the day and the month of a moment."""
    day = now.astimezone(zone).date().isoformat()
    return {"day": day, "month": day[:7]}


class SpendingCarrier:
    """Carries what was spent from the day and month that the clock showed to those that it shows after a jump."""

    def __init__(self, db: Database, zone: ZoneInfo) -> None:
        self._db = db
        self._zone = zone
        self._notices = StoredNotices(db)

    def carry(self, before: datetime, now: datetime, *, corrected: bool = False) -> None:
        """The clock showed `before`, and was set to `now`; `corrected`: after it had been ahead. Raises
        `StoreError`."""
        with self._db.write():
            left = find_periods(before, self._zone)
            for name, period in find_periods(now, self._zone).items():
                # A crash may have the same jump noticed twice.
                once = f"carried:{before.isoformat()}:{period}"
                if period != left[name] and not self._notices.was_sent(once):
                    self._carry_period(left[name], period, now, corrected=corrected)
                    self._notices.mark(once, now)
            if corrected:
                self._clear_after(now)

    def _clear_after(self, now: datetime) -> None:
        """What stands in later days and months was spent by a clock that was ahead: these have still to come."""
        periods = find_periods(now, self._zone)
        for table, _, _ in _SUMS:
            self._db.execute(
                f"DELETE FROM {table} WHERE period > ? AND period <> ?", (periods["day"], periods["month"])
            )

    def _carry_period(self, left: str, period: str, now: datetime, *, corrected: bool) -> None:
        # Where nobody noticed that the clock was ahead, as over a start, what was spent before is not in the sums.
        adds = corrected and not self._notices.was_sent(_mark_name(period, left))
        for table, key, sums in _SUMS:
            changes = (f"{it} = {it} + excluded.{it}" if adds else f"{it} = max({it}, excluded.{it})" for it in sums)
            self._db.execute(
                f"INSERT INTO {table} ({key}, {', '.join(sums)})"
                f" SELECT {key.replace('period', '?')}, {', '.join(sums)} FROM {table} WHERE period = ?"
                f" ON CONFLICT ({key}) DO UPDATE SET {', '.join(changes)}",
                (period, left),
            )
        self._notices.unmark(_mark_name(period, left))
        self._notices.mark(_mark_name(left, period), now)


def _mark_name(left: str, period: str) -> str:
    """Return the name of the mark that the sums of a period have those of the other in them."""
    return f"carried:{left}:{period}"
