"""Spans of work while it is done, with names, numbers and times, and the counts kept of them since the start.

No words of anybody stand in an attribute, no session of a guest and no address; a name that a model made up is
none. Work goes on the same whoever listens: a tracer raises nothing, and costs microseconds. `Metrics` is a tracer
that keeps sums: no list grows with the work, and its labels have few values (states, kinds, names of tools and
providers), so that the sums stay few as well.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Literal, Protocol

WorkKind = Literal["turn", "model", "tool", "sleep", "phase", "compaction", "send"]
"""What spans there are, and their attributes:

- `turn`: role, state ("answered", "failed", "aborted")
- `model`: kind (a `requests.Purpose`), provider, model, outcome ("answered", or a `ModelError`'s kind), input, output,
  cache_read, cache_write (tokens), usd (where a price is known)
- `tool`: tool, role, ok
- `sleep`: trigger, state; within it `phase`: phase, state
- `compaction`: trigger, made (checkpoints)
- `send`: bridge, ok
"""
SpanAttribute = str | bool | int | float


class TraceSpan(Protocol):
    """One piece of work that goes on."""

    def set_attributes(self, **attributes: SpanAttribute) -> None:
        """What came of it, as far as that is known by now."""
        ...


class Tracer(Protocol):
    """Who listens."""

    def span(self, work: WorkKind, **attributes: SpanAttribute) -> AbstractContextManager[TraceSpan]:
        """Goes on for as long as the context is open; one that is left by an exception failed."""
        ...


class _NullSpan:
    def set_attributes(self, **attributes: SpanAttribute) -> None:
        return None


_NULL_SPAN = _NullSpan()


class NullTracer:
    """Nobody listens."""

    def span(self, work: WorkKind, **attributes: SpanAttribute) -> AbstractContextManager[TraceSpan]:
        return nullcontext(_NULL_SPAN)


NULL_TRACER = NullTracer()


@dataclass(frozen=True, slots=True)
class _CombinedSpan:
    spans: Sequence[TraceSpan]

    def set_attributes(self, **attributes: SpanAttribute) -> None:
        for span in self.spans:
            span.set_attributes(**attributes)


@dataclass(frozen=True, slots=True)
class CombinedTracer:
    """All of these listen."""

    tracers: Sequence[Tracer]

    @contextmanager
    def span(self, work: WorkKind, **attributes: SpanAttribute) -> Iterator[TraceSpan]:
        with ExitStack() as stack:
            yield _CombinedSpan([stack.enter_context(tracer.span(work, **attributes)) for tracer in self.tracers])


# Upper bounds in seconds: from the built-in model's milliseconds to a turn that uses many tools.
DURATION_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
# What tells one sum from another, of each kind of work.
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
    """Sums over all work that the same words name: `counts[i]` took at most `BOUNDS[i]` seconds and more than the bound
    before; the last is of what took longer than all bounds."""

    times: int = 0
    seconds: float = 0.0
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
        self._tallies: dict[tuple[WorkKind, tuple[str, ...]], Metric] = {}

    @contextmanager
    def span(self, work: WorkKind, **attributes: SpanAttribute) -> Iterator[TraceSpan]:
        told, began = _RecordedSpan(attributes), self._clock()
        try:
            yield told
        finally:
            self._count(work, told.attributes, self._clock() - began)

    def metrics_of(self, work: WorkKind) -> dict[tuple[str, ...], Metric]:
        """The tallies of one kind of work, by the words that tell them apart (see `labels`)."""
        return {words: tally for (kind, words), tally in self._tallies.items() if kind == work}

    @staticmethod
    def label_names(work: WorkKind) -> tuple[str, ...]:
        """What each of the words is that tell a kind of work apart."""
        return _LABELS[work]

    def _count(self, work: WorkKind, attributes: dict[str, SpanAttribute], seconds: float) -> None:
        words = tuple(_label_value(name, attributes.get(name)) for name in _LABELS[work])
        tally = self._tallies.setdefault((work, words), Metric())
        tally.times += 1
        tally.seconds += seconds
        tally.counts[bisect_left(DURATION_BUCKETS, seconds)] += 1
        for name in _SUMMED.get(work, ()):
            value = attributes.get(name, 0)
            if not isinstance(value, str):
                tally.sums[name] += value


def _label_value(name: str, value: SpanAttribute | None) -> str:
    """What nobody told before the work was left went wrong."""
    if name == "ok":
        return "yes" if value else "no"
    return "cut off" if value is None else str(value)
