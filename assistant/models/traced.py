"""Model calls told of as they are made: each attempt a span, whatever came of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from assistant.core.errors import ModelError
from assistant.core.model_api import CallPurpose, ModelEvent, ModelReply, ModelRequest
from assistant.core.ports import Model
from assistant.core.telemetry import Tracer, TraceSpan
from assistant.models.around import Around


class Traced(Around):
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
                span.tell(outcome=error.kind)
                raise


def _tell(span: TraceSpan, reply: ModelReply) -> None:
    used = reply.usage
    span.tell(
        outcome="answered", input=used.input, output=used.output, cache_read=used.cache_read,
        cache_write=used.cache_write,
    )  # fmt: skip
    if used.cost_usd is not None:
        span.tell(usd=used.cost_usd)
