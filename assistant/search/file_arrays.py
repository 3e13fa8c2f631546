"""Arrays in files that have no name: the system takes such memory back where it needs it, and reads what is used again.
Not thread-safe."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

MapFile = Callable[[int], mmap.mmap | None]
"""Returns so many bytes of zeros in a file, None where that has no room."""

# Bytes of an array.
_TAKEN_AT_ONCE = 8 << 20


class FileArrays:
    def __init__(self, map_file: MapFile) -> None:
        self._map_file = map_file
        self._mapped: list[mmap.mmap] = []

    def __len__(self) -> int:
        """Return how many of the arrays are in a file."""
        return len(self._mapped)

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Make an array; it is in memory where its file has no room."""
        mapped = self._map_file(int(np.prod(shape)) * dtype.itemsize)
        if mapped is None:
            return np.zeros(shape, dtype)
        self._mapped.append(mapped)
        return np.frombuffer(mapped, dtype).reshape(shape)

    def take(self, array: NDArray[Any], places: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Return the rows of an array at these places. Where it is in a file, each of them brings its surroundings into
        memory, and those all over the file all of it: some at a time are read, and given back."""
        if not self._mapped:
            taken: NDArray[Any] = array.take(places, axis=0)  # a tenth of what array[places] takes
            return taken
        order = np.argsort(places, kind="stable")
        ordered = places[order]
        step = max(1, _TAKEN_AT_ONCE // array[:1].nbytes)
        bounds = np.searchsorted(ordered, np.arange(0, len(array) + step, step)).tolist()
        taken = np.empty((len(places), *array.shape[1:]), array.dtype)
        for first, last in pairwise(bounds):
            if first < last:
                taken[order[first:last]] = array.take(ordered[first:last], axis=0)
                self.release()
        return taken

    def release(self) -> None:
        """Give back the memory of all of them; whatever is used is read from the files again."""
        for mapped in self._mapped if hasattr(mmap, "MADV_DONTNEED") else ():
            mapped.madvise(mmap.MADV_DONTNEED)

    def write(self) -> None:
        """Have the files say what the arrays say, on the disk."""
        for mapped in self._mapped:
            mapped.flush()
