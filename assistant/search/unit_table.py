"""A row for each unit of a collection, and what a search looks up for all of them: 46 bytes a unit.

Those of a large collection are in files (`file_arrays`). Not thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assistant.search.dtypes import UNIT_DTYPE, UnitRows, kinds_of
from assistant.search.file_arrays import FileArrays, MapFile

_LEAST_ROOM = 1_024
# The columns of more units are in files: those of fewer take 8 MB at the most.
_IN_MEMORY = 200_000
_COPIED_AT_ONCE = 1 << 15
_SEEN_AT_ONCE = 1 << 17


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
    def previous(self) -> NDArray[np.int32]:
        """The unit before each in its stream, -1 for none; at -1 there is -1, so that one may go on from there."""
        return self._previous

    @property
    def following(self) -> NDArray[np.int32]:
        """The next unit of each in its stream, like `previous`."""
        return self._following

    @property
    def is_in_file(self) -> bool:
        return len(self._rows) > 0

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

    def rows_of(self, units: NDArray[np.integer[Any]]) -> UnitRows:
        """Return the rows of these units."""
        return self._rows.take(self._meta, units)

    def mask_where(self, holds: Callable[[UnitRows], NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Return for each unit whether something holds for its row, looking at some at a time."""
        held = np.zeros(self.count, bool)
        for start in range(0, self.count, _SEEN_AT_ONCE):
            rows = self.meta[start : start + _SEEN_AT_ONCE]
            held[start : start + len(rows)] = holds(rows)
            self._rows.release()
        return held

    def mask_of_kinds(self, kinds: Sequence[int]) -> NDArray[np.bool_]:
        """Return for each unit whether it is of one of these kinds."""
        held = np.zeros(self.count, bool)
        # Some at a time stay in the processor's cache until they were compared with all.
        for start in range(0, self.count, _SEEN_AT_ONCE):
            some = self.kinds[start : start + _SEEN_AT_ONCE]
            of_some = held[start : start + len(some)]
            for kind in kinds:
                of_some |= some == kind
        return held

    def release(self) -> None:
        """Give back the memory of what is in a file."""
        self._rows.release()
        self._columns.release()

    def _make(self, room: int) -> None:
        map_file = self._map_file if room > _IN_MEMORY else lambda size: None
        self._rows, self._columns = FileArrays(map_file), FileArrays(map_file)
        self._meta: UnitRows = self._rows.zeros((room,), UNIT_DTYPE)
        # What is looked up for units all over the collection.
        self._kinds: NDArray[np.uint32] = self._columns.zeros((room,), np.dtype(np.uint32))
        self._previous: NDArray[np.int32] = self._columns.zeros((room + 1,), np.dtype(np.int32))
        self._following: NDArray[np.int32] = self._columns.zeros((room + 1,), np.dtype(np.int32))
        self._previous[-1] = self._following[-1] = -1

    def _grow(self, count: int) -> None:
        former, files = (self._meta, self._kinds, self._previous, self._following), (self._rows, self._columns)
        self._make(max(count, len(self._meta) * 5 // 4))
        for start in range(0, self.count, _COPIED_AT_ONCE):
            end = min(start + _COPIED_AT_ONCE, self.count)
            for old, new in zip(former, (self._meta, self._kinds, self._previous, self._following), strict=True):
                new[start:end] = old[start:end]
            for file in files:
                file.release()
            self.release()
