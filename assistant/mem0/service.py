"""The child process of semantic memory: `Memories` over Mem0, one question a line on its input, one answer a line on
its output, both JSON; and memories embedded again by another embedder, some at a time, while the former vectors answer.

What always holds:
- Changes carried out twice are as carried out once. In memory.db those of one step are one transaction; on a server
  each is one, and the history may lack the one that a crash cut off.
- The embedder that answers is written down. While another one is asked for, the old one goes on answering and
  embedding, until `reembed` has gone through all.
- Forgetting in memory.db asks no embedder.
- The output carries answers and nothing else; nothing is logged, since Mem0 logs what it is given. What the service
  cannot handle ends the process with one line that quotes no memory: whoever asked starts another.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from mem0.vector_stores.base import VectorStoreBase  # type: ignore[import-untyped]

from assistant.core.errors import AssistantError
from assistant.core.memories import Memory, MemoryChange, MemoryVersion
from assistant.mem0.adapter import BatchedEmbeddings, Mem0Adapter
from assistant.mem0.backends import VectorBackend
from assistant.mem0.codec import (
    EmbedderSettings,
    MemoryHistoryTable,
    MemoryTable,
    MemoryTransactions,
    change_from_json,
    memory_from_payload,
    memory_to_json,
    version_from_row,
    version_to_json,
)
from assistant.mem0.embedders import MeterFor, no_meter, open_embedder
from assistant.mem0.vectors import Embedder, make_encodable, vector_to_bytes

PayloadsById = Mapping[str, Mapping[str, Any]]


def reembed_local(store: MemoryTable, embedder: Embedder, limit: int) -> int:
    """At most `limit` more memories get a vector by `wanted` beside the one that answers; how many are left."""
    due, missing = store.memories_without_vector(embedder.name, limit=limit)
    made = embedder.embed([text for _, text in due])
    store.add_vectors(
        embedder.name,
        [(memory_id, text, vector_to_bytes(row)) for (memory_id, text), row in zip(due, made, strict=True)],
    )
    return missing - len(due)


def reembed_server(old: PayloadsById, new: VectorStoreBase, have: PayloadsById, embedder: Embedder, limit: int) -> int:
    """Copy at most `limit` memories of `old` that `new` lacks, or has as they were before; how many are left. `have`
    is what `new` has; what `old` has no longer goes."""
    for memory_id in have.keys() - old.keys():
        new.delete(memory_id)
    due = [memory_id for memory_id in sorted(old) if have.get(memory_id) != old[memory_id]]
    chosen = due[:limit]
    made = embedder.embed([str(old[memory_id]["data"]) for memory_id in chosen]).tolist()
    for memory_id, vector in zip(chosen, made, strict=True):
        if memory_id in have:
            new.delete(memory_id)
        new.insert(vectors=[vector], payloads=[dict(old[memory_id])], ids=[memory_id])
    return len(due) - len(chosen)


_NO_LIMIT = 10_000_000
"""More memories than there are: the stores' adapters insist on a limit."""


@dataclass(frozen=True, slots=True)
class Mem0ServiceDeps:
    """What the desk stands on. `seconds` bounds a request to an embedder's provider, and `meters` counts each."""

    home: Path
    embedder: EmbedderSettings
    backend: VectorBackend
    store: MemoryTable
    history: MemoryHistoryTable
    transactions: MemoryTransactions
    seconds: float = 30.0
    meter_for: MeterFor = no_meter


class Mem0Service:
    """Every method raises `MemoryUnavailable` or `StoreError`."""

    def __init__(self, deps: Mem0ServiceDeps) -> None:
        self._desk = deps
        self._backend = deps.backend
        self._open: dict[str, Any] = {}
        self._opened: Mem0Adapter | None = None

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
                    _apply_change(memory, change)

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
            return None if found is None else memory_from_payload(memory_id, found.payload)

    def all(self, scope: str | None) -> list[Memory]:
        with self._faults():
            found = _rows(self._vectors, None if scope is None else {"user_id": scope})
        memories = [memory_from_payload(memory_id, payload) for memory_id, payload in found.items()]
        return sorted(memories, key=lambda memory: (memory.said_at, memory.id))

    def nearest(self, texts: Sequence[str], scope: str, limit: int) -> list[list[tuple[Memory, float]]]:
        with self._faults():
            memory = self._memory
            asked = memory.embedding_model.embedder.embed(texts).tolist()
            hits = memory.vector_store.search_batch([""] * len(texts), asked, top_k=limit, filters={"user_id": scope})
            return [[(memory_from_payload(str(hit.id), hit.payload), float(hit.score)) for hit in row] for row in hits]

    def history(self, memory_id: str) -> list[MemoryVersion]:
        return [version_from_row(row) for row in self._desk.history.history_of_memory(memory_id)]

    # ------------------------------------------------------------------------------------------------------- embedders

    @cached_property
    def _wanted(self) -> Embedder:
        return self._embedder(self._desk.embedder)

    def _embedder(self, settings: EmbedderSettings) -> Embedder:
        return open_embedder(settings, self._desk.home, seconds=self._desk.seconds, meter_for=self._desk.meter_for)

    @property
    def _memory(self) -> Mem0Adapter:
        name, known = self._answering
        if self._opened is None or self._opened.embedding_model.embedder.name != name:
            embedder = self._wanted
            if embedder.name != name:
                former = EmbedderSettings(known["kind"], known["model"], known["url"], self._desk.embedder.key)
                embedder = self._embedder(former)
            self._opened = Mem0Adapter(BatchedEmbeddings(embedder), self._vectors, self._desk.history)
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
        answering = self._desk.store.active_embedder()
        if answering is None or (self._backend.is_local and answering[0] != self._wanted.name and self._none_missing()):
            self._answer_with_wanted()
            answering = self._desk.store.active_embedder()
        assert answering is not None
        return answering

    def _none_missing(self) -> bool:
        return self._desk.store.memories_without_vector(self._wanted.name, limit=1)[1] == 0

    def _answer_with_wanted(self) -> None:
        chosen = self._desk.embedder
        known = {"kind": chosen.kind, "model": chosen.model, "url": chosen.url, "dimensions": self._wanted.dimensions}
        self._desk.store.activate_embedder(self._wanted.name, known)

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
        settled = {one for one in repeated if self.get(one) == _final_memory(last[one])}
        return [change for change in changes if change.memory.id not in settled]

    def _storable(self, memory: Memory) -> Memory:
        """With words that the store can hold: PostgreSQL's JSON has no NUL."""
        text = make_encodable(memory.text)
        return replace(memory, text=text if self._backend.is_local else text.replace("\0", "\ufffd"))

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except self._backend.faults as error:
            raise self._backend.unavailable_error(error) from error


def _final_memory(change: MemoryChange) -> Memory | None:
    return None if change.action == "delete" else change.memory


def _apply_change(memory: Mem0Adapter, change: MemoryChange) -> None:
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
    listed = vectors.list(filters=filters, top_k=_NO_LIMIT)
    rows = listed[0] if listed and isinstance(listed[0], list) else listed
    return {str(row.id): row.payload for row in rows}


_MAX_LINE_LENGTH = 200


def serve(service: Mem0Service, questions: Iterable[bytes], answers: BinaryIO) -> None:
    """Answer until there are no more questions."""
    logging.disable(logging.CRITICAL)
    sys.excepthook = _in_one_line
    for line in questions:
        question = json.loads(line)
        answer: dict[str, Any] = {"id": question["id"]}
        try:
            answer["result"] = _HANDLERS[question["step"]](service, question)
        except AssistantError as error:
            answer["error"] = str(error)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _apply(desk: Mem0Service, question: Mapping[str, Any]) -> None:
    desk.apply([change_from_json(change) for change in question["changes"]])


def _get(desk: Mem0Service, question: Mapping[str, Any]) -> Any:
    found = desk.get(question["memory_id"])
    return None if found is None else memory_to_json(found)


def _all(desk: Mem0Service, question: Mapping[str, Any]) -> Any:
    return [memory_to_json(memory) for memory in desk.all(question["scope"])]


def _nearest(desk: Mem0Service, question: Mapping[str, Any]) -> Any:
    found = desk.nearest(question["texts"], question["scope"], question["limit"])
    return [[[memory_to_json(memory), cosine] for memory, cosine in row] for row in found]


def _history(desk: Mem0Service, question: Mapping[str, Any]) -> Any:
    return [version_to_json(version) for version in desk.history(question["memory_id"])]


def _erase(desk: Mem0Service, question: Mapping[str, Any]) -> None:
    desk.erase(question["memory_ids"])


def _reembed(desk: Mem0Service, question: Mapping[str, Any]) -> int:
    return desk.reembed(question["limit"])


_HANDLERS: dict[str, Callable[[Mem0Service, Mapping[str, Any]], Any]] = {
    "apply": _apply,
    "get": _get,
    "all": _all,
    "nearest": _nearest,
    "history": _history,
    "erase": _erase,
    "reembed": _reembed,
}


def _in_one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What ended the process, without the frames, and without the further lines that may quote a memory."""
    said = (str(error).splitlines() or [""])[0]
    place = trace
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" in {place.tb_frame.f_code.co_name}" if place is not None else ""
    sys.stderr.write(f"{kind.__name__}{where}: {said}"[:_MAX_LINE_LENGTH] + "\n")
