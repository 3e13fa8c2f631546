"""Mem0's Qdrant adapter over a server of one's own."""

from __future__ import annotations

from mem0.vector_stores.qdrant import Qdrant  # type: ignore[import-untyped]
from qdrant_client import QdrantClient
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException

FAULTS: tuple[type[Exception], ...] = (QdrantException, ApiException)


class ServerVectors(Qdrant):  # type: ignore[misc]
    """Without the keyword model that Mem0 would download."""

    def _get_bm25_encoder(self) -> None:
        return None


def open_store(url: str, collection: str, dimensions: int, seconds: float) -> ServerVectors:
    """The collection is made where it is missing. `seconds` bounds a request. Raises one of `FAULTS`."""
    client = QdrantClient(url=url, timeout=max(1, int(seconds)))
    return ServerVectors(collection_name=collection, embedding_model_dims=dimensions, client=client)
