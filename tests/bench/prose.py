"""Messages and planted facts for generated homes. Everything follows from the seed.

A `Fact` is something said once, with a question a person would ask about it later and the words of the answer. The
five kinds ask different things of a search: a name nobody else has; a name many have; nothing but common words; an
answer that shares no word with the question and stands in the message after it; a wording that differs in its endings.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tests.bench.words import FIRST_NAMES, PLACES, listed, pool, vocabulary

KINDS = ("rare name", "known name", "common words", "next message", "other endings")

_THINGS = listed(
    "boat garage cabin piano bicycle bakery cellar greenhouse sauna van shed attic studio workshop caravan"
)
_HOLDERS = listed("bucket flowerpot basket drawer cupboard doormat barrel toolbox teapot lantern")
_COLOURS = listed("red blue green yellow black white grey brown")
_RELATIONS = listed("mother father sister brother aunt uncle cousin grandmother grandfather neighbour boss teacher")
_COMMON_THINGS = listed("guitar coat camera bottle lamp map umbrella radio chair knife hat bag box table book bread")
_COMMON_PLACES = listed("kitchen bathroom office garden hotel museum hospital school library theatre")
_COMMON_SPOTS = listed("table bed chair window wall floor door tree bridge roof")
_MONTHS = listed("January February March April May June July August September October November December")


@dataclass(frozen=True, slots=True)
class ProseFact:
    """`said` are one or two consecutive messages' sentences; the last one holds the answer."""

    kind: str
    said: tuple[str, ...]
    question: str


@lru_cache(maxsize=2)
def _words_and_pool(seed: int) -> tuple[list[str], list[str]]:
    """Read only, since they are shared: they take a third of a second to make."""
    words = vocabulary(seed)
    return words, pool(words)


class Prose:
    """Endless messages of 40-400 words, each stretch of conversation leaning on its own topic."""

    def __init__(self, seed: int) -> None:
        self._words, self._pool = _words_and_pool(seed)
        self._names = [f"{first} {self._surname(i)}" for i, first in enumerate(FIRST_NAMES * 4)]

    def _surname(self, index: int) -> str:
        return self._words[-1 - index * 7].capitalize()

    def topic(self, chance: random.Random) -> list[str]:
        """Words that a stretch of conversation comes back to: from the middle of the vocabulary."""
        return chance.sample(self._words[150:8000], 40)

    def message(self, chance: random.Random, topic: list[str], low: int = 40, high: int = 400) -> str:
        """One message; lengths are even on a logarithmic scale, as in real conversations."""
        target = int(low * (high / low) ** chance.random())
        drawn = chance.choices(self._pool, k=target)
        for _ in range(target // 8):
            drawn[int(chance.random() * target)] = topic[int(chance.random() * len(topic))]
        parts = []
        start = 0
        while start < target:
            end = start + 6 + int(chance.random() * 14)
            sentence = " ".join(drawn[start:end])
            parts.append(sentence[0].upper() + sentence[1:] + ("?" if end % 9 == 0 else "."))
            start = end
        if chance.random() < 0.35:
            parts.insert(int(chance.random() * len(parts)), self._detail(chance))
        return " ".join(parts)

    def _detail(self, chance: random.Random) -> str:
        name, place = chance.choice(self._names), chance.choice(PLACES)
        day, month = chance.randint(1, 28), chance.choice(_MONTHS)
        hour = f"{chance.randint(7, 22)}:{chance.choice(('00', '15', '30', '45'))}"
        return f"{name} comes to {place} on {day} {month} at {hour} and it costs {chance.randint(5, 900)} euros."

    def facts(self, seed: int, count: int) -> Iterator[ProseFact]:
        """`count` facts, the kinds in turn; no two have the same question."""
        chance = random.Random(f"facts {seed}")
        asked: set[str] = set()
        made = 0
        while made < count:
            fact = self._fact(KINDS[made % len(KINDS)], chance)
            if fact.question not in asked:
                asked.add(fact.question)
                made += 1
                yield fact

    def _fact(self, kind: str, chance: random.Random) -> ProseFact:
        thing, holder, colour = chance.choice(_THINGS), chance.choice(_HOLDERS), chance.choice(_COLOURS)
        said: tuple[str, ...]
        if kind == "rare name":
            word = "".join(chance.choice(("ka", "ri", "mo", "ste", "vu", "lan", "do")) for _ in range(4)).capitalize()
            day = f"{chance.choice(_MONTHS)} {chance.randint(1, 28)}"
            said = (f"Dr {word} moved my appointment to {day}, before lunch.",)
            return ProseFact(kind, said, f"When did Dr {word} move my appointment to?")
        if kind == "known name":
            name = chance.choice(FIRST_NAMES)
            said = (f"By the way, {name} keeps the spare key of the {thing} under the {colour} {holder}.",)
            return ProseFact(kind, said, f"Where did I say that {name} keeps the spare key of the {thing}?")
        if kind == "common words":
            who, what = chance.choice(_RELATIONS), chance.choice(_COMMON_THINGS)
            where, spot = chance.choice(_COMMON_PLACES), chance.choice(_COMMON_SPOTS)
            said = (f"My {who} left the {colour} {what} behind the {spot} in the {where}.",)
            return ProseFact(kind, said, f"Where did my {who} leave the {colour} {what}, was it in the {where}?")
        if kind == "next message":
            place = chance.choice(PLACES)
            said = (f"What was the code for the {thing} in {place} again?", f"It is {chance.randint(1000, 9999)}.")
            return ProseFact(kind, said, f"What was the code for the {thing} in {place}?")
        name, place = chance.choice(FIRST_NAMES), chance.choice(PLACES)
        said = (f"{name} was organising the {thing} repairs in {place} and they were cancelled.",)
        return ProseFact(
            kind, said, f"Did {name} organise that the {thing} is repaired in {place}, and who cancels it?"
        )
