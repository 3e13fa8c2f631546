"""What becomes of the slots of a job that are due: pure, one slot after the other.

What always holds: every slot between the job's next one and now ends here as `ran` (within `late` of its time),
`late` (told or run after that, or after quiet hours) or `missed`. What passed while nobody was there follows the job's
catch-up policy: "once" catches up with the newest, "all" with each, "skip" with none. What only quiet hours held back
is late and never missed: of a job that repeats within them, the newest stands for the others, unless its policy is
"all".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from assistant.core.agenda_values import Due, Ending, Job
from assistant.core.quiet import Quiet
from assistant.core.recurrence import next_due

CAUGHT_UP = "nobody was there; the newest was caught up with"
SKIPPED = "nobody was there; catch-up is skip"
HELD = "waited for quiet hours"
FOLDED = "waited for quiet hours; told once, with the newest"


@dataclass(frozen=True, slots=True)
class Punctuality:
    """From when on something due is late, and when it has to wait."""

    late: timedelta
    quiet: Quiet | None = None

    def over(self, at: datetime) -> datetime:
        return at if self.quiet is None else self.quiet.over(at)

    def due_between(self, now: datetime) -> tuple[datetime | None, datetime]:
        """Jobs whose slot lies after the first and not after the second are to be looked at now. In quiet hours these
        are the ones that were due right before them."""
        window = self.quiet.window(now) if self.quiet is not None else None
        if window is None:
            return None, now
        return now - self.late, window[0] - timedelta(microseconds=1)

    def wake_at(self, next_at: datetime | None, now: datetime) -> datetime | None:
        """When to look again, if the next slot is at `next_at`."""
        return None if next_at is None else self.over(max(next_at, now))


def endings(job: Job, now: datetime, how: Punctuality, most: int) -> tuple[list[Ending], Due | None]:
    """How the slots of a job that are due end, at most so many, oldest first; and its next slot."""
    ended: list[Ending] = []
    due, zone = job.due, ZoneInfo(job.zone)
    for _ in range(most):
        if due is None or how.over(due.at) > now:
            break
        following = next_due(job.spec, zone, due)
        ended.append(_ending(job, due, following, now, how))
        due = following
    return ended, due


def _ending(job: Job, due: Due, following: Due | None, now: datetime, how: Punctuality) -> Ending:
    open_at = how.over(due.at)
    newest = following is None or how.over(following.at) > now
    if now - open_at <= how.late:
        if open_at == due.at:
            return Ending(due, "ran", "", True)
        stands = newest or job.catch_up == "all"
        return Ending(due, "late", HELD if stands else FOLDED, stands)
    if job.catch_up == "skip":
        return Ending(due, "missed", SKIPPED, False)
    if newest or job.catch_up == "all":
        return Ending(due, "late", f"{lateness(now - due.at)} late", True)
    return Ending(due, "missed", CAUGHT_UP, False)


def lateness(by: timedelta) -> str:
    """A length of time in its largest unit: "3 hours"."""
    seconds = max(0, int(by.total_seconds()))
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{seconds // size} {unit}{'' if seconds // size == 1 else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def batch(
    jobs: Iterator[Job], now: datetime, how: Punctuality, most: int
) -> list[tuple[Job, list[Ending], Due | None]]:
    """The endings of several jobs, together `most` at most."""
    ended: list[tuple[Job, list[Ending], Due | None]] = []
    left = most
    for job in jobs:
        if left <= 0:
            break
        of_it, following = endings(job, now, how, left)
        left -= len(of_it)
        ended.append((job, of_it, following))
    return ended
