"""What a compaction works with: the stores that it reads, the summariser, its rules, its fuse and the clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from assistant.core.checkpoints import Checkpoint
from assistant.core.ports import BreakersPort, HistoryPort, RequestsPort, TodosPort
from assistant.core.records import ContextView
from assistant.core.store_ports import Conversation, Journal
from sleep.compaction.orders import Order
from sleep.compaction.plan import Plan
from sleep.compaction.planner import plan
from sleep.compaction.policy import Keeping, Policy
from sleep.compaction.summariser import Summariser
from sleep.compaction.summary import Summary

FUSE = "summary"
# Triggers behind which nobody waits to be answered.
_PATIENT = ("sleep", "nap", "manual")
BY_MODEL = ("full", "partial")
_MOST_KNOWN = 40
_MOST_REQUESTS = 50


@dataclass(frozen=True, slots=True)
class Fuses:
    """After `failures` in a row no model is asked for `cool_down`; then one try is let through."""

    failures: int
    cool_down: timedelta


@dataclass(frozen=True, slots=True)
class Means:
    """`settle` writes what finished compactions leave for the journal; `holder` names this process for leases, which
    last for `lease`; `quiet` returns once nobody waits for an answer, or after some seconds."""

    conversation: Conversation
    history: HistoryPort
    journal: Journal
    requests: RequestsPort
    todos: TodosPort
    breakers: BreakersPort
    summariser: Summariser
    policy: Policy
    fuses: Fuses
    holder: str
    lease: timedelta
    settle: Callable[[datetime], None]
    clock: Callable[[], datetime]
    quiet: Callable[[], Awaitable[None]] | None = None

    async def give_way(self, order: Order) -> None:
        """Between two steps: whoever said something meanwhile is answered first, unless they wait for this."""
        if self.quiet is not None and order.trigger in _PATIENT:
            await self.quiet()

    # ------------------------------------------------------------------------------------------------------------- plan

    async def plan(self, order: Order) -> Plan:
        """What would be done first; changes nothing, and gives way between its steps."""
        view = self.conversation.view(order.session)
        await self.give_way(order)
        ids = [message.id for message in view.messages if message.id is not None]
        places, keeping = self.conversation.places(ids), self._keeping(order, view)
        await self.give_way(order)
        return plan(view, places, order.terms, self.policy, keeping, self.clock(), trigger=order.trigger)

    def live(self, session: str, generation: int) -> tuple[Checkpoint, ...]:
        """The session's live checkpoints, oldest range first."""
        found = [c for c in self.conversation.checkpoints(session) if c.state == "live" and c.generation == generation]
        return tuple(sorted(found, key=lambda one: one.from_message_id))

    def _keeping(self, order: Order, view: ContextView) -> Keeping:
        since = self.clock() - timedelta(days=1)
        known = self.journal.entries(view.scope, since=since, limit=_MOST_KNOWN)
        return Keeping(
            checkpoints=self.live(order.session, view.generation),
            requests=tuple(self.requests.open(order.session, limit=_MOST_REQUESTS)),
            tasks=tuple(todo.text for todo in self.todos.all(view.scope)),
            known=tuple(entry.content for entry in known if entry.source_type != "context_synthesis"),
            focus=order.focus,
        )

    # ------------------------------------------------------------------------------------------------------------- fuse

    def may_ask(self) -> bool:
        """Whether a model may be asked: the fuse is whole, or its cool-down is over and this is the one try."""
        return self.breakers.get(FUSE).lets_through(self.clock(), self.fuses.cool_down)

    def failed(self, why: str) -> None:
        self.breakers.failed(FUSE, why, self.fuses.failures, self.clock())

    def judge(self, summary: Summary) -> None:
        """A model was asked: did it serve?"""
        if summary.tier in BY_MODEL:
            self.breakers.succeeded(FUSE)
        elif summary.failures:
            self.failed(summary.failures[-1])
