"""Jumps of the wall clock that were believed, and what reminders and schedules did by a clock that was ahead.

What always holds: slots are undone, and their jobs planned again, only where a jump forward over the present moment was
recorded and nothing but that jump explains that they ended; a clock that is wrong now undoes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from assistant.core.jobs import DueSlot, Job
from assistant.store.database import DatabaseStore
from assistant.store.rows import parse_time
from assistant.store.script.jobs import read_job

# A jump of less than this over a restart is not told from a machine that was off.
UNNOTICED = timedelta(days=1)


class ClockSteps(DatabaseStore):
    def newest_moment(self) -> datetime | None:
        """When the newest thing was stored, by the clock of then; None for a new home. Where that clock is known to
        have been ahead, the moment at which it was set back."""
        moments = [
            self._db.value("SELECT received_at FROM inbox ORDER BY id DESC LIMIT 1"),
            self._db.value("SELECT ended_at FROM slots ORDER BY id DESC LIMIT 1"),
            self._db.value("SELECT created_at FROM jobs ORDER BY id DESC LIMIT 1"),
        ]
        newest = max((moment for moment in moments if moment is not None), default=None)
        back = self._db.row("SELECT before_at, after_at FROM clock_steps WHERE before_at > after_at ORDER BY id DESC")
        if newest is not None and back is not None and newest <= back["before_at"]:
            newest = back["after_at"]
        return None if newest is None else parse_time(newest)

    def record(self, before: datetime, after: datetime) -> None:
        """The clock went from one moment to the other. What was recorded of later times than now is over."""
        with self._db.write() as db:
            db.execute("DELETE FROM clock_steps WHERE after_at > ? AND before_at < after_at", (after,))
            db.insert_row("clock_steps", before_at=before, after_at=after)

    def skipped_until(self, now: datetime) -> datetime | None:
        """Where to the clock jumped when it jumped over `now`; None where it did not. What ended since then ended by a
        wrong clock. That it jumped from somewhat later than `now` is as good: before, it may have been ahead by less
        than what is noticed over a restart."""
        after = self._db.value(
            "SELECT after_at FROM clock_steps WHERE before_at <= ? AND after_at > ? ORDER BY id LIMIT 1",
            (now + UNNOTICED, now),
        )
        return None if after is None else parse_time(after)

    def fired_early(self, since: datetime, now: datetime) -> list[Job]:
        """Jobs of which a slot that is still to come ended, since that wrong moment."""
        return self._db.read_all(
            read_job,
            "SELECT * FROM jobs WHERE state <> 'cancelled' AND id IN"
            " (SELECT job_id FROM slots WHERE ended_at >= ? AND due_at > ?) ORDER BY id",
            (since, now),
        )

    def plan_again(self, dues: Mapping[int, DueSlot], since: datetime, now: datetime) -> None:
        """These jobs wait for these slots, and those that ended early are still to come. A message that went out for
        one stays in the log; the one that comes at the right time has a key of its own."""
        with self._db.write() as db:
            for job_id, due in dues.items():
                db.execute("DELETE FROM slots WHERE job_id = ? AND ended_at >= ? AND due_at > ?", (job_id, since, now))
                db.execute(
                    "UPDATE jobs SET state = CASE state WHEN 'paused' THEN 'paused' ELSE 'active' END, ended_at = NULL,"
                    " next_due_at = ?, next_key = ?, replanned = replanned + 1 WHERE id = ?",
                    (due.at, due.key, job_id),
                )
