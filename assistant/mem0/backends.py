"""Where Mem0 keeps memories: memory.db of the home, or a server of one's own through Mem0's own adapter.

What always holds: a server has one collection for each embedder, named after it, so that vectors of two embedders
never meet.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from mem0.vector_stores.base import VectorStoreBase  # type: ignore[import-untyped]

from assistant.core.errors import MemoryUnavailable, install_hint
from assistant.mem0.adapter import LocalVectorStore
from assistant.mem0.codec import MemoryTable

_KEPT = "The journal keeps everything; the next sleep tries again"


@dataclass(frozen=True, slots=True)
class VectorBackend:
    """How to open a store of vectors, and `faults`, what it raises where its server cannot be used. `store` None is
    one on a server."""

    kind: str
    url: str
    seconds: float
    store: MemoryTable | None
    faults: tuple[type[Exception], ...] = ()

    @property
    def is_local(self) -> bool:
        return self.store is not None

    def open(self, embedder: str, dimensions: int) -> VectorStoreBase:
        """Raises one of `faults`."""
        if self.store is not None:
            return LocalVectorStore(self.store, embedder, dimensions)
        return _load_adapter(self.kind).open_store(self.url, _collection_name(embedder), dimensions, self.seconds)

    def unavailable_error(self, error: Exception) -> MemoryUnavailable:
        # The first line alone: the next ones may quote what was to be written.
        said = (str(error).splitlines() or [""])[0][:200]
        where = urlsplit(self.url).hostname or "the address in `[memory] store_url`"
        return MemoryUnavailable(f"The memory store at {where} failed ({type(error).__name__}: {said}). {_KEPT}.")


def open_backend(kind: str, url: str, store: MemoryTable, *, seconds: float = 20.0) -> VectorBackend:
    """`store` is memory.db, which "local" means. `seconds` bounds one step of a server. Raises `MemoryUnavailable`."""
    if kind == "local":
        return VectorBackend(kind, "", seconds, store)
    if not url:
        raise MemoryUnavailable(f"`[memory] store` is {kind}, but `store_url` has no address. {_KEPT}.")
    return VectorBackend(kind, url, seconds, None, tuple(_load_adapter(kind).FAULTS))


def _load_adapter(kind: str) -> Any:
    if kind == "pgvector":
        if importlib.util.find_spec("psycopg") is None or importlib.util.find_spec("psycopg_pool") is None:
            raise MemoryUnavailable(
                f"`[memory] store` is pgvector, but psycopg is not installed. {_KEPT}; {install_hint('pgvector')}."
            )
        from assistant.mem0 import pgvector  # psycopg is an extra

        return pgvector
    if kind == "qdrant":
        from assistant.mem0 import qdrant  # so is its client

        return qdrant
    raise MemoryUnavailable(f"There is no memory store {kind!r}. {_KEPT}; correct `[memory] store`.")


def _collection_name(embedder: str) -> str:
    """A name that every store accepts, and that no other embedder's name leads to."""
    digest = hashlib.blake2b(embedder.encode(), digest_size=4).hexdigest()
    return f"memories_{re.sub(r'[^a-z0-9]+', '_', embedder.lower())[:40]}_{digest}"
