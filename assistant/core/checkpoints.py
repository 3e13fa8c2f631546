"""Compactions, before and after they are committed (checkpoints), and what they must not lose: open requests, pins,
delegations; and the circuit breaker of the summary model. Frozen values; all times are aware and in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, Literal

from assistant.core.messages import Message

CheckpointState = Literal["started", "live", "masked", "absorbed", "undone", "failed"]


@dataclass(frozen=True, slots=True)
class Compaction:
    """A change to a view, ready to commit in one transaction.

    `shorten` are shorter forms of messages that stay in the view, put in their rows by message id. `prefix`, where
    there is one, replaces every row up to and including `to_message_id`; without a prefix only rows are shortened, and
    `from_message_id` and `to_message_id` name the first and the last of them. `absorbs` are live checkpoints whose
    ranges the new one takes over (F25): those directly before its range, or, where `to_message_id` is the last one's,
    a run of them merged into one while nothing else leaves the view.

    `prefix_rev` is the revision the plan was made on; the commit compares and swaps. `started` is the checkpoint that
    `begin_compaction` noted. Tokens are those of the replaced and shortened rows, before and after. `depth` is 1 for a
    summary made of original messages, 2 for one made of summaries. `cost_usd` is None where no price is known."""

    session: str
    prefix_rev: int
    trigger: str
    tier: str
    from_message_id: int
    to_message_id: int
    messages_compressed: int
    prefix: tuple[Message, ...]
    summary: str
    original_tokens: int
    compressed_tokens: int
    key_facts: Mapping[str, Any] = field(default_factory=dict)
    cost_usd: float | None = 0.0
    shortened: tuple[Message, ...] = ()
    absorbed_ids: tuple[int, ...] = ()
    started_id: int | None = None
    depth: int = 1
    model: str = ""
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One compaction as it is kept.

    `started` is one under way (or cut off by a crash, until start-up settles it to `failed`), `live` covers its
    range, `masked` shortened rows and covers nothing, `absorbed` was taken over by a later one, `undone` was taken
    back, `failed` was not installed. `note` says why."""

    id: int
    session: str
    num: int
    generation: int
    from_message_id: int
    to_message_id: int
    messages_compressed: int
    summary: str
    key_facts: Mapping[str, Any]
    original_tokens: int
    compressed_tokens: int
    cost_usd: float | None
    created_at: datetime
    trigger: str
    tier: str
    state: CheckpointState
    scope: str = ""
    depth: int = 1
    model: str = ""
    attempts: int = 0
    note: str = ""

    @property
    def is_merge(self) -> bool:
        """Whether it took over other checkpoints and nothing else left the view."""
        return "merged" in self.key_facts

    @property
    def ratio(self) -> float:
        """Compressed tokens for each original one; 0 where nothing was compressed."""
        return self.compressed_tokens / self.original_tokens if self.original_tokens else 0.0


@dataclass(frozen=True, slots=True)
class RestorePreview:
    """What taking a compaction back would leave: the size of that view (tokens as counted at append, bytes, images),
    how many messages come back into it, and the checkpoints that would be undone, newest first."""

    checkpoint_ids: tuple[int, ...]
    messages: int
    tokens: int
    bytes: int
    images: int
    prefix_rev: int


RequestState = Literal["open", "done", "superseded"]


class RequestKind(IntEnum):
    """What a message asks for: no more than an answer, something to be done, or nothing but to be reminded."""

    ANSWER = 0
    TASK = 1
    REMINDER = 2


@dataclass(frozen=True, slots=True)
class UserRequest:
    """One thing a person asked for (F18). `cites` are the message ids that closed it; `closed_by` is "answer" (a
    question, answered), "model" (a tool call) or "user"; `answered_by` the reply of its turn, if there is one. A `task`
    is not over with its answer."""

    message_id: int
    session: str
    scope: str
    text: str
    state: RequestState
    task: bool
    opened_at: datetime
    answered_by: int | None = None
    closed_by: str = ""
    cites: tuple[int, ...] = ()
    closed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Pin:
    """Words that stand in every prompt of a session, outside of what compaction touches (F21). `message_id` is the
    message they were taken from, if any; `role` who said them."""

    id: int
    session: str
    scope: str
    text: str
    role: str
    message_id: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """A fuse (F07). Closed while `failures` in a row are few; open since `opened_at` otherwise; one try is let
    through after the cool-down."""

    name: str
    failures: int
    opened_at: datetime | None
    last_error: str = ""

    def allows_call(self, now: datetime, cool_down: timedelta) -> bool:
        """Whether a model may be asked. One that a wrong clock opened in the future holds nobody up until then."""
        return self.opened_at is None or not self.opened_at <= now < self.opened_at + cool_down


DelegationState = Literal["running", "done", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Delegation:
    """One task given to a helper of a turn (F22). `result` is its answer, or what went wrong."""

    id: int
    key: str
    turn: str
    session: str
    scope: str
    task: str
    state: DelegationState
    result: str
    started_at: datetime
    ended_at: datetime | None = None
    cost_usd: float | None = 0.0
