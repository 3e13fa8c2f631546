"""The generations of a session, and how one ends and the next begins. Frozen values; all times are aware and in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

EndReason = Literal["manual", "daily", "idle", "end", "resume"]
"""Why a generation ended: somebody said so, it was the hour, nobody spoke, it was put away, an earlier one goes on."""

ResetState = Literal["begun", "waiting", "archived", "done", "withdrawn"]


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation of a session. `messages` counts what people, the assistant and its tools said in it, `first_at`
    and `last_at` are when; `from_seq` is the seq of its first record. `pressure` is how full its context was when it
    ended, `resumed` the generation that it goes on from."""

    session: str
    number: int
    scope: str
    started_at: datetime
    from_seq: int
    messages: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    ended_at: datetime | None = None
    end_reason: str = ""
    pressure: float | None = None
    resumed: int | None = None


@dataclass(frozen=True, slots=True)
class Spoken:
    """The current generation of a session, and when something was said in it first and last (None: not yet)."""

    session: str
    generation: int
    first_at: datetime | None
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a session's current generation, and the first words of the next.

    `seq` is the last record that the archive holds: where something was written since, this ending is void. `sources`
    are the messages that the words speak of. With `resumes` the next generation begins with that one's last view."""

    session: str
    generation: int
    seq: int
    words: str
    reason: str
    sources: tuple[int, ...] = ()
    resumes: int | None = None


@dataclass(frozen=True, slots=True)
class Reset:
    """A reset under way, or how it ended. `waiting`: the archive could not be had, `note` says why, and it is tried
    again at `retry_at`."""

    session: str
    generation: int
    scope: str
    reason: EndReason
    state: ResetState
    begun_at: datetime
    resumes: int | None = None
    pressure: float | None = None
    attempts: int = 0
    note: str = ""
    retry_at: datetime | None = None
    ended_at: datetime | None = None
