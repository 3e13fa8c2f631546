"""What a conversation in bursts costs, held with the real app against a strict server with prices and cache lifetimes.

`python -m tests.economy.strict_run [--warm] [--set compaction.economy=thrifty] [--keep 3] ...` prints one run.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import structlog

from tests.economy.bursts import bursts
from tests.study.life import StudyRun, run_study
from tests.study.measure import usd


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run cost and what it remembered."""

    usd: float
    usd_summaries: float
    median_prompt: int
    answered: int
    cached_share: float  # of what was sent before, what was read from the cache while it was warm
    paid_twice: int  # characters that two requests of the conversation, one after the other, paid for in full
    # Characters of volatile blocks, which are paid for in full each time: all, and those that stood in the one before.
    volatile: tuple[int, int]
    held: StudyRun


def measure(
    *,
    window: int = 200_000,
    warm: bool = False,
    turns: int = 400,
    questions: int = 40,
    keep: int = 10,
    seed: int = 7,
    rests: bool = True,
    wanted: Mapping[str, str] | None = None,
) -> Measured:
    conversation = bursts(turns, questions, warm=warm, seed=seed)
    with tempfile.TemporaryDirectory(prefix="economy-") as folder:
        held = asyncio.run(run_study(conversation, Path(folder), window=window, keep=keep, rests=rests, wanted=wanted))
    prompts = [one.usage.prompt for one in held.seen if one.purpose == "chat"]
    return Measured(
        usd(held.seen),
        usd(held.seen, "summary"),
        int(statistics.median(prompts)),
        sum(held.outcomes.places().values()),
        warm_share(held),
        paid_twice(held),
        volatile_characters(held),
        held,
    )


def warm_share(held: StudyRun) -> float:
    """Of what the conversation's request before had written or read, the share that a request read again, where the
    cache was warm and the view was not changed."""
    chat = [one for one in held.seen if one.purpose == "chat"]
    sent = read = 0
    for before, one in pairwise(chat):
        if one.first or not one.usage.cache_read:
            continue
        sent += before.usage.cache_read + before.usage.cache_write
        read += min(one.usage.cache_read, before.usage.cache_read + before.usage.cache_write)
    return read / max(1, sent)


def paid_twice(held: StudyRun) -> int:
    chat = [one for one in held.seen if one.purpose == "chat"]
    return sum(sum(map(len, before.full & one.full)) for before, one in pairwise(chat))


def volatile_characters(held: StudyRun) -> tuple[int, int]:
    chat = [one.volatile for one in held.seen if one.purpose == "chat"]
    again = (before & one for before, one in pairwise(chat))
    return sum(map(_length, chat)), sum(map(_length, again))


def _length(texts: frozenset[str]) -> int:
    return sum(map(len, texts))


def lines(measured: Measured) -> Iterator[str]:
    held = measured.held
    yield f"${measured.usd:.2f}, of it summaries ${measured.usd_summaries:.2f}"
    yield f"median prompt {measured.median_prompt:,}; read again while warm {measured.cached_share:.1%}"
    yield f"characters paid for in full twice in a row: {measured.paid_twice:,}"
    of_all, again = measured.volatile
    yield f"characters of volatile blocks (time, open tasks, recalled words): {of_all:,}, of them {again:,} again"
    yield f"facts answered {measured.answered}: {dict(held.outcomes.places())}"
    yield from (f"missed: {fact.question} ({fact.value}; {fact.said})" for fact in held.outcomes.missed)
    made = [one for one in held.checkpoints if one.state in ("live", "absorbed", "masked")]
    yield f"compactions {len(made)}: {sorted({(one.trigger, one.tier) for one in made})}"
    yield f"turns without an answer {len(held.failed)}; refused: {held.refused[:2]}"
    for purpose in ("chat", "summary", "extraction"):
        used = [one.usage for one in held.seen if one.purpose == purpose]
        sums = [sum(getattr(one, kind) for one in used) for kind in ("cache_read", "cache_write", "input", "output")]
        yield f"{purpose}: {len(used)} calls; read {sums[0]:,}, written {sums[1]:,}, fresh {sums[2]:,}, out {sums[3]:,}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--window", type=int, default=200_000)
    parser.add_argument("--turns", type=int, default=400)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--keep", type=int, default=10)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--no-rest", action="store_true", help="nothing runs between bursts")
    parser.add_argument("--set", dest="wanted", action="append", default=[])
    chosen = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    began = time.perf_counter()
    measured = measure(
        window=chosen.window,
        warm=chosen.warm,
        turns=chosen.turns,
        questions=chosen.questions,
        keep=chosen.keep,
        seed=chosen.seed,
        rests=not chosen.no_rest,
        wanted=dict(one.split("=", 1) for one in chosen.wanted),
    )
    print("\n".join(lines(measured)))
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
