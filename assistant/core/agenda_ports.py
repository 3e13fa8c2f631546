"""The seams of the agenda: the store of jobs and slots, and what tools and commands ask of whoever minds it.

Rules as in `assistant.core.ports`. Every method that returns words names a scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assistant.core.agenda_values import CatchUp, Due, Firing, Job, Kind, NewJob, Place, Slot
from assistant.core.ports import ToolContext


class Jobs(Protocol):
    """Reminders and schedules of a home, and what became of each slot (F37).

    What always holds: a slot ends once, in the transaction in which its job's next slot, and what goes out because of
    it, are written."""

    def add(self, new: NewJob, most: int, now: datetime) -> Job:
        """Make a job, or give the one that was made under the same key. Raises `UsageError` where `most` of the scope
        wait already, or one of them has the name."""
        ...

    def made_under(self, key: str, scope: str) -> Job | None: ...
    def get(self, job_id: int, scope: str, kind: Kind) -> Job | None: ...

    def named(self, name: str, scope: str) -> Job | None:
        """The schedule of that name which waits or pauses."""
        ...

    def waiting(self, scope: str, kind: Kind, *, limit: int = 1000) -> list[Job]:
        """Those that are active or paused, the next due first."""
        ...

    def cancel(self, job_id: int, scope: str, kind: Kind, key: str, now: datetime) -> Job:
        """Raises `UsageError` for one that does not wait, unless it was cancelled under the same key."""
        ...

    def pause(self, job_id: int, scope: str) -> None: ...

    def resume(self, job_id: int, scope: str, due: Due | None, now: datetime) -> None:
        """Go on at a slot; None: there is none left, it is done."""
        ...

    def place_of(self, turn: str) -> tuple[Place, int] | None:
        """Where the newest message of a turn came from, and its message id."""
        ...

    # firing
    def due(self, after: datetime | None, until: datetime, *, limit: int) -> list[Job]:
        """Active jobs whose next slot is after the first and not after the second moment, the oldest first."""
        ...

    def next_at(self) -> datetime | None:
        """When the next slot of any job is due."""
        ...

    def fire(self, firing: Firing, now: datetime) -> None:
        """End slots, move jobs on, store what goes out and the prompts that begin turns: all in one transaction."""
        ...

    def log_told(self, now: datetime) -> int:
        """Have the conversations know of the reminders that went out and are not in their logs yet; how many these
        were. Called after `fire`, and at start for what a crash left."""
        ...

    # looking back
    def slots(self, scope: str, *, kind: Kind | None = None, job_id: int | None = None, limit: int = 100) -> list[Slot]:
        """Slots that have ended, the newest first."""
        ...

    def missed(self) -> Mapping[str, int]:
        """How many slots were missed and nobody has looked at since, by scope."""
        ...

    def seen(self, now: datetime) -> None:
        """Somebody has looked at what was missed."""
        ...

    def overdue(self, before: datetime) -> int:
        """How many active jobs have a next slot before that."""
        ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """A reminder or a schedule as somebody words it. `key` as in `NewJob`; `catch_up` None: as the settings say."""

    key: str
    place: Place
    text: str
    when: str
    repeat: str = ""
    name: str = ""
    catch_up: CatchUp | None = None
    made_by: int | None = None


class Reminders(Protocol):
    """Who minds reminders. Every method raises `UsageError` with what to do differently; then nothing was changed."""

    async def remind(self, wanted: Wanted, now: datetime) -> Job: ...
    async def remind_from(self, context: ToolContext, text: str, when: str, repeat: str) -> Job:
        """A reminder that a tool sets, for where the newest message of its turn came from."""
        ...

    def reminders(self, scope: str) -> Sequence[Job]: ...
    def cancel_reminder(self, job_id: int, scope: str, key: str, now: datetime) -> Job: ...

    def told(self, job: Job) -> str:
        """When it is due, and how often, as people read it: one line."""
        ...
