"""What a conversation costs by how its prompts are laid out and its context is kept small: 400 turns and 40 questions
against a strict server with prices and cache lifetimes, with summaries that keep few facts
(`tests/economy/strict_run.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.bench.figures import Row
from tests.economy import strict_run

_QUESTIONS = 40
_LEAST_READ_AGAIN = 0.97


@dataclass(frozen=True, slots=True)
class _Run:
    name: str
    most_usd: float
    mode: str = "balanced"
    warm: bool = False
    keep: int = 3


_RUNS = (
    _Run("cold every 6 turns", 4.40),
    _Run("cold every 6 turns, summaries keep 10 facts", 4.40, keep=10),
    _Run("cold every 6 turns, thrifty", 3.60, mode="thrifty"),
    _Run("cold every 6 turns, thrifty, summaries keep 10 facts", 3.60, mode="thrifty", keep=10),
    _Run("warm, window 32,000", 2.60, warm=True),
)


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    del sizes
    for run in _RUNS:
        measured = strict_run.measure(
            window=32_000 if run.warm else 200_000,
            warm=run.warm,
            keep=run.keep,
            wanted={"compaction.economy": run.mode},
        )
        for what, result, target, good in _results(run, measured):
            yield Row("economy", None, f"{run.name}: {what}", result, target, good)


def _results(run: _Run, measured: strict_run.Measured) -> Iterator[tuple[str, str, str, bool | None]]:
    usd, answered = measured.usd, measured.answered
    yield "dollars", f"{usd:.2f}", f"<= {run.most_usd:.2f}", usd <= run.most_usd
    yield "facts answered", f"{answered} of {_QUESTIONS}", f"{_QUESTIONS}", answered == _QUESTIONS
    share = measured.cached_share
    yield "read again while warm", f"{share:.1%}", f">= {_LEAST_READ_AGAIN:.0%}", share >= _LEAST_READ_AGAIN
    twice = measured.paid_twice
    yield "characters paid for in full twice in a row", f"{twice:,}", "0", twice == 0
    of_all, again = measured.volatile
    yield "of these, time and recalled words", f"{again:,} of {of_all:,}", "", None
