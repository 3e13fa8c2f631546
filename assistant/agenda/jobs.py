"""Jobs (reminders and schedules), the slots in which they are due, how each slot ended, and the port of their store.
Frozen values.

All times are aware and in UTC, but for those called local: they are naive, by the clock of a job's zone. A slot is
named by its local date and time, so that an hour that comes twice in autumn has its slots once. Every method that
returns words names a scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

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
    """Due by an RRULE; `start` is local, and its first time if the rule has it."""

    rrule: str
    start: datetime


@dataclass(frozen=True, slots=True)
class CronSpec:
    """Due by a line of cron with five fields."""

    line: str


ScheduleSpec = OneTimeSpec | RRuleSpec | CronSpec


@dataclass(frozen=True, slots=True)
class DueSlot:
    """One slot: when, and the local date and time that names it, as in "2026-10-25T02:30"."""

    at: datetime
    key: str


@dataclass(frozen=True, slots=True)
class DeliveryTarget:
    """Where something was asked, and where what comes of it goes."""

    session: str
    scope: str
    bridge: str
    target: str


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be made, with its first slot. `key` names the call that makes it: the same key makes one job."""

    key: str
    kind: JobKind
    place: DeliveryTarget
    text: str
    spec: ScheduleSpec
    zone: str
    catch_up: CatchUpPolicy
    due: DueSlot
    name: str = ""
    made_by: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A reminder, or a schedule (a prompt with a name); `due` is its next slot, None for one that has ended."""

    id: int
    kind: JobKind
    name: str
    place: DeliveryTarget
    text: str
    spec: ScheduleSpec
    zone: str
    catch_up: CatchUpPolicy
    state: JobState
    due: DueSlot | None
    created_at: datetime
    made_by: int | None = None


@dataclass(frozen=True, slots=True)
class SlotOutcome:
    """How a slot ends. `told` is whether the reminder is told, or the prompt run, because of it."""

    due: DueSlot
    state: SlotState
    note: str
    notifies: bool


@dataclass(frozen=True, slots=True)
class EndedSlot:
    """A slot that has ended, and of what."""

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
    """One message by which reminders go out, under its key; `buttons` where it is one reminder."""

    key: str
    place: DeliveryTarget
    body: str
    buttons: tuple[Button, ...] = ()


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """How slots of a job ended, each with the key of the message that tells of it ("" for none); and its next slot."""

    job_id: int
    outcomes: tuple[tuple[SlotOutcome, str], ...]
    due: DueSlot | None


@dataclass(frozen=True, slots=True)
class FiringBatch:
    """What is committed together: ends of slots, what goes out, and prompts that begin turns."""

    jobs: tuple[JobOutcome, ...]
    messages: tuple[ReminderMessage, ...]
    prompts: tuple[IncomingMessage, ...]


class JobsPort(Protocol):
    """Reminders and schedules of a home, and what became of each slot (F37).

    What always holds: a slot ends once, in the transaction in which its job's next slot, and what goes out because of
    it, are written."""

    def add(self, new: NewJob, limit: int, now: datetime) -> Job:
        """Make a job, or give the one that was made under the same key. Raises `UsageError` where `most` of the scope
        wait already, or one of them has the name."""
        ...

    def find_by_key(self, key: str, scope: str) -> Job | None: ...
    def get_job(self, job_id: int, scope: str, kind: JobKind) -> Job | None: ...

    def find_by_name(self, name: str, scope: str) -> Job | None:
        """The schedule of that name which waits or pauses."""
        ...

    def list_waiting(self, scope: str, kind: JobKind, *, limit: int = 1000) -> list[Job]:
        """Those that are active or paused, the next due first."""
        ...

    def cancel(self, job_id: int, scope: str, kind: JobKind, key: str, now: datetime) -> Job:
        """Raises `UsageError` for one that does not wait, unless it was cancelled under the same key."""
        ...

    def pause(self, job_id: int, scope: str) -> None: ...

    def resume(self, job_id: int, scope: str, due: DueSlot | None, now: datetime) -> None:
        """Go on at a slot; None: there is none left, it is done."""
        ...

    def origin_of_turn(self, turn: str) -> tuple[DeliveryTarget, int] | None:
        """Where the newest message of a turn came from, and its message id."""
        ...

    # firing
    def list_due(self, after: datetime | None, until: datetime, *, limit: int) -> list[Job]:
        """Active jobs whose next slot is after the first and not after the second moment, the oldest first."""
        ...

    def next_due_at(self) -> datetime | None:
        """When the next slot of any job is due."""
        ...

    def apply_firing(self, firing: FiringBatch, now: datetime) -> None:
        """End slots, move jobs on, store what goes out and the prompts that begin turns: all in one transaction."""
        ...

    def log_sent_reminders(self, now: datetime) -> int:
        """Have the conversations know of the reminders that went out and are not in their logs yet; how many these
        were. Called after `fire`, and at start for what a crash left."""
        ...

    # looking back
    def ended_slots(
        self, scope: str, *, kind: JobKind | None = None, job_id: int | None = None, limit: int = 100
    ) -> list[EndedSlot]:
        """Slots that have ended, the newest first."""
        ...

    def count_missed(self) -> Mapping[str, int]:
        """How many slots were missed and nobody has looked at since, by scope."""
        ...

    def mark_missed_seen(self, now: datetime) -> None:
        """Somebody has looked at what was missed."""
        ...

    def count_overdue(self, before: datetime) -> int:
        """How many active jobs have a next slot before that."""
        ...


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A reminder or a schedule as somebody words it. `key` as in `NewJob`; `catch_up` None: as the settings say."""

    key: str
    place: DeliveryTarget
    text: str
    when: str
    repeat: str = ""
    name: str = ""
    catch_up: CatchUpPolicy | None = None
    made_by: int | None = None
