"""One call for a summary: what came back, what it cost, and in which way it failed.

What always holds: every call is counted, and an answer's cost with it, before the answer is looked at. A failure is one
of three, since each is followed by something else: too long (a smaller piece), of no use (said again, or left), or
nobody to ask (what needs no model).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from assistant.core.errors import BudgetExceeded, ModelError
from assistant.core.messages import Usage
from assistant.core.model_api import CallPurpose, ModelReply, ModelRequest
from assistant.core.ports import Model
from sleep.compaction.answer import Answer, read_answer
from sleep.compaction.purse import Purse

Cost = Callable[[str, str, Usage], float | None]
"""(provider, model, usage) -> US dollars; None where no price is known."""

OFFLINE = "offline"


class Unusable(Exception):
    """No summary came of it; the text says why."""


class Overflow(Unusable):
    """The request does not fit."""


class BadAnswer(Unusable):
    """There was an answer, and it is no summary."""


@dataclass(slots=True)
class Attempts:
    """What was tried for one summary: a line for each failure, the calls, what they cost (None where that is not known
    of one of them), who answered last."""

    failures: list[str] = field(default_factory=list)
    calls: int = 0
    cost_usd: float | None = 0.0
    model: str = ""

    def answered(self, cost_usd: float | None, model: str) -> None:
        self.model = model
        both = self.cost_usd is not None and cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (cost_usd or 0.0) if both else None


async def ask(
    model: Model, request: ModelRequest, session: str, cost: Cost, attempts: Attempts, purse: Purse | None = None
) -> Answer | str:
    """The answer, or in a few words why it is none; with a `purse` it is asked for in sleep. Raises `Overflow`, and
    `Unusable` where nobody answered."""
    attempts.calls += 1
    reply = await _reply(model, request, session, purse)
    by = reply.message.model or model.name
    known = reply.usage.cost_usd
    attempts.answered(cost(model.provider, by, reply.usage) if known is None else known, by)
    if reply.stop == "overflow":
        raise Overflow("the window was full before the answer was whole")
    if by == OFFLINE:
        raise Unusable("only the built-in model answered")
    return read_answer(reply)


async def _reply(model: Model, request: ModelRequest, session: str, purse: Purse | None) -> ModelReply:
    reply: ModelReply | None = None
    purpose: CallPurpose = "summary" if purse is None else "sleep_summary"
    try:
        async with aclosing(model.stream(request, purpose, session=session)) as events:
            async for event in events:
                if isinstance(event, ModelReply):
                    reply = event
    except ModelError as error:
        if purse is not None and isinstance(error, BudgetExceeded):
            purse.refused(error)
        raise (Overflow if error.kind == "overflow" else Unusable)(str(error)) from None
    if reply is None:
        raise Unusable("the stream ended without an answer")
    return reply
