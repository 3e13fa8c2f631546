"""Chooses the units of a large collection that are scored exactly: those best by a cheap score over the postings of a
question's stems, spread to neighbouring units, and those with the most similar vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assistant.core.dataclass import dataclass
from assistant.search.dtypes import MOST_TIMES, ROLE_BITS, Bools, Floats, Ints, TermOccurrences, distinct_values
from assistant.search.index import SearchIndex
from assistant.search.query import SearchLimits
from assistant.search.scoring import NEIGHBOUR_REACH, NEIGHBOUR_WEIGHTS

_K1 = 1.2
_NEVER_COMMON = 50
_NEWER = 1e-3
_NOT_PERMITTED = 0.5
# Units whose rough scores are weighed at once. After the first of them few are better than the best so far.
_WEIGHED_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class RoughTerms:
    """Stems that select candidates."""

    sources: Sequence[int]  # how many sources have each
    worth: Sequence[float]  # the weight of each times its idf
    occurrences: TermOccurrences


def choose_candidates(
    index: SearchIndex, limits: SearchLimits, terms: RoughTerms, allowed: Bools, vector: Floats
) -> Ints:
    """Return the numbers of the units to score exactly, in order; `vector` is that of the question, without the mean
    of all units."""
    rough = _rough_scores(index, limits, terms)
    seeds = _best_units(rough, index, allowed, limits.seed_units)
    if index.units.has_neighbours:
        reached = index.distinct(around_units(index, seeds))
        nearby = around_units(index, reached)
        worth = rough.take(nearby)
        if not allowed[reached].all():
            worth *= np.where(allowed.take(nearby), np.float32(1), np.float32(_NOT_PERMITTED))
        spread = NEIGHBOUR_WEIGHTS @ worth
    else:
        reached = np.sort(seeds)
        spread = rough[reached]
    spread *= _newness(reached, index)
    spread[~allowed[reached]] = 0
    best = _largest(spread, limits.scored_units)
    most = limits.scored_sources if index.units.has_neighbours else limits.sources_alone
    chosen = _of_so_many_sources(index, reached[best[np.argsort(-spread[best])]], most)
    return distinct_values(np.concatenate([chosen, index.nearest(vector, allowed, limits.like_units)]))[0]


def _rough_scores(index: SearchIndex, limits: SearchLimits, terms: RoughTerms) -> Floats:
    """Return a cheap score of each unit of the index, and 0 for none at the end."""
    rarest = min((sources for sources in terms.sources if sources), default=0)
    most = max(limits.common_share * index.source_count, _NEVER_COMMON, rarest)
    worth = np.array(
        [
            worth * (_K1 + 1) if 0 < sources <= most else 0
            for sources, worth in zip(terms.sources, terms.worth, strict=True)
        ],
        np.float32,
    )
    times = np.arange(MOST_TIMES, dtype=np.float32)
    return terms.occurrences.sum_weights(worth[:, None] * (times / (times + np.float32(_K1))), index.count + 1)


def _best_units(rough: Floats, index: SearchIndex, allowed: Bools, limit: int) -> Ints:
    """Return the best units: one that is not permitted may be next to one that is, in the same scope; among equals the
    newer one is chosen."""
    kind = index.units.kinds[np.argmax(allowed)]
    best, worth = np.zeros(0, np.intp), np.zeros(0, np.float32)
    least = np.float32(0)
    for start in range(0, index.count, _WEIGHED_AT_ONCE):
        # None is worth more than its rough score. Of floats themselves, instead of whether they are above, it takes ten
        # times as long.
        units = start + np.flatnonzero(rough[start : start + _WEIGHED_AT_ONCE] > least)
        kinds = index.units.kinds[units]
        more = rough[units] * _newness(units, index)
        if not (kinds == kind).all():
            more[kinds >> ROLE_BITS != kind >> ROLE_BITS] = 0
        if not (permitted := allowed[units]).all():
            more[~permitted] *= np.float32(_NOT_PERMITTED)
        best, worth = np.concatenate([best, units]), np.concatenate([worth, more])
        largest = _largest(worth, limit)
        best, worth = best[largest], worth[largest]
        if len(best) == limit:
            least = worth.min()
    return best


def _newness(units: Ints, index: SearchIndex) -> Floats:
    newness: Floats = np.float32(1 - _NEWER) + (units * (_NEWER / index.count)).astype(np.float32)
    return newness


def around_units(index: SearchIndex, units: Ints) -> Ints:
    """Return (9, n) numbers of the units around each in its stream, each itself in the middle row, -1 for none."""
    around = np.full((2 * NEIGHBOUR_REACH + 1, len(units)), -1, np.intp)
    around[NEIGHBOUR_REACH] = units
    table = index.units
    if not table.has_neighbours:
        return around
    for direction, step in ((-1, table.previous), (1, table.following)):
        for distance in range(1, NEIGHBOUR_REACH + 1):
            row = NEIGHBOUR_REACH + direction * distance
            around[row] = step.take(around[row - direction])
    if table.has_removed:
        around[table.kinds[around] == 0] = -1
        around[NEIGHBOUR_REACH] = units
    # What was looked up is all over a file: all of it may be in memory now.
    table.release()
    return around


def _of_so_many_sources(index: SearchIndex, units: Ints, most: int) -> Ints:
    """Return the first of these units, up to the maximum number of sources to score."""
    _, first = distinct_values(index.units.rows_of(units)["source"])
    return units if len(first) <= most else units[: np.partition(first, most)[most]]


def _largest(values: Floats, limit: int) -> Ints:
    """Return the positions of at most `limit` of the largest values above 0, unordered."""
    above = np.flatnonzero(values > 0)
    if len(above) <= limit:
        return above
    places: Ints = above[np.argpartition(-values[above], limit)[:limit]]
    return places
