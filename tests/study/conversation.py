"""A conversation of thousands of turns over weeks, written before it is held: what the person says and when, what the
model will answer, which tools it calls, which facts are planted where and asked for when.

What always holds: everything follows from the seed; a fact is asked for when it has long left the view of any small
window; turns of one sitting are less than a minute apart, sittings hours, so that a prompt cache of five minutes lives
within a sitting and never between two.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from tests.study.facts import StudyFact, planted
from tests.study.talk import TopicStretch, TopicTalk

BEGUN = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
TURNS_A_DAY = 33
TOOL_SHARE = 0.2
# Turns between a fact and its question: a window of 32,000 tokens holds fewer, as do the kept words of the person.
LEAST_GAP = 250
_SITTING = (6, 18)
_APART_SECONDS = (20, 60)
_FILES, _PICTURES = 48, 70
# Of the tool turns so many set a task, which is done so many turns later.
_TASK_SHARE, _TASK_TURNS = 0.08, 25

Kind = Literal["talk", "tool", "task", "done", "fact", "question"]


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A tool call that the model will make."""

    name: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class StudyTurn:
    """One message of the person and what will come of it. `reply` of a question holds the value; `task` are the words
    of what is to be done, or was."""

    number: int
    at: datetime
    kind: Kind
    text: str
    reply: str
    call: PlannedCall | None = None
    fact: StudyFact | None = None
    task: str = ""


@dataclass(frozen=True, slots=True)
class StudyWish:
    """How the person wants to be answered from the turn `since` on; `value` stands nowhere else."""

    since: int
    value: str


@dataclass(frozen=True, slots=True)
class StudyConversation:
    """`files` are the texts of the workspace by their paths."""

    turns: tuple[StudyTurn, ...]
    facts: tuple[StudyFact, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    wishes: tuple[StudyWish, ...] = ()


def written(turns: int, facts: int, seed: int, *, unbroken: bool = False) -> StudyConversation:
    """The whole conversation. There have to be at least five turns for each fact. `unbroken`: in a single sitting, so
    that the cache always lives and nobody ever rests."""
    assert turns >= 5 * facts, "a conversation needs at least five turns for each fact"
    chance = random.Random(f"conversation {seed}")
    talk, told = TopicTalk(seed), planted(facts, seed)
    files = _workspace(talk, random.Random(f"files {seed}"))
    plants, asks = _places(turns, told, chance)
    made: list[StudyTurn] = []
    to_do: list[StudyTurn] = []
    stretch = talk.stretch(chance)
    for number, at in enumerate(_times(turns, chance, unbroken=unbroken)):
        rested = number == 0 or at - made[-1].at > timedelta(minutes=5)
        if rested or (unbroken and number % _SITTING[0] == 0):
            stretch = talk.stretch(chance)
        if number in plants:
            made.append(_plant(number, at, plants[number], talk, stretch, chance))
        elif number in asks:
            made.append(_ask(number, at, asks[number], talk, stretch, chance))
        elif to_do and number - to_do[0].number >= _TASK_TURNS:
            made.append(_done(number, at, to_do.pop(0), talk, stretch, chance))
        elif chance.random() < TOOL_SHARE * turns / (turns - 2 * facts):
            made.append(_look(number, at, files, talk, stretch, chance))
        else:
            made.append(_chat(number, at, talk, stretch, chance))
        to_do += [turn for turn in made[-1:] if turn.kind == "task"]
    return StudyConversation(tuple(made), tuple(told), files)


# ---------------------------------------------------------------------------------------------------------------- turns


def _plant(
    number: int, at: datetime, fact: StudyFact, talk: TopicTalk, stretch: TopicStretch, chance: random.Random
) -> StudyTurn:
    """Every second fact is a message of its own, the others stand within talk."""
    text = fact.said
    if fact.number % 2:
        before, after = (talk.said(chance, stretch, chance.randint(15, 60)) for _ in range(2))
        text = f"{before} {fact.said} {after}"
    return StudyTurn(number, at, "fact", text, "Noted. " + talk.answered(chance, stretch, _short(chance)), fact=fact)


def _ask(
    number: int, at: datetime, fact: StudyFact, talk: TopicTalk, stretch: TopicStretch, chance: random.Random
) -> StudyTurn:
    reply = f"That is {fact.value}. " + talk.answered(chance, stretch, 30)
    return StudyTurn(number, at, "question", fact.question, reply, fact=fact)


def _chat(number: int, at: datetime, talk: TopicTalk, stretch: TopicStretch, chance: random.Random) -> StudyTurn:
    text = talk.said(chance, stretch, _length(chance, 20, 400))
    return StudyTurn(number, at, "talk", text, talk.answered(chance, stretch, _length(chance, 30, 500)))


def _look(
    number: int, at: datetime, files: Mapping[str, str], talk: TopicTalk, stretch: TopicStretch, chance: random.Random
) -> StudyTurn:
    kind = chance.random()
    if kind < _TASK_SHARE:
        return _task(number, at, talk, stretch, chance)
    if kind < 0.6:
        path = chance.choice([path for path in files if path.startswith("notes/")])
        text, call = f"What did I write in {path}?", PlannedCall("read_file", {"path": path})
    elif kind < 0.75:
        text, call = "Which pictures are there?", PlannedCall("list_files", {"path": "pictures"})
    else:
        words = " ".join(chance.sample(stretch.words, 3))
        text = f"When did we last talk about {words}?"
        call = PlannedCall("search_history", {"query": words})
    text = f"{talk.said(chance, stretch, chance.randint(10, 40))} {text}"
    return StudyTurn(number, at, "tool", text, talk.answered(chance, stretch, _length(chance, 60, 300)), call)


def _task(number: int, at: datetime, talk: TopicTalk, stretch: TopicStretch, chance: random.Random) -> StudyTurn:
    task = f"call {chance.choice(stretch.names)} about offer {number}"
    text = f"Please remind me to {task}. {talk.said(chance, stretch, 20)}"
    call = PlannedCall("manage_todo_list", {"action": "add", "items": [task]})
    return StudyTurn(number, at, "task", text, f"I will. {talk.answered(chance, stretch, 30)}", call, task=task)


def _done(
    number: int, at: datetime, set_in: StudyTurn, talk: TopicTalk, stretch: TopicStretch, chance: random.Random
) -> StudyTurn:
    text = f"By the way, I did {set_in.task}. {talk.said(chance, stretch, 20)}"
    return StudyTurn(number, at, "done", text, f"Good. {talk.answered(chance, stretch, 30)}", task=set_in.task)


def _length(chance: random.Random, low: int, high: int) -> int:
    """Tokens; short ones are frequent, long ones are not rare."""
    return int(low * (high / low) ** chance.triangular(0, 1, 0.3))


def _short(chance: random.Random) -> int:
    return _length(chance, 30, 120)


# --------------------------------------------------------------------------------------------------------------- places


def _places(
    turns: int, facts: list[StudyFact], chance: random.Random
) -> tuple[dict[int, StudyFact], dict[int, StudyFact]]:
    """At which turns facts are said and asked for: half of the questions at the end, half spread over the turns that
    are far enough behind their facts."""
    gap = min(LEAST_GAP, turns // 4)
    last = turns - len(facts)
    # So many turns are left behind the last of them that every question finds one.
    said = sorted(chance.sample(range(last - gap - len(facts)), len(facts)))
    plants = dict(zip(said, facts, strict=True))
    order = list(plants.items())
    chance.shuffle(order)
    at_end, spread = order[: len(order) // 2], order[len(order) // 2 :]
    free = set(range(gap, last)) - set(plants)
    asks: dict[int, StudyFact] = {}
    for place, fact in spread:
        asked = chance.choice(sorted(number for number in free if number >= place + gap))
        free.discard(asked)
        asks[asked] = fact
    end = turns - len(at_end)
    asks |= {end + n: fact for n, (_, fact) in enumerate(at_end)}
    assert all(asked - said >= gap for asked, fact in asks.items() for said, one in plants.items() if one is fact)
    return plants, asks


def _times(turns: int, chance: random.Random, *, unbroken: bool) -> list[datetime]:
    """When each message comes: sittings of some turns, at hours of the day, about `TURNS_A_DAY`."""
    sittings: list[int] = [turns] if unbroken else []
    while sum(sittings) < turns:
        sittings.append(chance.randint(*_SITTING))
    days = max(1, round(turns / TURNS_A_DAY))
    a_day = -(-len(sittings) // days)
    times: list[datetime] = []
    for index, size in enumerate(sittings):
        day, place = divmod(index, a_day)
        at = BEGUN + timedelta(days=day, hours=14 * place / a_day, minutes=chance.randint(0, 50))
        for _ in range(size):
            times.append(at)
            at += timedelta(seconds=chance.randint(*_APART_SECONDS))
    return times[:turns]


def _workspace(talk: TopicTalk, chance: random.Random) -> dict[str, str]:
    names = [f"notes/{number:02}-{talk.stretch(chance).words[0]}.md" for number in range(_FILES)]
    files = {name: talk.notes(chance, name[9:-3], _length(chance, 400, 2_500)) for name in names}
    pictures = [
        f"pictures/2025-{chance.randint(1, 12):02}-{n:03}-{talk.stretch(chance).words[0]}.txt" for n in range(_PICTURES)
    ]
    return {**files, **dict.fromkeys(pictures, "(a picture)\n")}
