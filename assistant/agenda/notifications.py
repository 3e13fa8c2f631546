"""What reminders and scheduled prompts say when they are due. Pure.

Each slot that is sent is in exactly one message; where more than a handful are due at a time in one place, they
come in one message. Its key comes from the job and the slot, so that it goes out once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from assistant.agenda.catch_up import format_lateness
from assistant.core.calendar import format_moment
from assistant.core.jobs import DeliveryTarget, DueSlot, FiringBatch, Job, JobOutcome, ReminderMessage, SlotOutcome
from assistant.core.records import (
    MANUAL_RUN_PREFIX,
    SCHEDULE_KEY_PREFIX,
    SCHEDULE_SENDER_PREFIX,
    Button,
    IncomingMessage,
)
from assistant.core.text import shorten

MAX_SEPARATE_REMINDERS = 5
_LISTED = 20
_LINE = 160

EndedJob = tuple[Job, Sequence[SlotOutcome], DueSlot | None]


@dataclass(frozen=True, slots=True)
class _DueReminder:
    """A reminder that is sent."""

    job: Job
    ending: SlotOutcome

    @property
    def late(self) -> bool:
        return self.ending.state == "late"


def build_firing(ended: Sequence[EndedJob], zone: ZoneInfo, now: datetime) -> FiringBatch:
    """All that comes of slots that end; `zone` is the home's, in which times are told."""
    reminders = [
        _DueReminder(job, outcome)
        for job, outcomes, _ in ended
        for outcome in outcomes
        if outcome.notifies and job.kind == "reminder"
    ]
    messages, keys = _group_messages(reminders, zone, now)
    fired = tuple(
        JobOutcome(job.id, tuple((outcome, keys.get((job.id, outcome.due.key), "")) for outcome in outcomes), due)
        for job, outcomes, due in ended
    )
    prompts = tuple(
        schedule_prompt(job, outcome.due, outcome.state == "late", zone)
        for job, outcomes, _ in ended
        for outcome in outcomes
        if outcome.notifies and job.kind == "schedule"
    )
    return FiringBatch(fired, tuple(messages), prompts)


def build_manual_run(job: Job, zone: ZoneInfo, now: datetime) -> FiringBatch:
    """What comes of a schedule that somebody runs beside its times: a slot of its own, which moves no other."""
    due = DueSlot(now, f"{MANUAL_RUN_PREFIX}{now.isoformat()}")
    ending = SlotOutcome(due, "ran", "manually", True)
    return FiringBatch((JobOutcome(job.id, ((ending, ""),), job.due),), (), (schedule_prompt(job, due, False, zone),))


def schedule_prompt(job: Job, due: DueSlot, late: bool, zone: ZoneInfo) -> IncomingMessage:
    """The owner's message that a schedule says for them, and says that it is one."""
    at_its_time = f"due {format_moment(due.at, zone)}{', late' if late else ''}"
    when, place = "run manually" if due.key.startswith(MANUAL_RUN_PREFIX) else at_its_time, job.place
    return IncomingMessage(
        place.bridge,
        f"{SCHEDULE_KEY_PREFIX}{job.id}:{due.key}",
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
    groups: dict[tuple[DeliveryTarget, bool], list[_DueReminder]] = {}
    for reminder in reminders:
        groups.setdefault((reminder.job.place, reminder.late), []).append(reminder)
    messages: list[ReminderMessage] = []
    keys: dict[tuple[int, str], str] = {}
    for (place, _), group in groups.items():
        parts = [group] if len(group) > MAX_SEPARATE_REMINDERS else [[reminder] for reminder in group]
        for part in parts:
            first = part[0]
            kind = "reminders" if len(part) > 1 else "reminder"
            key = f"{kind}:{first.job.id}:{first.ending.due.key}"
            body = _list_text(part, zone) if len(part) > 1 else _single_text(first, zone, now)
            buttons = _buttons(first, zone) if len(part) == 1 else ()
            messages.append(ReminderMessage(key, place, body, buttons))
            keys.update({(reminder.job.id, reminder.ending.due.key): key for reminder in part})
    return messages, keys


def _single_text(reminder: _DueReminder, zone: ZoneInfo, now: datetime) -> str:
    if not reminder.late:
        return f"Reminder: {reminder.job.text}"
    due = reminder.ending.due.at
    return f"Reminder: {reminder.job.text}\n(It was due {format_moment(due, zone)}, {format_lateness(now - due)} ago.)"


def _buttons(reminder: _DueReminder, zone: ZoneInfo) -> tuple[Button, ...]:
    """What people do with a reminder; tomorrow is at the time of day that it was due."""
    remind_again = f"/remind again {reminder.job.id}"
    tomorrow = f"tomorrow {reminder.ending.due.at.astimezone(zone):%H:%M}"
    return (
        Button("Done", f"/remind done {reminder.job.id}"),
        Button("In 10 minutes", f"{remind_again} in 10 minutes"),
        Button("Tomorrow", f"{remind_again} {tomorrow}"),
    )


def _list_text(group: Sequence[_DueReminder], zone: ZoneInfo) -> str:
    """A list of reminders, by their times."""
    by_time = sorted(group, key=lambda reminder: (reminder.ending.due.at, reminder.job.id))
    lines = [
        f"- {format_moment(reminder.ending.due.at, zone)}: {shorten(reminder.job.text, _LINE)}"
        for reminder in by_time[:_LISTED]
    ]
    head = f"{len(group):,} reminders{' came due while they could not be sent' if group[0].late else ''}:"
    more = len(group) - _LISTED
    rest = [f"…and {more:,} more; `/remind history` lists all of them."] if more > 0 else []
    return "\n".join([head, *lines, *rest])
