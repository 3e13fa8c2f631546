"""A row for each unit of a collection, and what a search looks up for all of them: 46 bytes a unit.

Those of a large collection are in files (`file_arrays`). Not thread-safe.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from assistant.search.dtypes import UNIT_DTYPE, UnitRows, kinds_of
from assistant.search.file_arrays import FileArrays, MapFile

_LEAST_ROOM = 1_024
# The columns of more units are in files: those of fewer take 8 MB at the most.
_IN_MEMORY = 200_000
_COPIED_AT_ONCE = 1 << 15


class UnitTable:
    def __init__(self, map_file: MapFile, room: int) -> None:
        """An empty table, at first with room for so many units."""
        self._map_file = map_file
        self.count = 0
        self.has_neighbours = False  # whether any unit follows another: memories stand by themselves
        self.has_removed = False
        self.last: dict[int, int] = {}  # the last unit of each stream
        self.speakers: set[int] = set()
        self._make(max(room, _LEAST_ROOM))

    @property
    def meta(self) -> UnitRows:
        """The rows of all units; a view, not a copy."""
        return self._meta[: self.count]

    @property
    def kinds(self) -> NDArray[np.uint32]:
        """Scope and role of each unit as one number (`kind_number`), 0 if it was removed."""
        return self._kinds[: self.count]

    @property
    def steps(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The unit before each in its stream and the one after it, -1 for none; at -1 there is -1, so that one may go
        on from there. Those that were removed are still in it."""
        return self._previous, self._following

    @property
    def is_in_file(self) -> bool:
        return len(self._arrays) > 0

    def add(self, rows: UnitRows) -> None:
        """Add the next units."""
        first, count = self.count, self.count + len(rows)
        if count > len(self._meta):
            self._grow(count)
        self.count = count
        self._meta[first:count] = rows
        self.has_removed = self.has_removed or bool(rows["gone"].any())
        self._kinds[first:count] = kinds_of(rows)
        self._previous[first:count] = rows["previous"]
        self._following[first:count] = -1
        follows = np.flatnonzero(rows["previous"] >= 0)
        self._following[rows["previous"][follows]] = follows + first
        self.has_neighbours |= len(follows) > 0
        # Of units of the same stream the last one is kept.
        self.last.update(zip(rows["stream"].tolist(), range(first, count), strict=True))
        self.speakers.update(rows["speaker"].tolist())

    def remove(self, numbers: NDArray[np.intp]) -> None:
        """Mark units as removed."""
        self.has_removed = True
        self._meta["gone"][numbers] = 1
        self._kinds[numbers] = 0

    def release(self) -> None:
        """Give back the memory of what is in a file."""
        self._arrays.release()

    def _make(self, room: int) -> None:
        self._arrays = FileArrays(self._map_file if room > _IN_MEMORY else lambda size: None)
        self._meta: UnitRows = self._arrays.zeros((room,), UNIT_DTYPE)
        self._kinds: NDArray[np.uint32] = self._arrays.zeros((room,), np.dtype(np.uint32))
        steps = (self._arrays.zeros((room + 1,), np.dtype(np.int32)) for _ in range(2))
        self._previous: NDArray[np.int32]
        self._following: NDArray[np.int32]
        self._previous, self._following = steps
        self._previous[-1] = self._following[-1] = -1

    def _grow(self, count: int) -> None:
        columns, before = (self._meta, self._kinds, *self.steps), self._arrays
        self._make(max(count, len(self._meta) * 5 // 4))
        for start in range(0, self.count, _COPIED_AT_ONCE):
            end = min(start + _COPIED_AT_ONCE, self.count)
            for old, new in zip(columns, (self._meta, self._kinds, *self.steps), strict=True):
                new[start:end] = old[start:end]
            before.release()
            self.release()
