"""Sketches of vectors: one bit per dimension, for its sign. Comparing a hundred thousand takes a fraction of a
millisecond; the nearest are then compared by their vectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from assistant.search.dtypes import Floats, Ints

Sketches = NDArray[np.uint64]
"""(dimensions / 64, n): one column per vector."""


def sketches_of(rows: NDArray[np.generic]) -> Sketches:
    """Return the sketches of vectors (n, dimensions); the dimensions are a multiple of 64."""
    bits = np.ascontiguousarray(np.packbits(np.greater(rows, 0), axis=1))
    return np.ascontiguousarray(bits.view(np.uint64).T)


FARTHEST = 255
"""How far apart vectors of up to 256 dimensions are at most, as `differing_bits` counts."""

# One in so many is looked at to estimate how near the nearest are.
_SAMPLE_STEP = 8
_SAMPLE_MARGIN = 8
_LEAST_SAMPLED = 4_096


def differing_bits(sketches: Sketches, vector: Floats) -> NDArray[np.uint8]:
    """Return (n) in how many of up to 256 dimensions each differs in sign from this vector, 255 at most."""
    (wanted, *others) = (word for (word,) in sketches_of(vector[None, :]))
    differing: NDArray[np.uint8] = np.bitwise_count(sketches[0] ^ wanted)
    for place, other in enumerate(others, 1):
        count = np.bitwise_count(sketches[place] ^ other)
        if (most := FARTHEST - 64 * place) < 64:
            np.minimum(count, most, out=count)
        differing += count
    return differing


def nearest_places(differing: NDArray[np.uint8], limit: int) -> Ints:
    """Return the places of the `limit` smallest values below 255, and of all that equal the last of them."""
    if len(differing) >= _LEAST_SAMPLED:
        sample = differing[::_SAMPLE_STEP]
        rank = min(limit * 2 // _SAMPLE_STEP + _SAMPLE_MARGIN, len(sample) - 1)
        places = _places_up_to(differing, int(np.partition(sample, rank)[rank]))
        if len(places) >= limit:
            near = differing[places]
            nearest: Ints = places[near <= np.partition(near, limit - 1)[limit - 1]]
            return nearest
    up_to = np.cumsum(np.bincount(differing, minlength=FARTHEST + 1)[:FARTHEST])
    return _places_up_to(differing, int(np.searchsorted(up_to, limit)))


def _places_up_to(differing: NDArray[np.uint8], most: int) -> Ints:
    places: Ints = np.flatnonzero(differing <= min(most, FARTHEST - 1))
    return places
