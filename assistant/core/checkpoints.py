"""Value types for compactions and checkpoints (committed compactions), what they must not lose (open requests, pins,
delegations), and circuit breakers. Frozen; all times are aware and in UTC.
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
    """A planned change of a view, committed in one transaction that compares and swaps `prefix_rev`."""

    session: str
    prefix_rev: int  # the view revision it was planned on
    trigger: str
    tier: str
    from_message_id: int  # first message that is replaced; without a prefix, first that is shortened
    to_message_id: int  # last row that is replaced; without a prefix, last message that is shortened
    messages_compressed: int
    prefix: tuple[Message, ...]  # replaces all rows up to `to_message_id`; if empty, rows are only shortened
    summary: str
    original_tokens: int  # of the affected rows, before
    compressed_tokens: int  # of the affected rows, after
    key_facts: Mapping[str, Any] = field(default_factory=dict)
    cost_usd: float | None = 0.0  # None if a price is unknown
    # shortened versions of messages that stay in the view, by message id
    shortened: tuple[Message, ...] = ()
    # live checkpoints that this one absorbs (F25): those directly before its range, or, where `to_message_id` is the
    # last one's, a run of them that is merged without removing anything else from the view
    absorbed_ids: tuple[int, ...] = ()
    started_id: int | None = None  # the checkpoint row that `begin_compaction` inserted
    depth: int = 1  # 1: summary of messages, 2: summary of summaries
    model: str = ""
    attempts: int = 0
    # sent in the same transaction
    notices: tuple[Notice, ...] = ()
    notice_address: NoticeAddress = field(default_factory=NoticeAddress)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A stored compaction.

    States: `started` is in progress (or interrupted; start-up marks it `failed`), `live` covers its range, `masked`
    only shortened rows, `absorbed` was merged into a later one, `undone` was reverted, `failed` was not applied.
    """

    id: int
    session: str
    num: int  # ordinal within the session
    generation: int
    from_message_id: int
    to_message_id: int
    messages_compressed: int
    summary: str
    key_facts: Mapping[str, Any]
    original_tokens: int
    compressed_tokens: int
    cost_usd: float | None  # None if a price is unknown
    created_at: datetime
    trigger: str
    tier: str
    state: CheckpointState
    scope: str = ""
    depth: int = 1  # 1: summary of messages, 2: summary of summaries
    model: str = ""
    attempts: int = 0
    note: str = ""  # why it failed
    # Places in the session's log. Ids are no order: a message has its id when it is accepted, and its place when its
    # turn begins, after the answers to those before it.
    from_seq: int = 0
    to_seq: int = 0

    @property
    def is_merge(self) -> bool:
        """Whether it only replaced other checkpoints, without removing anything else from the view."""
        return "merged" in self.key_facts

    @property
    def ratio(self) -> float:
        """Compressed tokens per original token; 0 if nothing was compressed."""
        return self.compressed_tokens / self.original_tokens if self.original_tokens else 0.0


@dataclass(frozen=True, slots=True)
class RestorePreview:
    """The size of the view after undoing compactions."""

    checkpoint_ids: tuple[int, ...]  # those that would be undone, newest first
    messages: int  # how many return to the view
    tokens: int  # as counted on append
    bytes: int
    images: int
    prefix_rev: int  # view revision of the preview


RequestState = Literal["open", "done", "superseded"]


class RequestKind(IntEnum):
    """What a message asks for: an answer, a task, or only a reminder."""

    ANSWER = 0
    TASK = 1
    REMINDER = 2


@dataclass(frozen=True, slots=True)
class UserRequest:
    """One request of a user (F18)."""

    message_id: int
    session: str
    scope: str
    text: str
    state: RequestState
    task: bool  # stays open after the answer
    opened_at: datetime
    answered_by: int | None = None  # the reply of its turn, if any
    closed_by: str = ""  # "answer" (a question was answered), "model" (a tool call) or "user"
    cites: tuple[int, ...] = ()  # ids of the messages that closed it
    closed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Pin:
    """Text that is in every prompt of a session and exempt from compaction (F21)."""

    id: int
    session: str
    scope: str
    text: str
    role: str  # role of its author
    message_id: int | None  # the message it was taken from, if any
    created_at: datetime


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """The state of a circuit breaker (F07). An open one lets one attempt through after the cool-down."""

    name: str
    failures: int  # consecutive
    opened_at: datetime | None  # None if closed
    last_error: str = ""

    def allows_call(self, now: datetime, cool_down: timedelta) -> bool:
        """Return whether the model may be called. An opening time in the future (wrong clock) counts as closed."""
        return self.opened_at is None or not self.opened_at <= now < self.opened_at + cool_down


DelegationState = Literal["running", "done", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Delegation:
    """A task delegated to a sub-agent of a turn (F22)."""

    id: int
    key: str
    turn: str
    session: str
    scope: str
    task: str
    state: DelegationState
    result: str  # the answer or the error
    started_at: datetime
    ended_at: datetime | None = None
    cost_usd: float | None = 0.0  # None if a price is unknown


# The tier of imported history and of a rebuilt index: the view has nothing of it, and the log has everything.
REFERENCE_TIER = "reference"
# Display names of tiers; any other tier is the name of a strategy.
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
    """Return the display name of a state."""
    return _STATES.get(state, state)


def describe_tier(tier: str) -> str:
    """Return the display name of a tier."""
    return _TIERS.get(tier, tier)
