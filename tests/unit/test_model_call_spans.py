"""Spans of model calls: what is an error in them, and what is none."""

from __future__ import annotations

from contextlib import aclosing, suppress

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from assistant.core.errors import ModelError
from assistant.core.messages import Message
from assistant.core.model_api import ModelReply, ModelRequest
from assistant.health.otlp import OtlpTracer
from assistant.models.metered import MeteredModel
from assistant.models.prices import Prices
from tests.strict.asking import clock
from tests.support.scripted import ScriptedModel

ASKED = ModelRequest((), (Message("user", "hello"),))


async def span_of(model: ScriptedModel) -> ReadableSpan:
    """Of a call that is listened to until it is answered or fails, and no longer."""
    kept = InMemorySpanExporter()
    spans = OtlpTracer(kept)
    traced = MeteredModel(
        model.provider, model.name, lambda: (model, Prices()), None, lambda request, name: 1, clock, spans
    )
    with suppress(ModelError):
        async with aclosing(traced.stream(ASKED)) as events:
            async for event in events:
                if isinstance(event, ModelReply):
                    break
    spans.close()
    (span,) = kept.get_finished_spans()
    return span


async def test_a_call_that_was_answered_is_no_error_though_nobody_listens_to_its_end() -> None:
    span = await span_of(ScriptedModel("hello yourself"))
    attributes = dict(span.attributes or {})
    assert span.status.status_code == StatusCode.UNSET and "error.type" not in attributes
    assert attributes["nocturne.outcome"] == "answered"


async def test_a_call_that_failed_is_one_by_its_kind_and_without_words() -> None:
    span = await span_of(ScriptedModel(ModelError("no plugh", kind="overload")))
    attributes = dict(span.attributes or {})
    assert span.status.status_code == StatusCode.ERROR
    assert (attributes["nocturne.outcome"], attributes["error.type"]) == ("overload", "ModelError")
    assert "plugh" not in str(attributes) and not span.events
