"""The child process of semantic memory: `Memories` over Mem0, one JSON request per line of its input, one JSON answer
per line of its output; and re-embedding with another embedder in small steps, while the former vectors answer.

- Changes are idempotent. In memory.db those of one step are one transaction; on a server each is separate, and the
  history may lack the one interrupted by a crash.
- The active embedder is stored. After another one is configured, the previous one continues to answer and embed until
  `reembed` has processed everything.
- Erasing in memory.db needs no embedder.
- The output only has answers; nothing is logged, since Mem0 logs its data. An unhandled error ends the process with one
  line that quotes no memory: the client starts another.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import Any, BinaryIO

from assistant.core.errors import AssistantError
from assistant.core.memories import Memory, MemoryChange, MemoryVersion
from assistant.mem0.adapter import BatchedEmbeddings, Mem0Adapter, VectorBackend
from assistant.mem0.codec import EmbedderSettings, memory_from_payload, version_from_row
from assistant.mem0.vectors import Embedder, vector_to_bytes
from assistant.store.memory.vectors import MemoryVectors
from assistant.store.rows import dump_json, from_values


def reembed_local(store: MemoryVectors, embedder: Embedder, limit: int) -> int:
    """Embed at most `limit` memories with `embedder` in addition to the active one; return how many are left."""
    due, missing = store.memories_without_vector(embedder.name, limit=limit)
    vectors = embedder.embed([text for _, text in due])
    rows = [(memory_id, text, vector_to_bytes(row)) for (memory_id, text), row in zip(due, vectors, strict=True)]
    store.add_vectors(embedder.name, rows)
    return missing - len(due)


def reembed_server(old: Any, new: Any, embedder: Embedder, limit: int) -> int:
    """Copy at most `limit` memories from collection `old` that are missing or outdated in `new`; return how many are
    left. Memories no longer in `old` are deleted."""
    source, target = _payloads(old), _payloads(new)
    for memory_id in target.keys() - source.keys():
        new.delete(memory_id)
    due = [memory_id for memory_id in sorted(source) if target.get(memory_id) != source[memory_id]]
    chosen = due[:limit]
    vectors = embedder.embed([str(source[memory_id]["data"]) for memory_id in chosen]).tolist()
    for memory_id, vector in zip(chosen, vectors, strict=True):
        if memory_id in target:
            new.delete(memory_id)
        new.insert(vectors=[vector], payloads=[source[memory_id]], ids=[memory_id])
    return len(due) - len(chosen)


_NO_LIMIT = 10_000_000
"""More memories than there are: the stores' adapters insist on a limit."""


class Mem0Service:
    """Every method raises `MemoryUnavailable` or `StoreError`."""

    def __init__(
        self,
        store: MemoryVectors,
        backend: VectorBackend,
        embedder: EmbedderSettings,
        open_embedder: Callable[[EmbedderSettings], Embedder],
    ) -> None:
        """`store` is memory.db, which has the history and the name of the active embedder, whatever the backend."""
        self._store = store
        self._backend = backend
        self._chosen = embedder
        self._open_embedder = open_embedder
        self._collections: dict[str, Any] = {}
        self._adapter: Mem0Adapter | None = None

    # -------------------------------------------------------------------------------------------------------- changes

    def apply(self, changes: Sequence[MemoryChange]) -> None:
        with self._faults():
            memory = self._memory
            due = self._last_changes([replace(change, memory=self._storable(change.memory)) for change in changes])
            memory.embedding_model.prepare([change.memory.text for change in due if change.action != "delete"])
            # A server commits writes one by one, and so does our history of them.
            together = self._store.writing() if self._backend.is_local else nullcontext()
            with together:
                for change in due:
                    _apply_change(memory, change)

    def erase(self, memory_ids: Sequence[str]) -> None:
        """Delete texts, vectors and history from memory.db and, if the store is a server, from its rows."""
        with self._faults():
            if not self._backend.is_local:
                for vectors in self._server_collections():
                    for memory_id in memory_ids:
                        vectors.delete(memory_id)
            self._store.erase(memory_ids)

    def reembed(self, limit: int) -> int:
        """Embed at most `limit` memories with the configured embedder; return how many are left. At 0 it becomes
        active."""
        with self._faults():
            if self._backend.is_local:
                remaining = reembed_local(self._store, self._configured, limit)
                if not remaining and self._active[0] != self._configured.name:
                    self._activate_wanted()
                return remaining
            old, *new = self._server_collections()
            if not new:
                return 0
            remaining = reembed_server(old, new[0], self._configured, limit)
            if not remaining:
                self._activate_wanted()
                old.delete_col()
            return remaining

    # -------------------------------------------------------------------------------------------------------- reading

    def get(self, memory_id: str) -> Memory | None:
        with self._faults():
            hit = self._vectors.get(memory_id)
            return None if hit is None else memory_from_payload(memory_id, hit.payload)

    def get_many(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        found = ((memory_id, self.get(memory_id)) for memory_id in memory_ids)
        return {memory_id: memory for memory_id, memory in found if memory is not None}

    def all(self, scope: str | None) -> list[Memory]:
        with self._faults():
            payloads = _payloads(self._vectors, None if scope is None else {"user_id": scope})
        memories = [memory_from_payload(memory_id, payload) for memory_id, payload in payloads.items()]
        return sorted(memories, key=lambda memory: (memory.said_at, memory.id))

    def nearest(self, texts: Sequence[str], scope: str, limit: int) -> list[list[tuple[Memory, float]]]:
        with self._faults():
            memory = self._memory
            vectors = memory.embedding_model.embedder.embed(texts).tolist()
            hits = memory.vector_store.search_batch([""] * len(texts), vectors, top_k=limit, filters={"user_id": scope})
            return [[(memory_from_payload(str(hit.id), hit.payload), float(hit.score)) for hit in row] for row in hits]

    def history(self, memory_id: str) -> list[MemoryVersion]:
        return [version_from_row(row) for row in self._store.history_of_memory(memory_id)]

    # ------------------------------------------------------------------------------------------------------- embedders

    @cached_property
    def _configured(self) -> Embedder:
        return self._open_embedder(self._chosen)

    @property
    def _memory(self) -> Mem0Adapter:
        """Return Mem0 with the active embedder."""
        name, settings = self._active
        if self._adapter is None or self._adapter.embedding_model.embedder.name != name:
            embedder = self._configured
            if embedder.name != name:
                previous = EmbedderSettings(settings["kind"], settings["model"], settings["url"], self._chosen.key)
                embedder = self._open_embedder(previous)
            self._adapter = Mem0Adapter(BatchedEmbeddings(embedder), self._vectors, self._store)
        return self._adapter

    @property
    def _vectors(self) -> Any:
        name, settings = self._active
        return self._collection(name, settings["dimensions"])

    def _collection(self, name: str, dimensions: int) -> Any:
        if name not in self._collections:
            self._collections[name] = self._backend.open(name, dimensions)
        return self._collections[name]

    def _server_collections(self) -> tuple[Any, ...]:
        """Yield the active vectors, and during a change of embedder the new ones."""
        if self._active[0] == self._configured.name:
            return (self._vectors,)
        return self._vectors, self._collection(self._configured.name, self._configured.dimensions)

    @property
    def _active(self) -> tuple[str, dict[str, Any]]:
        """Return the active embedder: its name, and its settings."""
        active = self._store.active_embedder()
        if active is None or (self._backend.is_local and active[0] != self._configured.name and self._none_missing()):
            self._activate_wanted()
            active = self._store.active_embedder()
        assert active is not None
        return active

    def _none_missing(self) -> bool:
        return self._store.memories_without_vector(self._configured.name, limit=1)[1] == 0

    def _activate_wanted(self) -> None:
        chosen = self._chosen
        settings = {"kind": chosen.kind, "model": chosen.model, "url": chosen.url}
        self._store.activate_embedder(self._configured.name, {**settings, "dimensions": self._configured.dimensions})

    # ----------------------------------------------------------------------------------------------------------- steps

    def _last_changes(self, changes: Sequence[MemoryChange]) -> list[MemoryChange]:
        """Drop changes of memories that are changed several times and whose last change is already applied."""
        last = {change.memory.id: change for change in changes}
        repeated = {change.memory.id for change in changes if last[change.memory.id] is not change}
        done = {memory_id for memory_id in repeated if self.get(memory_id) == _final_memory(last[memory_id])}
        return [change for change in changes if change.memory.id not in done]

    def _storable(self, memory: Memory) -> Memory:
        """Return a memory with storable text: PostgreSQL's JSON has no NUL."""
        return memory if self._backend.is_local else replace(memory, text=memory.text.replace("\0", "\ufffd"))

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except self._backend.faults as error:
            raise self._backend.unavailable_error(error) from error


def _final_memory(change: MemoryChange) -> Memory | None:
    return None if change.action == "delete" else change.memory


def _apply_change(memory: Mem0Adapter, change: MemoryChange) -> None:
    new = change.memory
    stored = memory.recall(new.id)
    if change.action == "delete":
        if stored is not None:
            memory.drop(new.id)
    elif stored is None:
        memory.remember(new)
    elif change.action == "update" and stored != new:
        if stored.scope == new.scope:
            memory.change(new)
        else:
            # Mem0 moves nothing between scopes.
            memory.drop(new.id)
            memory.remember(new)


def _payloads(vectors: Any, filters: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Return payloads by id. Some adapters wrap their list in another one."""
    listed = vectors.list(filters=filters, top_k=_NO_LIMIT)
    hits = listed[0] if listed and isinstance(listed[0], list) else listed
    return {str(hit.id): dict(hit.payload) for hit in hits}


_MAX_LINE_LENGTH = 200


def serve(service: Mem0Service, questions: Iterable[bytes], answers: BinaryIO) -> None:
    """Answer until there are no more questions."""
    logging.disable(logging.CRITICAL)
    sys.excepthook = _in_one_line
    for line in questions:
        question = json.loads(line)
        answer: dict[str, Any] = {"id": question.pop("id")}
        step = _STEPS[question.pop("step")]
        try:
            answer["result"] = step(service, **question)
        except AssistantError as error:
            answer["error"] = str(error)
        answers.write(dump_json(answer).encode() + b"\n")
        answers.flush()


def _apply(service: Mem0Service, changes: Any) -> None:
    service.apply(from_values(list[MemoryChange], changes))


_STEPS: dict[str, Callable[..., Any]] = {
    "apply": _apply,
    "get": Mem0Service.get,
    "get_many": Mem0Service.get_many,
    "all": Mem0Service.all,
    "nearest": Mem0Service.nearest,
    "history": Mem0Service.history,
    "erase": Mem0Service.erase,
    "reembed": Mem0Service.reembed,
}


def _in_one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Describe a fatal error on one line, without its frames and further lines, which may quote a memory."""
    line = (str(error).splitlines() or [""])[0]
    place = trace
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" in {place.tb_frame.f_code.co_name}" if place is not None else ""
    sys.stderr.write(f"{kind.__name__}{where}: {line}"[:_MAX_LINE_LENGTH] + "\n")
