"""Records jumps of the wall clock, undoes what reminders and schedules did while the clock was ahead, and sets back
the ends of codes and approvals with the clock.

Slots are undone, and their jobs planned again, only if a forward jump past the present was recorded and only that jump
explains why they ended. A clock that is wrong now undoes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from assistant.core.jobs import DueSlot, Job
from assistant.store.database import DatabaseStore
from assistant.store.rows import parse_time
from assistant.store.script.jobs import read_job

# A smaller jump across a restart cannot be distinguished from a machine that was off.
UNNOTICED = timedelta(days=1)

# What came too early comes again if its time is not further back: a clock may have been wrong for weeks.
_COMES_AGAIN_WITHIN = timedelta(days=1)

# What is valid for some time, as table, column of its end, and which rows still have it.
_ENDS = (
    ("pairings", "expires_at", "state IN ('pending', 'locked')"),
    ("approvals", "expires_at", "state = 'pending'"),
    ("approvals", "allowed_until", "allowed_until IS NOT NULL"),
    ("checkpoints", "lease_until", "state = 'started'"),
)


class ClockSteps(DatabaseStore):
    def newest_moment(self, now: datetime) -> datetime | None:
        """Return the latest time at which anything was stored, None for an empty store. For one that is still to come
        by a clock that is known to have been ahead, the time at which it was corrected."""
        moments = [
            self._db.value("SELECT received_at FROM inbox ORDER BY id DESC LIMIT 1"),
            self._db.value("SELECT ended_at FROM slots ORDER BY id DESC LIMIT 1"),
            self._db.value("SELECT created_at FROM jobs ORDER BY id DESC LIMIT 1"),
        ]
        sql = "SELECT before_at, after_at FROM clock_steps WHERE before_at > after_at ORDER BY id"
        back = [(parse_time(row["before_at"]), parse_time(row["after_at"])) for row in self._db.rows(sql)]
        stored = [parse_time(moment) for moment in moments if moment is not None]
        return max((_corrected(moment, back) if moment > now else moment for moment in stored), default=None)

    def record(self, before: datetime, after: datetime) -> None:
        """Record that the clock went from one time to the other. Records of times later than now are deleted."""
        with self._db.write() as db:
            db.execute("DELETE FROM clock_steps WHERE after_at > ? AND before_at < after_at", (after,))
            db.insert_row("clock_steps", before_at=before, after_at=after)

    def set_ends_back(self, before: datetime, after: datetime) -> None:
        """What was valid when the clock went back ends after as much time as it would have without that."""
        with self._db.write() as db:
            for table, column, where in _ENDS:
                valid = f"SELECT id, {column} AS ends FROM {table} WHERE {where} AND {column} > ?"
                for row in db.rows(valid, (before,)):
                    db.update_rows(table, {"id": row["id"]}, **{column: parse_time(row["ends"]) + (after - before)})

    def skipped(self, now: datetime) -> tuple[datetime, datetime] | None:
        """Return from when to when the clock jumped past `now`, or None. Slots that ended since were ended by a wrong
        clock. A jump that started somewhat after `now` counts too: the clock may have been ahead before by less than is
        noticed across a restart."""
        row = self._db.row(
            "SELECT before_at, after_at FROM clock_steps WHERE before_at <= ? AND after_at > ? ORDER BY id LIMIT 1",
            (now + UNNOTICED, now),
        )
        return None if row is None else (parse_time(row["before_at"]), parse_time(row["after_at"]))

    def fired_early(self, since: datetime, now: datetime) -> list[Job]:
        """Return jobs with a slot that ended since that wrong time but is still in the future."""
        return self._jobs_with_slots("due_at > ?", (since, now))

    def fired_before_time(self, since: datetime, now: datetime, ahead: timedelta) -> list[tuple[Job, DueSlot]]:
        """Return jobs, each with its earliest slot, that a clock which was ahead by so much ended before its time, and
        whose time has passed since, within the last day."""
        after = now - _COMES_AGAIN_WITHIN
        jobs = {job.id: job for job in self._jobs_with_slots("due_at > ? AND due_at <= ?", (since, after, now))}
        rows = self._db.rows(
            "SELECT job_id, due_at, local_key, ended_at FROM slots WHERE ended_at >= ? AND due_at > ? AND due_at <= ?"
            " ORDER BY due_at DESC",
            (since, after, now),
        )
        early: dict[int, DueSlot] = {}
        for row in rows:
            due = parse_time(row["due_at"])
            if parse_time(row["ended_at"]) - ahead < due:
                early[row["job_id"]] = DueSlot(due, row["local_key"])
        return [(job, early[job_id]) for job_id, job in jobs.items() if job_id in early]

    def _jobs_with_slots(self, due: str, values: tuple[datetime, ...]) -> list[Job]:
        return self._db.read_all(
            read_job,
            "SELECT * FROM jobs WHERE state <> 'cancelled' AND id IN"
            f" (SELECT job_id FROM slots WHERE ended_at >= ? AND {due}) ORDER BY id",
            values,
        )

    def plan_again(self, dues: Mapping[int, DueSlot], since: datetime, now: datetime) -> None:
        """Set the next slots of these jobs, and reopen slots that ended early. A message already sent for one stays in
        the log; the message at the right time has its own key."""
        with self._db.write() as db:
            for job_id, due in dues.items():
                db.execute(
                    "DELETE FROM slots WHERE job_id = ? AND ended_at >= ? AND (due_at > ? OR due_at >= ?)",
                    (job_id, since, now, due.at),
                )
                db.execute(
                    "UPDATE jobs SET state = CASE state WHEN 'paused' THEN 'paused' ELSE 'active' END, ended_at = NULL,"
                    " next_due_at = ?, next_key = ?, replanned = replanned + 1 WHERE id = ?",
                    (due.at, due.key, job_id),
                )


def _corrected(moment: datetime, back: Sequence[tuple[datetime, datetime]]) -> datetime:
    """Return what the clock was set back to, by each of the steps that goes back past the moment."""
    for before, after in back:
        moment = after if after < moment <= before else moment
    return moment
