"""Ports between rooms: models, tools, small stores, and the daemon's client interface; the larger storage ports are in
`store_ports` and `memory_api`.

Rules for every implementation:
- Only values of `assistant.core` and plain JSON cross a port; SDK objects and rows do not.
- `now` is an aware UTC datetime from the caller; no port reads a clock for what it stores.
- Stores are synchronous and fast (milliseconds), safe to call from one thread at a time, and raise `StoreError` (disk
  full, I/O error) without partial effects: a call is atomic.
- Every query that returns text takes a scope, and returns nothing of another scope (I10).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import datetime
from typing import Any, Literal, Protocol

from assistant.core.approvals import ApprovalPattern
from assistant.core.checkpoints import CircuitBreaker
from assistant.core.dataclass import dataclass
from assistant.core.errors import ModelError
from assistant.core.messages import Usage
from assistant.core.model_api import (
    CallPurpose,
    ModelCall,
    ModelEvent,
    ModelLimits,
    ModelRequest,
    PromptPart,
    Reservation,
    ToolSpec,
)

# --------------------------------------------------------------------------------------------------------------- models


class Model(Protocol):
    """A language model. Replies are always streamed; retries and metering are done elsewhere (`models/failover.py`)."""

    @property
    def name(self) -> str:
        """The provider's name for the model."""

    @property
    def provider(self) -> str:
        """`anthropic`, `openai` or `offline`."""

    async def limits(self) -> ModelLimits:
        """Return the request limits. Never raises: conservative defaults if the provider does not answer."""

    def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent]:
        """Yield deltas and notices, then exactly one `ModelReply`.

        Raises only `ModelError`; closing the iterator aborts the call. `session` and `turn` attribute the cost.
        """

    async def aclose(self) -> None:
        """Close the connections."""


@dataclass(frozen=True, slots=True)
class ModelPair:
    """The models of a home at one moment.

    - `answering`: the model of conversations.
    - `writing`: the economical model, for summaries and journal entries.
    """

    answering: Model
    writing: Model


UseModels = Callable[[], AbstractContextManager[ModelPair]]
"""The current models, which stay open while in use even if the settings change."""


class OutageLog(Protocol):
    """Records which models do not answer. `model` is provider and name. Never raises, so that it cannot fail a
    reply."""

    def record_failure(self, model: str, name: str, error: ModelError, reason: str, purpose: CallPurpose) -> None:
        """Record that the model failed and is not tried again for this call."""

    def record_answer(self, model: str, behind: Collection[str] = ()) -> None:
        """Record that the model answered. Those `behind` it are not tried, so their earlier failures no longer count as
        an outage."""

    def keep_only(self, models: Collection[str]) -> None:
        """Forget outages of models that are no longer configured."""


class LedgerPort(Protocol):
    """Metering with caps (I9): reserve before each attempt, settle afterwards."""

    def reserve(self, call: ModelCall, now: datetime) -> Reservation:
        """Raises `BudgetExceeded`, without writing, if the worst case would exceed a daily or monthly cap."""

    def settle_reservation(
        self, reservation: Reservation, usage: Usage, now: datetime, parts: Mapping[PromptPart, Usage] = ...
    ) -> None:
        """Replace the worst case by what was billed, in total and per part where the provider reports it. A call that
        failed before anything was billed settles zero."""


Barrier = Callable[[int], Awaitable[None]]
"""Waits until what was committed is kept on another machine as well; the number is how many messages are acknowledged
behind it. Raises `ReplicaUnavailable`. Where there is no other machine there is no barrier (None)."""

ToolEffects = Literal["none", "keyed", "once"]
ToolTouch = Literal["reads", "writes", "network", "money", "people"]
"""What a tool touches: it returns stored or web text; changes data; sends data out; spends money; or affects other
people."""

ASKED_TOUCHES: frozenset[ToolTouch] = frozenset({"writes", "network", "money", "people"})
"""Touches that need the user's request or approval."""


@dataclass(frozen=True, slots=True)
class WordsOfCall:
    """How the user's own message must match a call's arguments to count as a request for it.

    - `words`, `times`, `files`, `addresses`: arguments that must occur in the message: by content words, as a time, by
      file name, as a URL. Addresses, and words with `in_questions`, may also occur in a question.
    - `free`: arguments without an effect on what is done.
    - `fixed`: required values of other arguments. Any argument not listed here prevents a match.
    - `subjects`: texts the call is about; the message must share a content word with each.
    """

    words: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    in_questions: bool = False
    fixed: Mapping[str, str] = field(default_factory=dict)
    subjects: Callable[[ToolContext, Mapping[str, Any]], Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may know of its call."""

    session: str
    scope: str
    turn: str
    key: str  # unique and stable across restarts, for keyed effects
    now: datetime
    purpose: CallPurpose = "chat"  # the purpose of the turn's model calls, also for those a tool makes (I9)


class Tool(Protocol):
    """Something the model may run.

    - `effects`: how a restart handles an interrupted run. "none" (only reads) and "keyed" (idempotent under
      `ToolContext.key`) run again with the same key; "once" is reported to the model as interrupted.
    - `protected`: its results survive compaction.
    - `roles`: the roles whose sessions see it.
    - `touches`: everything it may do.
    - `words`: when the user's own message counts as a request for a call; None: never by itself.
    - `topic` (e.g. "calendar"): if set, the tool is not in the prompt; the model finds it by topic and description.
    - `asked_each_time`: every call needs an approval, whatever was said and read.
    """

    @property
    def spec(self) -> ToolSpec: ...
    @property
    def effects(self) -> ToolEffects: ...
    @property
    def protected(self) -> bool: ...
    @property
    def roles(self) -> frozenset[str]: ...
    @property
    def timeout_seconds(self) -> float: ...
    @property
    def topic(self) -> str: ...
    @property
    def touches(self) -> frozenset[ToolTouch]: ...
    @property
    def words(self) -> WordsOfCall | None: ...

    @property
    def asked_each_time(self) -> bool: ...

    def pattern(self, arguments: Mapping[str, Any], context: ToolContext) -> ApprovalPattern | None:
        """Return what the owner may allow together with this call, or None if each call needs its own approval."""

    def needs_word(self, arguments: Mapping[str, Any], context: ToolContext) -> bool:
        """Return whether this call needs the user's request or approval, as opposed to only reading."""

    async def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Describe the call for people: `set a reminder: "…", tomorrow at 9`. Raises `ToolError` if it would be refused
        anyway."""

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Return the result as text. Raises `ToolError` with what to do differently."""


# --------------------------------------------------------------------------------------------------------------- stores


class ModelFactsPort(Protocol):
    """Limits that providers reported for their models, persisted across restarts."""

    def limits(self, model: str) -> ModelLimits | None:
        """Return None if the provider was never asked."""

    def set_limits(self, model: str, limits: ModelLimits, now: datetime) -> None: ...


# -------------------------------------------------------------------------------------------------------------- control


class BreakersPort(Protocol):
    """Circuit breakers, persisted across restarts (F07)."""

    def get(self, name: str) -> CircuitBreaker:
        """Return a closed breaker if nothing failed."""

    def record_failure(self, name: str, error: str, limit: int, now: datetime) -> CircuitBreaker:
        """Count a failure; opens the breaker at `limit` consecutive ones."""

    def record_success(self, name: str) -> None:
        """Close the breaker and forget its failures."""
