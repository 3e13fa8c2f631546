"""Memories read straight from memory.db, without Mem0: what the daemon does, at any moment, beside whoever writes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from assistant.core.errors import CorruptStore, HomeError, MemoryUnavailable, StoreError
from assistant.core.memories import Memory, MemoryVersion
from assistant.mem0 import memory_form
from assistant.mem0.memory_store import Found, StoredHistory, StoredMemories

UNREADABLE = (
    "memory.db cannot be read: stop the assistant, move memory.db and what lies beside it (memory.db-*) away, and run "
    "`assistant memory rebuild`; the journal has everything."
)


def told(error: HomeError | StoreError) -> str:
    """Why memory.db does not serve, and what to do."""
    return UNREADABLE if isinstance(error, CorruptStore | HomeError) else f"{error} The journal keeps everything."


class LocalMemories:
    """The reading half of `sleep_ports.Memories`. Every method raises `MemoryUnavailable`."""

    def __init__(self, store: StoredMemories, history: StoredHistory) -> None:
        self._store = store
        self._history = history
        self._one_at_a_time = threading.Lock()

    async def get(self, memory_id: str) -> Memory | None:
        return await asyncio.to_thread(self._get, memory_id)

    async def all(self, scope: str | None = None) -> list[Memory]:
        return await asyncio.to_thread(self._all, scope)

    async def history(self, memory_id: str) -> list[MemoryVersion]:
        return await asyncio.to_thread(self._versions, memory_id)

    def at_hand(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        """By id, those that are there and can be read, at once; that the others cannot is told of where memories are
        what is asked for."""
        with self._one_at_a_time:
            try:
                found = self._store.several(memory_ids)
                return {one: memory_form.from_payload(one, payload) for one, payload in found.items()}
            except (StoreError, ValueError, KeyError, TypeError):
                return {}

    def fault(self) -> str:
        """Why nothing can be read; "" where it can."""
        with self._one_at_a_time:
            try:
                self._store.answering()
            except StoreError as error:
                return told(error)
        return ""

    def _get(self, memory_id: str) -> Memory | None:
        with self._one_at_a_time:
            try:
                found = self._store.get(memory_id)
            except StoreError as error:
                raise _unavailable(error) from error
        return None if found is None else _memory(found)

    def _all(self, scope: str | None) -> list[Memory]:
        with self._one_at_a_time:
            try:
                found = self._store.all(scope)
            except StoreError as error:
                raise _unavailable(error) from error
        return [_memory(one) for one in found]

    def _versions(self, memory_id: str) -> list[MemoryVersion]:
        with self._one_at_a_time:
            try:
                rows = self._history.of(memory_id)
            except StoreError as error:
                raise _unavailable(error) from error
        try:
            return [memory_form.version(row) for row in rows]
        except (ValueError, KeyError, TypeError) as error:
            raise MemoryUnavailable(f"memory.db has a history under {memory_id} that is none.") from error


def _memory(found: Found) -> Memory:
    try:
        return memory_form.from_payload(*found)
    except (ValueError, KeyError, TypeError) as error:
        raise MemoryUnavailable(
            f"memory.db has something under {found[0]} that is no memory. The journal keeps everything "
            "that memories are made of."
        ) from error


def _unavailable(error: StoreError) -> MemoryUnavailable:
    return MemoryUnavailable(told(error))
