"""Where Mem0 keeps memories: memory.db of the home, or a server of one's own through Mem0's own adapter.

What always holds: a server has one collection for each embedder, named after it, so that vectors of two embedders
never meet.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from mem0.vector_stores.base import VectorStoreBase  # type: ignore[import-untyped]

from assistant.core.errors import MemoryUnavailable, install_hint
from assistant.mem0.adapter import LocalVectorStore
from assistant.store.memory.vectors import MemoryVectors

_KEPT = "The journal keeps everything; the next sleep tries again"


_CONNECT_SECONDS = 5
Faults = tuple[type[Exception], ...]
OpenServer = Callable[[str, int], VectorStoreBase]
"""Opens a collection on a server: its name, dimensions."""


@dataclass(frozen=True, slots=True)
class VectorBackend:
    """How to open a store of vectors."""

    store: MemoryVectors | None  # None: on a server
    url: str = ""
    open_server: OpenServer | None = None
    faults: Faults = ()  # what it raises where its server cannot be used

    @property
    def is_local(self) -> bool:
        return self.store is not None

    def open(self, embedder: str, dimensions: int) -> VectorStoreBase:
        """Raises one of `faults`."""
        if self.store is not None:
            return LocalVectorStore(self.store, embedder, dimensions)
        assert self.open_server is not None
        return self.open_server(_collection_name(embedder), dimensions)

    def unavailable_error(self, error: Exception) -> MemoryUnavailable:
        # The first line alone: the next ones may quote what was to be written.
        message = (str(error).splitlines() or [""])[0][:200]
        where = urlsplit(self.url).hostname or "the address in `[memory] store_url`"
        return MemoryUnavailable(f"The memory store at {where} failed ({type(error).__name__}: {message}). {_KEPT}.")


def open_backend(kind: str, url: str, store: MemoryVectors, *, seconds: float = 20.0) -> VectorBackend:
    """`store` is memory.db, which "local" means. `seconds` bounds one step of a server. Raises `MemoryUnavailable`."""
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
    """Mem0's adapter over a PostgreSQL of one's own. No index over the vectors: the search of a scope is exact."""
    if importlib.util.find_spec("psycopg") is None or importlib.util.find_spec("psycopg_pool") is None:
        raise MemoryUnavailable(
            f"`[memory] store` is pgvector, but psycopg is not installed. {_KEPT}; {install_hint('pgvector')}."
        )
    # An extra.
    import psycopg
    from mem0.vector_stores.pgvector import PGVector  # type: ignore[import-untyped]
    from psycopg_pool import ConnectionPool

    def open_server(collection: str, dimensions: int) -> VectorStoreBase:
        options = {"connect_timeout": _CONNECT_SECONDS}
        # Raises at once where nobody answers at the address: the pool would try again until its time is up.
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
    """Mem0's adapter over a Qdrant server of one's own. The collection is made where it is missing."""
    # An extra.
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
    """A name that every store accepts, and that no other embedder's name leads to."""
    digest = hashlib.blake2b(embedder.encode(), digest_size=4).hexdigest()
    return f"memories_{re.sub(r'[^a-z0-9]+', '_', embedder.lower())[:40]}_{digest}"
