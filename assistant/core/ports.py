"""The seams of the house: what each room offers, and what it may raise.

Rules for every implementation:
- Only values of `assistant.core.messages`, of this module and plain JSON cross a port; SDK objects and rows stop
  behind it.
- `now` is an aware UTC datetime given by the caller; no port reads a clock for what it stores.
- Stores are synchronous and short (milliseconds), safe to call from one thread at a time, and raise `StoreError`
  (disk full, I/O error) with nothing half-written: either the whole call took effect or none of it.
- Every query that returns words takes a scope, and returns nothing of another scope (I10).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from assistant.core.caps import Standing
from assistant.core.messages import Media, Message, RecordKind, Role, ToolCall, Usage
from assistant.core.records import (
    Accepted,
    Calibration,
    Hit,
    InboxItem,
    Incoming,
    LogPlace,
    OutboxItem,
    OutboxState,
    Outgoing,
    Reconciled,
    Record,
    Report,
    SessionInfo,
    Todo,
    ToolRun,
    Turn,
    TurnState,
    View,
)
from assistant.core.requests import Call, Limits, ModelEvent, Purpose, Request, Reservation, Spent, ToolSpec, UsageKey
from assistant.core.reset_ports import Turnover
from assistant.core.sleep_ports import Compactions

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

    async def limits(self) -> Limits:
        """What a request may hold. Never raises: without an answer from the provider it tells a careful default."""
        ...

    def stream(
        self, request: Request, purpose: Purpose = "chat", *, session: str | None = None, turn: str | None = None
    ) -> AsyncGenerator[ModelEvent]:
        """Yield deltas and notices, then exactly one `Reply`.

        Raises `ModelError` and nothing else; closing the iterator aborts the call. `session` and
        `turn` name what the call is made for, so that its cost can be accounted."""
        ...

    async def aclose(self) -> None: ...


class Ledger(Protocol):
    """Metering with caps (I9): reserve before each attempt, settle after it."""

    def reserve(self, call: Call, now: datetime) -> Reservation:
        """Raises `BudgetExceeded` when the worst case would pass a daily or monthly cap; then nothing was written."""
        ...

    def settle(self, reservation: Reservation, usage: Usage, now: datetime) -> None:
        """Replace the worst case by what was billed. A call that failed before anything was billed settles zero."""
        ...

    def spent(self, since: datetime, until: datetime, *, session: str | None = None) -> Spent: ...

    def by(self, key: UsageKey, since: datetime) -> list[tuple[str, Spent]]: ...
    def standing(self, now: datetime) -> Standing:
        """How the caps stand, from sums that are kept."""
        ...


Effects = Literal["none", "keyed", "once"]


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
    purpose: Purpose = "chat"


class Tool(Protocol):
    """Something the model may run.

    `effects` decides what a restart does with a run that a crash interrupted: "none" (only reads) and "keyed" (the
    effect carries `ToolContext.key`, a second run finds it done) run again under the same key; "once" is reported to
    the model as interrupted. `protected` results survive compaction. `roles` are the roles whose sessions see it.
    """

    @property
    def spec(self) -> ToolSpec: ...
    @property
    def effects(self) -> Effects: ...
    @property
    def protected(self) -> bool: ...
    @property
    def roles(self) -> frozenset[str]: ...
    @property
    def timeout_seconds(self) -> float: ...

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """The result as text. Raises `ToolError` with what to do differently."""
        ...


class TurnFiles(Protocol):
    """Files that go out with the answer of the turn that runs."""

    def add(self, media: Media, context: ToolContext) -> None:
        """Under the context's key, once. Durable when it returns; gone where the turn fails."""
        ...

    def of_turn(self, turn: str) -> tuple[Media, ...]: ...


class Toolbox(Protocol):
    """The tools of one session. `protected` names those whose last result survives every compaction."""

    @property
    def protected(self) -> frozenset[str]: ...

    def specs(self, role: str) -> tuple[ToolSpec, ...]:
        """What a session of this role ("owner", "guest", "room") is offered, in a stable order (prompt cache)."""
        ...

    def effects(self, name: str) -> Effects: ...

    async def run(self, call: ToolCall, context: ToolContext, role: str) -> tuple[str, bool]:
        """(result text, ok). Never raises but for cancellation: an unknown tool, wrong arguments, a missing
        permission, a failure or a timeout comes back as text that the model can act on, with ok False."""
        ...


# --------------------------------------------------------------------------------------------------------------- stores


class Conversation(Compactions, Turnover, Protocol):
    """Inbox, master log, message index, working context and turns of a home: the order of I1 lives behind this port.

    Every method that takes messages writes the log first (one fsync), then one transaction on the database. A crash
    between the two is settled by `reconcile`."""

    def reconcile(self, now: datetime) -> Reconciled: ...

    # inbox
    def accept(self, incoming: Incoming, now: datetime) -> Accepted:
        """Store the whole message, durably, before anyone acknowledges it. Idempotent on (bridge, external_id): the
        first one stays, and whether a later one says the same is told."""
        ...

    def waiting(self) -> list[str]:
        """Sessions that have accepted messages nobody has taken, oldest first."""
        ...

    def inbox(self, session: str, *, limit: int = 100) -> list[InboxItem]:
        """Accepted, not yet taken messages of a session, oldest first."""
        ...

    def inbox_item(self, inbox_id: int) -> InboxItem | None: ...

    # turns
    def begin_turn(self, item: InboxItem, volatile: str, now: datetime) -> Turn:
        """Log the user's message, show it in the view, open the turn, mark the item running."""
        ...

    def steer(self, turn: Turn, item: InboxItem, now: datetime) -> Turn:
        """A waiting message joins the running turn: logged, shown, its item running under this turn."""
        ...

    def record(self, turn: Turn, messages: Sequence[Message], now: datetime) -> tuple[Message, ...]:
        """Log messages of a running turn (one fsync) and show them in the view (one commit). Tool results end their
        tool run. Returns them as the view has them: with ids, long tool output shortened."""
        ...

    def start_tool(self, turn: Turn, call: ToolCall, now: datetime) -> None:
        """Note that a tool is about to run, before it does."""
        ...

    def tool_runs(self, turn: Turn) -> list[ToolRun]: ...

    def last_volatile(self, session: str) -> str:
        """The volatile block of the session's newest turn; "" before the first."""
        ...

    def turn_messages(self, turn: Turn) -> tuple[Message, ...]:
        """What the log has of this turn so far, as the view shows it, oldest first."""
        ...

    def finish_turn(
        self,
        turn: Turn,
        state: TurnState,
        reply: Message | None,
        outgoing: Sequence[Outgoing],
        now: datetime,
        *,
        error: str = "",
    ) -> Message | None:
        """End the turn: reply to the log, then view, outbox, inbox states and turn in one transaction.

        A reply that already has an id (adopted after a crash) is not logged again. `outgoing` without message id gets
        the reply's. state answered -> items answered; failed or aborted -> items failed."""
        ...

    def supersede(self, items: Sequence[InboxItem], outgoing: Sequence[Outgoing], now: datetime) -> None:
        """Waiting messages that will not be answered: logged and shown, their items superseded."""
        ...

    # the view
    def view(self, session: str) -> View: ...

    def places(self, message_ids: Sequence[int]) -> dict[int, LogPlace]:
        """Where the log has these messages; ids that the index does not know are left out."""
        ...

    def report_usage(self, session: str, prefix_rev: int, prompt_tokens: int, last_message_id: int) -> None: ...

    def undo(self, session: str, message_ids: Sequence[int], now: datetime, *, by: str = "owner") -> Record:
        """Hide messages from the view and say so in the log (kind undo). Bumps prefix_rev."""
        ...

    def annotate(self, session: str, kind: RecordKind, refs: Sequence[int], content: str, now: datetime) -> Record:
        """Record that a message was edited or deleted on its bridge; the model sees it as a fact in the view."""
        ...

    def sessions(self) -> list[SessionInfo]: ...


class Outbox(Protocol):
    """Replies and notices on their way out (I8)."""

    def push(self, outgoing: Outgoing, now: datetime) -> OutboxItem:
        """Store a notice. A key that exists keeps its first body, and that item is returned."""
        ...

    def pending(
        self, bridge: str, *, limit: int = 100, beside: Collection[str] = (), but: Collection[int] = ()
    ) -> list[OutboxItem]:
        """Items in state pending or sending, oldest first, but those to the targets `beside` and with the ids `but`."""
        ...

    def still_open(self, item_id: int) -> OutboxItem | None:
        """The item as it is now; None where it is not to be sent any more."""
        ...

    def mark(self, item_id: int, state: OutboxState, now: datetime, *, error: str = "") -> None: ...

    def give_up(self, item_id: int, state: OutboxState, error: str, notice: Outgoing | None, now: datetime) -> None:
        """It is not sent again by itself; stored together with the notice that tells of it."""
        ...

    def part_sent(self, item_id: int, parts: int, now: datetime) -> None:
        """The network has so many of its parts."""
        ...

    def redirect(self, item_id: int, bridge: str, target: str, now: datetime) -> None:
        """What is to be sent goes there instead."""
        ...

    def counts(self) -> dict[OutboxState, int]: ...

    def waiting(self, bridge: str) -> int:
        """How many items are pending or being sent there."""
        ...

    def recent(self, session: str, *, limit: int = 20) -> list[OutboxItem]: ...

    def by_turn(self, turn: str) -> list[OutboxItem]: ...


class History(Protocol):
    """Everything ever said, by words, by id, by byte range; only ever within one scope."""

    async def ready(self) -> None:
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
    ) -> list[Hit]: ...

    def read(self, message_id: int, scope: str, *, neighbours: int = 0) -> list[Record]:
        """The message and `neighbours` on each side of it in its session, oldest first; empty if not in scope."""
        ...

    def read_span(self, session: str, start: int, end: int, scope: str) -> list[Record]:
        """The records that lie in bytes [start, end) of the session's log, whole records only."""
        ...

    def recent(
        self, scope: str, *, session: str | None = None, limit: int = 50, before_id: int | None = None
    ) -> list[Record]: ...


class Todos(Protocol):
    """The to-do list of a scope. Changes carry a key: applied once, however often they are called."""

    def all(self, scope: str, *, include_done: bool = False) -> list[Todo]: ...
    def add(self, scope: str, texts: Sequence[str], key: str, now: datetime) -> list[Todo]: ...
    def complete(self, scope: str, ids: Sequence[int], key: str, now: datetime) -> list[Todo]:
        """Raises `ToolError` naming the ids that do not exist; then none is changed."""
        ...

    def remove(self, scope: str, ids: Sequence[int], key: str, now: datetime) -> list[Todo]: ...


class ModelFacts(Protocol):
    """What was learned of models and is worth remembering: correction factors, context windows."""

    def calibration(self, model: str) -> Calibration | None: ...
    def set_calibration(self, calibration: Calibration, now: datetime) -> None: ...
    def limits(self, model: str) -> Limits | None: ...
    def set_limits(self, model: str, limits: Limits, now: datetime) -> None: ...


class Verifier(Protocol):
    """Proof of I2 and I3: chain, commitments, index against log, coverage, foreign keys."""

    def verify(self) -> Report: ...

    def repair(self, now: datetime) -> Report:
        """Rebuild the message index from the log alone, then verify."""
        ...


# -------------------------------------------------------------------------------------------------------------- control


class Control(Protocol):
    """What a person's tools may ask of the running daemon; the control API puts it on a socket."""

    async def accept(self, incoming: Incoming) -> Accepted: ...

    async def command(self, text: str, session: str, *, bridge: str = "terminal") -> str:
        """Run a slash command (`/status`, `/undo`, ...) and return what to show, as Markdown. Raises `UsageError`."""
        ...

    async def stop_turn(self, session: str) -> bool:
        """Abort the running turn of a session; False when none runs."""
        ...

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        """What became of an accepted message: `state` (inbox state), `reply`, `error`, `exit_code`, `session`, `turn`,
        `model`, `usage` {input, output, cache_read, cache_write, cost_usd}, `pressure`."""
        ...

    def status(self) -> Mapping[str, Any]:
        """Health as plain JSON; `ok` is False when anything needs a person (I11)."""
        ...
