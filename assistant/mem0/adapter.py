"""Adapts Mem0 to our stores: its vector store over memory.db (exact, transactional, readable by other processes), or a
server through Mem0's own adapter (`open_backend`); and its `Memory` class with our embedder, stores and history instead
of its defaults.

- Mem0 is only imported in the child process (`assistant.mem0.service`).
- Searches are by meaning, within one scope (`user_id`) if given. Searches by words use the journal
  (`assistant.store.memory.search`).
- No model is used (`infer=False`); ids are given, not random, so that adding twice adds once; a memory is stored in one
  place, so that it can be erased: Mem0's second store, of names in memories, stays empty, since the child blocks spaCy.
- On a server, each embedder has its own collection, so that vectors of two embedders are never mixed.

Mem0's configuration only accepts its own providers, so its private parts are used here;
`tests/contract/test_mem0_private_api.py` fails if a release changes them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from assistant.core.dataclass import dataclass
from assistant.core.errors import MemoryUnavailable, install_hint
from assistant.core.imports import placeholder_modules
from assistant.core.memories import Memory
from assistant.mem0.codec import memory_from_payload, memory_metadata
from assistant.mem0.vectors import Embedder, nearest_vectors, vector_to_bytes
from assistant.store.memory.vectors import MemoryRow, MemoryVectors

# Importing a client of a rarely used server, of which Mem0 needs one type, and its telemetry, which is off, takes 80 %
# of the time and two thirds of the memory of importing Mem0.
with placeholder_modules(qdrant_client="QdrantClient", posthog="Posthog"):
    from mem0.configs.base import MemoryConfig  # type: ignore[import-untyped]
    from mem0.embeddings.base import EmbeddingBase  # type: ignore[import-untyped]
    from mem0.memory.main import Memory as Mem0  # type: ignore[import-untyped]
    from mem0.vector_stores.base import VectorStoreBase  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True)
class VectorHit:
    """The result type Mem0 expects."""

    id: str
    score: float | None
    payload: dict[str, Any]


# `list` is a method of the class below.
VectorHits = list[VectorHit]
Batches = list[VectorHits]
Names = list[str]


class LocalVectorStore(VectorStoreBase):  # type: ignore[misc]
    """`embedder` names the embedder of all given vectors."""

    def __init__(self, store: MemoryVectors, embedder: str, dimensions: int) -> None:
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
        """The three have the same length. An existing id is replaced."""
        for vector, payload, memory_id in zip(vectors, payloads or (), ids or (), strict=True):
            self._store.put(memory_id, payload, self._embedder, vector_to_bytes(np.asarray(vector)))

    def update(
        self, vector_id: str, vector: Sequence[float] | None = None, payload: Mapping[str, Any] | None = None
    ) -> None:
        """Raises `KeyError` if the id does not exist."""
        if payload is None:
            row = self._store.get(vector_id)
            if row is None:
                raise KeyError(vector_id)
            payload = row[1]
        self._store.put(
            vector_id, payload, self._embedder, None if vector is None else vector_to_bytes(np.asarray(vector))
        )

    def delete(self, vector_id: str) -> None:
        self._store.remove([vector_id])

    def reset(self) -> None:
        self._store.remove([memory_id for memory_id, _ in self._store.list_memories()])

    # ------------------------------------------------------------------------------------------------------- reading

    def get(self, vector_id: str) -> VectorHit | None:
        row = self._store.get(vector_id)
        return None if row is None else _hit(row)

    def list(self, filters: Mapping[str, Any] | None = None, top_k: int | None = 100) -> Batches:
        """Return one batch, as Mem0 expects it; `top_k` None for all."""
        return [[_hit(row) for row in self._store.list_memories(_scope(filters), limit=top_k)]]

    def search(
        self, query: str, vectors: Sequence[float], top_k: int = 5, filters: Mapping[str, Any] | None = None
    ) -> VectorHits:
        """Search by meaning."""
        return self.search_batch([query], [vectors], top_k, filters)[0]

    def search_batch(
        self,
        queries: Sequence[str],
        vectors_list: Sequence[Sequence[float]],
        top_k: int = 1,
        filters: Mapping[str, Any] | None = None,
    ) -> Batches:
        """Run all queries in one pass over the vectors."""
        queries_matrix = np.asarray(vectors_list, dtype=np.float32).reshape(
            len(vectors_list), self.embedding_model_dims
        )
        nearest = nearest_vectors(queries_matrix, self._store.vectors(self._embedder, _scope(filters)), top_k)
        payloads = self._store.get_many([memory_id for hits in nearest for memory_id, _ in hits])
        return [
            [VectorHit(memory_id, score, payloads[memory_id]) for memory_id, score in hits if memory_id in payloads]
            for hits in nearest
        ]

    # --------------------------------------------------------- the one collection, that the schema of memory.db made

    def create_col(self, name: str, vector_size: int, distance: str) -> None:
        """Do nothing: it always exists."""

    def list_cols(self) -> Names:
        return [self.collection_name]

    def delete_col(self) -> None:
        """Delete all memories; the collection itself stays."""
        self.reset()

    def col_info(self) -> dict[str, Any]:
        return {"name": self.collection_name, "count": len(self._store.list_memories())}


def _hit(row: MemoryRow) -> VectorHit:
    return VectorHit(row[0], None, row[1])


def _scope(filters: Mapping[str, Any] | None) -> str | None:
    """Return the scope of a search; None for all. Raises `ValueError` for any other condition."""
    others = dict(filters or {})
    scope = others.pop("user_id", None)
    if others or not isinstance(scope, str | None):
        raise ValueError("memory.db is searched by scope, not by other conditions")
    return scope


_GIVEN_KEY = "given"


class BatchedEmbeddings(EmbeddingBase):  # type: ignore[misc]
    """Mem0 embeds one text at a time; `prepare` embeds many at once and caches their vectors."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self.embedder = embedder
        self._ready: dict[str, list[float]] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Replace the cache by the vectors of these texts. Raises `MemoryUnavailable`."""
        distinct = list(dict.fromkeys(texts))
        self._ready = dict(zip(distinct, self.embedder.embed(distinct).tolist(), strict=True)) if distinct else {}

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        ready = self._ready.get(text)
        if ready is not None:
            return ready
        vector: list[float] = self.embedder.embed([text])[0].tolist()
        return vector


class Mem0HistoryAdapter:
    """Implements the methods of Mem0's `SQLiteManager` over our history. Messages are not stored, since the message log
    has them."""

    def __init__(self, store: MemoryVectors) -> None:
        self._store = store

    def add_history(
        self, memory_id: str, old_memory: str | None, new_memory: str | None, event: str, **rest: Any
    ) -> None:
        row = {"memory_id": memory_id, "old_memory": old_memory, "new_memory": new_memory, "event": event, **rest}
        self._store.add_history([row])

    def batch_add_history(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._store.add_history(records)

    def get_history(self, memory_id: str) -> list[dict[str, Any]]:
        return self._store.history_of_memory(memory_id)

    def save_messages(self, messages: Sequence[Mapping[str, Any]], session_scope: str) -> None:
        """Do nothing."""

    def get_last_messages(self, session_scope: str, limit: int = 10) -> list[dict[str, Any]]:
        """Return none: messages are in the log, not here."""
        return []

    def reset(self) -> None:
        self._store.clear_history()

    def close(self) -> None:
        """Do nothing: the code that opened memory.db closes it."""


class Mem0Adapter(Mem0):  # type: ignore[misc]
    """`remember`, `change`, `drop` and `recall` use `Memory` values and call Mem0's `add`, `update`, `delete` and
    `get`."""

    def __init__(self, embeddings: BatchedEmbeddings, vectors: VectorStoreBase, store: MemoryVectors) -> None:
        """`store` has the history."""
        # Skips Mem0's constructor, which would open its default stores and require a model's key.
        self.config = MemoryConfig()
        self.embedding_model = embeddings
        self.vector_store = vectors
        self.llm = None
        self.db = Mem0HistoryAdapter(store)
        self.collection_name = vectors.collection_name
        self.api_version = self.config.version
        self.custom_instructions = None
        self.reranker = None
        self._entity_store = None

    def remember(self, memory: Memory) -> None:
        """Add a memory under its own id."""
        real = {"id": memory.id, "user_id": memory.scope}
        # Mem0 accepts no id, and no scope with a space; `_create_memory` inserts the real ones.
        self.add(memory.text, user_id=_GIVEN_KEY, metadata={**memory_metadata(memory), _GIVEN_KEY: real}, infer=False)

    def change(self, memory: Memory) -> None:
        """Replace text and metadata, and compute the vector anew."""
        self.update(memory.id, text=memory.text, metadata=memory_metadata(memory))

    def drop(self, memory_id: str) -> None:
        self.delete(memory_id)

    def recall(self, memory_id: str) -> Memory | None:
        """Return None if there is no such memory."""
        item = self.get(memory_id)
        if item is None:
            return None
        payload = {"data": item["memory"], "user_id": item["user_id"], **item["metadata"]}
        return memory_from_payload(memory_id, payload)

    # -------------------------------------------------------------------------------------------- Mem0's private parts

    def _create_memory(
        self, data: str, existing_embeddings: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
    ) -> str:
        payload = dict(metadata or {})
        real = payload.pop(_GIVEN_KEY)
        now = datetime.now(UTC).isoformat()
        payload |= {
            "user_id": real["user_id"],
            "data": data,
            "hash": hashlib.md5(data.encode(), usedforsecurity=False).hexdigest(),
            "created_at": now,
            "updated_at": now,
            # What other stores search for words.
            "text_lemmatized": data,
        }
        memory_id: str = real["id"]
        self.vector_store.insert(vectors=[existing_embeddings[data]], ids=[memory_id], payloads=[payload])
        self.db.add_history(memory_id, None, data, "ADD", created_at=now, updated_at=now, role=payload.get("role"))
        return memory_id


# ------------------------------------------------------------------------------------------------------------- backends

_KEPT = "The journal keeps everything; the next sleep tries again"
_CONNECT_SECONDS = 5
Faults = tuple[type[Exception], ...]
OpenServer = Callable[[str, int], VectorStoreBase]
"""Opens a collection on a server: its name, dimensions."""


@dataclass(frozen=True, slots=True)
class VectorBackend:
    """How to open a vector store."""

    store: MemoryVectors | None  # None: on a server
    url: str = ""
    open_server: OpenServer | None = None
    faults: Faults = ()  # errors raised if its server cannot be used

    @property
    def is_local(self) -> bool:
        return self.store is not None

    def open(self, embedder: str, dimensions: int) -> VectorStoreBase:
        """Open it. Raises one of `faults`."""
        if self.store is not None:
            return LocalVectorStore(self.store, embedder, dimensions)
        assert self.open_server is not None
        return self.open_server(_collection_name(embedder), dimensions)

    def unavailable_error(self, error: Exception) -> MemoryUnavailable:
        """Return the error to raise for a failure of the server."""
        # Only the first line: further ones may quote the data.
        message = (str(error).splitlines() or [""])[0][:200]
        where = urlsplit(self.url).hostname or "the address in `[memory] store_url`"
        return MemoryUnavailable(f"The memory store at {where} failed ({type(error).__name__}: {message}). {_KEPT}.")


def open_backend(kind: str, url: str, store: MemoryVectors, *, seconds: float = 20.0) -> VectorBackend:
    """`store` is memory.db, used for "local". `seconds` limits each step of a server. Raises `MemoryUnavailable`."""
    if kind == "local":
        return VectorBackend(store)
    if not url:
        raise MemoryUnavailable(f"`[memory] store` is {kind}, but `store_url` has no address. {_KEPT}.")
    if kind == "pgvector":
        return VectorBackend(None, url, *_pgvector(url, seconds))
    if kind == "qdrant":
        return VectorBackend(None, url, *_qdrant(url, seconds))
    raise MemoryUnavailable(f"There is no memory store {kind!r}. {_KEPT}; correct `[memory] store`.")


def _pgvector(url: str, seconds: float) -> tuple[OpenServer, Faults]:
    """Mem0's adapter for a PostgreSQL server. There is no vector index: searching a scope is exact."""
    if importlib.util.find_spec("psycopg") is None or importlib.util.find_spec("psycopg_pool") is None:
        raise MemoryUnavailable(
            f"`[memory] store` is pgvector, but psycopg is not installed. {_KEPT}; {install_hint('pgvector')}."
        )
    # An optional dependency.
    import psycopg
    from mem0.vector_stores.pgvector import PGVector  # type: ignore[import-untyped]
    from psycopg_pool import ConnectionPool

    def open_server(collection: str, dimensions: int) -> VectorStoreBase:
        options = {"connect_timeout": _CONNECT_SECONDS}
        # Fails at once if nothing answers at the address: the pool would retry until its timeout.
        psycopg.connect(url, connect_timeout=_CONNECT_SECONDS).close()
        pool: ConnectionPool[psycopg.Connection[tuple[object, ...]]] = ConnectionPool(
            url, min_size=1, max_size=2, timeout=seconds, kwargs=options, open=True
        )
        address = dict.fromkeys(("dbname", "user", "password", "host", "port"))
        return PGVector(
            **address,
            collection_name=collection,
            embedding_model_dims=dimensions,
            diskann=False,
            hnsw=False,
            connection_pool=pool,
        )

    return open_server, (psycopg.Error,)


def _qdrant(url: str, seconds: float) -> tuple[OpenServer, Faults]:
    """Mem0's adapter for a Qdrant server. A missing collection is created."""
    # An optional dependency.
    from mem0.vector_stores.qdrant import Qdrant  # type: ignore[import-untyped]
    from qdrant_client import QdrantClient
    from qdrant_client.common.client_exceptions import QdrantException
    from qdrant_client.http.exceptions import ApiException

    class ServerVectors(Qdrant):  # type: ignore[misc]
        """Without the keyword model that Mem0 would download."""

        def _get_bm25_encoder(self) -> None:
            return None

    def open_server(collection: str, dimensions: int) -> VectorStoreBase:
        client = QdrantClient(url=url, timeout=max(1, int(seconds)))
        return ServerVectors(collection_name=collection, embedding_model_dims=dimensions, client=client)

    return open_server, (QdrantException, ApiException)


def _collection_name(embedder: str) -> str:
    """Return a collection name that every store accepts, unique per embedder."""
    digest = hashlib.blake2b(embedder.encode(), digest_size=4).hexdigest()
    return f"memories_{re.sub(r'[^a-z0-9]+', '_', embedder.lower())[:40]}_{digest}"
