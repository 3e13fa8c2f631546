"""Jobs (reminders and schedules), the slots in which they are due, and how each slot ended. Frozen values.

All times are aware and in UTC, but for those called local: they are naive, by the clock of a job's zone. A slot is
named by its local date and time, so that an hour that comes twice in autumn has its slots once.
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
    """Due at one moment."""

    at: datetime


@dataclass(frozen=True, slots=True)
class RRuleSpec:
    """Due by an RRULE."""

    rrule: str
    start: datetime  # local; the first time, if the rule has it


@dataclass(frozen=True, slots=True)
class CronSpec:
    """Due by a line of cron with five fields."""

    cron: str


ScheduleSpec = OneTimeSpec | RRuleSpec | CronSpec


@dataclass(frozen=True, slots=True)
class DueSlot:
    """One slot of a job."""

    at: datetime
    key: str  # the local date and time that names it, as in "2026-10-25T02:30"


@dataclass(frozen=True, slots=True)
class DeliveryTarget:
    """Where something was asked for, and where its reminder goes."""

    session: str
    scope: str
    bridge: str
    target: str


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be made, with its first slot."""

    key: str  # names the call that makes it: the same key makes one job
    kind: JobKind
    place: DeliveryTarget
    text: str
    spec: ScheduleSpec
    zone: str
    catch_up: CatchUpPolicy
    due: DueSlot
    name: str = ""  # of a schedule; "" for a reminder
    made_by: int | None = None  # id of the message that asked for it


@dataclass(frozen=True, slots=True)
class Job:
    """A reminder, or a schedule (a prompt with a name)."""

    id: int
    kind: JobKind
    name: str  # of a schedule; "" for a reminder
    place: DeliveryTarget
    text: str
    spec: ScheduleSpec
    zone: str
    catch_up: CatchUpPolicy
    state: JobState
    due: DueSlot | None  # its next slot; None once it has ended
    created_at: datetime
    made_by: int | None = None  # id of the message that asked for it
    replanned: int = 0  # how often what it did by a wrong clock was undone

    def slot_name(self, slot: DueSlot) -> str:
        """In the keys of what is sent for it: one that is sent again after a wrong clock is another."""
        return f"{self.id}:{slot.key}" + (f":{self.replanned}" if self.replanned else "")


@dataclass(frozen=True, slots=True)
class SlotOutcome:
    """How a slot ends."""

    due: DueSlot
    state: SlotState
    note: str
    notifies: bool  # whether the reminder is sent, or the prompt run, because of it


@dataclass(frozen=True, slots=True)
class EndedSlot:
    """A slot that has ended, and of which job."""

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
    """One message by which reminders go out."""

    key: str
    place: DeliveryTarget
    body: str
    buttons: tuple[Button, ...] = ()  # where it is one reminder


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """How slots of a job ended."""

    job_id: int
    scope: str
    outcomes: tuple[tuple[SlotOutcome, str], ...]  # each with the key of the message that reports it ("" for none)
    due: DueSlot | None  # the next slot of the job


@dataclass(frozen=True, slots=True)
class FiringBatch:
    """What is committed together."""

    jobs: tuple[JobOutcome, ...]  # how slots ended
    messages: tuple[ReminderMessage, ...]  # reminders that go out
    prompts: tuple[IncomingMessage, ...]  # scheduled prompts, which begin turns


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A reminder or a schedule as somebody words it."""

    key: str  # as in `NewJob`
    place: DeliveryTarget
    text: str
    when: str
    repeat: str = ""
    name: str = ""
    catch_up: CatchUpPolicy | None = None  # None: as the settings say
    made_by: int | None = None
