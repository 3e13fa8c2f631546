"""Mem0's pgvector adapter over a PostgreSQL of one's own. psycopg is optional: imported only where it is chosen."""

from __future__ import annotations

import psycopg
from mem0.vector_stores.pgvector import PGVector  # type: ignore[import-untyped]
from psycopg_pool import ConnectionPool

FAULTS: tuple[type[Exception], ...] = (psycopg.Error,)
_CONNECT_SECONDS = 5


def open_store(url: str, collection: str, dimensions: int, seconds: float) -> PGVector:
    """`seconds` bounds the wait for a connection. No index over the vectors: the search of a scope is exact. Raises one
    of `FAULTS`, at once where nobody answers at the address: the pool would try again until its time is up."""
    psycopg.connect(url, connect_timeout=_CONNECT_SECONDS).close()
    pool: ConnectionPool[psycopg.Connection[tuple[object, ...]]] = ConnectionPool(
        url,
        min_size=1,
        max_size=2,
        timeout=seconds,
        kwargs={"connect_timeout": _CONNECT_SECONDS},
        open=True,
    )
    return PGVector(
        dbname=None,
        collection_name=collection,
        embedding_model_dims=dimensions,
        user=None,
        password=None,
        host=None,
        port=None,
        diskann=False,
        hnsw=False,
        connection_pool=pool,
    )
