"""How similar in meaning units are to a question, and to each other: cosines of vectors without the mean of all units,
which carries no information."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from assistant.core.dataclass import dataclass
from assistant.search.dtypes import VECTOR_SCALE, ByteVectors, Floats, Ints

_MULTIPLIED_AT_ONCE = 256
# A cosine: what messages of the same subject have, too.
_ALIKE = 0.5


@dataclass(frozen=True, slots=True)
class QuestionVectors:
    """Directions of a question, of length 1."""

    plain: Floats
    whole: Floats  # without the mean of all units
    own_words: Floats  # sum of its own words, weighted by idf, without names of speakers, stop words and the mean


@dataclass(frozen=True, slots=True)
class UnitLikeness:
    """How similar m units are to a question. Their vectors are kept to compare the units with each other."""

    rows: ByteVectors  # (m, dimensions)
    mean: Floats  # of all units
    lengths: Floats  # (m) of the vectors without the mean
    plain: Floats  # (m) with the mean
    whole: Floats  # (m) to the whole question
    own_words: Floats  # (m) to its own words

    def like_these(self, these: Ints, units: Ints) -> Floats:
        """Return how similar some `units` are to what `these` have in common; both are places among the m."""
        vectors = self.rows[these] / np.float32(VECTOR_SCALE)
        common = ((vectors - self.mean) / self.lengths[these, None]).mean(axis=0)
        direction = common / max(float(np.linalg.norm(common)), 1e-6)
        [products] = _multiply(self.rows[units], direction[None])
        likeness: Floats = (products - float(self.mean @ direction)) / self.lengths[units]
        return likeness

    def among(self, units: Ints) -> Floats:
        """Return (n, n) how similar n units are to each other; places among the m."""
        rows = self.rows[units].astype(np.float32) / np.float32(VECTOR_SCALE)
        vectors = (rows - self.mean) / self.lengths[units, None]
        likeness: Floats = vectors @ vectors.T
        return likeness


def rank_apart(totals: Sequence[float], likeness: Floats) -> list[tuple[int, float]]:
    """Return the places of these scores, which fall, in a new order with new scores: what is like something that ranks
    before it loses as much as it is more than a bit like that, so that not all of the first say the same. None falls
    below the last."""
    alike: list[list[tuple[int, float]]] = [[] for _ in totals]
    ones, others = np.nonzero(np.triu(likeness > _ALIKE, 1))
    losses_of_pairs = (likeness[ones, others] - np.float32(_ALIKE)).tolist()
    for one, other, loss in zip(ones.tolist(), others.tolist(), losses_of_pairs, strict=True):
        alike[one].append((other, loss))
        alike[other].append((one, loss))
    losses = [0.0] * len(totals)
    waiting = [(-total, place) for place, total in enumerate(totals)]  # a heap
    ranked = []
    while waiting:
        negative, place = heappop(waiting)
        total = max(totals[place] - losses[place], totals[-1])
        if total < -negative:
            heappush(waiting, (-total, place))
            continue
        ranked.append((place, total))
        for other, loss in alike[place]:
            losses[other] = max(losses[other], loss)
    return ranked


def measure_likeness(rows: ByteVectors, mean: Floats, question: QuestionVectors) -> UnitLikeness:
    """Measure how similar units with these vectors are to a question."""
    directions = np.stack([mean, question.plain, question.whole, question.own_words])
    with_mean, plain, *others = _multiply(rows, directions)
    lengths = _centred_lengths(rows, with_mean, mean)
    whole, own_words = (
        (products - float(mean @ direction)) / lengths
        for products, direction in zip(others, directions[2:], strict=True)
    )
    return UnitLikeness(rows, mean, lengths, plain, whole, own_words)


def _centred_lengths(rows: ByteVectors, with_mean: Floats, mean: Floats) -> Floats:
    """Return the lengths of vectors after subtracting the mean, without computing these; infinite for texts without
    words, which have the zero vector. `with_mean`: their products with it."""
    lengths: Floats = np.sqrt(np.maximum(1 - 2 * with_mean + float(mean @ mean), 1e-6))
    empty = np.flatnonzero(with_mean == 0)
    lengths[empty[~rows[empty].any(axis=1)]] = np.inf
    return lengths


def _multiply(rows: ByteVectors, directions: Floats) -> Floats:
    """Return (k, m) the products of k directions with vectors; some of these at a time, since as floats all of them
    would leave the processor's cache."""
    products = np.empty((len(directions), len(rows)), np.float32)
    scaled = (directions / np.float32(VECTOR_SCALE)).T
    for first in range(0, len(rows), _MULTIPLIED_AT_ONCE):
        some = rows[first : first + _MULTIPLIED_AT_ONCE].astype(np.float32)
        products[:, first : first + len(some)] = (some @ scaled).T
    return products
