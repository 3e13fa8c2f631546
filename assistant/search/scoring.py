"""The exact score of candidates, from what stands in and around them. Pure.

A unit is worth what it has of the question's words, and a part of what stands around it: in a conversation the
question, the answer and the name are rarely in one message. The parts are each scaled to between 0 and 1 and summed,
which proved better than fusing ranks:

- BM25 (k1 1.2, b 0.6) over the unit and four on each side at falling weight; of a long neighbour only as much as of 30
  words counts, or it would drown the unit. A date or a speaker that the question names counts as an occurrence;
- the share (by idf) of the question's own words that the unit and its nearest neighbours have, and
  again that it has itself;
- that rare words of the question stand together in it;
- likeness in meaning of the unit, and of what stands around it;
- who the question is about; that something tells a time where it asks for one; that it answers a question; its length;
- against it, that it is a short question itself, or a greeting.
- likeness to the five best so far.
- At last, what says the identifier that a question names comes before all that asks for it or answers that, however
  often it was asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assistant.search.dtypes import Bools, Floats, Ints
from assistant.search.units import GREETING, QUESTION, REPEATS, TIME_WORD

NEIGHBOUR_REACH = 4
"""How many units on each side add to one."""

_BEFORE, _AFTER, _FADE = 0.7, 0.5, 0.7
_NEIGHBOUR_WORDS = 30.0
_K1, _B = 1.2, 0.6
_META = 1.5
_COVERAGE, _ITSELF, _LIKE, _LIKE_AROUND, _ROLE, _TIME, _ANSWER, _LENGTH = 0.35, 0.2, 0.15, 0.35, 0.5, 0.3, 0.1, 0.1
_QUESTION, _GREETING, _FEEDBACK, _RECENCY = 0.2, 0.05, 0.15, 0.01
# Rare words that stand together by more than coincidence; the idf of a word that one message in twenty has.
_TOGETHER, _TELLING = 0.4, math.log(20)
_TOP = 5
_NEARLY = 1e-3
_FULL_LENGTH = 30.0

NEIGHBOUR_WEIGHTS = np.array(
    [*(_BEFORE**distance for distance in range(NEIGHBOUR_REACH, 0, -1)), 1.0]
    + [_AFTER * _FADE ** (distance - 1) for distance in range(1, NEIGHBOUR_REACH + 1)],
    np.float32,
)
"""What a unit at distance -4 to 4 adds."""


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A stem that is looked for."""

    idf: float
    weight: float  # 1 for the question's own
    stands_for: int  # the row of the question's own stem that it stands for; its own row for one of those
    combined_idf: float  # of all that stand for the same stem together
    in_identifier: bool = False  # a part of an identifier that the question names


@dataclass(frozen=True, slots=True)
class CandidateTable:
    """Candidates (n) and everything around them (m units, in order)."""

    around: Ints  # (n, 9) places among the m, -1 for none
    counts: Floats  # (terms, m) how often a term is in each
    names_date: Bools  # (terms, n) whether the date of a candidate is what the term names
    words: Floats  # (m) lengths
    form: NDArray[np.uint8]  # (m) bits of `units`
    vectors: Floats  # (m, dimensions) of length 1
    mean: Floats  # what the vectors have in common
    matches_speaker: Bools  # (n) whether a candidate was said by whom the question is about
    age: Floats  # (n) between 0, the oldest, and 1


@dataclass(frozen=True, slots=True)
class CandidateScores:
    """Of each candidate."""

    total: Floats  # by which they are ranked
    bm25: Floats  # 0 where nothing of the question is near it


def score_candidates(
    table: CandidateTable, terms: Sequence[QueryTerm], question: Floats, *, of_time: bool, sources: int
) -> CandidateScores:
    """`question` is the vector of the question without what all have in common, of length 1; `sources` of how many
    messages or entries the weights of the terms are taken."""
    shares, length = _shares(table)
    counts = np.concatenate([table.counts, np.zeros((len(terms), 1), np.float32)], axis=1)[:, table.around]
    bm25 = _bm25(counts, shares, length / max(float(length.mean()), 1e-6), table.names_date, terms)
    own = np.array([term.stands_for == row for row, term in enumerate(terms)], bool)
    idf = np.array([term.idf for term in terms], np.float32)
    whole = float(idf[own].sum()) or 1.0
    near = (counts[own, :, NEIGHBOUR_REACH - 2 : NEIGHBOUR_REACH + 2] > 0).any(axis=2) | table.names_date[own]
    itself = (counts[own, :, NEIGHBOUR_REACH] > 0) | table.names_date[own]
    covered_around, covered = (idf[own] @ near) / whole, (idf[own] @ itself) / whole
    centre = table.around[:, NEIGHBOUR_REACH]
    lengths = _centred_lengths(table)
    likeness = _cosines(table, lengths, question)
    cosine = likeness[centre]
    around = (shares * np.append(likeness, np.float32(0))[table.around]).sum(axis=1) / shares.sum(axis=1)
    form = table.form[centre]
    before = table.around[:, NEIGHBOUR_REACH - 1]
    answers = (before >= 0) & (table.form[before] & QUESTION > 0) & (form & QUESTION == 0)
    total = (
        scale_to_best(bm25)
        + _COVERAGE * covered_around
        + _ITSELF * covered
        + _LIKE * scale_to_best(cosine)
        + _LIKE_AROUND * scale_to_best(around)
    )
    total += _TOGETHER * _surprise(itself, idf[own], sources)
    total += _ROLE * table.matches_speaker + _ANSWER * answers + _RECENCY * table.age
    total += _LENGTH * np.minimum(table.words[centre], _FULL_LENGTH) / _FULL_LENGTH
    if of_time:
        total += _TIME * (form & TIME_WORD > 0)
    total -= _QUESTION * (form & QUESTION > 0) + _GREETING * (form & GREETING > 0)
    best = np.argpartition(-total, min(_TOP, len(total)) - 1)[:_TOP]
    direction = ((table.vectors[centre[best]] - table.mean) / lengths[centre[best], None]).mean(axis=0)
    total += _FEEDBACK * _cosines(table, lengths, direction / max(float(np.linalg.norm(direction)), 1e-6))[centre]
    of_identifier = np.array([term.in_identifier for term in terms], bool)[own]
    if of_identifier.any():
        _put_statements_first(total, form, itself[of_identifier].all(axis=0))
    return CandidateScores(total.astype(np.float32), bm25)


def _put_statements_first(total: Floats, form: NDArray[np.uint8], has_identifier: Bools) -> None:
    """The best unit that says the identifier which the question names, before the best that asks for it or answers
    that. Changes `total`."""
    repeats = form & REPEATS > 0
    says = has_identifier & ~repeats & (form & QUESTION == 0)
    if says.any() and repeats.any():
        total[says] += max(0.0, float(total[repeats].max() - total[says].max()) + _NEARLY)


def _surprise(itself: Bools, idf: Floats, sources: int) -> Floats:
    """(n) how much more than coincidence it is that a unit has these of the question's own words, 0 to 1: two or more
    that are rare, and so rare that by chance no message would have them together."""
    telling = idf >= _TELLING
    by_chance = math.log(sources + 1)
    surprise = (idf[telling] @ itself[telling] - by_chance) / max(by_chance, 1e-6)
    together: Floats = np.where(itself[telling].sum(axis=0) >= 2, np.clip(surprise, 0, 1), 0)
    return together


def scale_to_best(values: Floats) -> Floats:
    """So that the best is 1 and nothing is below 0."""
    best = values.max(initial=0.0) or 1.0
    scaled: Floats = (np.maximum(values, 0) / best).astype(np.float32)
    return scaled


def _shares(table: CandidateTable) -> tuple[Floats, Floats]:
    """(n, 9) what each unit around a candidate adds, and (n) the length that comes of it."""
    words = np.append(table.words, np.float32(1))
    shares = NEIGHBOUR_WEIGHTS * np.minimum(1, _NEIGHBOUR_WORDS / words)[table.around]
    shares[:, NEIGHBOUR_REACH] = 1
    shares[table.around < 0] = 0
    return shares, (shares * words[table.around]).sum(axis=1)


def _bm25(counts: Floats, shares: Floats, length: Floats, named: Bools, terms: Sequence[QueryTerm]) -> Floats:
    """A word of the question and those like it count as occurrences of one: three of them are no three matches."""
    each = np.einsum("tnk,nk->tn", counts, shares) + _META * named
    own = [row for row, term in enumerate(terms) if term.stands_for == row]
    weights = np.zeros((len(terms), len(terms)), np.float32)
    weights[[term.stands_for for term in terms], range(len(terms))] = [term.weight for term in terms]
    occurrences = weights[own] @ each
    worth = np.array([terms[row].combined_idf for row in own], np.float32)
    damped = _K1 * (1 - _B + _B * length)
    scores: Floats = worth @ (occurrences * (_K1 + 1) / (occurrences + damped))
    return scores


def _centred_lengths(table: CandidateTable) -> Floats:
    """Of the vectors without their mean, which need not be made for it; large for those of texts without words."""
    squares = 1 - 2 * (table.vectors @ table.mean) + float(table.mean @ table.mean)
    lengths: Floats = np.where(table.vectors.any(axis=1), np.sqrt(np.maximum(squares, 1e-6)), np.inf)
    return lengths


def _cosines(table: CandidateTable, lengths: Floats, direction: Floats) -> Floats:
    """(m) how like a direction of length 1 each is, what all have in common taken away."""
    cosines: Floats = (table.vectors @ direction - float(table.mean @ direction)) / lengths
    return cosines
