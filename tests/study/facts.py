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

MOST_SHARED = 2

THINGS = listed(
    """
    allotment attic barn bakery boathouse bungalow cabin caravan carport cellar chapel cottage dinghy gallery garage
    greenhouse hangar houseboat kiosk lodge loft motorbike orchard pavilion sauna shed smithy stable studio tractor
    trailer veranda vineyard windmill workshop yacht
    """
)
# The kind of value, the fact and its question: {n} a name, {p} a place, {t} a thing, {v} the value.
_WORDINGS = (
    (
        "identifier",
        "By the way, {n} gave me the access code for the {t}: {v}.",
        "How do I unlock the {t} of {n}?",
    ),
    (
        "number",
        "The deposit we paid {n} for the {t} came to {v} euros.",
        "How much of our money does {n} hold because of the {t}?",
    ),
    (
        "date",
        "{n} gets married in {p} on {v}.",
        "When is the wedding of {n} in {p}?",
    ),
    (
        "name",
        "The electrician in {p} who understood the {t} straight away is called {v}.",
        "Who did the wiring of the {t} over in {p}?",
    ),
    (
        "identifier",
        "My traveller card with the ferry line to {p} carries {v}.",
        "Which membership do I show the ferry people for {p}?",
    ),
    (
        "number",
        "The radiator of the {t} at {p} needs a valve of type {v}.",
        "Which part should I buy so that the heating works again, for the {t} in {p}?",
    ),
    (
        "date",
        "The inspection of the {t} was moved to {v}, {n} told me.",
        "{n} mentioned a new day for the check of the {t}, which one?",
    ),
    (
        "name",
        "{n} takes piano lessons from {v} in {p}.",
        "Who teaches {n} music down in {p}?",
    ),
    (
        "identifier",
        "The warranty of the {t} from that shop in {p} is filed as {v}.",
        "Under what do I claim if the {t} that I got in {p} breaks?",
    ),
    (
        "number",
        "In {p} the storage unit with everything for the {t} is number {v}.",
        "Behind which door in {p} did we lock away what belongs to the {t}?",
    ),
    (
        "date",
        "The passport of {n} runs out on {v}.",
        "Until when can {n} cross borders with that passport?",
    ),
    (
        "name",
        "The landlord of the flat that {n} has in {p} is {v}.",
        "Whom does {n} pay the rent to, in {p}?",
    ),
    (
        "identifier",
        "The booking of the {t} tour in {p} runs under {v}.",
        "What do I tell the guide about our {t} trip in {p}?",
    ),
    (
        "number",
        "The meter at the {t} of {n} stood at {v} when I read it.",
        "What counter value did I write down, for {n} and the {t}?",
    ),
    (
        "date",
        "The lease of the {t} near {p} ends on {v}.",
        "By when must we be out of the {t} around {p}?",
    ),
    (
        "name",
        "{n} wants the {t} to be painted by {v}.",
        "Which craftsman did {n} pick to give the {t} its new colour?",
    ),
    (
        "identifier",
        "The parcel with the lamp for the {t}, the one to {p}, is tracked as {v}.",
        "How can I look up the shipment to {p} that was meant for the {t}?",
    ),
    (
        "number",
        "The architect {n} sits in office {v} in {p}.",
        "Which room do I go to when I see {n} in {p}?",
    ),
    (
        "date",
        "{n} starts the new job in {p} on {v}.",
        "From what day does {n} work over in {p}?",
    ),
    (
        "name",
        "The vet who treated the dog by the {t} in {p} was {v}.",
        "Which animal doctor helped us at the {t} in {p}?",
    ),
    (
        "identifier",
        "Our seats for the concert with {n} in {p} are {v}.",
        "Where do {n} and I sit at the show in {p}?",
    ),
    (
        "number",
        "{n} asked me to wire {v} crowns for the repairs of the {t}.",
        "What sum does {n} expect from me for fixing the {t}?",
    ),
    (
        "date",
        "The {t} in {p} is closed for the season from {v} on.",
        "Since when can nobody enter the {t} in {p}?",
    ),
    (
        "name",
        "At the bank in {p} the adviser of {n} is {v}.",
        "Who looks after the savings of {n} in {p}?",
    ),
)

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
class Fact:
    """`said` holds `value`, word for word; `question` asks for it."""

    number: int
    kind: str
    said: str
    question: str
    value: str


def planted(count: int, seed: int) -> list[Fact]:
    """`count` facts, the wordings in turn; no value and no question occurs twice."""
    chance = random.Random(f"facts {seed}")
    values = {kind: _values(kind, chance) for kind in ("identifier", "number", "date", "name")}
    facts: dict[str, Fact] = {}
    while len(facts) < count:
        kind, said, question = _WORDINGS[len(facts) % len(_WORDINGS)]
        words = {"n": chance.choice(FIRST_NAMES), "p": chance.choice(PLACES), "t": chance.choice(THINGS)}
        asked = question.format(**words)
        if asked not in facts:
            value = next(values[kind])
            facts[asked] = Fact(len(facts), kind, said.format(**words, v=value), asked, value)
            assert len(shared_words(facts[asked].said, asked)) <= MOST_SHARED, facts[asked]
    return list(facts.values())


def shared_words(said: str, question: str) -> set[str]:
    """Words that mean something and stand in both; words with the same first five letters count as the same."""
    return _telling(said) & _telling(question)


def _telling(text: str) -> set[str]:
    words = re.findall(r"[^\W\d_]+", text.casefold())
    return {word[:5] for word in words if len(word) > 2 and word not in _COMMON}


def _values(kind: str, chance: random.Random) -> Iterator[str]:
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
