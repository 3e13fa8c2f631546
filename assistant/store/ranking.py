"""The exact score of messages that stand together in their conversation. Pure.

A message is worth what its best passage has of the question's words, and a part of what stands around it: in a
conversation the question, the answer and the name are rarely in one message. The parts, each between 0 and about 1:

- BM25 (k1 1.2, b 0.6) over the best passage, some 80 words, with what four messages on each side say added at falling
  weight; of a long neighbour only as much as of 30 words counts, or it would drown the message;
- the share of the question's own words (by idf) in the passage and the nearest words around it, and again their share
  in the passage alone: what was said together belongs together, the more so the rarer its words are;
- the speaker or role that the question is about; and, against a message, that it is a short question itself.
- Among equals the newer one comes first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from assistant.messages import Role

PASSAGE = 480
"""Characters in a passage: some 80 words."""

REACH = 4
"""How many messages on each side of one add to it."""

_LETTERS_PER_WORD = 6
_BEFORE, _AFTER, _FADE = 0.7, 0.4, 0.7
_NEIGHBOUR_WORDS = 30.0
_K1, _B = 1.2, 0.6
_COVERAGE, _TOGETHER, _SPEAKER, _ASSISTANT, _QUESTION, _RECENCY = 0.5, 0.5, 0.25, 0.25, 0.2, 0.01
_SHORT_QUESTION = 120
_RARE = 0.5
# The idf of a word that one message in twenty has.
_TELLING = math.log(20)
_ASKS_ASSISTANT = re.compile(
    r"\b(?:did|do|have|had|can|could|were|was|what|when|where|which|why|how)\b.*\byou(?:'ve| have| had)?\b.*"
    r"\b(?:tell|told|say|said|suggest\w*|recommend\w*|advise\w*|propose\w*|explain\w*|list\w*|answer\w*|mention\w*)\b"
    r"|\byou\b(?:'ve| have| had)?\s+(?:told|said|suggested|recommended|advised|proposed|explained|listed|mentioned)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Spot:
    """A word of the question at characters [start, end) of a text."""

    start: int
    end: int
    word: int


@dataclass(frozen=True, slots=True)
class Said:
    """One message on the table. `spots` in order; `named` are the question's words that its speaker's name has;
    `whole` is
    False where `text` is only the beginning; `shown` is False for one that only stands around others."""

    id: int
    seq: int
    role: Role
    text: str
    spots: Sequence[Spot]
    name: str | None = None
    named: frozenset[int] = frozenset()
    elsewhere: frozenset[int] = frozenset()
    whole: bool = True
    shown: bool = True


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: its text, the idf of its words, and among how many messages (0: not known)."""

    text: str
    idf: Sequence[float]
    messages: int = 0
    about_assistant: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "about_assistant", bool(_ASKS_ASSISTANT.search(self.text)))


@dataclass(slots=True)
class _Measured:
    said: Said
    passage: Mapping[int, float]
    counts: Mapping[int, float]
    edges: tuple[frozenset[int], frozenset[int]]
    length: float
    damping: float


def best_passage(spots: Sequence[Spot], idf: Sequence[float], width: int) -> tuple[float, int, int]:
    """(worth, first, last) of the run of spots within `width` characters that has the most of the question."""
    best = (0.0, 0, -1)
    counts: dict[int, int] = {}
    worth = 0.0
    first = 0
    for last, spot in enumerate(spots):
        seen = counts.get(spot.word, 0)
        counts[spot.word] = seen + 1
        worth += idf[spot.word] * (1.0 if not seen else 0.1)
        while spot.end - spots[first].start > width and first < last:
            out = spots[first].word
            counts[out] -= 1
            worth -= idf[out] * (1.0 if not counts[out] else 0.1)
            first += 1
        if worth > best[0]:
            best = (worth, first, last)
    return best


def scores(question: Question, conversations: Sequence[Sequence[Said]]) -> list[tuple[float, Said]]:
    """Every shown message with its score, best first. Each conversation is in order of seq; gaps are allowed, and
    nothing reaches across one that is wider than the reach."""
    measured = [[_measure(said, question.idf) for said in conversation] for conversation in conversations]
    lengths = [one.length for conversation in measured for one in conversation]
    if not lengths:
        return []
    usual = max(1.0, sum(lengths) / len(lengths))
    scored: list[tuple[float, float, Said]] = []
    for conversation in measured:
        for place, one in enumerate(conversation):
            if one.said.shown:
                around = _around(conversation, place)
                scored.append((_bm25(one, around, question.idf, usual), _rest(one, around, question), one.said))
    most = max((bm25 for bm25, _, _ in scored), default=0.0) or 1.0
    newest = max((said.id for _, _, said in scored), default=1)
    final = [(bm25 / most + rest + _RECENCY * said.id / newest, said) for bm25, rest, said in scored if bm25 > 0]
    return sorted(final, key=lambda pair: pair[0], reverse=True)


def _measure(said: Said, idf: Sequence[float]) -> _Measured:
    counts: dict[int, float] = {}
    for spot in said.spots:
        counts[spot.word] = counts.get(spot.word, 0.0) + 1.0
    passage: dict[int, float] = counts
    if len(said.text) > PASSAGE and said.spots:
        _, first, last = best_passage(said.spots, idf, PASSAGE)
        passage = {}
        for spot in said.spots[first : last + 1]:
            passage[spot.word] = passage.get(spot.word, 0.0) + 1.0
    words = max(1.0, len(said.text) / _LETTERS_PER_WORD)
    near_start = frozenset(spot.word for spot in said.spots if spot.end <= PASSAGE)
    near_end = frozenset(spot.word for spot in said.spots if spot.start >= len(said.text) - PASSAGE)
    length = min(words, PASSAGE / _LETTERS_PER_WORD)
    return _Measured(said, passage, counts, (near_start, near_end), length, min(1.0, _NEIGHBOUR_WORDS / words))


def _around(conversation: Sequence[_Measured], place: int) -> list[tuple[int, _Measured]]:
    """(distance, message) of those within reach; the distance is negative for earlier ones."""
    seq = conversation[place].said.seq
    near = conversation[max(0, place - REACH) : place + REACH + 1]
    return [(one.said.seq - seq, one) for one in near if 0 < abs(one.said.seq - seq) <= REACH]


def _bm25(one: _Measured, around: Sequence[tuple[int, _Measured]], idf: Sequence[float], usual: float) -> float:
    weights = dict(one.passage)
    for word in one.said.named | one.said.elsewhere:
        weights[word] = weights.get(word, 0.0) + 1.0
    length = one.length
    for distance, other in around:
        share = _BEFORE * _FADE ** (-distance - 1) if distance < 0 else _AFTER * _FADE ** (distance - 1)
        share *= other.damping
        length += share * other.length
        for word, count in other.counts.items():
            weights[word] = weights.get(word, 0.0) + share * count
    dampened = _K1 * (1 - _B + _B * length / usual)
    return sum(idf[word] * weight * (_K1 + 1) / (weight + dampened) for word, weight in weights.items())


def _rest(one: _Measured, around: Sequence[tuple[int, _Measured]], question: Question) -> float:
    covered = set(one.passage) | one.said.named | one.said.elsewhere
    for distance, other in around:
        if distance in (-2, -1):
            covered |= other.edges[1]
        elif distance == 1:
            covered |= other.edges[0]
    whole = sum(question.idf) or 1.0
    score = _COVERAGE * sum(question.idf[word] for word in covered) / whole
    own = {*one.passage, *one.said.named}
    score += _RARE * _surprise(own, question)
    score += _TOGETHER * sum(question.idf[word] for word in own) / whole
    if one.said.named:
        score += _SPEAKER
    if question.about_assistant and one.said.role == "assistant":
        score += _ASSISTANT
    text = one.said.text
    if len(text) <= _SHORT_QUESTION and text.rstrip().endswith(("?", "？")):
        score -= _QUESTION
    return score


def _surprise(own: Set[int], question: Question) -> float:
    """How much more than coincidence it is that a passage has these words, 0 to 1: two or more that are rare, and so
    rare that by chance no message would have them together."""
    telling = [question.idf[word] for word in own if question.idf[word] >= _TELLING]
    if len(telling) < 2 or not question.messages:
        return 0.0
    by_chance = math.log(question.messages + 1)
    return min(1.0, max(0.0, (sum(telling) - by_chance) / by_chance))
