"""Sends spans to an OpenTelemetry collector over HTTP.

A thread of the SDK sends spans in batches; if the collector cannot be reached they are dropped, and nothing waits for
it. The SDK's global state is not used. What the SDK would read from OTEL_* variables is passed explicitly.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Span as OpenSpan
from opentelemetry.trace import SpanKind, Status, StatusCode, use_span

from assistant import __version__
from assistant.core.telemetry import SpanAttribute, TraceSpan, WorkKind

_SECONDS = 5.0
_LAST_SECONDS = 1.0
_QUEUE, _BATCH, _EVERY_MILLISECONDS = 2048, 256, 5000
# Calls to other services; none of these has a nested span.
_CALLS: frozenset[WorkKind] = frozenset({"model", "send"})
_WENT_WRONG = {("state", "failed"), ("ok", False)}
# The SDK logs every batch that a collector rejects.
_SDK_LOG = "opentelemetry"


class _OtlpSpan:
    def __init__(self, span: OpenSpan) -> None:
        self._span = span

    def set_attributes(self, **attributes: SpanAttribute) -> None:
        for name, value in attributes.items():
            self._span.set_attribute(f"nocturne.{name}", value)
            if (name, value) in _WENT_WRONG or (name == "outcome" and value != "answered"):
                self._span.set_status(Status(StatusCode.ERROR))


class OtlpTracer:
    """A `telemetry.Tracer` that passes its spans to an exporter."""

    def __init__(self, exporter: SpanExporter) -> None:
        logging.getLogger(_SDK_LOG).setLevel(logging.CRITICAL)
        resource = Resource({"service.name": "nocturne-assistant", "service.version": __version__})
        self._provider = TracerProvider(ALWAYS_ON, resource, shutdown_on_exit=False, span_limits=SpanLimits())
        self._provider.add_span_processor(
            BatchSpanProcessor(
                exporter,
                max_queue_size=_QUEUE,
                max_export_batch_size=_BATCH,
                schedule_delay_millis=_EVERY_MILLISECONDS,
                export_timeout_millis=_SECONDS * 1000,
            )
        )
        self._tracer = self._provider.get_tracer("nocturne", __version__)

    @contextmanager
    def span(self, work: WorkKind, **attributes: SpanAttribute) -> Iterator[TraceSpan]:
        kind = SpanKind.CLIENT if work in _CALLS else SpanKind.INTERNAL
        span = self._tracer.start_span(f"nocturne.{work}", kind=kind)
        trace_span = _OtlpSpan(span)
        trace_span.set_attributes(**attributes)
        try:
            if work in _CALLS:
                # A stream may be closed in another context than it was opened in, so neither context may be changed.
                yield trace_span
            else:
                # The text of an exception may quote a person.
                with use_span(span, record_exception=False, set_status_on_exception=False):
                    yield trace_span
        except GeneratorExit:
            # The consumer stopped reading a stream early, such as after the answer.
            raise
        except BaseException as error:
            span.set_status(Status(StatusCode.ERROR))
            span.set_attribute("error.type", type(error).__name__)
            raise
        finally:
            span.end()

    def close(self) -> None:
        """Send the remaining spans, waiting only briefly: the SDK would wait half a minute."""
        ending = threading.Thread(target=self._provider.shutdown, name="spans", daemon=True)
        ending.start()
        ending.join(_LAST_SECONDS)


def spans_to(endpoint: str) -> OtlpTracer:
    """Return an exporter for `endpoint`, the full address for traces, such as "http://127.0.0.1:4318/v1/traces"."""
    return OtlpTracer(OTLPSpanExporter(endpoint=endpoint, timeout=_SECONDS))
