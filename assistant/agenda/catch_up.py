"""Quiet hours, and what becomes of the slots of a job that are due. Pure, one slot after the other.

Every slot between the job's next one and now ends here as `ran` (within the tolerance), `late` (sent or run after
that, or after quiet hours) or `missed`. What passed while the daemon was not running follows the job's catch-up
policy: "once" catches up with the newest, "all" with each, "skip" with none. What only quiet hours held back is
late and never missed: of a job that repeats within them, the newest stands for the others, unless its policy is
"all".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from assistant.agenda.recurrence import next_due
from assistant.core.calendar import local_to_utc, utc_to_local
from assistant.core.jobs import DueSlot, Job, SlotOutcome
from assistant.core.text import pluralize

_A_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Hours in which no reminder is sent. The same time twice is no quiet hours."""

    begin: time  # in the quiet hours
    end: time  # not in them any more
    zone: ZoneInfo

    def window(self, at: datetime) -> tuple[datetime, datetime] | None:
        """Begin and end of the quiet hours that a moment falls into; None outside of them."""
        today = utc_to_local(at, self.zone).replace(hour=0, minute=0, second=0, microsecond=0)
        for day in (today - _A_DAY, today):
            last = day if self.begin < self.end else day + _A_DAY
            begin = local_to_utc(datetime.combine(day, self.begin), self.zone)
            end = local_to_utc(datetime.combine(last, self.end), self.zone)
            if self.begin != self.end and begin <= at < end:
                return begin, end
        return None

    def next_allowed(self, at: datetime) -> datetime:
        """The moment itself, or the end of the quiet hours that it falls into."""
        window = self.window(at)
        return at if window is None else window[1]

    def __str__(self) -> str:
        return f"{self.begin:%H:%M}-{self.end:%H:%M}"


def parse_quiet_hours(hours: str, zone: ZoneInfo) -> QuietHours | None:
    """The quiet hours written as in "22:00-07:00"; None for ""."""
    if not hours:
        return None
    begin, end = (time.fromisoformat(part.strip().zfill(5)) for part in hours.split("-"))
    return QuietHours(begin, end, zone)


NOTE_CAUGHT_UP = "the assistant was not running; the newest was made up for"
NOTE_SKIPPED = "the assistant was not running; catch-up is skip"
NOTE_HELD = "waited for quiet hours"
NOTE_FOLDED = "waited for quiet hours; sent once, with the newest"


@dataclass(frozen=True, slots=True)
class LatenessPolicy:
    """From when on something due is late, and when it has to wait."""

    late_after: timedelta
    quiet: QuietHours | None = None

    def next_allowed(self, at: datetime) -> datetime:
        return at if self.quiet is None else self.quiet.next_allowed(at)

    def due_window(self, now: datetime) -> tuple[datetime | None, datetime]:
        """Jobs whose slot lies after the first and not after the second are to be looked at now. In quiet hours these
        are the ones that were due right before them."""
        window = self.quiet.window(now) if self.quiet is not None else None
        if window is None:
            return None, now
        return now - self.late_after, window[0] - timedelta(microseconds=1)

    def wake_at(self, next_at: datetime | None, now: datetime) -> datetime | None:
        """When to look again, if the next slot is at `next_at`."""
        return None if next_at is None else self.next_allowed(max(next_at, now))


def end_due_slots(
    job: Job, now: datetime, policy: LatenessPolicy, limit: int
) -> tuple[list[SlotOutcome], DueSlot | None]:
    """How the slots of a job that are due end, at most so many, oldest first; and its next slot."""
    ended: list[SlotOutcome] = []
    due, zone = job.due, ZoneInfo(job.zone)
    for _ in range(limit):
        if due is None or policy.next_allowed(due.at) > now:
            break
        following = next_due(job.spec, zone, due)
        ended.append(_ending(job, due, following, now, policy))
        due = following
    return ended, due


def _ending(job: Job, due: DueSlot, following: DueSlot | None, now: datetime, policy: LatenessPolicy) -> SlotOutcome:
    open_at = policy.next_allowed(due.at)
    newest = following is None or policy.next_allowed(following.at) > now
    if now - open_at <= policy.late_after:
        if open_at == due.at:
            return SlotOutcome(due, "ran", "", True)
        notifies = newest or job.catch_up == "all"
        return SlotOutcome(due, "late", NOTE_HELD if notifies else NOTE_FOLDED, notifies)
    if job.catch_up == "skip":
        return SlotOutcome(due, "missed", NOTE_SKIPPED, False)
    if newest or job.catch_up == "all":
        return SlotOutcome(due, "late", f"{format_lateness(now - due.at)} late", True)
    return SlotOutcome(due, "missed", NOTE_CAUGHT_UP, False)


def format_lateness(by: timedelta) -> str:
    """A length of time in its largest unit: "3 hours"."""
    seconds = max(0, int(by.total_seconds()))
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return pluralize(seconds // size, unit)
    return pluralize(seconds, "second")


def end_due_slots_of_jobs(
    jobs: Iterator[Job], now: datetime, policy: LatenessPolicy, limit: int
) -> list[tuple[Job, list[SlotOutcome], DueSlot | None]]:
    """The endings of several jobs, together `limit` at most."""
    ended: list[tuple[Job, list[SlotOutcome], DueSlot | None]] = []
    left = limit
    for job in jobs:
        if left <= 0:
            break
        outcomes, following = end_due_slots(job, now, policy, left)
        left -= len(outcomes)
        ended.append((job, outcomes, following))
    return ended
