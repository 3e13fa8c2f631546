"""Mem0's vector store over memory.db: exact, transactional, and read by other processes while it is written.

What always holds: a search is of one scope (`user_id`) where one is given; a hit by words alone stands among the hits
of a search, since Mem0 itself only ranks again what a search found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mem0.vector_stores.base import VectorStoreBase  # type: ignore[import-untyped]

from assistant.mem0.closeness import closest, to_bytes
from assistant.mem0.memory_store import Found, WrittenMemories

_FOR_WORDS = 0.5
"""The cosine that the best hit by words alone counts as."""

_RANK_OFFSET = 60
"""How little the first places of an order differ from the next."""


@dataclass(frozen=True, slots=True)
class Hit:
    """What Mem0 expects of a result."""

    id: str
    score: float | None
    payload: dict[str, Any]


# `list` is a method of the class below.
Hits = list[Hit]
Batches = list[Hits]
Names = list[str]


class LocalVectors(VectorStoreBase):  # type: ignore[misc]
    """`embedder` names what makes the vectors that are given and asked with."""

    def __init__(self, store: WrittenMemories, embedder: str, dimensions: int) -> None:
        self._store = store
        self._embedder = embedder
        self.embedding_model_dims = dimensions
        self.collection_name = "memories"

    # ------------------------------------------------------------------------------------------------------- writing

    def insert(
        self,
        vectors: Sequence[Sequence[float]],
        payloads: Sequence[Mapping[str, Any]] | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        for vector, payload, memory_id in zip(vectors, payloads or (), ids or (), strict=True):
            self._store.put(memory_id, payload, self._embedder, to_bytes(np.asarray(vector)))

    def update(
        self, vector_id: str, vector: Sequence[float] | None = None, payload: Mapping[str, Any] | None = None
    ) -> None:
        """Raises `KeyError` where the id is not there."""
        if payload is None:
            payload = self._there(vector_id)
        self._store.put(vector_id, payload, self._embedder, None if vector is None else to_bytes(np.asarray(vector)))

    def delete(self, vector_id: str) -> None:
        self._store.remove([vector_id])

    def reset(self) -> None:
        self._store.remove([memory_id for memory_id, _ in self._store.all()])

    # ------------------------------------------------------------------------------------------------------- reading

    def get(self, vector_id: str) -> Hit | None:
        found = self._store.get(vector_id)
        return None if found is None else _hit(found)

    def list(self, filters: Mapping[str, Any] | None = None, top_k: int | None = 100) -> Batches:
        scope, equal = _split(filters)
        return [[_hit(found) for found in self._store.all(scope, equal, limit=top_k)]]

    def search(
        self, query: str, vectors: Sequence[float], top_k: int = 5, filters: Mapping[str, Any] | None = None
    ) -> Hits:
        """Memories by meaning and by words: the best of both orders, each with its cosine, or with its share of the
        best hit by words where that is more."""
        scope, equal = _split(filters)
        asked = np.asarray([vectors], dtype=np.float32)
        meant = closest(asked, self._store.vectors(self._embedder, scope, equal), top_k)[0]
        worded = self._store.worded(query, scope, equal, limit=top_k) if query else []
        scores = dict(meant)
        for memory_id, score in worded:
            scores[memory_id] = max(scores.get(memory_id, 0.0), _FOR_WORDS * score / worded[0][1])
        chosen = _best_of_both(meant, worded)[:top_k]
        return self._hits(sorted(((one, scores[one]) for one in chosen), key=lambda hit: (-hit[1], hit[0])))

    def keyword_search(self, query: str, top_k: int = 5, filters: Mapping[str, Any] | None = None) -> Hits:
        scope, equal = _split(filters)
        return self._hits(self._store.worded(query, scope, equal, limit=top_k))

    def search_batch(
        self,
        queries: Sequence[str],
        vectors_list: Sequence[Sequence[float]],
        top_k: int = 1,
        filters: Mapping[str, Any] | None = None,
    ) -> Batches:
        """By meaning alone, all in one pass over the vectors."""
        scope, equal = _split(filters)
        asked = np.asarray(vectors_list, dtype=np.float32).reshape(len(vectors_list), self.embedding_model_dims)
        found = closest(asked, self._store.vectors(self._embedder, scope, equal), top_k)
        return [self._hits(hits) for hits in found]

    def _hits(self, ranked: Sequence[tuple[str, float]]) -> Hits:
        payloads = self._store.several([memory_id for memory_id, _ in ranked])
        return [Hit(memory_id, score, payloads[memory_id]) for memory_id, score in ranked if memory_id in payloads]

    def _there(self, memory_id: str) -> dict[str, Any]:
        found = self._store.get(memory_id)
        if found is None:
            raise KeyError(memory_id)
        return found[1]

    # --------------------------------------------------------- the one collection, that the schema of memory.db made

    def create_col(self, name: str, vector_size: int, distance: str) -> None:
        """It is always there."""

    def list_cols(self) -> Names:
        return [self.collection_name]

    def delete_col(self) -> None:
        self.reset()

    def col_info(self) -> dict[str, Any]:
        return {"name": self.collection_name, "count": len(self._store.all())}


def _hit(found: Found) -> Hit:
    return Hit(found[0], None, found[1])


def _best_of_both(one: Sequence[tuple[str, float]], other: Sequence[tuple[str, float]]) -> list[str]:
    """Ids by the sum of their reciprocal ranks: what leads either order is among the first."""
    ranks: dict[str, float] = {}
    for order in (one, other):
        for place, (memory_id, _) in enumerate(order):
            ranks[memory_id] = ranks.get(memory_id, 0.0) + 1 / (_RANK_OFFSET + place)
    return sorted(ranks, key=lambda memory_id: (-ranks[memory_id], memory_id))


def _split(filters: Mapping[str, Any] | None) -> tuple[str | None, dict[str, Any]]:
    """The scope, and the values that a payload must have. Raises `ValueError` for conditions of other kinds."""
    equal = dict(filters or {})
    scope = equal.pop("user_id", None)
    if any(isinstance(value, dict | list) for value in equal.values()) or isinstance(scope, dict | list):
        raise ValueError("memory.db is searched by values that are equal, not by other conditions")
    return scope, equal
