"""The `Embedder` protocol, and exact search by similarity in meaning.

Rows have length 1, so that a dot product is a cosine; a text without letters or digits has the zero row, which is
similar to nothing. Vectors of different embedders are never compared. A search compares every vector of a scope: with
100,000 memories it reads 50 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""One row a text."""


class Embedder(Protocol):
    @property
    def name(self) -> str:
        """Return its identity, such as "wordllama:256": vectors of the same name can be compared."""

    @property
    def dimensions(self) -> int:
        """Length of its vectors."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return an array (texts, dimensions) of rows of length 1. Raises `MemoryUnavailable` if a provider does not
        answer."""
        ...


def embed_in_batches(
    texts: Sequence[str], dimensions: int, batch_size: int, embed_batch: Callable[[list[str]], Vectors]
) -> Vectors:
    """Embed `batch_size` texts at a time with `embed_batch`; return rows of length 1, and zero rows for texts without
    words."""
    rows = np.zeros((len(texts), dimensions), dtype=np.float32)
    worded = [place for place, text in enumerate(texts) if any(map(str.isalnum, text))]
    for start in range(0, len(worded), batch_size):
        places = worded[start : start + batch_size]
        rows[places] = embed_batch([texts[place] for place in places])
    return to_unit_length(rows)


def to_unit_length(rows: Vectors) -> Vectors:
    """Scale rows to length 1; a zero row stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Vectors = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return scaled


STORED_DTYPE = np.dtype("<f2")
"""Vectors are kept at two bytes a number: it moves a cosine by less than 0.001."""

_BATCH_ROWS = 8192


def vector_to_bytes(vector: NDArray[np.floating]) -> bytes:
    return np.asarray(vector, dtype=STORED_DTYPE).tobytes()


def nearest_vectors(queries: Vectors, stored: Iterable[tuple[str, bytes]], limit: int) -> list[list[tuple[str, float]]]:
    """Return for each row of `queries` the ids of the stored vectors with the highest cosine, best first, at most
    `limit`."""
    best: list[list[tuple[str, float]]] = [[] for _ in queries]
    if not len(queries) or limit < 1:
        return best
    for ids, matrix in _blocks(iter(stored), queries.shape[1]):
        scores = np.clip(queries @ matrix.T, -1.0, 1.0)
        for row, hits in zip(scores, best, strict=True):
            places = np.argpartition(-row, limit - 1)[:limit] if len(row) > limit else np.arange(len(row))
            hits.extend((ids[place], float(row[place])) for place in places)
            hits.sort(key=lambda hit: (-hit[1], hit[0]))
            del hits[limit:]
    return best


def _blocks(stored: Iterator[tuple[str, bytes]], width: int) -> Iterator[tuple[list[str], Vectors]]:
    while block := list(islice(stored, _BATCH_ROWS)):
        raw = np.frombuffer(b"".join(vector for _, vector in block), dtype=STORED_DTYPE)
        yield [memory_id for memory_id, _ in block], raw.reshape(-1, width).astype(np.float32)
