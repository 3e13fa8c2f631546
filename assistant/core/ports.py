"""The seams between rooms: models, tools, small stores, and what a client may ask of the daemon; the larger storage
seams are in `store_ports` and `memory_api`.

Rules for every implementation:
- Only values of `assistant.core` and plain JSON cross a port; SDK objects and rows stop behind it.
- `now` is an aware UTC datetime given by the caller; no port reads a clock for what it stores.
- Stores are synchronous and short (milliseconds), safe to call from one thread at a time, and raise `StoreError`
  (disk full, I/O error) with nothing half-written: either the whole call took effect or none of it.
- Every query that returns words takes a scope, and returns nothing of another scope (I10).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
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
    """A language model. Always streamed; retries and metering are not its business (`models/failover.py` is)."""

    @property
    def name(self) -> str:
        """The model's name as its provider spells it."""

    @property
    def provider(self) -> str:
        """`anthropic`, `openai`, `offline`."""

    async def limits(self) -> ModelLimits:
        """What a request may hold. Never raises: without an answer from the provider it tells a careful default."""

    def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent]:
        """Yield deltas and notices, then exactly one `Reply`.

        Raises `ModelError` and nothing else; closing the iterator aborts the call. `session` and
        `turn` name what the call is made for, so that its cost can be accounted."""

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ModelPair:
    """The models of a home at one moment.

    - `answering`: the model of conversations.
    - `writing`: the economical model, for summaries and journal entries.
    """

    answering: Model
    writing: Model


UseModels = Callable[[], AbstractContextManager[ModelPair]]
"""The models of now, which are not closed while they are in use, whatever is chosen meanwhile."""


class OutageLog(Protocol):
    """Which models do not answer. `model` is a provider and a name. Raises nothing: an answer does not wait for it."""

    def record_failure(self, model: str, name: str, error: ModelError, reason: str, purpose: CallPurpose) -> None:
        """It could not be reached, or refused everything, and is not asked again for this call."""

    def record_answer(self, model: str, behind: Collection[str] = ()) -> None:
        """It answered, so that those `behind` it are not asked: what kept them from answering is no outage."""

    def keep_only(self, models: Collection[str]) -> None:
        """No other model is asked any more."""


class LedgerPort(Protocol):
    """Metering with caps (I9): reserve before each attempt, settle after it."""

    def reserve(self, call: ModelCall, now: datetime) -> Reservation:
        """Raises `BudgetExceeded` when the worst case would pass a daily or monthly cap; then nothing was written."""

    def settle_reservation(
        self, reservation: Reservation, usage: Usage, now: datetime, parts: Mapping[PromptPart, Usage] = ...
    ) -> None:
        """Replace the worst case by what was billed, of all and of each part where the provider said it. A call that
        failed before anything was billed settles zero."""


ToolEffects = Literal["none", "keyed", "once"]
ToolTouch = Literal["reads", "writes", "network", "money", "people"]
"""What a tool touches: it shows words that are stored somewhere, here or on the web; changes something; sends something
out; pays; or has an effect on other people."""

ASKED_TOUCHES: frozenset[ToolTouch] = frozenset({"writes", "network", "money", "people"})
"""What needs the person's word."""


@dataclass(frozen=True, slots=True)
class WordsOfCall:
    """When the person's own words are found to ask for a call: their words have these arguments.

    - `words`, `times`, `files`, `addresses`: arguments whose content words, whose time, the name of whose file, and
      whose address of a page they have. Addresses, and words with `in_questions`, may stand in a question, too.
    - `free`: arguments that change nothing of what is done.
    - `fixed`: the values that other arguments must have. Any other argument is not asked for by words alone.
    - `subjects`: texts that a call is about; it is asked for where the words have some content word of each.
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
    key: str  # unique and stable for this call (the same after a crash), for tools whose effect is keyed
    now: datetime
    purpose: CallPurpose = "chat"  # what the turn calls the model for, and so what a tool does that calls it too (I9)


class Tool(Protocol):
    """Something the model may run.

    `effects` decides what a restart does with a run that a crash interrupted: "none" (only reads) and "keyed" (the
    effect carries `ToolContext.key`, a second run finds it done) run again under the same key; "once" is reported to
    the model as interrupted. `protected` results survive compaction. `roles` are the roles whose sessions see it.
    `touches` is all that it may do; `words` says when the person's own words ask for a call, None: never by themselves.
    A tool with a `topic` ("calendar") is in no prompt: a model finds it by that and by its description.
    A call of one that is `asked_each_time` needs an approval whatever was said and read.
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
        """What the owner may allow together with this call; None where each is asked about."""

    def needs_word(self, arguments: Mapping[str, Any], context: ToolContext) -> bool:
        """Whether this call does something that needs the person's word, rather than only look."""

    async def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """What the call will do, as a person reads it: `set a reminder: "…", tomorrow at 9`. Raises `ToolError` where
        it would be refused anyhow."""

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """The result as text. Raises `ToolError` with what to do differently."""


# --------------------------------------------------------------------------------------------------------------- stores


class ModelFactsPort(Protocol):
    """What a provider said of its models, kept for the next start."""

    def limits(self, model: str) -> ModelLimits | None: ...
    def set_limits(self, model: str, limits: ModelLimits, now: datetime) -> None: ...


# -------------------------------------------------------------------------------------------------------------- control


class BreakersPort(Protocol):
    """Circuit breakers that survive a restart (F07)."""

    def get(self, name: str) -> CircuitBreaker: ...
    def record_failure(self, name: str, error: str, limit: int, now: datetime) -> CircuitBreaker:
        """One more failure; from `limit` in a row on, open since now."""

    def record_success(self, name: str) -> None: ...
