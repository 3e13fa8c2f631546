"""Compactions, before and after they are committed (checkpoints), and what they must not lose: open requests, pins,
delegations; and circuit breakers. Frozen values; all times are aware and in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, Literal

from assistant.core.dataclass import dataclass
from assistant.core.messages import Message
from assistant.core.notices import Notice, NoticeAddress

CheckpointState = Literal["started", "live", "masked", "absorbed", "undone", "failed"]


@dataclass(frozen=True, slots=True)
class Compaction:
    """A change to a view, ready to commit in one transaction; the commit compares and swaps `prefix_rev`."""

    session: str
    prefix_rev: int  # the revision that the plan was made on
    trigger: str
    tier: str
    from_message_id: int  # of what the prefix replaces; without a prefix, the first message that is shortened
    to_message_id: int  # the last row that the prefix replaces; without a prefix, the last message that is shortened
    messages_compressed: int
    prefix: tuple[Message, ...]  # replaces every row up to `to_message_id`; without one, rows are only shortened
    summary: str
    original_tokens: int  # of the replaced and shortened rows, before
    compressed_tokens: int  # of the same, after
    key_facts: Mapping[str, Any] = field(default_factory=dict)
    cost_usd: float | None = 0.0  # None where no price is known
    # shorter forms of messages that stay in the view, put in their rows by message id
    shortened: tuple[Message, ...] = ()
    # live checkpoints whose ranges this one takes over (F25): those directly before its range, or, where
    # `to_message_id` is the last one's, a run of them merged into one while nothing else leaves the view
    absorbed_ids: tuple[int, ...] = ()
    started_id: int | None = None  # the checkpoint that `begin_compaction` noted
    depth: int = 1  # 1 for a summary of original messages, 2 for one of summaries
    model: str = ""
    attempts: int = 0
    # sent in the transaction of the commit
    notices: tuple[Notice, ...] = ()
    notice_address: NoticeAddress = field(default_factory=NoticeAddress)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One compaction as it is kept.

    States: `started` is under way (or cut off by a crash, until start-up sets it to `failed`), `live` covers its range,
    `masked` shortened rows and covers nothing, `absorbed` was taken over by a later one, `undone` was taken back,
    `failed` was not installed."""

    id: int
    session: str
    num: int  # of its session, in the order in which they were begun
    generation: int
    from_message_id: int
    to_message_id: int
    messages_compressed: int
    summary: str
    key_facts: Mapping[str, Any]
    original_tokens: int
    compressed_tokens: int
    cost_usd: float | None  # None where no price is known
    created_at: datetime
    trigger: str
    tier: str
    state: CheckpointState
    scope: str = ""
    depth: int = 1  # 1 for a summary of original messages, 2 for one of summaries
    model: str = ""
    attempts: int = 0
    note: str = ""  # why it failed

    @property
    def is_merge(self) -> bool:
        """Whether it took the place of other checkpoints, or of one, and nothing else left the view."""
        return "merged" in self.key_facts

    @property
    def ratio(self) -> float:
        """Compressed tokens for each original one; 0 where nothing was compressed."""
        return self.compressed_tokens / self.original_tokens if self.original_tokens else 0.0


@dataclass(frozen=True, slots=True)
class RestorePreview:
    """What taking compactions back would leave: the size of that view."""

    checkpoint_ids: tuple[int, ...]  # those that would be undone, newest first
    messages: int  # how many come back into the view
    tokens: int  # as counted when they were appended
    bytes: int
    images: int
    prefix_rev: int  # of the view that the preview was made of


RequestState = Literal["open", "done", "superseded"]


class RequestKind(IntEnum):
    """What a message asks for: no more than an answer, something to be done, or nothing but to be reminded."""

    ANSWER = 0
    TASK = 1
    REMINDER = 2


@dataclass(frozen=True, slots=True)
class UserRequest:
    """One thing a person asked for (F18)."""

    message_id: int
    session: str
    scope: str
    text: str
    state: RequestState
    task: bool  # it is not over with its answer
    opened_at: datetime
    answered_by: int | None = None  # the reply of its turn, if there is one
    closed_by: str = ""  # "answer" (a question was answered), "model" (by a tool call) or "user"
    cites: tuple[int, ...] = ()  # the message ids that closed it
    closed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Pin:
    """Text that is in every prompt of a session, outside of what compaction touches (F21)."""

    id: int
    session: str
    scope: str
    text: str
    role: str  # who said it
    message_id: int | None  # the message it was taken from, if any
    created_at: datetime


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """A circuit breaker (F07): closed while few calls in a row failed. An open one lets one try through after the
    cool-down."""

    name: str
    failures: int  # in a row
    opened_at: datetime | None  # None while it is closed
    last_error: str = ""

    def allows_call(self, now: datetime, cool_down: timedelta) -> bool:
        """Whether a model may be asked. A breaker that a wrong clock opened in the future is taken for closed."""
        return self.opened_at is None or not self.opened_at <= now < self.opened_at + cool_down


DelegationState = Literal["running", "done", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Delegation:
    """One task given to a helper of a turn (F22)."""

    id: int
    key: str
    turn: str
    session: str
    scope: str
    task: str
    state: DelegationState
    result: str  # its answer, or what went wrong
    started_at: datetime
    ended_at: datetime | None = None
    cost_usd: float | None = 0.0  # None where no price is known


# What people read of a tier; any other is the name of a strategy.
_TIERS = {
    "full": "by the model",
    "extractive": "without a model",
    "ends": "shortened",
    "floor": "shortened",
    "mask": "tool output shortened",
}


_STATES = {
    "started": "under way",
    "live": "in use",
    "masked": "only shortened",
    "absorbed": "merged into a later one",
}


def describe_state(state: CheckpointState) -> str:
    """What became of a compaction, for people."""
    return _STATES.get(state, state)


def describe_tier(tier: str) -> str:
    """How a compaction was made, for people."""
    return _TIERS.get(tier, tier)
