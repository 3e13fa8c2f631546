"""What a sleep may spend, a model that is asked only while that lasts, and how a model is asked for a whole reply.

What always holds: before each call its worst case is added to what this sleep has spent by the ledger, failed tries
included; where both together pass the limit the call is not made, and nor is any later one of that sleep. Then it is as
if there were no model: the rules do the rest (F32). So it is once the budget of the app refuses a call: nobody is
asked in the rest of that sleep, rather than be refused again and again. What has no known price counts nothing, and is
bounded by the caps in tokens that hold for every call.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from datetime import datetime

from assistant.core.errors import BudgetExceeded, ModelError, RepeatedRequestBlocked
from assistant.core.messages import Usage
from assistant.core.model_api import CallPurpose, ModelEvent, ModelLimits, ModelReply, ModelRequest
from assistant.core.ports import Model

OFFLINE = "offline"
CostFunction = Callable[[str, str, Usage], float | None]
"""(provider, model, usage) -> US dollars; None where no price is known."""

WorstCaseCost = Callable[[Model, ModelRequest], float | None]
"""The most that a call may cost, in US dollars; None where no price is known."""


class SleepBudget:
    """Limits one sleep at a time; between sleeps it limits nothing."""

    def __init__(
        self, max_usd: float, spent_since: Callable[[datetime], float], worst_case_cost: WorstCaseCost
    ) -> None:
        """`max_usd` a sleep, 0: no limit; `spent_since` tells what sleeping has cost since a moment."""
        self._max_usd = max_usd
        self._spent = spent_since
        self._worst_case_cost = worst_case_cost
        self._since: datetime | None = None
        self.exhausted_reason = ""
        """Why the sleep that is under way asks no model any more; "" while it may."""
        self.calls = 0
        """Those that were let through so far, failed ones and summaries included."""

    def spent_usd(self) -> float:
        """By the sleep that is under way, calls that failed included; 0 between sleeps. Raises `StoreError`."""
        return 0.0 if self._since is None else self._spent(self._since)

    def start(self, now: datetime) -> None:
        """A sleep begins."""
        self._since, self.exhausted_reason = now, ""

    def stop(self) -> None:
        self._since, self.exhausted_reason = None, ""

    @property
    def is_limited(self) -> bool:
        """Whether the sleep that is under way has a limit of its own, so that its calls are counted one by one."""
        return self._since is not None and bool(self._max_usd)

    @property
    def is_exhausted(self) -> bool:
        """Whether the sleep that is under way asks no model any more."""
        return bool(self.exhausted_reason)

    def record_refusal(self, error: BudgetExceeded) -> None:
        """A call was refused by the budget of the app, and not made. Between sleeps that means nothing, nor does a
        request that was sent too often, which says nothing of others."""
        self.calls -= 1
        if self._since is not None and not self.is_exhausted and not isinstance(error, RepeatedRequestBlocked):
            self.exhausted_reason = f"{error.reason}. The rules did the rest"

    def allows_call(self, model: Model, request: ModelRequest) -> bool:
        """Raises `StoreError` where nobody knows what was spent."""
        if self._since is not None and self._max_usd and not self.is_exhausted:
            worst = self._worst_case_cost(model, request)
            if worst and self._spent(self._since) + worst > self._max_usd:
                most = f"${self._max_usd:.2f} a sleep (sleep.max_usd)"
                self.exhausted_reason = f"{most} were used up; the rules did the rest"
        self.calls += not self.is_exhausted
        return not self.is_exhausted


class BudgetedModel:
    """A model for what is done in sleep. Once the budget is used up it passes for the offline one."""

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
    """The reply, once it is whole. Raises `ModelError`, also where the stream ends without one, and `StoreError` where
    the call cannot be metered."""
    reply: ModelReply | None = None
    async with aclosing(model.stream(request, purpose, session=session)) as events:
        async for event in events:
            if isinstance(event, ModelReply):
                reply = event
    if reply is None:
        raise ModelError("the stream ended without an answer", kind="network")
    return reply


def cost_of_reply(model: Model, reply: ModelReply, cost: CostFunction) -> float | None:
    """As it was billed, else by its price, in US dollars; None where no price is known."""
    billed = reply.usage.cost_usd
    return cost(model.provider, reply.message.model or model.name, reply.usage) if billed is None else billed
