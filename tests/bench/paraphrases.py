"""Facts, and questions about them in other words: at most two words of a question that mean something are its fact's.

The words they share are a name, a place or a thing that many other messages have as well. The value asked for is a
word of its own, so that whether a text brings it back can be seen.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.bench.words import FIRST_NAMES, PLACES, listed

_THINGS = listed(
    "boat garage cabin piano bicycle bakery cellar greenhouse sauna van shed attic studio workshop caravan"
)
# {n} a name, {p} a place, {t} a thing, {v} the value.
_WORDINGS = (
    (
        "{n} told me that the wifi password of the {t} is {v}.",
        "How do I get online at {n}'s {t}?",
    ),
    (
        "We agreed to pay {n} {v} euros for the {t}.",
        "What do I owe {n} for the {t}?",
    ),
    (
        "My locker at the gym in {p} is number {v}.",
        "Which locker do I have in {p}?",
    ),
    (
        "The plumber who fixed the {t} can be reached under {v}.",
        "What is the number of the {t} plumber?",
    ),
    (
        "Our flight to {p} leaves from gate {v}.",
        "Where do I have to go at the airport for the {p} flight?",
    ),
    (
        "The present for {n} is hidden behind the {t}, in the sack marked {v}.",
        "Which bag holds {n}'s gift, the one by the {t}?",
    ),
    (
        "I left the {t} on parking level {v} near the station in {p}.",
        "Where in {p} did I put the {t}?",
    ),
    (
        "The insurance policy of the {t} runs under {v}.",
        "I need the details of my {t} policy, what were they?",
    ),
    (
        "{n} moved to a flat in {p}, the door code is {v}.",
        "How do I get into {n}'s new place in {p}?",
    ),
    (
        "The {t} was painted with the colour {v} from the shop in {p}.",
        "Which shade did we use on the {t} in {p}?",
    ),
    (
        "The invoice from {n} about the {t} has reference {v}.",
        "Find me the bill {n} sent for the {t}.",
    ),
    (
        "The meeting about the {t} in {p} was moved to room {v}.",
        "Where are we talking about the {t} over in {p}?",
    ),
    (
        "{n} recommended the dentist {v} in {p}.",
        "Who should I see in {p} about my teeth, according to {n}?",
    ),
    (
        "The spare part for the {t} carries serial {v}, says {n}.",
        "{n} knew what to order for the broken {t}, what was it?",
    ),
    (
        "My tax adviser {n} files everything under client {v}.",
        "What's my identification with {n} the tax person?",
    ),
    (
        "The hotel in {p} booked us into suite {v} thanks to {n}.",
        "In {p}, which room did {n} arrange for us?",
    ),
    (
        "{n} lent me the book {v} about the {t}.",
        "What did I borrow from {n} on how to fix up a {t}?",
    ),
    (
        "The alarm of the {t} in {p} is switched off with {v}.",
        "How do I silence the siren at the {t} in {p}?",
    ),
    (
        "For the {t}, {n} suggested the supplier {v}.",
        "Whom did {n} say to buy from for the {t}?",
    ),
    (
        "The ferry to {p} that {n} booked has confirmation {v}.",
        "What do I show when boarding with {n} towards {p}?",
    ),
)


@dataclass(frozen=True, slots=True)
class Paraphrase:
    said: str
    question: str
    value: str


def paraphrases(count: int, seed: int = 5) -> list[Paraphrase]:
    """`count` of them, the wordings in turn; no two have the same question."""
    chance = random.Random(seed)
    made: dict[str, Paraphrase] = {}
    number = 0
    while len(made) < count:
        said, question = _WORDINGS[number % len(_WORDINGS)]
        number += 1
        words = {"n": chance.choice(FIRST_NAMES), "p": chance.choice(PLACES), "t": chance.choice(_THINGS)}
        value = "".join(chance.choice("bcdfghjkmnpqrstvwxz") for _ in range(4)) + str(chance.randint(100, 999))
        asked = question.format(**words)
        made.setdefault(asked, Paraphrase(said.format(**words, v=value), asked, value))
    return list(made.values())
