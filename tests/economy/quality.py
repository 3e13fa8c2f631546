"""What is remembered of a life, and what it costs and how long it makes people wait, by how the context is kept small:
the same life with economy off, balanced and thrifty, and with a sliding window. Every summary forgets all but `--keep`
facts, and nobody extracts memories, so that what left the context comes back by recall and search alone.

`python -m tests.economy.quality [--turns 1200] [--facts 200] [--each 12] [--keep 3] [--seed 7] [--only off,balanced]`

What always holds: everything follows from the seed. Nobody waits here: a turn's waiting is the model calls that it
makes before its answer, at `SECONDS_A_CALL` each. A question is answered right when what it asks for stands in the
request; who sees what was said before a change of mind, and not the change, answers wrong without looking for more.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from tests.bench.figures import percentile
from tests.economy.year import SLIDING_TOKENS
from tests.study.conversation import StudyConversation, written
from tests.study.flow import FLOW_KINDS, with_flow
from tests.study.life import StudyRun, run_study
from tests.study.measure import usd

SECONDS_A_CALL = 2.0

POLICIES: Mapping[str, Mapping[str, str]] = {
    "off": {"compaction.economy": "off"},
    "balanced": {},
    "thrifty": {"compaction.economy": "thrifty"},
    "sliding window": {
        "compaction.economy": "off",
        "compaction.strategy": "sliding_window",
        "context.max_context_tokens": str(SLIDING_TOKENS),
    },
}
_SHARES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class LifeQuality:
    """What came of one life: right answers and questions by kind, wishes seen and due, dollars, seconds by turn."""

    right: Mapping[str, int]
    asked: Mapping[str, int]
    wishes: tuple[int, int]
    usd: float
    waits: tuple[float, ...]
    compactions: int
    failed: int
    missed: tuple[str, ...]

    def share(self, kind: str) -> float:
        if kind == "wishes":
            return self.wishes[0] / max(1, self.wishes[1])
        return self.right[kind] / max(1, self.asked[kind])


def a_life(turns: int, facts: int, each: int, seed: int) -> StudyConversation:
    return with_flow(written(turns, facts, seed), each, seed)


def live(life: StudyConversation, policy: str, *, keep: int, window: int = 200_000) -> LifeQuality:
    with tempfile.TemporaryDirectory(prefix="quality-") as folder:
        held = asyncio.run(run_study(life, Path(folder), window=window, keep=keep, wanted=POLICIES[policy]))
    return judge(life, held)


def judge(life: StudyConversation, held: StudyRun) -> LifeQuality:
    kinds = {fact.number: kind_of(fact.kind) for fact in life.facts}
    outcomes = held.outcomes
    return LifeQuality(
        Counter(kinds[number] for number in outcomes.answered),
        Counter(kinds.values()),
        (outcomes.wishes_seen, outcomes.wishes_due),
        usd(held.seen),
        tuple(SECONDS_A_CALL * calls for calls in calls_waited_for(held)),
        sum(one.state in ("live", "absorbed", "masked") for one in held.checkpoints),
        len(held.failed) + len(held.refused),
        tuple(f"{kinds[fact.number]}: {fact.question} ({fact.value})" for fact in outcomes.missed),
    )


def kind_of(kind: str) -> str:
    """Of a fact of the study the kind of its value does not matter here."""
    return kind if kind in FLOW_KINDS else "fact"


def calls_waited_for(held: StudyRun) -> Iterator[int]:
    """For each turn, the calls up to the one that answered: what comes behind it nobody waits for."""
    by_turn: dict[int, list[str]] = {}
    for one in held.seen:
        by_turn.setdefault(one.turn, []).append(one.purpose)
    for purposes in by_turn.values():
        yield len(purposes) - purposes[::-1].index("chat")


KINDS = ("fact", *FLOW_KINDS, "wishes")
_NAMES = {
    "fact": "facts told in passing",
    "first": "who said it first",
    "changed": "decided, then changed",
    "rejected": "rejected, and why",
    "open": "still to be done",
    "wishes": "wishes seen, all turns",
}


def lines(lives: Mapping[str, LifeQuality]) -> Iterator[str]:
    yield f"{'':<24}" + "".join(f"{policy:>16}" for policy in lives)
    for kind in KINDS:
        yield _line(_NAMES[kind], [_of(one, kind) for one in lives.values()])
    yield _line("dollars", [f"{one.usd:.2f}" for one in lives.values()])
    for share in _SHARES:
        name = f"p{share * 100:.0f} of a turn, seconds"
        yield _line(name, [f"{percentile(one.waits, share):.0f}" for one in lives.values()])
    yield _line("compactions", [str(one.compactions) for one in lives.values()])
    yield _line("failed turns, refusals", [str(one.failed) for one in lives.values()])


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<24}" + "".join(f"{cell:>16}" for cell in cells)


def _of(one: LifeQuality, kind: str) -> str:
    return f"{one.share(kind):.1%}" if kind == "wishes" else f"{one.right[kind]} of {one.asked[kind]}"


def find_losses(lives: Mapping[str, LifeQuality]) -> list[str]:
    """Where economy is worse than none."""
    return [
        f"{policy}, {_NAMES[kind]}: {_of(lives[policy], kind)}, without economy {_of(lives['off'], kind)}"
        for policy in ("balanced", "thrifty")
        for kind in KINDS
        if policy in lives and lives[policy].share(kind) < lives["off"].share(kind)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where economy is nowhere worse than none."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.economy.quality", description="What is remembered of a life."
    )
    parser.add_argument("--turns", type=int, default=1_200)
    parser.add_argument("--facts", type=int, default=200)
    parser.add_argument("--each", type=int, default=12, help="stories of each kind, and wishes")
    parser.add_argument("--keep", type=int, default=3, help="facts that a summary keeps")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--window", type=int, default=200_000)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(POLICIES))
    parser.add_argument("--missed", action="store_true", help="print the questions that were not answered")
    chosen = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    life = a_life(chosen.turns, chosen.facts, chosen.each, chosen.seed)
    questions, wishes = len(life.facts), len(life.wishes)
    print(f"{len(life.turns):,} turns; {questions} questions; {wishes} wishes; summaries keep {chosen.keep} facts")
    lives: dict[str, LifeQuality] = {}
    for policy in chosen.only:
        print(f"living it: {policy} ...", file=sys.stderr, flush=True)
        lives[policy] = live(life, policy, keep=chosen.keep, window=chosen.window)
        if chosen.missed:
            print("\n".join(f"{policy} missed {line}" for line in lives[policy].missed), flush=True)
    print("\n".join(lines(lives)))
    losses = find_losses(lives) if "off" in lives else []
    print("\n".join(losses))
    return 1 if losses else 0


if __name__ == "__main__":
    sys.exit(main())
