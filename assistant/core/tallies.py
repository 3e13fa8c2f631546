"""What was done since the start, counted as it ends, in plain numbers that somebody may ask for.

A `telemetry.Tracer` that keeps sums: no list grows with the work, and what counts is named by few words (states, kinds,
names of tools and providers), so that the sums stay few as well.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from assistant.core.telemetry import Attribute, Span, Work

# Upper bounds in seconds: from the built-in model's milliseconds to a turn that uses many tools.
BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
# What tells one sum from another, of each kind of work.
_TOLD_APART: dict[Work, tuple[str, ...]] = {
    "turn": ("role", "state"),
    "model": ("kind", "provider", "outcome"),
    "tool": ("tool", "ok"),
    "sleep": ("trigger", "state"),
    "phase": ("phase", "state"),
    "compaction": ("trigger",),
    "send": ("bridge", "ok"),
}
_SUMMED: dict[Work, tuple[str, ...]] = {
    "model": ("input", "output", "cache_read", "cache_write", "usd"),
    "compaction": ("made",),
}


@dataclass(slots=True)
class Tally:
    """Sums over all work that the same words name: `counts[i]` took at most `BOUNDS[i]` seconds and more than the bound
    before; the last is of what took longer than all bounds."""

    times: int = 0
    seconds: float = 0.0
    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    sums: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))


@dataclass(slots=True)
class _Told:
    attributes: dict[str, Attribute]

    def tell(self, **attributes: Attribute) -> None:
        self.attributes.update(attributes)


class Tallies:
    """Counts; one thread at a time may use it."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """`clock` tells seconds, from anywhere on."""
        self._clock = clock
        self._tallies: dict[tuple[Work, tuple[str, ...]], Tally] = {}

    @contextmanager
    def span(self, work: Work, **attributes: Attribute) -> Iterator[Span]:
        told, began = _Told(attributes), self._clock()
        try:
            yield told
        finally:
            self._count(work, told.attributes, self._clock() - began)

    def of(self, work: Work) -> dict[tuple[str, ...], Tally]:
        """The tallies of one kind of work, by the words that tell them apart (see `labels`)."""
        return {words: tally for (kind, words), tally in self._tallies.items() if kind == work}

    @staticmethod
    def labels(work: Work) -> tuple[str, ...]:
        """What each of the words is that tell a kind of work apart."""
        return _TOLD_APART[work]

    def _count(self, work: Work, attributes: dict[str, Attribute], seconds: float) -> None:
        words = tuple(_word(name, attributes.get(name)) for name in _TOLD_APART[work])
        tally = self._tallies.setdefault((work, words), Tally())
        tally.times += 1
        tally.seconds += seconds
        tally.counts[bisect_left(BOUNDS, seconds)] += 1
        for name in _SUMMED.get(work, ()):
            value = attributes.get(name, 0)
            if not isinstance(value, str):
                tally.sums[name] += value


def _word(name: str, value: Attribute | None) -> str:
    """What nobody told before the work was left went wrong."""
    if name == "ok":
        return "yes" if value else "no"
    return "cut off" if value is None else str(value)
