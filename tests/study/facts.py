"""Facts that a person tells in passing, and questions about them in other words.

A question shares at most two words that mean something with its fact (`shared_words`, checked for every fact made):
names, places and things, which much other talk has as well. The value asked for occurs nowhere else, so that whether
a text brings it back can be seen.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench.words import FIRST_NAMES, PLACES, listed
from tests.study.wordings import parsed

MOST_SHARED = 2

THINGS = listed(
    """
    allotment attic barn bakery boathouse bungalow cabin caravan carport cellar chapel cottage dinghy gallery garage
    greenhouse hangar houseboat kiosk lodge loft motorbike orchard pavilion sauna shed smithy stable studio tractor
    trailer veranda vineyard windmill workshop yacht
    """
)
_WORDINGS = parsed()

_COMMON = frozenset(
    listed(
        """
        the and for was were with that this those these who whom whose what which when where why how did does had has
        have our out one its his her him she they them not but from into over under about after before again because
        been being can could should would will shall may must than then there their here you your mine all any are let
        say said tell told mentioned know get gets got give gave take takes need needs off own way day new old down near
        around with
        """
    )
)
_SYLLABLES = listed("bra cel dor fen gal hol jur kes lom mar nev ost pel quin rud sav tol ulv var wes yor zim")
_MONTHS = listed("January February March April May June July August September October November December")


@dataclass(frozen=True, slots=True)
class StudyFact:
    """`said` holds `value`, word for word; `question` asks for it. Whoever sees `stale` and not the value answers with
    that, which is wrong."""

    number: int
    kind: str
    said: str
    question: str
    value: str
    stale: str = ""


def planted(count: int, seed: int) -> list[StudyFact]:
    """`count` facts, the wordings in turn, each asked for in several ways; no value and no question occurs twice."""
    chance = random.Random(f"facts {seed}")
    values = {kind: unique_values(kind, chance) for kind in ("identifier", "number", "date", "name")}
    facts: dict[str, StudyFact] = {}
    while len(facts) < count:
        round_, place = divmod(len(facts), len(_WORDINGS))
        kind, said, questions = _WORDINGS[place]
        words = {"n": chance.choice(FIRST_NAMES), "p": chance.choice(PLACES), "t": chance.choice(THINGS)}
        asked = questions[round_ % len(questions)].format(**words)
        if asked not in facts:
            value = next(values[kind])
            facts[asked] = StudyFact(len(facts), kind, said.format(**words, v=value), asked, value)
            assert len(shared_words(facts[asked].said, asked)) <= MOST_SHARED, facts[asked]
    return list(facts.values())


def shared_words(said: str, question: str) -> set[str]:
    """Words that mean something and stand in both; words with the same first five letters count as the same."""
    return _telling(said) & _telling(question)


def _telling(text: str) -> set[str]:
    words = re.findall(r"[^\W\d_]+", text.casefold())
    return {word[:5] for word in words if len(word) > 2 and word not in _COMMON}


def unique_values(kind: str, chance: random.Random) -> Iterator[str]:
    """Endless values of a kind, each once."""
    seen: set[str] = set()
    while True:
        value = _value(kind, chance)
        if value not in seen:
            seen.add(value)
            yield value


def _value(kind: str, chance: random.Random) -> str:
    match kind:
        case "identifier":
            letters = "".join(chance.choice("BCDFGHJKLMNPQRSTVWXZ") for _ in range(3))
            return f"{letters}-{chance.randint(1000, 9999)}-{chance.choice('ABCDEF')}"
        case "number":
            return str(chance.randint(10_001, 99_989))
        case "date":
            return f"{chance.randint(1, 28)} {chance.choice(_MONTHS)} 20{chance.randint(41, 79)}"
        case _:
            first = "".join(chance.choice(_SYLLABLES) for _ in range(2)).capitalize()
            return f"{first} {''.join(chance.choice(_SYLLABLES) for _ in range(3)).capitalize()}"
