"""What the search computes for many vectors and stems at once is what it would be one by one."""

from __future__ import annotations

import numpy as np
import pytest

from assistant.search.dtypes import MOST_TIMES, Occurrences, TermOccurrences
from assistant.search.sketches import FARTHEST, differing_bits, nearest_places, sketches_of


@pytest.mark.parametrize("count", [1, 300, 20_000])
@pytest.mark.parametrize("limit", [1, 300])
def test_the_nearest_places_are_exactly_those_of_a_full_count(count: int, limit: int) -> None:
    chance = np.random.default_rng(count)
    differing = np.clip(chance.normal(128, 20, count), 0, FARTHEST).astype(np.uint8)
    # The best stand together, as they do in a talk on one subject.
    differing[: count // 2] = FARTHEST
    places = nearest_places(differing, limit)
    known = np.sort(differing[differing < FARTHEST])
    last = int(known[min(limit, len(known)) - 1]) if len(known) else -1
    assert places.tolist() == [place for place, far in enumerate(differing.tolist()) if far < FARTHEST and far <= last]


def test_opposite_vectors_are_the_farthest_and_equal_ones_the_nearest() -> None:
    vector = np.random.default_rng(1).normal(size=256).astype(np.float32)
    assert differing_bits(sketches_of(np.stack([vector, -vector, vector])), vector).tolist() == [0, FARTHEST, 0]


def test_joined_occurrences_count_what_each_stem_has() -> None:
    chance = np.random.default_rng(2)
    found = []
    for size in (0, 3, 40, 900, 8_000):
        units = np.sort(chance.choice(10_000, size, replace=False)).astype(np.int32)
        found.append(Occurrences(units, chance.integers(1, 9, size).astype(np.uint8)))
    wanted = np.sort(chance.choice(10_000, 500, replace=False)).astype(np.intp)
    stems, sources = list(map(str, range(len(found)))), [len(one.units) for one in found]
    terms = TermOccurrences(stems, sources, lambda some: [found[int(stem)] for stem in some])
    counts = terms.counts_in(wanted)
    by_unit = [dict(zip(one.units.tolist(), one.counts.tolist(), strict=True)) for one in found]
    assert counts.tolist() == [[own.get(unit, 0.0) for unit in wanted.tolist()] for own in by_unit]
    weights = chance.random((len(found), MOST_TIMES), np.float32)
    summed = [
        sum(weights[row, times] for row, own in enumerate(by_unit) if (times := own.get(unit)))
        for unit in wanted.tolist()
    ]
    assert terms.sum_weights(weights, 10_000)[wanted].tolist() == pytest.approx(summed)
    assert TermOccurrences([], [], lambda some: []).counts_in(wanted).shape == (0, 500)
