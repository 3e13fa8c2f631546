"""The client of semantic memory: implements `Memories` over a child process that runs Mem0, and reads memory.db
directly while another process writes.

- The child is started at first use, and again after it died (`assistant/service/child_process.py`). Every fault is a
  `MemoryUnavailable`.
- Memories stored in the data folder are read from there, even without the child.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any, TypeVar

from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore, HomeError, MemoryUnavailable, StoreError
from assistant.core.memories import Memory, MemoryChange, MemoryVersion
from assistant.mem0.codec import EmbedderSettings, memory_from_payload, version_from_row
from assistant.service.child_process import ChildFault, ChildProcess
from assistant.store.memory.vectors import MemoryVectors
from assistant.store.rows import dump_json, from_values

T = TypeVar("T")

MEMORY_DB_UNREADABLE = (
    "memory.db cannot be read: restart the assistant, which makes it again from the journal; if it is a "
    "folder, remove it first. The journal has everything."
)


def unreadable_reason(error: HomeError | StoreError) -> str:
    """Describe why memory.db cannot be used, and what to do."""
    return MEMORY_DB_UNREADABLE if isinstance(error, CorruptStore) else f"{error} The journal keeps everything."


class LocalMemoryReader:
    """The reading half of `Memories`, over memory.db. Every async method raises `MemoryUnavailable`."""

    def __init__(self, store: MemoryVectors) -> None:
        self._store = store
        self._lock = threading.Lock()

    async def get(self, memory_id: str) -> Memory | None:
        def read() -> Memory | None:
            row = self._store.get(memory_id)
            return None if row is None else memory_from_payload(*row)

        return await self._read(read)

    async def get_many(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        return await self._read(lambda: self._find(memory_ids))

    async def all(self, scope: str | None = None) -> list[Memory]:
        return await self._read(lambda: [memory_from_payload(*row) for row in self._store.list_memories(scope)])

    async def history(self, memory_id: str) -> list[MemoryVersion]:
        return await self._read(lambda: [version_from_row(row) for row in self._store.history_of_memory(memory_id)])

    async def _read(self, query: Callable[[], T]) -> T:
        def read() -> T:
            with self._lock:
                try:
                    return _checked(query)
                except StoreError as error:
                    raise MemoryUnavailable(unreadable_reason(error)) from error

        return await asyncio.to_thread(read)

    def read_locally(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        """Return those that exist and are readable, by id, at once; callers that need memories report the others."""
        with self._lock:
            try:
                return self._find(memory_ids)
            except (StoreError, ValueError, KeyError, TypeError):
                return {}

    def _find(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        payloads = self._store.get_many(memory_ids)
        return {memory_id: memory_from_payload(memory_id, payloads[memory_id]) for memory_id in payloads}

    def unavailable_reason(self) -> str:
        """Return why nothing can be read; "" if it can."""
        with self._lock:
            try:
                self._store.active_embedder()
            except StoreError as error:
                return unreadable_reason(error)
        return ""


_NOTHING_LOST = "The journal keeps everything; the next sleep tries again"


class MemoryProcess(ChildProcess):
    """The child process that runs Mem0. Every fault is a `MemoryUnavailable`."""

    def encode(self, message: Mapping[str, Any]) -> str:
        return dump_json(message)

    def failure(self, fault: ChildFault, detail: str) -> MemoryUnavailable:
        """As in the base class: `MemoryUnavailable`, whatever went wrong."""
        if fault == "refused":
            return MemoryUnavailable(detail)
        if fault == "silent":
            return MemoryUnavailable(
                f"The memory store did not answer within {self.seconds:g} s and was stopped. {_NOTHING_LOST}."
            )
        if fault == "nonsense":
            return MemoryUnavailable(f"The memory store answered with nonsense and was stopped. {_NOTHING_LOST}.")
        if MEMORY_DB_UNREADABLE in self.last_output:
            return MemoryUnavailable(MEMORY_DB_UNREADABLE)
        why = f" ({detail})" if detail else ""
        return MemoryUnavailable(f"The memory store's process ended{why}. {_NOTHING_LOST}.")


_CHANGES_A_STEP = 200
_CHARACTERS_A_STEP = 4_000_000


@dataclass(frozen=True, slots=True)
class MemoryStoreSettings:
    """The settings `[memory]`: where memories are stored and which embedder is used."""

    home: Path
    store: str = "local"
    store_url: str = field(default="", repr=False)
    embedder: EmbedderSettings = field(default_factory=EmbedderSettings)
    seconds: float = 60.0  # for one step


class Mem0Client:
    """`command` starts the child (`assistant.wire.memory_worker_main`); `local` reads memory.db if the store is
    "local", and `fault` says why it is None. `spending` is the child's budget for an embedder, sent in its first
    line."""

    def __init__(
        self,
        settings: MemoryStoreSettings,
        command: Sequence[str],
        local: LocalMemoryReader | None = None,
        fault: str = "",
        spending: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self._fault = fault
        first = asdict(settings) | {"home": str(settings.home)}
        self._local = local
        self.child = MemoryProcess(command, first, seconds=settings.seconds, first_line_extra=spending)

    async def apply(self, changes: Sequence[MemoryChange]) -> None:
        for step in _split_into_steps(changes):
            # The previous content is only needed for undo, which is not done here.
            await self.child.ask("apply", changes=[replace(change, before=None) for change in step])

    async def get(self, memory_id: str) -> Memory | None:
        if self._local is not None:
            return await self._local.get(memory_id)
        memory = await self.child.ask("get", memory_id=memory_id)
        return None if memory is None else _checked(lambda: from_values(Memory, memory))

    async def get_many(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        if self._local is not None:
            return await self._local.get_many(memory_ids)
        memories = await self.child.ask("get_many", memory_ids=list(memory_ids)) if memory_ids else {}
        return _checked(lambda: from_values(dict[str, Memory], memories))

    async def all(self, scope: str | None = None) -> list[Memory]:
        if self._local is not None:
            return await self._local.all(scope)
        memories = await self.child.ask("all", scope=scope)
        return _checked(lambda: from_values(list[Memory], memories))

    def read_locally(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        """Return those that can be read without the child, by id."""
        return {} if self._local is None or not memory_ids else self._local.read_locally(memory_ids)

    def unavailable_reason(self) -> str:
        """Return why memories cannot be read without the child; "" if they can."""
        return self._fault if self._local is None else self._local.unavailable_reason()

    async def nearest(self, texts: Sequence[str], scope: str, *, limit: int = 5) -> list[list[tuple[Memory, float]]]:
        if not texts:
            return []
        rows = await self.child.ask("nearest", texts=list(texts), scope=scope, limit=limit)
        return _checked(lambda: from_values(list[list[tuple[Memory, float]]], rows))

    async def history(self, memory_id: str) -> list[MemoryVersion]:
        if self._local is not None:
            return await self._local.history(memory_id)
        versions = await self.child.ask("history", memory_id=memory_id)
        return _checked(lambda: from_values(list[MemoryVersion], versions))

    async def erase(self, memory_ids: Sequence[str]) -> None:
        if memory_ids:
            await self.child.ask("erase", memory_ids=list(memory_ids))

    async def reembed(self, limit: int = 500) -> int:
        """Embed at most `limit` memories with a newly chosen embedder; return how many are left. The former one answers
        until then. Raises `MemoryUnavailable`."""
        remaining = await self.child.ask("reembed", limit=limit)
        return _checked(lambda: from_values(int, remaining))

    async def aclose(self) -> None:
        await self.child.aclose()


def _split_into_steps(changes: Sequence[MemoryChange]) -> list[list[MemoryChange]]:
    """Yield changes in order, in steps that each fit into one timeout."""
    steps: list[list[MemoryChange]] = []
    characters = 0
    for change in changes:
        characters += len(change.memory.text)
        if not steps or len(steps[-1]) >= _CHANGES_A_STEP or characters > _CHARACTERS_A_STEP:
            steps.append([])
            characters = len(change.memory.text)
        steps[-1].append(change)
    return steps


def _checked(read: Callable[[], T]) -> T:
    """Check a result. Raises `MemoryUnavailable` if it has the wrong type."""
    try:
        return read()
    except (ValueError, KeyError, TypeError) as error:
        raise MemoryUnavailable(
            "The memory store has something that is no memory. The journal keeps everything that memories are made of."
        ) from error
