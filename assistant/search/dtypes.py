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
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    begins = np.ones(len(values), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return ordered[begins], order[begins]


def quantise(rows: Floats) -> ByteVectors:
    """Return unit vectors in one byte a dimension, scaled by `VECTOR_SCALE`."""
    return np.round(rows * VECTOR_SCALE).astype(np.int8)


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The units that contain a stem, in order, and how often each does."""

    units: Ints
    counts: Floats


class TermOccurrences:
    """The occurrences of several stems, joined, so that the cost of a search depends on how many there are and not on
    how many stems."""

    def __init__(self, found: Sequence[Occurrences]) -> None:
        self._found = found
        self.rows = np.repeat(np.arange(len(found)), [len(one.units) for one in found])
        self.units = np.concatenate([np.zeros(0, np.intp), *(one.units for one in found)])
        self.counts = np.concatenate([np.zeros(0, np.float32), *(one.counts for one in found)])

    def counts_in(self, units: Ints) -> Floats:
        """Return (stems, n) how often each of these units (numbers in order, not negative) contains each stem."""
        counts = np.zeros((len(self._found), len(units)), np.float32)
        if not len(units):
            return counts
        few = np.array([len(one.units) <= len(units) for one in self._found], bool)
        of_few = few[self.rows]
        rows, searched, times = (
            (self.rows, self.units, self.counts)
            if of_few.all()
            else (self.rows[of_few], self.units[of_few], self.counts[of_few])
        )
        places = np.minimum(np.searchsorted(units, searched), len(units) - 1)
        has = np.flatnonzero(units[places] == searched)
        counts[rows[has], places[has]] = times[has]
        for row in np.flatnonzero(~few).tolist():
            many = self._found[row]
            places = np.minimum(np.searchsorted(many.units, units), len(many.units) - 1)
            has = np.flatnonzero(many.units[places] == units)
            counts[row, has] = many.counts[places[has]]
        return counts


def epoch_second(moment: datetime) -> int:
    """Return seconds since 1970, as the index stores times (until 2106)."""
    return min(max(math.floor(moment.timestamp()), 0), 2**32 - 1)
