"""What is told of work while it is done: spans, with names, numbers and times.

What always holds: no words of anybody stand in an attribute, no session of a guest and no address; a name that a model
made up is none. Work goes on the same whoever listens: a tracer raises nothing, and costs microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Literal, Protocol

Work = Literal["turn", "model", "tool", "sleep", "phase", "compaction", "send"]
"""What spans there are, and their attributes:

- `turn`: role, state ("answered", "failed", "aborted")
- `model`: kind (a `requests.Purpose`), provider, model, outcome ("answered", or a `ModelError`'s kind), input, output,
  cache_read, cache_write (tokens), usd (where a price is known)
- `tool`: tool, role, ok
- `sleep`: trigger, state; within it `phase`: phase, state
- `compaction`: trigger, made (checkpoints)
- `send`: bridge, ok
"""
Attribute = str | bool | int | float


class Span(Protocol):
    """One piece of work that goes on."""

    def tell(self, **attributes: Attribute) -> None:
        """What came of it, as far as that is known by now."""
        ...


class Tracer(Protocol):
    """Who listens."""

    def span(self, work: Work, **attributes: Attribute) -> AbstractContextManager[Span]:
        """Goes on for as long as the context is open; one that is left by an exception failed."""
        ...


class _Unheard:
    def tell(self, **attributes: Attribute) -> None:
        return None


_UNHEARD = _Unheard()


class Silent:
    """Nobody listens."""

    def span(self, work: Work, **attributes: Attribute) -> AbstractContextManager[Span]:
        return nullcontext(_UNHEARD)


SILENT = Silent()


@dataclass(frozen=True, slots=True)
class _Spans:
    spans: Sequence[Span]

    def tell(self, **attributes: Attribute) -> None:
        for span in self.spans:
            span.tell(**attributes)


@dataclass(frozen=True, slots=True)
class Together:
    """All of these listen."""

    tracers: Sequence[Tracer]

    @contextmanager
    def span(self, work: Work, **attributes: Attribute) -> Iterator[Span]:
        with ExitStack() as stack:
            yield _Spans([stack.enter_context(tracer.span(work, **attributes)) for tracer in self.tracers])
