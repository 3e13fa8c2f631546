"""Judges what was learned of a month: which facts and corrections are held, and which texts ought not to be there.

Pure. Every learned text falls under exactly one verdict:

- "held": it holds a fact or a correction that no text before it held;
- "duplicate": all that it holds, texts before it held already;
- "junk": it holds nothing that is asked for, and each of its sources is noise, or said in passing what it repeats;
- "unasked": it holds nothing that is asked for, but comes of a message in which something lasting is said. It counts
  neither for nor against.

A text without sources that holds nothing is junk: nobody can say where it came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.month.conversation import MonthConversation, has_phrase

Verdict = Literal["held", "duplicate", "junk", "unasked"]


@dataclass(frozen=True, slots=True)
class LearnedText:
    """One text that was learned, the numbers of the messages it came of, and whether it is still held to be true."""

    text: str
    sources: tuple[int, ...]
    current: bool = True


@dataclass(frozen=True, slots=True)
class Judgement:
    """`verdicts` stands beside the learned texts, one each. Facts and corrections are given by id, in the order of the
    month. `stale` are the texts still held to be true that say only what a correction superseded."""

    learned: tuple[LearnedText, ...]
    verdicts: tuple[Verdict, ...]
    facts: tuple[str, ...]
    missed: tuple[str, ...]
    corrections: tuple[str, ...]
    uncorrected: tuple[str, ...]
    stale: tuple[LearnedText, ...]

    def texts(self, verdict: Verdict) -> tuple[LearnedText, ...]:
        return tuple(one for one, given in zip(self.learned, self.verdicts, strict=True) if given == verdict)

    @property
    def recall(self) -> float:
        """Share of the facts that are held, 0 to 1."""
        return _share(len(self.facts), len(self.facts) + len(self.missed))

    @property
    def precision(self) -> float:
        """Share of the learned texts that are not junk, 0 to 1; 1 when nothing was learned."""
        return 1 - _share(len(self.texts("junk")), len(self.learned))


def judge(month: MonthConversation, learned: Iterable[LearnedText]) -> Judgement:
    """KeyError when a text names a message that the month does not have."""
    texts = tuple(learned)
    holds = tuple(_holds(month, one.text) for one in texts)
    anything = frozenset[str]().union(*holds)
    facts = {fact.id: _fact(fact.id) in anything for fact in month.facts}
    corrections = {each.id: _now(each.id) in anything for each in month.corrections}
    return Judgement(
        texts,
        _verdicts(month, texts, holds),
        tuple(name for name, held in facts.items() if held),
        tuple(name for name, held in facts.items() if not held),
        tuple(name for name, held in corrections.items() if held),
        tuple(name for name, held in corrections.items() if not held),
        tuple(one for one in texts if one.current and _superseded(month, one.text)),
    )


def _verdicts(
    month: MonthConversation, texts: Sequence[LearnedText], holds: Sequence[frozenset[str]]
) -> tuple[Verdict, ...]:
    verdicts: list[Verdict] = []
    before: frozenset[str] = frozenset()
    for one, held in zip(texts, holds, strict=True):
        if held:
            verdicts.append("held" if held - before else "duplicate")
        else:
            verdicts.append("junk" if _nothing_lasting(month, one) else "unasked")
        before |= held
    return tuple(verdicts)


def _holds(month: MonthConversation, text: str) -> frozenset[str]:
    """All that a text holds of what is asked for, and of what corrections superseded: that was true once."""
    return frozenset(
        [
            *(_fact(fact.id) for fact in month.facts if fact.keys.held_by(text)),
            *(_now(each.id) for each in month.corrections if each.new.held_by(text)),
            *(f"before {each.id}" for each in month.corrections if each.old.held_by(text)),
        ]
    )


def _superseded(month: MonthConversation, text: str) -> bool:
    return any(each.old.held_by(text) and not each.new.held_by(text) for each in month.corrections)


def _nothing_lasting(month: MonthConversation, one: LearnedText) -> bool:
    messages = (month.message(number) for number in one.sources)
    return all(said.noise or any(has_phrase(one.text, phrase) for phrase in said.passing) for said in messages)


def _fact(name: str) -> str:
    return f"fact {name}"


def _now(name: str) -> str:
    return f"now {name}"


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
