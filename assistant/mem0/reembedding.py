"""Memories embedded again by another embedder, some at a time, while the former vectors go on answering."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mem0.vector_stores.base import VectorStoreBase  # type: ignore[import-untyped]

from assistant.mem0.closeness import to_bytes
from assistant.mem0.embedder import Embedder
from assistant.mem0.memory_store import WrittenMemories

Rows = Mapping[str, Mapping[str, Any]]


def reembed_local(store: WrittenMemories, wanted: Embedder, limit: int) -> int:
    """At most `limit` more memories get a vector by `wanted` beside the one that answers; how many are left."""
    due, missing = store.without(wanted.name, limit=limit)
    made = wanted.embed([text for _, text in due])
    store.add_vectors(
        wanted.name, [(memory_id, text, to_bytes(row)) for (memory_id, text), row in zip(due, made, strict=True)]
    )
    return missing - len(due)


def reembed_server(old: Rows, new: VectorStoreBase, have: Rows, wanted: Embedder, limit: int) -> int:
    """Copy at most `limit` memories of `old` that `new` lacks, or has as they were before; how many are left. `have`
    is what `new` has; what `old` has no longer goes."""
    for memory_id in have.keys() - old.keys():
        new.delete(memory_id)
    due = [memory_id for memory_id in sorted(old) if have.get(memory_id) != old[memory_id]]
    chosen = due[:limit]
    made = wanted.embed([str(old[memory_id]["data"]) for memory_id in chosen]).tolist()
    for memory_id, vector in zip(chosen, made, strict=True):
        if memory_id in have:
            new.delete(memory_id)
        new.insert(vectors=[vector], payloads=[dict(old[memory_id])], ids=[memory_id])
    return len(due) - len(chosen)
