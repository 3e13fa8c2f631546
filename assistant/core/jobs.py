"""Value types for jobs (reminders and schedules), their due slots, and the outcome of each slot. Frozen.

All times are aware and in UTC, except those called local, which are naive and in the job's zone. A slot is identified
by its local date and time, so that an ambiguous hour in autumn has its slots once.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from assistant.core.dataclass import dataclass
from assistant.core.records import Button, IncomingMessage

JobKind = Literal["reminder", "schedule"]
CatchUpPolicy = Literal["once", "all", "skip"]
JobState = Literal["active", "paused", "done", "cancelled"]
SlotState = Literal["ran", "late", "missed"]

MAX_REMINDER_CHARACTERS = 1000
MAX_PROMPT_CHARACTERS = 8000
MAX_JOB_NAME_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class OneTimeSpec:
    """Due once."""

    at: datetime


@dataclass(frozen=True, slots=True)
class RRuleSpec:
    """Due by a recurrence rule."""

    rrule: str
    start: datetime  # local; DTSTART of the rule


@dataclass(frozen=True, slots=True)
class CronSpec:
    """Due by a cron expression with five fields."""

    cron: str


ScheduleSpec = OneTimeSpec | RRuleSpec | CronSpec


@dataclass(frozen=True, slots=True)
class DueSlot:
    """One due time of a job."""

    at: datetime
    key: str  # local date and time, e.g. "2026-10-25T02:30"


@dataclass(frozen=True, slots=True)
class DeliveryTarget:
    """Where a job was requested, and where its messages are sent."""

    session: str
    scope: str
    bridge: str
    target: str


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to create, with its first slot."""

    key: str  # idempotency key: the same key creates one job
    kind: JobKind
    place: DeliveryTarget
    text: str
    spec: ScheduleSpec
    zone: str
    catch_up: CatchUpPolicy
    due: DueSlot
    name: str = ""  # of a schedule; "" for a reminder
    made_by: int | None = None  # id of the requesting message


@dataclass(frozen=True, slots=True)
class Job:
    """A reminder or a schedule (a named prompt)."""

    id: int
    kind: JobKind
    name: str  # of a schedule; "" for a reminder
    place: DeliveryTarget
    text: str
    spec: ScheduleSpec
    zone: str
    catch_up: CatchUpPolicy
    state: JobState
    due: DueSlot | None  # next slot; None once it has ended
    created_at: datetime
    made_by: int | None = None  # id of the requesting message
    replanned: int = 0  # how often slots fired by a wrong clock were undone

    def slot_name(self, slot: DueSlot) -> str:
        """Return the slot's part of message keys; replanning after a wrong clock makes a new one."""
        return f"{self.id}:{slot.key}" + (f":{self.replanned}" if self.replanned else "")


@dataclass(frozen=True, slots=True)
class SlotOutcome:
    """How one slot ends."""

    due: DueSlot
    state: SlotState
    note: str
    notifies: bool  # whether a reminder is sent or a prompt runs


@dataclass(frozen=True, slots=True)
class EndedSlot:
    """A slot that has ended, with its job."""

    id: int
    job_id: int
    kind: JobKind
    name: str
    text: str
    due_at: datetime
    local_key: str
    state: SlotState
    ended_at: datetime
    note: str
    seen_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReminderMessage:
    """A message that delivers one or more reminders."""

    key: str
    place: DeliveryTarget
    body: str
    buttons: tuple[Button, ...] = ()  # only for a single reminder


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """Outcomes of slots of one job."""

    job_id: int
    scope: str
    outcomes: tuple[tuple[SlotOutcome, str], ...]  # each with the key of the message that reports it, or ""
    due: DueSlot | None  # next slot of the job


@dataclass(frozen=True, slots=True)
class FiringBatch:
    """Everything that one transaction commits."""

    jobs: tuple[JobOutcome, ...]  # outcomes of slots
    messages: tuple[ReminderMessage, ...]  # reminders to send
    prompts: tuple[IncomingMessage, ...]  # scheduled prompts, which start turns


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request to create a reminder or schedule, not parsed yet."""

    key: str  # as in `NewJob`
    place: DeliveryTarget
    text: str
    when: str
    repeat: str = ""
    name: str = ""
    catch_up: CatchUpPolicy | None = None  # None: from the settings
    made_by: int | None = None
