"""The exact score of candidates, from their own content and that of their neighbours. Pure.

A unit's score comes from the question's words in it and, with less weight, in the units around it, since in a
conversation question, answer and name are rarely in one message. The features are scaled to 0 to 1 and summed, which
worked better than rank fusion:

- BM25 (k1 1.2, b 0.6) over the unit and four on each side with decreasing weight; a long neighbour counts like one of
  30 words. A date or a speaker named in the question counts as an occurrence;
- the share (by idf) of the question's own words in the unit and its nearest neighbours, and the share in the unit
  alone;
- rare words of the question occurring together in it;
- the share of similar words in a wider range, between people;
- similarity in meaning of the unit, and of its surroundings: to the question, and to its own words weighted by rarity;
- who the question is about; that a person said it, if the assistant speaks too, and about themselves if the question is
  about them; that it has a time, a number or a name if the question asks for one; that it answers a question, and one
  with the question's words, or like them; its length;
- how often it speaks of the one who says it, between people, where people tell of themselves;
- negative: that it is a short question or a greeting, or asks more than it says;
- between people, similarity to the five best so far.
- Finally, a unit that states the identifier named in the question ranks before all that ask for it or answer that,
  however often it was asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from assistant.core.dataclass import dataclass
from assistant.search.dtypes import Bools, Floats, Ints, distinct_values
from assistant.search.likeness import UnitLikeness
from assistant.search.units import GREETING, MOST_FIRST_PERSON, MOSTLY_ASKS, NAME, NUMBER, QUESTION, REPEATS, TIME_WORD

NEIGHBOUR_REACH = 4
"""How many units on each side add to one."""

_BEFORE, _AFTER, _FADE = 0.7, 0.5, 0.7
_NEIGHBOUR_WORDS = 30.0
_LIKE_WORDS_FADE = 0.8
_K1, _B = 1.2, 0.6
_META = 1.5
# Threshold for rare words together being more than coincidence; the idf of a word in one of twenty messages.
_TELLING = math.log(20)
_TOP = 5
_NEARLY = 1e-3
_FULL_LENGTH = 30.0

WEIGHTS: Mapping[str, tuple[float, float, float]] = {
    "bm25": (1, 0.47, 0.6),
    "words around": (0.35, 0.22, 0.22),
    "words": (0.15, 0.12, 0.12),
    "words like it around": (0.3, 0, 0),
    "rare words together": (0.4, 0.4, 0.4),
    "meaning": (0.15, 0.15, 0.15),
    "meaning around": (0.35, 0.37, 0.37),
    "meaning of rare words": (0.2, 0.35, 0.35),
    "meaning of rare words around": (0.2, 0.28, 0.28),
    "role": (0.5, 0.56, 0.56),
    "person": (0, 0.44, 0),
    "first person": (0, 0.13, 0.13),
    "speaks of themselves": (0.15, 0, 0),
    "time": (0.3, 0.36, 0.36),
    "number": (0.2, 0.41, 0.41),
    "name": (0.2, 0.3, 0.3),
    "answer": (0.1, 0.1, 0.1),
    "answer to its words": (0.15, 0.15, 0.15),
    "answer to its meaning": (0.1, 0, 0),
    "length": (0.1, 0.18, 0.18),
    "question": (-0.2, -0.2, -0.2),
    "mostly asks": (-0.3, -0.3, 0),
    "greeting": (-0.05, -0.05, -0.05),
    "newer": (0.01, 0.01, 0.01),
    "feedback": (0.15, 0, 0.15),
}
"""What each feature of a candidate is worth between people, where the assistant speaks too, and for what stands by
itself, as memories do. What the assistant says is long, and repeats the words of what it answers. The second were
fitted to generated talks (`tests/recall_bench/fit.py`); there likeness to the best brings in the echoes of what is
asked for, so that it counts nothing. A memory says in a sentence or two, in its own words, what may be asked in others:
the third are the second, with more for words and for likeness to the best."""

_PEOPLE, _WITH_ASSISTANT, _ALONE = range(3)
_SPEAKS_TOO = 0.1

NEIGHBOUR_WEIGHTS = np.array(
    [*(_BEFORE**distance for distance in range(NEIGHBOUR_REACH, 0, -1)), 1.0]
    + [_AFTER * _FADE ** (distance - 1) for distance in range(1, NEIGHBOUR_REACH + 1)],
    np.float32,
)
"""What a unit at distance -4 to 4 adds."""


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A stem to search."""

    idf: float
    weight: float  # 1 for the question's own
    stands_for: int  # row of the question's own stem it stands for; its own row for one of those
    combined_idf: float  # of all that stand for the same stem together
    in_identifier: bool = False  # a part of an identifier that the question names


@dataclass(frozen=True, slots=True)
class CandidateTable:
    """Candidates (n) and all units around them (m, in order)."""

    around: Ints  # (9, n) positions among the m, -1 for none; their own in the middle
    counts: Floats  # (terms, m) occurrences of each term in each unit
    names_date: Bools  # (terms, n) whether the term names the date of a candidate
    words: Floats  # (m) lengths
    form: NDArray[np.uint8]  # (m) flags, see `units`
    first_person: NDArray[np.uint8]  # (n) words in the first person, see `units`
    likeness: UnitLikeness  # (m) to the question
    matches_speaker: Bools  # (n) whether a candidate was said by the person the question is about
    by_assistant: Bools  # (n) whether a candidate was said by the assistant
    age: Floats  # (n) between 0, the oldest, and 1


@dataclass(frozen=True, slots=True)
class CandidateScores:
    """Scores per candidate."""

    total: Floats  # ranks the candidates
    bm25: Floats  # 0 if nothing of the question is near it
    parts: dict[str, Floats]  # what each feature adds
    nearby: Floats  # share of the question's words in it and next to it

    def parts_of(self, chosen: Ints, final: Sequence[float]) -> list[dict[str, float]]:
        """Return what adds up to the `final` score of each of these candidates."""
        values = np.stack(list(self.parts.values()))[:, chosen].T.tolist()
        parts = [{name: value for name, value in zip(self.parts, of_one, strict=True) if value} for of_one in values]
        for of_one, score, total in zip(parts, final, self.total[chosen].tolist(), strict=True):
            if score < total:
                of_one["like a better one"] = score - total
        return parts


@dataclass(frozen=True, slots=True)
class AskedFor:
    """What a question asks for besides its words."""

    time: bool = False
    number: bool = False
    name: bool = False
    oneself: bool = False
    assistant: bool = False  # what the assistant said

    def named(self) -> tuple[str, ...]:
        """Describe it for people."""
        names = {
            "a time": self.time,
            "a number": self.number,
            "a name": self.name,
            "you": self.oneself,
            "what the assistant said": self.assistant,
        }
        return tuple(name for name, is_asked in names.items() if is_asked)


@dataclass(frozen=True, slots=True)
class CandidateFeatures:
    """Features per candidate, by the names in `WEIGHTS`, except for the feedback."""

    values: dict[str, Floats]
    bm25: Floats
    has: Bools  # (own terms, n) which words of the question it has
    column: int  # which weights hold


def score_candidates(
    table: CandidateTable, terms: Sequence[QueryTerm], asked: AskedFor, *, sources: int
) -> CandidateScores:
    """Score candidates. `sources`: number of messages or entries on which the terms' idf is based."""
    features = candidate_features(table, terms, asked, sources=sources)
    parts = weighted_parts(table, features)
    total = _sum_of(parts)
    of_identifier = np.array([term.in_identifier for row, term in enumerate(terms) if term.stands_for == row], bool)
    if of_identifier.any():
        form = table.form[table.around[NEIGHBOUR_REACH]]
        plain = total.copy()
        _put_statements_first(total, form, features.has[of_identifier].all(axis=0))
        parts["identifier"] = total - plain
    return CandidateScores(total, features.bm25, parts, features.values["words around"])


def weighted_parts(table: CandidateTable, features: CandidateFeatures) -> dict[str, Floats]:
    """Return what each feature adds to the score of each candidate."""
    column = features.column
    parts = {name: values * np.float32(WEIGHTS[name][column]) for name, values in features.values.items()}
    so_far = _sum_of(parts)
    if WEIGHTS["feedback"][column]:
        parts["feedback"] = likeness_to_best(table, so_far) * np.float32(WEIGHTS["feedback"][column])
    return parts


def _sum_of(parts: Mapping[str, Floats]) -> Floats:
    first, *others = parts.values()
    total = first.copy()
    for part in others:
        total += part
    return total


def candidate_features(
    table: CandidateTable, terms: Sequence[QueryTerm], asked: AskedFor, *, sources: int
) -> CandidateFeatures:
    """Return each feature of the n candidates, float32 of shape (n,) by its name in `WEIGHTS`. `sources`: how many
    sources the collection has."""
    # Memories have no neighbours: then only the middle row has units.
    reach = np.flatnonzero((table.around >= 0).any(axis=1))
    table_around = table.around[reach]
    shares, length = _shares(table, table_around, reach)
    relative = length / max(float(length.mean()), 1e-6)
    own = [row for row, term in enumerate(terms) if term.stands_for == row]
    centre = table.around[NEIGHBOUR_REACH]
    words = table.words[centre]
    named = table.names_date
    bm25 = _bm25(table, table_around, terms, own, shares, relative)
    idf = np.array([terms[row].idf for row in own], np.float32)
    idf /= float(idf.sum()) or 1.0
    has = np.append(table.counts[own] > 0, np.zeros((len(own), 1), bool), axis=1)
    before_that, before, after = (table.around[NEIGHBOUR_REACH + step] for step in (-2, -1, 1))
    itself = has[:, centre] | named[own]
    near = itself | has[:, before_that] | has[:, before] | has[:, after]
    likeness, likeness_to_words = table.likeness.whole, table.likeness.own_words
    around, words_around = (
        (shares * np.append(likeness_of, np.float32(0))[table_around]).sum(axis=0) / shares.sum(axis=0)
        for likeness_of in (likeness, likeness_to_words)
    )
    form = table.form[centre]
    answers = (before >= 0) & (table.form[before] & QUESTION > 0) & (form & QUESTION == 0)
    with_assistant = bool(table.by_assistant.mean() >= _SPEAKS_TOO)
    features = {
        "bm25": scale_to_best(bm25),
        "words around": idf @ near,
        "words": idf @ itself,
        "name": (form & NAME > 0) & asked.name,
        "rare words together": _surprise(itself, np.array([terms[row].idf for row in own]), sources),
        "words like it around": 0 * words if with_assistant else idf @ _similar_words_around(table, reach, terms),
        "meaning": scale_to_best(likeness[centre]),
        "meaning around": scale_to_best(around),
        "meaning of rare words": scale_to_best(likeness_to_words[centre]),
        "meaning of rare words around": scale_to_best(words_around),
        "role": table.matches_speaker,
        "person": ~table.by_assistant if with_assistant and not asked.assistant else np.zeros(len(centre)),
        "time": (form & TIME_WORD > 0) & asked.time,
        "number": (form & NUMBER > 0) & asked.number,
        "first person": (table.first_person > 0) & asked.oneself,
        "speaks of themselves": table.first_person / MOST_FIRST_PERSON,
        "answer": answers,
        "answer to its words": answers * (idf @ has[:, before]),
        "answer to its meaning": scale_to_best(answers * likeness_to_words[before]),
        "length": np.minimum(words, _FULL_LENGTH) / _FULL_LENGTH,
        "question": form & QUESTION > 0,
        "mostly asks": form & MOSTLY_ASKS > 0,
        "greeting": form & GREETING > 0,
        "newer": table.age,
    }
    values = {name: np.asarray(value, np.float32) for name, value in features.items()}
    alone = reach.tolist() == [NEIGHBOUR_REACH]
    return CandidateFeatures(values, bm25, itself, _WITH_ASSISTANT if with_assistant else _ALONE if alone else _PEOPLE)


def likeness_to_best(table: CandidateTable, total: Floats) -> Floats:
    """Return (n) the similarity in meaning to the best so far."""
    centre = table.around[NEIGHBOUR_REACH]
    best = np.argpartition(-total, min(_TOP, len(total)) - 1)[:_TOP]
    return table.likeness.like_these(centre[best], centre)


def _put_statements_first(total: Floats, form: NDArray[np.uint8], has_identifier: Bools) -> None:
    """Rank the best unit that states the identifier named in the question before the best that asks for it or answers
    that. Modifies `total`."""
    repeats = form & REPEATS > 0
    says = has_identifier & ~repeats & (form & QUESTION == 0)
    if says.any() and repeats.any():
        total[says] += max(0.0, float(total[repeats].max() - total[says].max()) + _NEARLY)


def _similar_words_around(table: CandidateTable, reach: Ints, terms: Sequence[QueryTerm]) -> Floats:
    """Return (own terms, n) how much each of the question's words, or a term standing for it, is present: 1 in the unit
    itself, less if further away or only similar in meaning."""
    stands_for = np.array([term.stands_for for term in terms])
    order = np.argsort(stands_for, kind="stable")
    _, first = distinct_values(stands_for[order])
    worth = np.array([term.weight for term in terms], np.float32)[order, None]
    likest = np.maximum.reduceat((table.counts[order] > 0) * worth, first, axis=0)
    likest = np.append(likest, np.zeros((len(first), 1), np.float32), axis=1)
    around: Floats = np.zeros((len(first), table.around.shape[1]), np.float32)
    for row in reach.tolist():
        share = np.float32(_LIKE_WORDS_FADE ** abs(row - NEIGHBOUR_REACH))
        np.maximum(around, likest.take(table.around[row], axis=1) * share, out=around)
    return around


def _surprise(itself: Bools, idf: Floats, sources: int) -> Floats:
    """Return (n), 0 to 1, how unlikely the combination of the question's own words in a unit is by chance: two or more
    words, so rare that by chance no message would have them together."""
    telling = idf >= _TELLING
    by_chance = math.log(sources + 1)
    surprise = (idf[telling] @ itself[telling] - by_chance) / max(by_chance, 1e-6)
    together: Floats = np.where(itself[telling].sum(axis=0) >= 2, np.clip(surprise, 0, 1), 0)
    return together


def scale_to_best(values: Floats) -> Floats:
    """Scale so that the best is 1 and nothing is below 0."""
    best = values.max(initial=0.0) or 1.0
    scaled: Floats = (np.maximum(values, 0) / best).astype(np.float32)
    return scaled


def _shares(table: CandidateTable, around: Ints, reach: Ints) -> tuple[Floats, Floats]:
    """Return the weight of each unit around a candidate (in these rows), and (n) the resulting length."""
    words = np.append(table.words, np.float32(1))
    shares = NEIGHBOUR_WEIGHTS[reach, None] * np.minimum(1, _NEIGHBOUR_WORDS / words)[around]
    shares[reach == NEIGHBOUR_REACH] = 1
    shares[around < 0] = 0
    return shares, (shares * words[around]).sum(axis=0)


def _bm25(
    table: CandidateTable,
    around: Ints,
    terms: Sequence[QueryTerm],
    own: Sequence[int],
    shares: Floats,
    length: Floats,
) -> Floats:
    """Return BM25; all terms for one word of the question count as occurrences of that word."""
    weights = np.zeros((len(terms), len(terms)), np.float32)
    weights[[term.stands_for for term in terms], range(len(terms))] = [term.weight for term in terms]
    counts = np.append(weights[own] @ table.counts, np.zeros((len(own), 1), np.float32), axis=1)
    occurrences: Floats = np.float32(_META) * (weights[own] @ table.names_date)
    for at_distance, share in zip(around, shares, strict=True):
        occurrences += counts.take(at_distance, axis=1) * share
    worth = np.array([terms[row].combined_idf for row in own], np.float32)
    damped = _K1 * (1 - _B + _B * length)
    return (worth @ (occurrences * (_K1 + 1) / (occurrences + damped))).astype(np.float32)
