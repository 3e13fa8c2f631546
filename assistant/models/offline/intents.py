"""What a sentence wants, told by a linear classifier over what is found in it. Pure.

A sentence is turned into features: its words, the beginnings of long ones, its pairs of words, the cues of `cues.toml`
that it has, the kinds of times in it, and which of its words name a reminder or to-do that is there. Each feature has a
weight for each intent, fitted to the tables of `tests/data/utterances` (`make fit-rules`) and kept in
`intent_weights.json`; the sums, normalised (softmax), are the chances of the intents.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

from assistant.core.dataclass import dataclass
from assistant.core.time_pieces import find_times
from assistant.models.offline.cues import fold, read_cues
from assistant.models.offline.lists import mark_lists
from assistant.models.offline.matching import ListedItem, is_same, words_of

WEIGHTS_FILE = Path(__file__).with_name("intent_weights.json")
LONGEST_SENTENCE = 400
_TOKENS = re.compile(r"<\w+>|\w+|[?!:,]")
# What reads like telling, where nothing reads like an order, weighs more.
_TELLING = frozenset(["tells_past", "of_a_thing", "of_oneself", "forms", "states", "alarm", "teller"])
_ORDERING = frozenset(
    [
        "set_reminder",
        "wake",
        "wants_reminder",
        "nudges",
        "asks_for",
        "add",
        "drop",
        "move",
        "mark",
        "snooze",
        "imperative",
    ]
)
_START = 4
_LONG_START = 6


@dataclass(frozen=True, slots=True)
class Weights:
    """What `intent_weights.json` holds: for each feature a weight for each intent, in hundredths."""

    intents: tuple[str, ...]
    features: Mapping[str, Sequence[int]]


@cache
def read_weights() -> Weights:
    """Return the weights that `make fit-rules` wrote."""
    data = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
    return Weights(tuple(data["intents"]), data["features"])


@lru_cache(maxsize=64)
def rank_without_items(text: str) -> tuple[tuple[str, float], ...]:
    """As `rank_intents`, for a person who has nothing."""
    return tuple(rank_intents(text, ()))


def rank_intents(text: str, items: Sequence[ListedItem]) -> list[tuple[str, float]]:
    """(intent, chance) of a sentence, the likeliest first; `items` is what the person has."""
    weights = read_weights()
    sums = [0.0] * len(weights.intents)
    for name in sentence_features(text, items):
        for place, weight in enumerate(weights.features.get(name, ())):
            sums[place] += weight / 100
    highest = max(sums)
    powers = [math.exp(value - highest) for value in sums]
    chances = [(intent, power / sum(powers)) for intent, power in zip(weights.intents, powers, strict=True)]
    return sorted(chances, key=lambda pair: -pair[1])


def is_understood(text: str) -> bool:
    """Whether at least a third of the words is known: what is said in other languages is no order."""
    tokens = _TOKENS.findall(_mark_times(" ".join(text.split())[:LONGEST_SENTENCE]))
    words = [token for token in tokens if token.isalpha() or token[0] == "<"]
    features = read_weights().features
    known = sum(word[0] == "<" or f"word {word}" in features or word in read_cues().order_words for word in words)
    return bool(3 * known >= len(words))


def sentence_features(text: str, items: Sequence[ListedItem]) -> list[str]:
    """The features of a sentence, each once."""
    text = " ".join(text.split())[:LONGEST_SENTENCE]
    tokens = _mark_items(_TOKENS.findall(_mark_times(text)), items)
    folded = fold(text)
    found = ["always", *(f"word {token}" for token in tokens)]
    found += [f"start {token[:_START]}" for token in tokens if token[0] != "<" and len(token) > _START]
    found += [f"start {token[:_LONG_START]}" for token in tokens if token[0] != "<" and len(token) > _LONG_START]
    edged = ["^", *tokens, "$"]
    found += [f"pair {one} {other}" for one, other in itertools.pairwise(edged)]
    cues = _cues_in(folded)
    found += [f"cue {name}" for name in sorted(cues)]
    found += [f"only {name}" for name in _TELLING & cues if not cues & _ORDERING]
    found += _named_items(tokens)
    unknown = sum(token[0] != "<" and token.isalnum() and token not in read_cues().order_words for token in tokens)
    found += [f"other words {min(4, unknown)}", f"length {min(5, len(tokens) // 4)}"]
    return list(dict.fromkeys(found))


@lru_cache(maxsize=64)
def _cues_in(folded: str) -> frozenset[str]:
    """The cues of a folded text, which is read several times in a turn, beside other things of the person's."""
    return frozenset(name for name, pattern in read_cues().patterns.items() if pattern.search(folded))


def _mark_times(text: str) -> str:
    """The folded text with a mark for each time and each list."""
    times = find_times(text)
    marked, end = "", 0
    for piece in sorted((*times.pieces, *times.dropped), key=lambda piece: piece.start):
        marked += f"{fold(times.text[end : piece.start])} <{piece.kind}> "
        end = piece.end
    return mark_lists(f"{marked}{fold(times.text[end:])}")


def _mark_items(tokens: Iterable[str], items: Sequence[ListedItem]) -> list[str]:
    """What names a thing that is there is no word of the order."""
    order_words = read_cues().order_words
    names = {
        kind: [
            word
            for item in items
            if item.kind == kind
            for word in words_of(item.text)
            if word not in order_words and len(word) > 1
        ]
        for kind in ("reminder", "todo")
    }

    def mark(token: str) -> str:
        if token.isdigit():
            return "<number>"
        if token[0] == "<" or token in order_words or len(token) < 3:
            return token
        return next((f"<{kind}>" for kind, words in names.items() if any(is_same(token, w) for w in words)), token)

    return [mark(token) for token in tokens]


def _named_items(tokens: Sequence[str]) -> list[str]:
    return [f"names a {kind}" for kind in ("reminder", "todo") if f"<{kind}>" in tokens]
