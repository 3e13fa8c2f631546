"""How a talk goes, and what of it is asked for later: who said something first, what was decided and then changed, what
was rejected and why, what is still to be done; and wishes on how to answer, which nobody asks for and which count with
every answer.

They are laid over a conversation that was written before: sentences in its turns of talk, and questions behind its end.
What always holds: everything follows from the seed; the two ends of a story are `_APART` turns apart at least.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from tests.bench.words import FIRST_NAMES, PLACES
from tests.study.conversation import StudyConversation, StudyTurn, StudyWish
from tests.study.facts import THINGS, StudyFact, unique_values

FLOW_KINDS = ("first", "changed", "rejected", "open")

_APART = 30
_SITTING = 8
_BETWEEN, _WITHIN = timedelta(hours=4), timedelta(seconds=40)

Speaker = Literal["user", "assistant"]
Line = tuple[Speaker, str]


@dataclass(frozen=True, slots=True)
class Story:
    """Lines said one long after the other, and what is asked about them."""

    kind: str
    lines: tuple[Line, ...]
    question: str
    value: str
    stale: str = ""


def with_flow(conversation: StudyConversation, each: int, seed: int) -> StudyConversation:
    """The conversation with so many stories of each kind and as many wishes."""
    chance = random.Random(f"flow {seed}")
    stories = list(_stories(each, chance))
    turns, last = list(conversation.turns), conversation.turns[-1]
    free = [turn.number for turn in turns[: len(turns) * 3 // 4] if turn.kind == "talk"]
    facts: list[StudyFact] = []
    for story in stories:
        for place, (speaker, line) in zip(_places(free, len(story.lines), chance), story.lines, strict=True):
            turns[place] = _with_line(turns[place], speaker, line)
        number = len(conversation.facts) + len(facts)
        said = " ".join(line for _, line in story.lines if story.value in line)
        facts.append(StudyFact(number, story.kind, said, story.question, story.value, story.stale))
    wishes = []
    for text, value in _wishes(each, chance):
        place = free.pop(chance.randrange(len(free) // 3))
        turns[place] = _with_line(turns[place], "user", text)
        wishes.append(StudyWish(place, value))
    chance.shuffle(facts)
    for index, fact in enumerate(facts):
        sitting, within = divmod(index, _SITTING)
        at = last.at + (sitting + 1) * _BETWEEN + within * _WITHIN
        turns.append(StudyTurn(len(turns), at, "question", fact.question, f"That is {fact.value}.", fact=fact))
    return replace(
        conversation, turns=tuple(turns), facts=(*conversation.facts, *sorted(facts, key=_number)), wishes=tuple(wishes)
    )


def _number(fact: StudyFact) -> int:
    return fact.number


def _places(free: list[int], count: int, chance: random.Random) -> list[int]:
    """Turns for the lines of a story, in their order; each is taken once."""
    chosen: list[int] = []
    while len(chosen) < count:
        earliest = chosen[-1] + _APART if chosen else 0
        later = [place for place in free if place >= earliest]
        # Room is left for the lines that follow.
        place = chance.choice(later[: max(1, len(later) * (len(chosen) + 1) // (count + 1))] if count > 1 else later)
        free.remove(place)
        chosen.append(place)
    return chosen


def _with_line(turn: StudyTurn, speaker: Speaker, line: str) -> StudyTurn:
    if speaker == "assistant":
        return replace(turn, reply=f"{line} {turn.reply}")
    return replace(turn, text=f"{turn.text} {line}")


def _stories(each: int, chance: random.Random) -> Iterator[Story]:
    names, things = unique_values("name", chance), _things(chance)
    for number in range(each):
        for kind in FLOW_KINDS:
            yield _story(kind, number, next(things), (next(names), next(names), next(names)))


def _story(kind: str, number: int, thing: str, names: tuple[str, str, str]) -> Story:
    x, v, w = names
    match kind:
        case "first":
            theirs = f"I came across the method of {x} for {thing}, in a leaflet from {v}."
            ours = f"For {thing} there is the method of {x}, which {v} describes."
            lines: tuple[Line, ...] = (
                (("user", theirs), ("assistant", f"The method of {x} does seem right for {thing}; {w} uses it."))
                if number % 2
                else (
                    ("assistant", ours),
                    ("user", f"I think we should use the method of {x} for {thing}, as {w} does."),
                )
            )
            question = f"Who of us brought up the method of {x} first, and where was it from?"
            return Story(kind, lines, question, v, w)
        case "changed":
            lines = (
                ("user", f"It is settled now: {thing} will be done by {x}."),
                ("user", f"I have changed my mind about {thing}: not {x} any more, {v} will do it."),
            )
            return Story(kind, lines, f"Who did we decide on for {thing} in the end?", v, x)
        case "rejected":
            lines = (
                ("assistant", f"You could give {thing} to the firm of {x}."),
                ("user", f"No, I do not want the firm of {x} for {thing}, {v} had nothing but trouble with them."),
            )
            return Story(kind, lines, f"Why did I turn down that firm for {thing}, who had warned me?", v)
        case _:
            line = f"Please ask {v} for an offer for {thing}."
            question = f"What did I want you to do about {thing}, and is that still open?"
            return Story(kind, (("user", line),), question, v)


def _things(chance: random.Random) -> Iterator[str]:
    """Each once; things, names and places are those of the facts as well."""
    seen: set[str] = set()
    while True:
        thing = f"the {chance.choice(THINGS)} of {chance.choice(FIRST_NAMES)} in {chance.choice(PLACES)}"
        if thing not in seen:
            seen.add(thing)
            yield thing


_WISHES = (
    "From now on, please sign your answers with {v}.",
    "Please always call me {v}.",
    "Never suggest {v} to me again, I have had enough of that.",
    "When you answer me, start with the word {v}, please.",
    "I would like your answers short, the way {v} writes.",
    "Keep your answers in the style of {v}.",
)


def _wishes(count: int, chance: random.Random) -> Iterator[tuple[str, str]]:
    values = unique_values("name", chance)
    for number in range(count):
        value = next(values).split()[1]
        yield _WISHES[number % len(_WISHES)].format(v=value), value
