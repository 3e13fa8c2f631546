"""What is due at a time: jobs, the slots in which they are due, and how each slot ended. Frozen values, pure.

All times are aware and in UTC, but for those called local: they are naive, by the clock of a job's zone. A slot is
named by its local date and time, so that an hour that comes twice in autumn has its slots once.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from assistant.core.records import Button, Incoming

Kind = Literal["reminder", "schedule"]
CatchUp = Literal["once", "all", "skip"]
JobState = Literal["active", "paused", "done", "cancelled"]
SlotState = Literal["ran", "late", "missed"]

LONGEST_REMINDER = 1000
LONGEST_PROMPT = 8000
LONGEST_NAME = 60

# They hide or turn around what stands beside them.
_TURNING = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


@dataclass(frozen=True, slots=True)
class Once:
    """Due at one moment."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Rule:
    """Due by an RRULE; `start` is local, and its first time if the rule has it."""

    rrule: str
    start: datetime


@dataclass(frozen=True, slots=True)
class Cron:
    """Due by a line of cron with five fields."""

    line: str


Spec = Once | Rule | Cron


@dataclass(frozen=True, slots=True)
class Due:
    """One slot: when, and the local date and time that names it, as in "2026-10-25T02:30"."""

    at: datetime
    key: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was asked, and where what comes of it goes."""

    session: str
    scope: str
    bridge: str
    target: str


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be made, with its first slot. `key` names the call that makes it: the same key makes one job."""

    key: str
    kind: Kind
    place: Place
    text: str
    spec: Spec
    zone: str
    catch_up: CatchUp
    due: Due
    name: str = ""
    made_by: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A reminder, or a schedule (a prompt with a name); `due` is its next slot, None for one that has ended."""

    id: int
    kind: Kind
    name: str
    place: Place
    text: str
    spec: Spec
    zone: str
    catch_up: CatchUp
    state: JobState
    due: Due | None
    created_at: datetime
    made_by: int | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a slot ends. `told` is whether the reminder is told, or the prompt run, because of it."""

    due: Due
    state: SlotState
    note: str
    told: bool


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot that has ended, and of what."""

    id: int
    job_id: int
    kind: Kind
    name: str
    text: str
    due_at: datetime
    local_key: str
    state: SlotState
    ended_at: datetime
    note: str
    seen_at: datetime | None = None


def cleaned(text: str, *, lines: bool = False) -> str:
    """`text` without what controls a terminal or turns words around; on one line unless `lines` may stay."""
    kept = "".join(
        " " if unicodedata.category(letter) == "Cc" and not (lines and letter == "\n") else letter
        for letter in text
        if letter not in _TURNING
    )
    if not lines:
        return " ".join(kept.split())
    return "\n".join(line.rstrip() for line in kept.strip().splitlines())


@dataclass(frozen=True, slots=True)
class Telling:
    """One message by which reminders go out, under its key; `buttons` where it is one reminder."""

    key: str
    place: Place
    body: str
    buttons: tuple[Button, ...] = ()


@dataclass(frozen=True, slots=True)
class Fired:
    """How slots of a job ended, each with the key of the message that tells of it ("" for none); and its next slot."""

    job_id: int
    ended: tuple[tuple[Ending, str], ...]
    due: Due | None


@dataclass(frozen=True, slots=True)
class Firing:
    """What is committed together: ends of slots, what goes out, and prompts that begin turns."""

    fired: tuple[Fired, ...]
    tellings: tuple[Telling, ...]
    prompts: tuple[Incoming, ...]
