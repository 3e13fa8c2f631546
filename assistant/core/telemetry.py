"""Spans (traced units of work) and the metrics aggregated from them since start.

Attributes never contain message text, a guest's session, an address, or a tool name invented by a model. A tracer never
raises and costs microseconds. `Metrics` is a tracer that keeps sums; its labels have few values (states, kinds, names
of tools and providers), so its size is bounded.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import field
from typing import Literal, Protocol

from assistant.core.dataclass import dataclass

WorkKind = Literal["turn", "model", "tool", "sleep", "phase", "compaction", "send"]
"""Kinds of spans, with their attributes:
- `turn`: role, state ("answered", "failed", "aborted")
- `model`: kind (a `CallPurpose`), provider, model, outcome ("answered", or a `ModelError`'s kind), input, output,
  cache_read, cache_write (tokens), usd (if a price is known)
- `tool`: tool, role, ok
- `sleep`: trigger, state; within it `phase`: phase, state
- `compaction`: trigger, made (checkpoints)
- `send`: bridge, ok
"""
SpanAttribute = str | bool | int | float


class TraceSpan(Protocol):
    """A unit of work in progress."""

    def set_attributes(self, **attributes: SpanAttribute) -> None:
        """Add attributes."""


class Tracer(Protocol):
    """Receives spans."""

    def span(self, work: WorkKind, **attributes: SpanAttribute) -> AbstractContextManager[TraceSpan]:
        """Open a span for the duration of the context; an exception marks it failed."""


@dataclass(frozen=True, slots=True)
class _CombinedSpan:
    spans: Sequence[TraceSpan]

    def set_attributes(self, **attributes: SpanAttribute) -> None:
        for span in self.spans:
            span.set_attributes(**attributes)


@dataclass(frozen=True, slots=True)
class CombinedTracer:
    """Passes spans to all of `tracers`."""

    tracers: Sequence[Tracer]

    @contextmanager
    def span(self, work: WorkKind, **attributes: SpanAttribute) -> Iterator[TraceSpan]:
        with ExitStack() as stack:
            yield _CombinedSpan([stack.enter_context(tracer.span(work, **attributes)) for tracer in self.tracers])


NULL_TRACER = CombinedTracer(())

# Upper bounds in seconds, from offline mode (milliseconds) to turns with many tool calls.
DURATION_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
# Label names by kind of work.
_LABELS: dict[WorkKind, tuple[str, ...]] = {
    "turn": ("role", "state"),
    "model": ("kind", "provider", "outcome"),
    "tool": ("tool", "ok"),
    "sleep": ("trigger", "state"),
    "phase": ("phase", "state"),
    "compaction": ("trigger",),
    "send": ("bridge", "ok"),
}
_SUMMED: dict[WorkKind, tuple[str, ...]] = {
    "model": ("input", "output", "cache_read", "cache_write", "usd"),
    "compaction": ("made",),
}


@dataclass(slots=True)
class Metric:
    """Aggregates over all work with the same labels."""

    times: int = 0
    seconds: float = 0.0
    # Number of durations up to `DURATION_BUCKETS[i]` and above the previous bound; the last: above all bounds.
    counts: list[int] = field(default_factory=lambda: [0] * (len(DURATION_BUCKETS) + 1))
    sums: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))


@dataclass(slots=True)
class _RecordedSpan:
    attributes: dict[str, SpanAttribute]

    def set_attributes(self, **attributes: SpanAttribute) -> None:
        self.attributes.update(attributes)


class Metrics:
    """In-memory metrics; use from one thread at a time."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """`clock` returns monotonic seconds."""
        self._clock = clock
        self._metrics: dict[tuple[WorkKind, tuple[str, ...]], Metric] = {}

    @contextmanager
    def span(self, work: WorkKind, **attributes: SpanAttribute) -> Iterator[TraceSpan]:
        span, began = _RecordedSpan(attributes), self._clock()
        try:
            yield span
        finally:
            self._count(work, span.attributes, self._clock() - began)

    def metrics_of(self, work: WorkKind) -> dict[tuple[str, ...], Metric]:
        """Return the aggregates of one kind of work by label values (see `label_names`)."""
        return {labels: metric for (kind, labels), metric in self._metrics.items() if kind == work}

    @staticmethod
    def label_names(work: WorkKind) -> tuple[str, ...]:
        """Return the label names of a kind of work."""
        return _LABELS[work]

    def _count(self, work: WorkKind, attributes: dict[str, SpanAttribute], seconds: float) -> None:
        labels = tuple(_label_value(name, attributes.get(name)) for name in _LABELS[work])
        metric = self._metrics.setdefault((work, labels), Metric())
        metric.times += 1
        metric.seconds += seconds
        metric.counts[bisect_left(DURATION_BUCKETS, seconds)] += 1
        for name in _SUMMED.get(work, ()):
            value = attributes.get(name, 0)
            if not isinstance(value, str):
                metric.sums[name] += value


def _label_value(name: str, value: SpanAttribute | None) -> str:
    """Format a label value; an attribute that was never set means the work was interrupted."""
    if name == "ok":
        return "yes" if value else "no"
    return "cut off" if value is None else str(value)
