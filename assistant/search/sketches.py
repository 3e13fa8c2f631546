"""Sketches of vectors: on which side of zero each dimension lies, as bits. A hundred thousand are compared in a
fraction of a millisecond; which of the nearest are really alike is told by the vectors themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from assistant.search.dtypes import Floats, Ints

Sketches = NDArray[np.uint64]
"""(dimensions / 64, n): a column a vector."""


def sketches_of(rows: NDArray[np.generic]) -> Sketches:
    """Of vectors (n, dimensions), the dimensions a multiple of 64."""
    bits = np.ascontiguousarray(np.packbits(np.greater(rows, 0), axis=1))
    return np.ascontiguousarray(bits.view(np.uint64).T)


def differing_bits(sketches: Sketches, vector: Floats) -> NDArray[np.uint16]:
    """(n) in how many dimensions each lies on another side than this vector."""
    differing = np.zeros(sketches.shape[1], np.uint16)
    for bits, (wanted,) in zip(sketches, sketches_of(vector[None, :]), strict=True):
        differing += np.bitwise_count(bits ^ wanted)
    return differing


def nearest_places(differing: NDArray[np.uint16], limit: int, most: int) -> Ints:
    """Places of the fewest differing bits, below `most`: so many, and those that differ no more than the last."""
    up_to = np.cumsum(np.bincount(differing, minlength=most + 1)[:most])
    places: Ints = np.flatnonzero(differing <= min(int(np.searchsorted(up_to, limit)), most - 1))
    return places
