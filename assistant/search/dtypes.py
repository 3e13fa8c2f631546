"""Number types of the index, in memory and in its store."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assistant.core.dataclass import dataclass
from assistant.search.index_values import META_BYTES, POSTING_BYTES, VECTOR_BYTES

DIMENSIONS = 256
VECTOR_SCALE = 127.0

UNIT_DTYPE = np.dtype(
    [
        ("source", "<i8"),
        ("second", "<u4"),
        ("day", "<i4"),
        ("previous", "<i4"),
        ("stream", "<i4"),
        ("scope", "<u2"),
        ("speaker", "<u2"),
        ("part", "<u2"),
        ("words", "u1"),
        ("role", "u1"),
        ("form", "u1"),
        ("first_person", "u1"),
        ("gone", "u1"),
    ]
)
"""One unit. `second` since 1970 (UTC), `day` the local date's ordinal, `previous` the unit before it in its stream
(-1: none), `words` 1 to 255; `stream`, `scope`, `speaker` and `role` are numbers of names; `form` and
`first_person` as in `units`; `gone`: taken back or
forgotten."""

POSTING_DTYPE = np.dtype([("unit", "<i4"), ("count", "u1")])
"""In which unit a term stands, how often."""

UnitRows = NDArray[np.void]
ByteVectors = NDArray[np.int8]
"""Rows of length 1, times `VECTOR_SCALE`."""

Floats = NDArray[np.float32]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

EmbedTexts = Callable[[Sequence[str]], Floats]
"""A row of DIMENSIONS a text, of length 1 (zeros where a text has no words)."""

if (UNIT_DTYPE.itemsize, POSTING_DTYPE.itemsize, DIMENSIONS) != (META_BYTES, POSTING_BYTES, VECTOR_BYTES):
    raise TypeError("the types differ from what the store of the index has")


ROLE_BITS = 8


def kind_number(scope: int, role: int) -> int:
    """Return the number of a scope and a role."""
    return scope << ROLE_BITS | role


def kinds_of(rows: UnitRows) -> NDArray[np.uint32]:
    """Return scope and role of each unit as one number, 0 if it was removed."""
    kinds: NDArray[np.uint32] = (rows["scope"].astype(np.uint32) << ROLE_BITS | rows["role"]) * (rows["gone"] == 0)
    return kinds


def distinct_values(values: NDArray[np.generic]) -> tuple[NDArray[Any], Ints]:
    """Return the different values in order, and the first place of each: like `numpy.unique`, which imports the masked
    arrays."""
    # Of a value that is there several times any place comes first: a stable order takes four times as long.
    order = np.argsort(values)
    ordered = values[order]
    begins = np.ones(len(values), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    starts = np.flatnonzero(begins)
    return ordered[starts], np.minimum.reduceat(order, starts) if len(starts) else starts


def quantise(rows: Floats) -> ByteVectors:
    """Return unit vectors in one byte a dimension, scaled by `VECTOR_SCALE`."""
    return np.round(rows * VECTOR_SCALE).astype(np.int8)


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The units that contain a stem, in order, and how often each does, at most 255 times."""

    units: NDArray[np.int32]
    counts: NDArray[np.uint8]


def read_postings(rows: NDArray[np.void]) -> Occurrences:
    """Return the occurrences of one stem, from rows of POSTING_DTYPE."""
    return Occurrences(np.ascontiguousarray(rows["unit"]), np.ascontiguousarray(rows["count"]))


MOST_TIMES = 256
"""A unit has a stem less often than this."""
# The occurrences of stems of at most so many sources are joined, so that the cost of a search depends on how many there
# are and not on how many stems. Of the common stems of a large collection there may be millions: they are loaded one
# stem after another, and summed some at a time, since what is computed takes several times their memory.
_JOINED = 4_096
_SUMMED_AT_ONCE = 1 << 16


class TermOccurrences:
    """The occurrences of several stems."""

    def __init__(
        self, stems: Sequence[str], sources: Sequence[int], load: Callable[[Sequence[str]], list[Occurrences]]
    ) -> None:
        """`sources`: how many have each stem. `load` returns the occurrences of each of some stems, and remembers those
        that it returned last."""
        self._stems = stems
        self._load = load
        rare = [row for row, count in enumerate(sources) if count <= _JOINED]
        self._common = [row for row, count in enumerate(sources) if count > _JOINED]
        found = load([stems[row] for row in rare])
        self._rows = np.repeat(np.array(rare, np.intp), [len(one.units) for one in found])
        self._units = np.concatenate([np.zeros(0, np.int32), *(one.units for one in found)])
        self._counts = np.concatenate([np.zeros(0, np.uint8), *(one.counts for one in found)])

    def sum_weights(self, weights: Floats, count: int) -> Floats:
        """Return for each of `count` units the sum of what its stems are worth: `weights` (stems, MOST_TIMES) by how
        often a unit has a stem."""
        summed = np.zeros(count, np.float32)
        np.add.at(summed, self._units, weights[self._rows, self._counts])
        for row in self._common:
            if weights[row].any():
                _add_weights(summed, self._load([self._stems[row]])[0], weights[row])
        return summed

    def counts_in(self, units: Ints) -> Floats:
        """Return (stems, n) how often each of these units (numbers in order, not negative) contains each stem."""
        counts = np.zeros((len(self._stems), len(units)), np.float32)
        if not len(units):
            return counts
        wanted = units.astype(np.int32)
        places = np.minimum(np.searchsorted(wanted, self._units), len(units) - 1)
        has = np.flatnonzero(wanted[places] == self._units)
        counts[self._rows[has], places[has]] = self._counts[has]
        # Those that were summed last are still in memory.
        for row in reversed(self._common):
            (many,) = self._load([self._stems[row]])
            places = np.minimum(np.searchsorted(many.units, wanted), len(many.units) - 1)
            has = np.flatnonzero(many.units[places] == wanted)
            counts[row, has] = many.counts[places[has]]
        return counts


def _add_weights(summed: Floats, found: Occurrences, worth: Floats) -> None:
    for start in range(0, len(found.units), _SUMMED_AT_ONCE):
        some = slice(start, start + _SUMMED_AT_ONCE)
        summed[found.units[some]] += worth[found.counts[some]]


def epoch_second(moment: datetime) -> int:
    """Return seconds since 1970, as the index stores times (until 2106)."""
    return min(max(math.floor(moment.timestamp()), 0), 2**32 - 1)
