"""A provider's model as the daemon calls it: loaded when first needed, metered, and traced.

Loading: SDKs take a second to import, so a model's SDK is imported when it is first needed, off the event loop; the
daemon is ready to take messages long before.

Metering: no call to a paid model outside the ledger (I9). Before each attempt the worst case is reserved: the prompt,
estimated and corrected for the model, at the dearest input price, and the longest answer allowed. After it, what was
billed is settled, however the attempt ended:
- answered: the provider's own numbers;
- refused before anything was billed: nothing;
- broken off, or aborted by us: the prompt and the answer so far, estimated where the provider reported nothing.
After a crash in between nothing is settled, and the reservation continues to count.

Tracing: each attempt is one span, from before the loading to the last event.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime

from assistant.context.prompt_parts import measure_request_parts, split_usage
from assistant.core.errors import ModelError
from assistant.core.messages import Usage
from assistant.core.model_api import (
    BACKGROUND_PURPOSES,
    CallPurpose,
    HiddenProgress,
    ModelCall,
    ModelEvent,
    ModelLimits,
    ModelNotice,
    ModelReply,
    ModelRequest,
    PromptPart,
    TextDelta,
    request_fingerprint,
)
from assistant.core.notices import NoticeKind
from assistant.core.ports import LedgerPort, Model
from assistant.core.shutdown import load_in_thread
from assistant.core.telemetry import NULL_TRACER, Tracer, TraceSpan
from assistant.models.encoding import CHARS_PER_TOKEN
from assistant.models.errors import StreamBroken
from assistant.models.prices import EstimateTokens, Price, Prices

# Far more than any answer takes. A turn ends earlier (`turn.max_seconds`); a sleep waits for nobody, and would not end.
_LONGEST_CALL_SECONDS = 1800


class MeteredModel:
    """A `Model` around the adapter that `load` makes, once, in a thread.

    - `name`: what the model is called until the adapter knows its own name.
    - `ledger`: None for the offline mode, which costs nothing and is not metered. A `StoreError` of the ledger is
      passed on: what cannot be metered is not called.
    - `estimate_tokens(request, model)`: the whole prompt in tokens as that model bills them.
    """

    def __init__(
        self,
        provider: str,
        name: str,
        load: Callable[[], tuple[Model, Prices]],
        ledger: LedgerPort | None,
        estimate_tokens: EstimateTokens,
        clock: Callable[[], datetime],
        tracer: Tracer = NULL_TRACER,
    ) -> None:
        self._provider = provider
        self._name = name
        self._load = load
        self._loaded: tuple[Model, Prices] | None = None
        self._loading = asyncio.Lock()
        self._ledger = ledger
        self._estimate_tokens = estimate_tokens
        self._clock = clock
        self._tracer = tracer
        self._noticed_unpriced = False

    @property
    def name(self) -> str:
        """The name in use; before the adapter is loaded the configured one, which may be empty."""
        return (self._loaded[0].name if self._loaded else "") or self._name

    @property
    def provider(self) -> str:
        return self._provider

    async def limits(self) -> ModelLimits:
        adapter, _ = await self._load_once()
        return await adapter.limits()

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent, None]:
        """As the port says, in one span and under one reservation. Raises `BudgetExceeded`, before the provider is
        asked, if the call may exceed a cap."""
        with self._tracer.span("model", kind=purpose, provider=self.provider, model=self.name) as span:
            try:
                async with aclosing(self._metered_stream(request, purpose, session, turn)) as events:
                    async for event in events:
                        if isinstance(event, ModelReply):
                            _record_reply(span, event)
                        yield event
            except ModelError as error:
                span.set_attributes(outcome=error.kind)
                raise

    async def aclose(self) -> None:
        if self._loaded is not None:
            await self._loaded[0].aclose()

    async def _load_once(self) -> tuple[Model, Prices]:
        async with self._loading:
            if self._loaded is None:
                self._loaded = await load_in_thread(self._load)
            return self._loaded

    async def _metered_stream(
        self, request: ModelRequest, purpose: CallPurpose, session: str | None, turn: str | None
    ) -> AsyncGenerator[ModelEvent, None]:
        adapter, prices = await self._load_once()
        if self._ledger is None:
            async with aclosing(adapter.stream(request, purpose, session=session, turn=turn)) as events:
                async for event in events:
                    yield event
            return
        limits = await adapter.limits()
        price = prices.price_for_model(self.name)
        prompt = self._estimate_tokens(request, self.name)
        output = min(request.max_output_tokens, limits.max_output)
        worst = price.worst_case(prompt, output, request.cache_lifetime) if price else None
        fingerprint = request_fingerprint(request, purpose, self.name) if purpose in BACKGROUND_PURPOSES else ""
        call = ModelCall(purpose, self.provider, self.name, prompt, output, worst, session, turn, fingerprint)
        if price is None and not self._noticed_unpriced:
            self._noticed_unpriced = True
            yield ModelNotice(NoticeKind.UNKNOWN_PRICE.fill(model=self.name).text)
        reservation = self._ledger.reserve(call, self._clock())
        # Until something else is known, an attempt that is cut off has cost its prompt.
        bill, parts = Usage(input=prompt), dict[PromptPart, Usage]()
        try:
            calling = _with_deadline(adapter.stream(request, purpose, session=session, turn=turn), self._provider)
            async with aclosing(calling) as events:
                async for event in events:
                    match event:
                        case TextDelta(text):
                            bill = _with_output(bill, len(text))
                        case HiddenProgress(characters):
                            bill = _with_output(bill, characters)
                            continue
                        case ModelReply():
                            event = _priced(event, price, prompt)
                            bill = event.usage
                            parts = {} if event.estimated else _parts(request, bill, price)
                    yield event
        except StreamBroken as error:
            bill = error.usage if error.usage.prompt else replace(error.usage, input=prompt)
            raise
        except _NeverEnds:
            raise
        except ModelError:
            bill = Usage()
            raise
        finally:
            self._ledger.settle_reservation(reservation, _with_cost(bill, price), self._clock(), parts)


class _NeverEnds(ModelError):
    """The answer did not come to its end. Your message is kept.

    What came of it is billed."""


async def _with_deadline(calling: AsyncGenerator[ModelEvent, None], provider: str) -> AsyncGenerator[ModelEvent, None]:
    """Pass on an answer until it takes too long: a server that sends signs of life is never silent."""
    deadline = asyncio.get_running_loop().time() + _LONGEST_CALL_SECONDS
    async with aclosing(calling) as events:
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    event = await anext(events, None)
            except TimeoutError:
                text = f"The answer did not end within {_LONGEST_CALL_SECONDS // 60} minutes. Your message is kept."
                raise _NeverEnds(text, kind="network", provider=provider) from None
            if event is None:
                return
            yield event


def _with_output(bill: Usage, characters: int) -> Usage:
    return replace(bill, output=bill.output + -(-characters // CHARS_PER_TOKEN))


def _priced(reply: ModelReply, price: Price | None, prompt: int) -> ModelReply:
    """The reply with its cost; where the provider reported nothing, with our own estimate of the prompt."""
    usage = (
        replace(reply.usage, input=prompt, cache_read=0, cache_write=0, cache_write_hour=0)
        if reply.estimated
        else reply.usage
    )
    return replace(reply, usage=_with_cost(usage, price))


def _parts(request: ModelRequest, usage: Usage, price: Price | None) -> dict[PromptPart, Usage]:
    """What each part of the prompt was billed."""
    cost = price.rates(usage.prompt).cost if price else None
    return dict(split_usage(request.parts or measure_request_parts(request), usage, cost))


def _with_cost(usage: Usage, price: Price | None) -> Usage:
    return replace(usage, cost_usd=price.cost_of_call(usage) if price else None)


def _record_reply(span: TraceSpan, reply: ModelReply) -> None:
    usage = reply.usage
    span.set_attributes(
        outcome="answered",
        input=usage.input,
        output=usage.output,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
    )
    if usage.cost_usd is not None:
        span.set_attributes(usd=usage.cost_usd)
