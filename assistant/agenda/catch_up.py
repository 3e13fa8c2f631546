"""Quiet hours, the outcome of a job's due slots, and the messages for them. Pure.

Every slot between the job's next one and now ends as `ran` (within the tolerance), `late` (sent or run after that, or
after quiet hours) or `missed`. Slots that passed while the daemon was not running follow the job's catch-up policy:
"once" runs the newest, "all" each, "skip" none. Slots delayed only by quiet hours are late and never missed: if a job
repeats within them, the newest represents the others, unless its policy is "all".

Each slot that is sent is in exactly one message; if many are due at once for one recipient, they share a message. The
message key comes from job and slot, so that it is sent once.

Where a job has missed thousands of times, only the last of them end one by one; the first stands for all others, and
its note says until when. So a reminder of each minute after a year has some hundred slots to end, and not 525,600.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from assistant.agenda.recurrence import next_due, skip_passed
from assistant.core.calendar import format_moment, local_to_utc, utc_to_local
from assistant.core.dataclass import dataclass
from assistant.core.jobs import DeliveryTarget, DueSlot, FiringBatch, Job, JobOutcome, ReminderMessage, SlotOutcome
from assistant.core.records import (
    MANUAL_RUN_PREFIX,
    SCHEDULE_KEY_PREFIX,
    SCHEDULE_SENDER_PREFIX,
    Button,
    IncomingMessage,
)
from assistant.core.text import pluralize, shorten

_A_DAY = timedelta(days=1)
# A day of quiet hours has fewer, which are late and not missed.
MOST_ONE_BY_ONE = 2_000


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Hours in which no reminder is sent. If start and end are equal, there are none."""

    begin: time  # start, inclusive
    end: time  # end, exclusive
    zone: ZoneInfo

    def window(self, at: datetime) -> tuple[datetime, datetime] | None:
        """Return the start and end of the quiet hours that contain a time; None outside of them."""
        today = utc_to_local(at, self.zone).replace(hour=0, minute=0, second=0, microsecond=0)
        for day in (today - _A_DAY, today):
            last = day if self.begin < self.end else day + _A_DAY
            begin = local_to_utc(datetime.combine(day, self.begin), self.zone)
            end = local_to_utc(datetime.combine(last, self.end), self.zone)
            if self.begin != self.end and begin <= at < end:
                return begin, end
        return None

    def next_allowed(self, at: datetime) -> datetime:
        """Return the time itself, or the end of the quiet hours that contain it."""
        window = self.window(at)
        return at if window is None else window[1]

    def __str__(self) -> str:
        return f"{self.begin:%H:%M}-{self.end:%H:%M}"


def parse_quiet_hours(hours: str, zone: ZoneInfo) -> QuietHours | None:
    """Parse quiet hours like "22:00-07:00"; None for ""."""
    if not hours:
        return None
    begin, end = (time.fromisoformat(part.strip().zfill(5)) for part in hours.split("-"))
    return QuietHours(begin, end, zone)


NOTE_CAUGHT_UP = "the assistant was not running; only the newest was sent, late"
NOTE_SKIPPED = "the assistant was not running; late ones are skipped (`--catch-up skip`)"
NOTE_MANY = "the assistant was not running; all other times from here to {until} passed, too"
NOTE_HELD = "waited for quiet hours"
NOTE_FOLDED = "waited for quiet hours; sent once, with the newest"


@dataclass(frozen=True, slots=True)
class LatenessPolicy:
    """When something due counts as late, and when it has to wait."""

    late_after: timedelta
    quiet: QuietHours | None = None

    def next_allowed(self, at: datetime) -> datetime:
        """Return the moment itself, or the end of the quiet hours it is in."""
        return at if self.quiet is None else self.quiet.next_allowed(at)

    def due_window(self, now: datetime) -> tuple[datetime | None, datetime]:
        """Return (after, until]: jobs with slots in this range are checked now. In quiet hours these are the slots due
        right before them."""
        window = self.quiet.window(now) if self.quiet is not None else None
        if window is None:
            return None, now
        return now - self.late_after, window[0] - timedelta(microseconds=1)

    def wake_at(self, next_at: datetime | None, now: datetime) -> datetime | None:
        """Return when to check again if the next slot is at `next_at`."""
        return None if next_at is None else self.next_allowed(max(next_at, now))


def end_due_slots(
    job: Job, now: datetime, policy: LatenessPolicy, limit: int
) -> tuple[list[SlotOutcome], DueSlot | None]:
    """Return how the due slots of a job end, at most `limit`, oldest first, and its next slot."""
    ended: list[SlotOutcome] = []
    due, zone = job.due, ZoneInfo(job.zone)
    if due is not None and (later := skip_passed(job.spec, zone, due, now, MOST_ONE_BY_ONE)) is not None:
        ended.append(SlotOutcome(due, "missed", NOTE_MANY.format(until=later.key), False))
        due = later
    for _ in range(limit - len(ended)):
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
    """Format a duration in its largest unit: "3 hours"."""
    seconds = max(0, int(by.total_seconds()))
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return pluralize(seconds // size, unit)
    return pluralize(seconds, "second")


def end_due_slots_of_jobs(
    jobs: Iterable[Job], now: datetime, policy: LatenessPolicy, limit: int
) -> list[tuple[Job, list[SlotOutcome], DueSlot | None]]:
    """End the due slots of several jobs, at most `limit` in total."""
    ended: list[tuple[Job, list[SlotOutcome], DueSlot | None]] = []
    for job in jobs:
        if limit <= 0:
            break
        outcomes, following = end_due_slots(job, now, policy, limit)
        limit -= len(outcomes)
        ended.append((job, outcomes, following))
    return ended


# -------------------------------------------------------------------------------------------------------- notifications

MAX_SEPARATE_REMINDERS = 5
REMINDER_KEY_PREFIX = "reminder:"
_LIST_KEY_PREFIX = "reminders:"
LATE_LINE = "\n(It was due "
_LISTED = 20
_LINE = 160

EndedJob = tuple[Job, Sequence[SlotOutcome], DueSlot | None]


@dataclass(frozen=True, slots=True)
class _DueReminder:
    """A reminder to send."""

    job: Job
    ending: SlotOutcome

    @property
    def late(self) -> bool:
        return self.ending.state == "late"


def build_firing(ended: Sequence[EndedJob], zone: ZoneInfo, now: datetime) -> FiringBatch:
    """Return the effects of ended slots; `zone` is the data folder's, used for displayed times."""
    reminders = [
        _DueReminder(job, outcome)
        for job, outcomes, _ in ended
        for outcome in outcomes
        if outcome.notifies and job.kind == "reminder"
    ]
    messages, keys = _group_messages(reminders, zone, now)
    fired = tuple(
        JobOutcome(
            job.id,
            job.place.scope,
            tuple((outcome, keys.get((job.id, outcome.due.key), "")) for outcome in outcomes),
            due,
        )
        for job, outcomes, due in ended
    )
    prompts = tuple(
        _schedule_prompt(job, outcome.due, outcome.state == "late", zone)
        for job, outcomes, _ in ended
        for outcome in outcomes
        if outcome.notifies and job.kind == "schedule"
    )
    return FiringBatch(fired, tuple(messages), prompts)


def build_manual_run(job: Job, zone: ZoneInfo, now: datetime) -> FiringBatch:
    """Return the effects of running a schedule manually: an additional slot, which changes no other."""
    due = DueSlot(now, f"{MANUAL_RUN_PREFIX}{now.isoformat()}")
    ending = SlotOutcome(due, "ran", "manually", True)
    outcome = JobOutcome(job.id, job.place.scope, ((ending, ""),), job.due)
    return FiringBatch((outcome,), (), (_schedule_prompt(job, due, False, zone),))


def _schedule_prompt(job: Job, due: DueSlot, late: bool, zone: ZoneInfo) -> IncomingMessage:
    """Return the owner's message sent by a schedule, which says that it is one."""
    place, when = job.place, f"due {format_moment(due.at, zone)}{', late' if late else ''}"
    if due.key.startswith(MANUAL_RUN_PREFIX):
        when = "run manually"
    return IncomingMessage(
        place.bridge,
        f"{SCHEDULE_KEY_PREFIX}{job.slot_name(due)}",
        place.session,
        place.scope,
        f"{SCHEDULE_SENDER_PREFIX}{job.name}",
        "owner",
        f"[Scheduled prompt {job.name!r}, {when}]\n{job.text}",
        target=place.target,
    )


def _group_messages(
    reminders: Sequence[_DueReminder], zone: ZoneInfo, now: datetime
) -> tuple[list[ReminderMessage], dict[tuple[int, str], str]]:
    """Return the messages, and by job and slot the key of the message that has it."""
    groups: dict[tuple[DeliveryTarget, bool], list[_DueReminder]] = {}
    for reminder in reminders:
        groups.setdefault((reminder.job.place, reminder.late), []).append(reminder)
    messages: list[ReminderMessage] = []
    keys: dict[tuple[int, str], str] = {}
    for (place, _), group in groups.items():
        together = len(group) > MAX_SEPARATE_REMINDERS
        for part in [group] if together else [[reminder] for reminder in group]:
            first = part[0]
            key = f"{_LIST_KEY_PREFIX if together else REMINDER_KEY_PREFIX}{first.job.slot_name(first.ending.due)}"
            if together:
                messages.append(ReminderMessage(key, place, _list_text(part, zone), ()))
            else:
                messages.append(ReminderMessage(key, place, _single_text(first, zone, now), _buttons(first, zone)))
            keys.update({(reminder.job.id, reminder.ending.due.key): key for reminder in part})
    return messages, keys


def _single_text(reminder: _DueReminder, zone: ZoneInfo, now: datetime) -> str:
    if not reminder.late:
        return f"Reminder: {reminder.job.text}"
    due = reminder.ending.due.at
    return f"Reminder: {reminder.job.text}{LATE_LINE}{format_moment(due, zone)}, {format_lateness(now - due)} ago.)"


def _buttons(reminder: _DueReminder, zone: ZoneInfo) -> tuple[Button, ...]:
    """Return the buttons of a reminder; "tomorrow" is at the time of day it was due."""
    remind_again = f"/remind again {reminder.job.id}"
    tomorrow = f"tomorrow {reminder.ending.due.at.astimezone(zone):%H:%M}"
    return (
        Button("Done", f"/remind done {reminder.job.id}"),
        Button("In 10 minutes", f"{remind_again} in 10 minutes"),
        Button("Tomorrow", f"{remind_again} {tomorrow}"),
    )


def _list_text(group: Sequence[_DueReminder], zone: ZoneInfo) -> str:
    """Format reminders as a list, by time."""
    by_time = sorted(group, key=lambda reminder: (reminder.ending.due.at, reminder.job.id))
    lines = [
        f"- {format_moment(reminder.ending.due.at, zone)}: {shorten(reminder.job.text, _LINE)}"
        for reminder in by_time[:_LISTED]
    ]
    head = f"{len(group):,} reminders{' came due while they could not be sent' if group[0].late else ''}:"
    more = len(group) - _LISTED
    rest = [f"…and {more:,} more; `/remind history` lists all of them."] if more > 0 else []
    return "\n".join([head, *lines, *rest])
