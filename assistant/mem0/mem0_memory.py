"""Mem0's `Memory` with our embedder, stores and history in the places where it would make its own.

What always holds: Mem0 is imported in the child process only (`assistant.mem0.mem0_child`). No model is asked
(`infer=False`); ids are given, not drawn, so that adding twice adds once; a memory lies in one place, so that its words
can be taken out: Mem0's second store, of names in memories, stays empty, since the child keeps spaCy from it.

Mem0's configuration accepts only its own providers, which is why its private parts are used here:
`tests/contract/test_mem0_private_api.py` tells when a release moves them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from mem0.configs.base import MemoryConfig  # type: ignore[import-untyped]
from mem0.embeddings.base import EmbeddingBase  # type: ignore[import-untyped]
from mem0.memory.main import Memory as Mem0  # type: ignore[import-untyped]
from mem0.vector_stores.base import VectorStoreBase  # type: ignore[import-untyped]

from assistant.core.memories import Memory
from assistant.mem0 import memory_form
from assistant.mem0.embedder import Embedder
from assistant.mem0.memory_store import StoredHistory

_GIVEN = "given"


class PreparedEmbeddings(EmbeddingBase):  # type: ignore[misc]
    """Mem0 asks for one text at a time; `prepare` has many embedded at once, and their vectors wait here."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self.embedder = embedder
        self._ready: dict[str, list[float]] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Forget what was ready and embed these. Raises `MemoryUnavailable`."""
        asked = list(dict.fromkeys(texts))
        self._ready = dict(zip(asked, self.embedder.embed(asked).tolist(), strict=True)) if asked else {}

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        ready = self._ready.get(text)
        if ready is not None:
            return ready
        made: list[float] = self.embedder.embed([text])[0].tolist()
        return made


class HistoryInStore:
    """What Mem0 asks of its `SQLiteManager`, over our history. Messages are not kept: the master log has them."""

    def __init__(self, history: StoredHistory) -> None:
        self._history = history

    def add_history(
        self, memory_id: str, old_memory: str | None, new_memory: str | None, event: str, **rest: Any
    ) -> None:
        row = {"memory_id": memory_id, "old_memory": old_memory, "new_memory": new_memory, "event": event, **rest}
        self._history.add([row])

    def batch_add_history(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._history.add(records)

    def get_history(self, memory_id: str) -> list[dict[str, Any]]:
        return self._history.of(memory_id)

    def save_messages(self, messages: Sequence[Mapping[str, Any]], session_scope: str) -> None:
        """Not kept."""

    def get_last_messages(self, session_scope: str, limit: int = 10) -> list[dict[str, Any]]:
        return []

    def reset(self) -> None:
        self._history.clear()

    def close(self) -> None:
        """Whoever opened memory.db closes it."""


class HouseMemory(Mem0):  # type: ignore[misc]
    """`remember`, `change`, `drop` and `recall` speak in `Memory` values and go through Mem0's `add`, `update`,
    `delete` and `get`."""

    def __init__(self, embeddings: PreparedEmbeddings, vectors: VectorStoreBase, history: StoredHistory) -> None:
        # In the place of Mem0's own: it would open its default stores and ask for a model's key.
        self.config = MemoryConfig()
        self.embedding_model = embeddings
        self.vector_store = vectors
        self.llm = None
        self.db = HistoryInStore(history)
        self.collection_name = vectors.collection_name
        self.api_version = self.config.version
        self.custom_instructions = None
        self.reranker = None
        self._entity_store = None

    def remember(self, memory: Memory) -> None:
        """Add a memory under its own id."""
        given = {"id": memory.id, "user_id": memory.scope}
        # Mem0 takes no id, and no scope with a space in it; `_create_memory` puts the real ones in.
        self.add(memory.text, user_id=_GIVEN, metadata={**memory_form.metadata(memory), _GIVEN: given}, infer=False)

    def change(self, memory: Memory) -> None:
        self.update(memory.id, text=memory.text, metadata=memory_form.metadata(memory))

    def drop(self, memory_id: str) -> None:
        self.delete(memory_id)

    def recall(self, memory_id: str) -> Memory | None:
        found = self.get(memory_id)
        if found is None:
            return None
        payload = {"data": found["memory"], "user_id": found["user_id"], **found["metadata"]}
        return memory_form.from_payload(memory_id, payload)

    # -------------------------------------------------------------------------------------------- Mem0's private parts

    def _create_memory(
        self, data: str, existing_embeddings: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
    ) -> str:
        payload = dict(metadata or {})
        given = payload.pop(_GIVEN)
        now = datetime.now(UTC).isoformat()
        payload |= {
            "user_id": given["user_id"],
            "data": data,
            "hash": hashlib.md5(data.encode(), usedforsecurity=False).hexdigest(),
            "created_at": now,
            "updated_at": now,
            # What other stores search words in.
            "text_lemmatized": data,
        }
        memory_id: str = given["id"]
        self.vector_store.insert(vectors=[existing_embeddings[data]], ids=[memory_id], payloads=[payload])
        self.db.add_history(memory_id, None, data, "ADD", created_at=now, updated_at=now, role=payload.get("role"))
        return memory_id
