"""Spans of work while it is done, with names, numbers and times, and the counts kept of them since the start.

No attribute has words of messages, a guest's session, an address, or a tool name that a model made up. A tracer raises
nothing and costs microseconds. `Metrics` is a tracer that keeps sums: no list grows with the work, and its labels have
few values (states, kinds, names of tools and providers), so that the sums stay few as well.
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
"""What spans there are, and their attributes:

- `turn`: role, state ("answered", "failed", "aborted")
- `model`: kind (a `CallPurpose`), provider, model, outcome ("answered", or a `ModelError`'s kind), input, output,
  cache_read, cache_write (tokens), usd (where a price is known)
- `tool`: tool, role, ok
- `sleep`: trigger, state; within it `phase`: phase, state
- `compaction`: trigger, made (checkpoints)
- `send`: bridge, ok
"""
SpanAttribute = str | bool | int | float


class TraceSpan(Protocol):
    """One piece of work, until it ends."""

    def set_attributes(self, **attributes: SpanAttribute) -> None:
        """What came of it, as far as that is known by now."""


class Tracer(Protocol):
    """Receives spans."""

    def span(self, work: WorkKind, **attributes: SpanAttribute) -> AbstractContextManager[TraceSpan]:
        """Lasts as long as the context is open; one that is left by an exception failed."""


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

# Upper bounds in seconds: from the milliseconds of offline mode to a turn that uses many tools.
DURATION_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
# What the sums of each kind of work are kept by.
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
    """Sums over all work with the same labels."""

    times: int = 0
    seconds: float = 0.0
    # How many took at most `DURATION_BUCKETS[i]` seconds and more than the bucket before; the last: longer than all.
    counts: list[int] = field(default_factory=lambda: [0] * (len(DURATION_BUCKETS) + 1))
    sums: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))


@dataclass(slots=True)
class _RecordedSpan:
    attributes: dict[str, SpanAttribute]

    def set_attributes(self, **attributes: SpanAttribute) -> None:
        self.attributes.update(attributes)


class Metrics:
    """Counts; one thread at a time may use it."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """`clock` tells seconds, from anywhere on."""
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
        """The sums of one kind of work, by their labels (see `label_names`)."""
        return {labels: metric for (kind, labels), metric in self._metrics.items() if kind == work}

    @staticmethod
    def label_names(work: WorkKind) -> tuple[str, ...]:
        """The names of the labels of a kind of work."""
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
    """An attribute that was never set: the work broke off."""
    if name == "ok":
        return "yes" if value else "no"
    return "cut off" if value is None else str(value)
