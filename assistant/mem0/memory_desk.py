"""What the child process does with memories, step by step: `Memories` over Mem0.

What always holds:
- Changes carried out twice are as carried out once. In memory.db those of one step are one transaction; on a server
  each is one, and the history may lack the one that a crash cut off.
- The embedder that answers is written down. While another one is asked for, the old one goes on answering and
  embedding, until `reembed` has gone through all.
- Forgetting in memory.db asks no embedder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from assistant.core.memories import Memory, MemoryChange, MemoryVersion
from assistant.mem0 import memory_form
from assistant.mem0.backends import Backend
from assistant.mem0.embedder import Embedder, encodable
from assistant.mem0.embedder_settings import EmbedderSettings
from assistant.mem0.embedders import Meters, open_embedder, unmetered
from assistant.mem0.mem0_memory import HouseMemory, PreparedEmbeddings
from assistant.mem0.memory_store import StoredHistory, Transactions, WrittenMemories
from assistant.mem0.reembedding import reembed_local, reembed_server

_EVERY = 10_000_000
"""More memories than there are: the stores' adapters insist on a limit."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What the desk stands on. `seconds` bounds a request to an embedder's provider, and `meters` counts each."""

    home: Path
    embedder: EmbedderSettings
    backend: Backend
    store: WrittenMemories
    history: StoredHistory
    transactions: Transactions
    seconds: float = 30.0
    meters: Meters = unmetered


class MemoryDesk:
    """Every method raises `MemoryUnavailable` or `StoreError`."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._backend = desk.backend
        self._open: dict[str, Any] = {}
        self._opened: HouseMemory | None = None

    # -------------------------------------------------------------------------------------------------------- changes

    def apply(self, changes: Sequence[MemoryChange]) -> None:
        with self._faults():
            memory = self._memory
            due = self._due([replace(change, memory=self._storable(change.memory)) for change in changes])
            memory.embedding_model.prepare([change.memory.text for change in due if change.action != "delete"])
            # A server's writes are committed one by one; so is what is noted of them.
            together = self._desk.transactions.writing() if self._backend.is_local else nullcontext()
            with together:
                for change in due:
                    _carry_out(memory, change)

    def erase(self, memory_ids: Sequence[str]) -> None:
        """Words, vectors, history: nothing is left in memory.db nor, where the store is a server, in its rows."""
        with self._faults():
            if not self._backend.is_local:
                for vectors in self._collections():
                    for memory_id in memory_ids:
                        vectors.delete(memory_id)
            self._desk.store.erase(memory_ids)

    def reembed(self, limit: int) -> int:
        """Embed at most `limit` memories by the embedder that is asked for; how many are left. At 0 it answers."""
        with self._faults():
            if self._backend.is_local:
                left = reembed_local(self._desk.store, self._wanted, limit)
                if not left and self._answering[0] != self._wanted.name:
                    self._answer_with_wanted()
                return left
            collections = self._collections()
            if len(collections) == 1:
                return 0
            old, new = collections
            left = reembed_server(_rows(old), new, _rows(new), self._wanted, limit)
            if not left:
                self._answer_with_wanted()
                old.delete_col()
            return left

    # -------------------------------------------------------------------------------------------------------- reading

    def get(self, memory_id: str) -> Memory | None:
        with self._faults():
            found = self._vectors.get(memory_id)
            return None if found is None else memory_form.from_payload(memory_id, found.payload)

    def all(self, scope: str | None) -> list[Memory]:
        with self._faults():
            found = _rows(self._vectors, None if scope is None else {"user_id": scope})
        memories = [memory_form.from_payload(memory_id, payload) for memory_id, payload in found.items()]
        return sorted(memories, key=lambda memory: (memory.said_at, memory.id))

    def nearest(self, texts: Sequence[str], scope: str, limit: int) -> list[list[tuple[Memory, float]]]:
        with self._faults():
            memory = self._memory
            asked = memory.embedding_model.embedder.embed(texts).tolist()
            hits = memory.vector_store.search_batch([""] * len(texts), asked, top_k=limit, filters={"user_id": scope})
            return [
                [(memory_form.from_payload(str(hit.id), hit.payload), float(hit.score)) for hit in row] for row in hits
            ]

    def history(self, memory_id: str) -> list[MemoryVersion]:
        return [memory_form.version(row) for row in self._desk.history.of(memory_id)]

    # ------------------------------------------------------------------------------------------------------- embedders

    @cached_property
    def _wanted(self) -> Embedder:
        return self._embedder(self._desk.embedder)

    def _embedder(self, settings: EmbedderSettings) -> Embedder:
        return open_embedder(settings, self._desk.home, seconds=self._desk.seconds, meters=self._desk.meters)

    @property
    def _memory(self) -> HouseMemory:
        name, known = self._answering
        if self._opened is None or self._opened.embedding_model.embedder.name != name:
            embedder = self._wanted
            if embedder.name != name:
                former = EmbedderSettings(known["kind"], known["model"], known["url"], self._desk.embedder.key)
                embedder = self._embedder(former)
            self._opened = HouseMemory(PreparedEmbeddings(embedder), self._vectors, self._desk.history)
        return self._opened

    @property
    def _vectors(self) -> Any:
        name, known = self._answering
        return self._collection(name, known["dimensions"])

    def _collection(self, name: str, dimensions: int) -> Any:
        if name not in self._open:
            self._open[name] = self._backend.open(name, dimensions)
        return self._open[name]

    @property
    def _answering(self) -> tuple[str, dict[str, Any]]:
        answering = self._desk.store.answering()
        if answering is None or (self._backend.is_local and answering[0] != self._wanted.name and self._none_missing()):
            self._answer_with_wanted()
            answering = self._desk.store.answering()
        assert answering is not None
        return answering

    def _none_missing(self) -> bool:
        return self._desk.store.without(self._wanted.name, limit=1)[1] == 0

    def _answer_with_wanted(self) -> None:
        chosen = self._desk.embedder
        known = {"kind": chosen.kind, "model": chosen.model, "url": chosen.url, "dimensions": self._wanted.dimensions}
        self._desk.store.answer_with(self._wanted.name, known)

    def _collections(self) -> tuple[Any, ...]:
        """On a server: the vectors that answer, and during a change of embedder those that will."""
        if self._answering[0] == self._wanted.name:
            return (self._vectors,)
        return self._vectors, self._collection(self._wanted.name, self._wanted.dimensions)

    # ----------------------------------------------------------------------------------------------------------- steps

    def _due(self, changes: Sequence[MemoryChange]) -> list[MemoryChange]:
        """Without the changes of memories that are changed several times and have come to the end of it already."""
        last = {change.memory.id: change for change in changes}
        repeated = {change.memory.id for change in changes if last[change.memory.id] is not change}
        settled = {one for one in repeated if self.get(one) == _outcome(last[one])}
        return [change for change in changes if change.memory.id not in settled]

    def _storable(self, memory: Memory) -> Memory:
        """With words that the store can hold: PostgreSQL's JSON has no NUL."""
        text = encodable(memory.text)
        return replace(memory, text=text if self._backend.is_local else text.replace("\0", "\ufffd"))

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except self._backend.faults as error:
            raise self._backend.unavailable(error) from error


def _outcome(change: MemoryChange) -> Memory | None:
    return None if change.action == "delete" else change.memory


def _carry_out(memory: HouseMemory, change: MemoryChange) -> None:
    wanted = change.memory
    there = memory.recall(wanted.id)
    if change.action == "delete":
        if there is not None:
            memory.drop(wanted.id)
    elif there is None:
        memory.remember(wanted)
    elif change.action == "update" and there != wanted:
        if there.scope == wanted.scope:
            memory.change(wanted)
        else:
            # Mem0 moves nothing between scopes.
            memory.drop(wanted.id)
            memory.remember(wanted)


def _rows(vectors: Any, filters: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Payloads by id. Adapters wrap their list in one more, or not."""
    listed = vectors.list(filters=filters, top_k=_EVERY)
    rows = listed[0] if listed and isinstance(listed[0], list) else listed
    return {str(row.id): row.payload for row in rows}
