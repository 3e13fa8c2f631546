"""Exact closeness in meaning: every vector of a scope is compared. At 100,000 memories this costs a read of 50 MB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from assistant.mem0.embedder import Vectors

STORED = np.dtype("<f2")
"""Vectors are kept at two bytes a number: it moves a cosine by less than 0.001."""

_ROWS_AT_ONCE = 8192


def to_bytes(vector: NDArray[np.floating]) -> bytes:
    return np.asarray(vector, dtype=STORED).tobytes()


def closest(queries: Vectors, stored: Iterable[tuple[str, bytes]], limit: int) -> list[list[tuple[str, float]]]:
    """For each row of `queries` the ids of the stored vectors with the highest cosine, best first, at most `limit`."""
    best: list[list[tuple[str, float]]] = [[] for _ in queries]
    if not len(queries) or limit < 1:
        return best
    for ids, matrix in _blocks(iter(stored), queries.shape[1]):
        scores = np.clip(queries @ matrix.T, -1.0, 1.0)
        for row, found in zip(scores, best, strict=True):
            places = np.argpartition(-row, limit - 1)[:limit] if len(row) > limit else np.arange(len(row))
            found.extend((ids[place], float(row[place])) for place in places)
            found.sort(key=lambda hit: (-hit[1], hit[0]))
            del found[limit:]
    return best


def _blocks(stored: Iterator[tuple[str, bytes]], width: int) -> Iterator[tuple[list[str], Vectors]]:
    while block := list(islice(stored, _ROWS_AT_ONCE)):
        raw = np.frombuffer(b"".join(vector for _, vector in block), dtype=STORED)
        yield [memory_id for memory_id, _ in block], raw.reshape(-1, width).astype(np.float32)
