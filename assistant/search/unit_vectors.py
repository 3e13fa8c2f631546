"""The vectors of a collection's units: the newest in memory, or in a file where there are older ones, which are read
from the store on demand.

The units most similar to a question are found by their sketches (`sketches`), without what all units have in common;
the units found are scored with their vectors.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from assistant.search.dtypes import (
    DIMENSIONS,
    VECTOR_SCALE,
    Bools,
    ByteVectors,
    Floats,
    Ints,
    distinct_values,
)
from assistant.search.file_arrays import FileArrays
from assistant.search.index_values import VECTORS_A_BLOCK, IndexStore
from assistant.search.sketches import FARTHEST, differing_bits, nearest_places, sketches_of

_SKETCH_WORDS = DIMENSIONS // 64
# Sketches are recomputed when the collection, and so its mean, has grown by this factor.
_REMAKE_SKETCHES = 2
_READ_AT_ONCE = 1 << 12
_LEAST_ROOM = 1_024
# As many may wait to be sealed, and be let go only then.
_SEALED_LATE = 4_096


class UnitVectors:
    def __init__(self, store: IndexStore, sealed: int, fresh: int, resident: int) -> None:
        """Load the newest of the `sealed` units from the store; the `fresh` ones are added with `put`."""
        self._store = store
        self._resident = resident
        self.first = max(0, sealed - resident)  # the first unit in memory
        self._whole_room = resident * 9 // 8 + _SEALED_LATE  # for all that stays at the most
        room = self._whole_room if self.first else max(_LEAST_ROOM, (sealed + fresh) * 9 // 8)
        self._files = FileArrays(store.map_file)
        self._rows: ByteVectors = np.zeros((0, DIMENSIONS), np.int8)
        self._move(room, in_file=self.first > 0)
        # In batches, since reading needs as much memory again.
        for first in range(self.first, sealed, _READ_AT_ONCE):
            read = self._sealed(first, min(first + _READ_AT_ONCE, sealed))
            self._rows[first - self.first : first - self.first + len(read)] = read
            self.release()
        self._sketches = np.zeros((_SKETCH_WORDS, room), np.uint64)  # one column per unit
        self._sketched = self.first  # sketches exist up to this unit
        self._sketch_mean = np.zeros(DIMENSIONS, np.float32)
        self._sketch_count = 0  # number of units in the mean

    @property
    def room(self) -> int:
        """How many vectors fit in memory now."""
        return len(self._rows)

    def put(self, first: int, vectors: ByteVectors) -> None:
        """Add the vectors of the next units, from number `first` on."""
        start, end = first - self.first, first - self.first + len(vectors)
        if end > len(self._rows):
            room = max(end + _LEAST_ROOM, min(2 * len(self._rows), self._whole_room))
            more = np.zeros((_SKETCH_WORDS, room - len(self._rows)), np.uint64)
            self._sketches = np.concatenate([self._sketches, more], axis=1)
            self._move(room, in_file=self.first > 0)
        self._rows[start:end] = vectors

    def _move(self, room: int, *, in_file: bool) -> None:
        """Move the vectors to an array with so much room; a small collection needs no file."""
        rows, files, shape = self._rows, self._files, (room, DIMENSIONS)
        self._files = FileArrays(self._store.map_file)
        self._rows = self._files.zeros(shape, rows.dtype) if in_file else np.zeros(shape, rows.dtype)
        for start in range(0, len(rows), _READ_AT_ONCE):
            some = rows[start : start + _READ_AT_ONCE]
            self._rows[start : start + len(some)] = some
            files.release()
            self.release()

    def resident_rows(self, first: int, last: int) -> ByteVectors:
        """Return the vectors of units [first, last), which are in memory."""
        return self._rows[first - self.first : last - self.first]

    def let_go(self, sealed: int) -> None:
        """Release vectors that are in the store and no longer among the newest; they are read from there."""
        first = sealed - self._resident
        if first - self.first >= self._resident // 8:
            if not self.first:
                self._move(len(self._rows), in_file=True)
            _move_to_front(self._rows, first - self.first)
            _move_to_front(self._sketches.T, first - self.first)
            self._sketched = max(self._sketched, first)
            self.first = first

    def erase(self, units: Ints, count: int) -> None:
        """Leave nothing of the vectors of these units, of `count`, in memory or in a file."""
        self._rows[units[units >= self.first] - self.first] = 0
        # Where vectors were before they were moved to the front.
        self._rows[count - self.first :] = 0
        self._files.write()

    def release(self) -> None:
        """Give back the memory of vectors that are in a file."""
        self._files.release()

    def unit_vectors(self, units: Ints) -> ByteVectors:
        """Return the vectors of units (numbers in order)."""
        first = int(np.searchsorted(units, self.first))
        rows: ByteVectors = self._files.take(self._rows, units[first:] - self.first)
        if first:
            blocks, places = np.divmod(units[:first], VECTORS_A_BLOCK)
            wanted, _ = distinct_values(blocks)
            read = np.frombuffer(self._store.vector_blocks(wanted.tolist()), np.int8).reshape(-1, DIMENSIONS)
            old = read.take(np.searchsorted(wanted, blocks) * VECTORS_A_BLOCK + places, axis=0)
            rows = np.concatenate([old, rows])
        return rows

    def nearest(self, vector: Floats, allowed: Bools, limit: int, mean: Callable[[], Floats]) -> Ints:
        """Return the units in memory with sketches most similar to that of this vector (of length 1, without the
        `mean`)."""
        count = len(allowed)
        self.make_sketches(count, mean)
        differing = differing_bits(self._sketches[:, : count - self.first], vector)
        if not (here := allowed[self.first :]).all():
            differing[~here] = FARTHEST
        places = nearest_places(differing, limit)
        return places[np.argsort(differing[places], kind="stable")[:limit]] + self.first

    def make_sketches(self, count: int, mean: Callable[[], Floats]) -> None:
        """Compute sketches of new units, up to this number."""
        if count > _REMAKE_SKETCHES * self._sketch_count:
            self._sketch_mean, self._sketch_count = mean(), count
            self._sketched = self.first
        for first in range(self._sketched, count, _READ_AT_ONCE):
            rows = self.resident_rows(first, min(first + _READ_AT_ONCE, count))
            centred = rows.astype(np.float32) / np.float32(VECTOR_SCALE) - self._sketch_mean
            self._sketches[:, first - self.first : first - self.first + len(rows)] = sketches_of(centred)
            self.release()
        self._sketched = count

    def byte_vector(self, number: int) -> ByteVectors:
        """Return one quantised vector, from the store if it is not in memory."""
        rows = self.resident_rows(number, number + 1) if number >= self.first else self._sealed(number, number + 1)
        return rows[0]  # type: ignore[no-any-return]

    def _sealed(self, first: int, last: int) -> ByteVectors:
        rows: ByteVectors = np.frombuffer(self._store.vectors(first, last), np.int8).reshape(-1, DIMENSIONS)
        return rows


def _move_to_front(rows: NDArray[np.generic], gone: int) -> None:
    """Drop the first rows, in place and some at a time: a copy of all would need their memory again."""
    for start in range(0, len(rows) - gone, _READ_AT_ONCE):
        some = rows[start + gone : start + gone + _READ_AT_ONCE]
        rows[start : start + len(some)] = some
