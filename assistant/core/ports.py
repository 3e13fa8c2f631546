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

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from assistant.core.budget import BudgetStatus
from assistant.core.checkpoints import (
    CircuitBreaker,
    RequestState,
    UserRequest,
)
from assistant.core.messages import Role, ToolCall, Usage
from assistant.core.model_api import (
    CallPurpose,
    ModelCall,
    ModelEvent,
    ModelLimits,
    ModelRequest,
    Reservation,
    SpendTotals,
    ToolSpec,
    UsageKey,
)
from assistant.core.records import (
    LogRecord,
    SearchHit,
    TodoItem,
    TokenCalibration,
)

# --------------------------------------------------------------------------------------------------------------- models


class Model(Protocol):
    """A language model. Always streamed; retries and metering are not its business (`models/failover.py` is)."""

    @property
    def name(self) -> str:
        """The model's name as its provider spells it."""
        ...

    @property
    def provider(self) -> str:
        """`anthropic`, `openai`, `offline`."""
        ...

    async def limits(self) -> ModelLimits:
        """What a request may hold. Never raises: without an answer from the provider it tells a careful default."""
        ...

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
        ...

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


class LedgerPort(Protocol):
    """Metering with caps (I9): reserve before each attempt, settle after it."""

    def reserve(self, call: ModelCall, now: datetime) -> Reservation:
        """Raises `BudgetExceeded` when the worst case would pass a daily or monthly cap; then nothing was written."""
        ...

    def settle_reservation(self, reservation: Reservation, usage: Usage, now: datetime) -> None:
        """Replace the worst case by what was billed. A call that failed before anything was billed settles zero."""
        ...

    def total_spent(self, since: datetime, until: datetime, *, session: str | None = None) -> SpendTotals: ...

    def spent_by(self, key: UsageKey, since: datetime) -> list[tuple[str, SpendTotals]]: ...
    def budget_status(self, now: datetime) -> BudgetStatus:
        """How the caps stand, from sums that are kept."""
        ...


ToolEffects = Literal["none", "keyed", "once"]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may know of the call: whose scope it runs in, in which session and turn, when. `key` is unique and
    stable for this call (the same after a crash), for tools whose effect is keyed. `purpose` is what the turn calls the
    model for, and so what a tool does that calls it too (I9)."""

    session: str
    scope: str
    turn: str
    key: str
    now: datetime
    purpose: CallPurpose = "chat"


class Tool(Protocol):
    """Something the model may run.

    `effects` decides what a restart does with a run that a crash interrupted: "none" (only reads) and "keyed" (the
    effect carries `ToolContext.key`, a second run finds it done) run again under the same key; "once" is reported to
    the model as interrupted. `protected` results survive compaction. `roles` are the roles whose sessions see it.
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

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """The result as text. Raises `ToolError` with what to do differently."""
        ...


class ToolboxPort(Protocol):
    """The tools of one session. `protected` names those whose last result survives every compaction."""

    @property
    def protected(self) -> frozenset[str]: ...

    def specs(self, role: str) -> tuple[ToolSpec, ...]:
        """What a session of this role ("owner", "guest", "room") is offered, in a stable order (prompt cache)."""
        ...

    def effects(self, name: str) -> ToolEffects: ...

    async def run(self, call: ToolCall, context: ToolContext, role: str) -> tuple[str, bool]:
        """(result text, ok). Never raises but for cancellation: an unknown tool, wrong arguments, a missing
        permission, a failure or a timeout comes back as text that the model can act on, with ok False."""
        ...


# --------------------------------------------------------------------------------------------------------------- stores


class HistoryPort(Protocol):
    """Everything ever said, by words, by id, by byte range; only ever within one scope."""

    async def prepare_search(self) -> None:
        """Prepare a search: one that would take in much first has that done beside the loop. Raises `StoreError`."""
        ...

    def search(
        self,
        query: str,
        scope: str,
        *,
        limit: int = 8,
        roles: Sequence[Role] = ("user", "assistant", "tool"),
        after: datetime | None = None,
        before: datetime | None = None,
        session: str | None = None,
    ) -> list[SearchHit]: ...

    def read(self, message_id: int, scope: str, *, neighbours: int = 0) -> list[LogRecord]:
        """The message and `neighbours` on each side of it in its session, oldest first; empty if not in scope."""
        ...

    def read_byte_range(self, session: str, start: int, end: int, scope: str) -> list[LogRecord]:
        """The records that lie in bytes [start, end) of the session's log, whole records only."""
        ...

    def recent(
        self, scope: str, *, session: str | None = None, limit: int = 50, before_id: int | None = None
    ) -> list[LogRecord]: ...


class TodosPort(Protocol):
    """The to-do list of a scope. Changes carry a key: applied once, however often they are called."""

    def list_todos(self, scope: str, *, include_done: bool = False) -> list[TodoItem]: ...
    def add(self, scope: str, texts: Sequence[str], key: str, now: datetime) -> list[TodoItem]: ...
    def complete(self, scope: str, ids: Sequence[int], key: str, now: datetime) -> list[TodoItem]:
        """Raises `ToolError` naming the ids that do not exist; then none is changed."""
        ...

    def remove(self, scope: str, ids: Sequence[int], key: str, now: datetime) -> list[TodoItem]: ...


class ModelFactsPort(Protocol):
    """What was learned of models and is worth remembering: correction factors, context windows."""

    def calibration(self, model: str) -> TokenCalibration | None: ...
    def set_calibration(self, calibration: TokenCalibration, now: datetime) -> None: ...
    def limits(self, model: str) -> ModelLimits | None: ...
    def set_limits(self, model: str, limits: ModelLimits, now: datetime) -> None: ...


# -------------------------------------------------------------------------------------------------------------- control


class RequestsPort(Protocol):
    """What people asked for and what became of it (script.db). `Conversation` opens requests and closes those that
    were answered."""

    def list_open(self, session: str, *, limit: int = 200) -> list[UserRequest]:
        """The open ones, newest first."""
        ...

    def list_requests(self, scope: str, *, limit: int = 100) -> list[UserRequest]:
        """Of a scope in every state, newest first."""
        ...

    def close_requests(
        self,
        session: str,
        message_ids: Sequence[int],
        state: RequestState,
        by: str,
        cites: Sequence[int],
        now: datetime,
    ) -> list[UserRequest]:
        """Mark them done or superseded, or open again; repeating it changes nothing. Raises `UsageError` naming ids
        that are no requests of the session; then none is changed."""
        ...


class BreakersPort(Protocol):
    """Fuses that survive a restart (script.db)."""

    def get(self, name: str) -> CircuitBreaker: ...
    def record_failure(self, name: str, error: str, limit: int, now: datetime) -> CircuitBreaker:
        """One more failure; from `most` in a row on, open since now."""
        ...

    def record_success(self, name: str) -> None: ...
