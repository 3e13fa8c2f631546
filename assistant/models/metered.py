"""Models around another model: loaded when first needed, metered, and traced.

Loading: SDKs take a second to import, so a model's SDK is imported when it is first needed, off the event loop; the
daemon is ready to take messages long before.

Metering: no call to a paid model outside the ledger (I9). Before each attempt the worst case is reserved: the prompt,
estimated and corrected for the model, at the dearest input price, and the longest answer allowed. After it, what was
billed is settled, however the attempt ended:
- answered: the provider's own numbers;
- refused before anything was billed: nothing;
- broken off, or aborted by us: what is known, the prompt and the answer so far, estimated where nobody said.
A crash in between settles nothing, and the reservation goes on counting.

Tracing: each attempt is a span, whatever came of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime

from assistant.core.errors import ModelError
from assistant.core.messages import Usage
from assistant.core.model_api import (
    BACKGROUND_PURPOSES,
    CallPurpose,
    ModelCall,
    ModelEvent,
    ModelLimits,
    ModelNotice,
    ModelReply,
    ModelRequest,
    TextDelta,
    request_fingerprint,
)
from assistant.core.ports import LedgerPort, Model
from assistant.core.telemetry import Tracer, TraceSpan
from assistant.models.errors import StreamBroken
from assistant.models.prices import Price, Prices


class ModelWrapper:
    """All of `ports.Model` but `stream`."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def provider(self) -> str:
        return self._model.provider

    async def limits(self) -> ModelLimits:
        return await self._model.limits()

    async def aclose(self) -> None:
        await self._model.aclose()


class LazyModel:
    """`load` makes the model, once; `name` is what it is called until it can say so itself."""

    def __init__(self, provider: str, name: str, load: Callable[[], Model]) -> None:
        self._provider = provider
        self._name = name
        self._load = load
        self._model: Model | None = None
        self._loading = asyncio.Lock()

    @property
    def name(self) -> str:
        return (self._model.name if self._model else "") or self._name

    @property
    def provider(self) -> str:
        return self._provider

    async def limits(self) -> ModelLimits:
        return await (await self._loaded()).limits()

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent, None]:
        model = await self._loaded()
        async with aclosing(model.stream(request, purpose, session=session, turn=turn)) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        if self._model is not None:
            await self._model.aclose()

    async def _loaded(self) -> Model:
        async with self._loading:
            if self._model is None:
                self._model = await asyncio.to_thread(self._load)
            return self._model


CHARS_PER_TOKEN = 4

EstimateTokens = Callable[[ModelRequest, str], int]


class MeteredModel(ModelWrapper):
    """A model whose every call is reserved and settled. `tokens_of(request, model)` estimates the whole prompt in
    tokens as that model bills them. `StoreError` of the ledger is passed on: what cannot be metered is not called."""

    def __init__(
        self,
        model: Model,
        ledger: LedgerPort,
        prices: Prices,
        estimate_tokens: EstimateTokens,
        clock: Callable[[], datetime],
    ) -> None:
        super().__init__(model)
        self._ledger = ledger
        self._prices = prices
        self._tokens_of = estimate_tokens
        self._clock = clock
        self._said_unpriced = False

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent, None]:
        limits = await self._model.limits()
        price = self._prices.price_for_model(self.name)
        prompt = self._tokens_of(request, self.name)
        output = min(request.max_output_tokens, limits.max_output)
        worst = price.worst_case(prompt, output) if price else None
        same = request_fingerprint(request, purpose, self.name) if purpose in BACKGROUND_PURPOSES else ""
        call = ModelCall(purpose, self.provider, self.name, prompt, output, worst, session, turn, same)
        if price is None and not self._said_unpriced:
            self._said_unpriced = True
            yield ModelNotice(f"No price is known for {self.name}: its use is counted in tokens only.")
        reservation = self._ledger.reserve(call, self._clock())
        # Until something else is known, an attempt that is cut off has cost its prompt.
        bill = Usage(input=prompt)
        try:
            async with aclosing(self._model.stream(request, purpose, session=session, turn=turn)) as events:
                async for event in events:
                    match event:
                        case TextDelta(text):
                            bill = replace(bill, output=bill.output + -(-len(text) // CHARS_PER_TOKEN))
                        case ModelReply():
                            event = _priced(event, price, prompt)
                            bill = event.usage
                    yield event
        except StreamBroken as error:
            bill = error.usage if error.usage.prompt else replace(error.usage, input=prompt)
            raise
        except ModelError:
            bill = Usage()
            raise
        finally:
            self._ledger.settle_reservation(reservation, _with_cost(bill, price), self._clock())


def _priced(reply: ModelReply, price: Price | None, prompt: int) -> ModelReply:
    """The reply with its cost; where the provider reported nothing, with our own estimate of the prompt."""
    usage = replace(reply.usage, input=prompt, cache_read=0, cache_write=0) if reply.estimated else reply.usage
    return replace(reply, usage=_with_cost(usage, price))


def _with_cost(usage: Usage, price: Price | None) -> Usage:
    return replace(usage, cost_usd=price.cost_of_call(usage) if price else None)


class TracedModel(ModelWrapper):
    """A model whose every call is a span of `tracer`."""

    def __init__(self, model: Model, tracer: Tracer) -> None:
        super().__init__(model)
        self._tracer = tracer

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent, None]:
        with self._tracer.span("model", kind=purpose, provider=self.provider, model=self.name) as span:
            try:
                async with aclosing(self._model.stream(request, purpose, session=session, turn=turn)) as events:
                    async for event in events:
                        if isinstance(event, ModelReply):
                            _tell(span, event)
                        yield event
            except ModelError as error:
                span.set_attributes(outcome=error.kind)
                raise


def _tell(span: TraceSpan, reply: ModelReply) -> None:
    used = reply.usage
    span.set_attributes(
        outcome="answered",
        input=used.input,
        output=used.output,
        cache_read=used.cache_read,
        cache_write=used.cache_write,
    )
    if used.cost_usd is not None:
        span.set_attributes(usd=used.cost_usd)
