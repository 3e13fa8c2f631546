"""A chain of models: which one is asked when one cannot answer, and what a person reads about it.

By the kind of the failure:
- `rate_limit`, `overload`, `network`: the same model again, after a wait (what the provider asks for, else growing and
  jittered, always capped), then the next one;
- `auth`, `bad_request`: the next one at once;
- `budget`: the next one at once, each under its own reservation; offline mode costs nothing;
- `refusal`: another remote model often answers what one declined, so the next one, but never offline mode, whose
  answer would miss the point. When all decline, the refusal is the answer;
- `overflow`: raised for the first model, since the runtime can shorten the conversation for it; a fallback with a
  smaller window is asked once more with the newest request alone, so that offline mode never refuses a note.
A notice reports each change of plan, and whether text that was already streamed is withdrawn; the reply names the model
that could not answer. What keeps a model from answering anybody is an outage, which is noted until it answers again.

Retry libraries retry a call; here a stream begins anew while its events are passed on, so the loop is written out.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from assistant.context.structure import tool_loop_start
from assistant.core.dataclass import dataclass
from assistant.core.errors import BudgetExceeded, ModelError, ModelErrorKind
from assistant.core.model_api import (
    NO_OUTAGE_KINDS,
    CallPurpose,
    Fallback,
    ModelEvent,
    ModelFailure,
    ModelLimits,
    ModelNotice,
    ModelReply,
    ModelRequest,
    TextDelta,
)
from assistant.core.notices import NoticeKind
from assistant.core.ports import Model, OutageLog
from assistant.models.errors import advise, read_error_table, shorten_reason

RETRIED_KINDS: tuple[ModelErrorKind, ...] = ("rate_limit", "overload", "network")
FIRST_WAIT_SECONDS = 1.0
OFFLINE_PROVIDER = "offline"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often one model is tried again, and how long a wait may be, in seconds."""

    retries: int = 2
    max_wait_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class _ModelGivenUp:
    """One model is given up."""

    error: ModelError
    streamed: bool  # text of it was already passed on


class FailoverModel:
    """Models in the order in which they are asked; the first one speaks for the chain. `sleep` and `jitter` (a number
    in [0, 1)) are injected so that tests need not wait."""

    def __init__(
        self,
        chain: Sequence[Model],
        policy: RetryPolicy,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
        outages: OutageLog | None = None,
    ) -> None:
        self._chain = tuple(chain)
        # A name may become another one when the model is loaded.
        self.labels = tuple(f"{model.provider}:{model.name}" for model in self._chain)
        self._outages = outages
        self._policy = policy
        self._sleep = sleep
        self._jitter = jitter

    @property
    def name(self) -> str:
        """The first model's name, whichever of them answers."""
        return self._chain[0].name

    @property
    def provider(self) -> str:
        return self._chain[0].provider

    async def limits(self) -> ModelLimits:
        """Return the first model's limits: requests are built for it."""
        return await self._chain[0].limits()

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent, None]:
        """As the port says, of the first model that answers. Raises the most telling of their errors if none does."""
        failures: list[ModelError] = []
        declined: ModelReply | None = None
        notice: ModelNotice | None = None
        unable: list[ModelFailure] = []
        for model, label in zip(self._chain, self.labels, strict=True):
            if declined is not None and model.provider == OFFLINE_PROVIDER:
                continue
            if notice is not None:
                asking = NoticeKind.ASKING_ANOTHER.fill(reason=notice.text, next_step=_next_step(model))
                yield replace(notice, text=asking.text)
            streamed = False
            async with aclosing(self._ask(model, request, purpose, session, turn)) as events:
                async for event in events:
                    match event:
                        case _ModelGivenUp():
                            failures.append(event.error)
                            notice = _failure_notice(event)
                            unable.append(
                                ModelFailure(label, _display_name(model), event.error.kind, _reason(event.error))
                            )
                            self._note_failure(label, model, event.error, purpose)
                        case ModelReply(stop="refusal"):
                            declined = event
                            notice = ModelNotice(f"{_display_name(model)} declined to answer", restarted=streamed)
                            unable.append(ModelFailure(label, _display_name(model), "refusal", "it declined to answer"))
                            self._note_answer(label)
                        case ModelReply():
                            self._note_answer(label)
                            if unable:
                                event = replace(event, fallback=Fallback(tuple(unable), _answering_name(model)))
                            yield event
                            return
                        case _:
                            streamed = streamed or isinstance(event, TextDelta)
                            yield event
            if model is self._chain[0] and failures and failures[-1].kind == "overflow":
                break
        if declined is None:
            raise _final_error(failures)
        yield declined

    def _note_failure(self, label: str, model: Model, error: ModelError, purpose: CallPurpose) -> None:
        if self._outages is not None and error.kind not in NO_OUTAGE_KINDS and model.provider != OFFLINE_PROVIDER:
            self._outages.record_failure(label, _display_name(model), error, _reason(error), purpose)

    def _note_answer(self, label: str) -> None:
        if self._outages is not None:
            self._outages.record_answer(label, self.labels[self.labels.index(label) + 1 :])

    async def aclose(self) -> None:
        for model in self._chain:
            await model.aclose()

    async def _ask(
        self, model: Model, request: ModelRequest, purpose: CallPurpose, session: str | None, turn: str | None
    ) -> AsyncGenerator[ModelEvent | _ModelGivenUp, None]:
        """Events of one model, tried again while its failures may pass. A fallback whose window is too small for the
        conversation gets the newest turn. Ends with a `ModelReply` or a `_ModelGivenUp`."""
        attempt, may_shorten = 0, model is not self._chain[0]
        while True:
            streamed = False
            try:
                async with aclosing(model.stream(request, purpose, session=session, turn=turn)) as events:
                    async for event in events:
                        yield event
                        streamed = streamed or isinstance(event, TextDelta)
                        if isinstance(event, ModelReply):
                            return
                failure = ModelError(f"{_display_name(model)} ended without an answer", kind="network")
            except ModelError as error:
                failure = error
            if failure.kind == "overflow" and may_shorten:
                attempt, may_shorten, request = 0, False, _newest_turn(request)
                smaller = NoticeKind.NEWEST_MESSAGE_ONLY.fill(turn, model=_display_name(model))
                yield ModelNotice(smaller.text, notice=smaller)
            elif failure.kind in RETRIED_KINDS and attempt < self._policy.retries:
                wait = self._wait(failure, attempt)
                attempt += 1
                retrying = NoticeKind.RETRYING.fill(reason=_reason(failure), seconds=f"{wait:.0f}")
                yield ModelNotice(retrying.text, restarted=streamed)
                await self._sleep(wait)
            else:
                yield _ModelGivenUp(failure, streamed)
                return

    def _wait(self, failure: ModelError, attempt: int) -> float:
        """Seconds. What the provider asks for is a least wait; ours doubles, between half and all of it by chance."""
        grown = FIRST_WAIT_SECONDS * float(2**attempt) * (0.5 + self._jitter() / 2)
        return min(max(failure.retry_after or 0.0, grown), self._policy.max_wait_seconds)


def _display_name(model: Model) -> str:
    return "Offline mode" if model.provider == OFFLINE_PROVIDER else model.name or model.provider


def _answering_name(model: Model) -> str:
    return f"{_display_name(model)}{' (no language model)' if model.provider == OFFLINE_PROVIDER else ''}"


def _next_step(model: Model) -> str:
    if model.provider == OFFLINE_PROVIDER:
        return f"{_answering_name(model)} answers instead."
    return f"Asking {_display_name(model)} instead."


def _failure_notice(failed: _ModelGivenUp) -> ModelNotice:
    why, error = _reason(failed.error), failed.error
    remedy = error.remedy_sentence if isinstance(error, BudgetExceeded) else ""
    return ModelNotice(why, failed.streamed, over_budget=f"{why}.{remedy}" if error.kind == "budget" else "")


def _newest_turn(request: ModelRequest) -> ModelRequest:
    """The running turn without the conversation before it."""
    return replace(request, messages=request.messages[max(0, tool_loop_start(request.messages)) :], cache_boundaries=())


def _reason(failure: ModelError) -> str:
    return shorten_reason(failure.reason)


def _final_error(failures: Sequence[ModelError]) -> ModelError:
    """One error in one line: what happened, what was kept, what to do."""
    most_telling = list(read_error_table().advice)
    worst = min(failures, key=lambda failure: most_telling.index(failure.kind))
    if isinstance(worst, BudgetExceeded):
        return worst
    others = len(failures) - 1
    more = f" ({others} more {'model' if others == 1 else 'models'} failed too)" if others else ""
    return ModelError(
        f"{_reason(worst)}{more}. Your message is kept; {advise(worst.kind, asked=True)}.",
        kind=worst.kind,
        retry_after=worst.retry_after,
        provider=worst.provider,
        partial=worst.partial,
    )
