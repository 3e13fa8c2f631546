"""The budget of a sleep cycle, a model wrapper that enforces it, and a helper that collects a whole reply.

Before each call, its worst case is added to what the cycle has spent by the ledger, including failed attempts; if the
sum exceeds the limit, neither this call nor any later one of the cycle is made, and rules do the rest (F32). The same
applies after the app's own budget refuses a call. Calls without a known price cost nothing here, and are bounded by the
general token caps.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from datetime import datetime

from assistant.core.budget import format_usd
from assistant.core.errors import BudgetExceeded, ModelError, RepeatedRequestBlocked
from assistant.core.messages import Usage
from assistant.core.model_api import CallPurpose, ModelEvent, ModelLimits, ModelReply, ModelRequest
from assistant.core.ports import Model

OFFLINE = "offline"
CostFunction = Callable[[str, str, Usage], float | None]
"""(provider, model, usage) -> US dollars; None if no price is known."""

WorstCaseCost = Callable[[Model, ModelRequest], float | None]
"""Maximum cost of a call in US dollars; None if no price is known."""


class SleepBudget:
    """Limits one sleep cycle at a time; inactive between cycles."""

    def __init__(
        self, max_usd: float, spent_since: Callable[[datetime], float], worst_case_cost: WorstCaseCost
    ) -> None:
        """`max_usd` is the limit per cycle (0: none); `spent_since` returns what background work has cost since a
        moment."""
        self._max_usd = max_usd
        self._spent = spent_since
        self._worst_case_cost = worst_case_cost
        self._since: datetime | None = None
        self.exhausted_reason = ""
        """Why the current cycle may make no more calls; "" if it may."""
        self.calls = 0
        """Calls allowed so far, including failed ones and those for summaries."""

    def spent_usd(self) -> float:
        """Return what the current cycle has spent, including failed calls; 0 between cycles. Raises `StoreError`."""
        return 0.0 if self._since is None else self._spent(self._since)

    def start(self, now: datetime) -> None:
        """Start a cycle."""
        self._since, self.exhausted_reason = now, ""

    def stop(self) -> None:
        """End the cycle. Calls between cycles are not limited."""
        self._since, self.exhausted_reason = None, ""

    @property
    def is_limited(self) -> bool:
        """Whether the current cycle has its own limit."""
        return self._since is not None and bool(self._max_usd)

    @property
    def is_exhausted(self) -> bool:
        """Whether the current cycle may make no more calls."""
        return bool(self.exhausted_reason)

    def record_refusal(self, error: BudgetExceeded) -> None:
        """Record that the app's budget refused a call. Ends model use for the current cycle, except for a blocked
        repetition, which concerns only that request."""
        self.calls -= 1
        if self._since is not None and not self.is_exhausted and not isinstance(error, RepeatedRequestBlocked):
            self.exhausted_reason = f"{error.reason}. The rules did the rest"

    def allows_call(self, model: Model, request: ModelRequest) -> bool:
        """Return whether a call may be made, and count it. Raises `StoreError` if the spending is unknown."""
        if self._since is not None and self._max_usd and not self.is_exhausted:
            worst = self._worst_case_cost(model, request)
            if worst and self._spent(self._since) + worst > self._max_usd:
                most = f"{format_usd(self._max_usd)} a sleep (sleep.max_usd)"
                self.exhausted_reason = f"{most} were used up; the rules did the rest"
        self.calls += not self.is_exhausted
        return not self.is_exhausted


class BudgetedModel:
    """Wraps a model for use in sleep cycles. Reports itself as the offline model once the budget is exhausted."""

    def __init__(self, model: Model, sleep_budget: SleepBudget) -> None:
        self._model = model
        self._sleep_budget = sleep_budget

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def provider(self) -> str:
        return OFFLINE if self._sleep_budget.is_exhausted else self._model.provider

    async def limits(self) -> ModelLimits:
        return await self._model.limits()

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent]:
        """As the port says. Raises `BudgetExceeded`, before the model is asked, if the call might cost more than is
        left."""
        if not self._sleep_budget.allows_call(self._model, request):
            raise BudgetExceeded(self._sleep_budget.exhausted_reason)
        try:
            async for event in self._model.stream(request, purpose, session=session, turn=turn):
                yield event
        except BudgetExceeded as error:
            self._sleep_budget.record_refusal(error)
            raise

    async def aclose(self) -> None:
        await self._model.aclose()


async def complete(model: Model, request: ModelRequest, purpose: CallPurpose, session: str) -> ModelReply:
    """Collect the complete reply. Raises `ModelError`, also if the stream ends without a reply, and `StoreError` if the
    call cannot be metered."""
    reply: ModelReply | None = None
    async with aclosing(model.stream(request, purpose, session=session)) as events:
        async for event in events:
            if isinstance(event, ModelReply):
                reply = event
    if reply is None:
        raise ModelError("the stream ended without an answer", kind="network")
    return reply


def cost_of_reply(model: Model, reply: ModelReply, cost: CostFunction) -> float | None:
    """Return the cost as billed, else by price, in US dollars; None if no price is known."""
    billed = reply.usage.cost_usd
    return cost(model.provider, reply.message.model or model.name, reply.usage) if billed is None else billed
