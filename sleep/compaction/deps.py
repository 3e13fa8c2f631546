"""Dependencies of compactions: stores, summariser, policy, circuit breaker and clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import ParamSpec, Protocol, TypeVar

from assistant.core.checkpoints import Checkpoint, CheckpointState, Compaction, UserRequest
from assistant.core.dataclass import dataclass
from assistant.core.messages import Message
from assistant.core.ports import BreakersPort
from assistant.core.records import ContextView, LogLocation, LogRecord, TodoItem
from assistant.core.store_ports import Journal
from sleep.compaction.draft_view import original_id
from sleep.compaction.plan import CompactionPlan
from sleep.compaction.planner import plan_compaction
from sleep.compaction.summarise import Summariser
from sleep.compaction.values import BreakerLimits, CompactionInputs, CompactionPolicy, CompactionRequest, Summary

SUMMARY_BREAKER = "summary"
# Triggers for which nobody is waiting.
BACKGROUND_TRIGGERS = ("sleep", "nap", "manual", "economy", "summary")
# Triggers whose only reason is cost: between turns, and before a call with a cold cache.
ECONOMY_TRIGGERS = ("economy", "cold")
MODEL_TIERS = ("full", "partial")
# Note of a failed checkpoint, so that the same compaction is not repeated.
GAINED_NOTHING = "what would have taken the place of the messages was no smaller than they are"
P = ParamSpec("P")
T = TypeVar("T")

_MOST_KNOWN = 40
_MOST_REQUESTS = 50


class CompactionStore(Protocol):
    """The part of `assistant.core.store_ports.Conversation` that compactions use."""

    def load_view(self, session: str) -> ContextView: ...

    def find_log_places(self, message_ids: Sequence[int]) -> dict[int, LogLocation]: ...

    def checkpoints(self, session: str, state: CheckpointState | None = None) -> list[Checkpoint]: ...

    def newest_checkpoints(self, session: str, limit: int) -> list[Checkpoint]: ...

    def live_checkpoints(self, session: str, generation: int) -> list[Checkpoint]: ...

    def begin_compaction(
        self, session: str, prefix_rev: int, trigger: str, ids: tuple[int, int], until: datetime, now: datetime
    ) -> int | None: ...

    def abandon_compaction(self, checkpoint_id: int, note: str) -> None: ...

    def commit_compaction(self, compaction: Compaction, now: datetime) -> Checkpoint: ...


@dataclass(frozen=True, slots=True)
class CompactionDeps:
    """Dependencies of compactions."""

    conversation: CompactionStore
    recent_records: Callable[..., Sequence[LogRecord]]  # (scope, session=, limit=, before_id=): oldest first
    journal: Journal
    open_requests: Callable[..., Sequence[UserRequest]]  # (session, limit=): newest first
    open_todos: Callable[[str], Sequence[TodoItem]]  # of a scope
    breakers: BreakersPort
    summariser: Summariser
    policy: CompactionPolicy
    breaker_limits: BreakerLimits
    lease_duration: timedelta
    sync_journal: Callable[[datetime], None]  # writes the journal entries of committed compactions
    clock: Callable[[], datetime]
    # returns once no message is waiting, or after some seconds
    wait_until_idle: Callable[[], Awaitable[None]] | None = None
    _one_thread: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    async def yield_to_chat(self, request: CompactionRequest) -> None:
        """Between steps, let others use the event loop; in a background compaction, let waiting messages be answered
        first."""
        if self.wait_until_idle is not None and request.trigger in BACKGROUND_TRIGGERS:
            await self.wait_until_idle()
        else:
            await asyncio.sleep(0)

    # ------------------------------------------------------------------------------------------------------------- plan

    async def make_plan(self, request: CompactionRequest) -> CompactionPlan:
        """Return the plan; changes nothing. It is made in a thread: a view may have thousands of messages."""
        view = self.conversation.load_view(request.session)
        await self.yield_to_chat(request)
        ids = [number for row in view.messages if (number := original_id(row)) is not None]
        places, inputs = self.conversation.find_log_places(ids), self.make_inputs(request, view)
        await self.yield_to_chat(request)
        policy = replace(self.policy, strategy="mask") if request.masks_only else self.policy
        return await self.beside_loop(
            plan_compaction, view, places, request.terms, policy, inputs, self.clock(), trigger=request.trigger
        )

    async def beside_loop(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Call `work` in a thread. One at a time: each takes its share of the interpreter from the event loop."""
        async with self._one_thread:
            return await asyncio.to_thread(work, *arguments, **named)

    def live_checkpoints(self, session: str, generation: int) -> tuple[Checkpoint, ...]:
        """Return the session's live checkpoints, oldest range first."""
        live = self.conversation.live_checkpoints(session, generation)
        return tuple(sorted(live, key=lambda checkpoint: checkpoint.from_seq))

    def would_gain_nothing(self, session: str, rows: Sequence[Message]) -> bool:
        """Return whether a summary of these rows was no smaller than they are, and fewer than twice as many are removed
        now."""
        return any(
            len(rows) < 2 * sum((row.id or 0) <= refused.to_message_id for row in rows)
            for refused in self.conversation.checkpoints(session, "failed")
            if refused.note == GAINED_NOTHING and refused.from_message_id == rows[0].id
        )

    def make_inputs(self, request: CompactionRequest, view: ContextView) -> CompactionInputs:
        """Collect the inputs of a plan besides the view."""
        since = self.clock() - timedelta(days=1)
        entries = self.journal.entries(view.scope, since=since, limit=_MOST_KNOWN)
        return CompactionInputs(
            checkpoints=self.live_checkpoints(request.session, view.generation),
            open_requests=tuple(self.open_requests(request.session, limit=_MOST_REQUESTS)),
            tasks=tuple(todo.text for todo in self.open_todos(view.scope)),
            known_facts=tuple(entry.content for entry in entries if entry.source_type != "context_synthesis"),
            focus=request.focus,
        )

    # ---------------------------------------------------------------------------------------------------------- breaker

    def may_call_model(self) -> bool:
        """Return whether a model may be called: the breaker is closed, or allows one attempt after its cool-down."""
        return self.breakers.get(SUMMARY_BREAKER).allows_call(self.clock(), self.breaker_limits.cool_down)

    def record_failure(self, why: str) -> None:
        self.breakers.record_failure(SUMMARY_BREAKER, why, self.breaker_limits.failures, self.clock())

    def record_summary(self, summary: Summary) -> None:
        """Record success or failure of the model."""
        if summary.tier in MODEL_TIERS:
            self.breakers.record_success(SUMMARY_BREAKER)
        elif summary.failures:
            self.record_failure(summary.failures[-1])
