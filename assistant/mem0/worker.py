"""Semantic memory for the rest of the house: Mem0 in a child process, `sleep_ports.Memories` over it.

What always holds: a step that hangs is stopped, a child that died is started again with the next step, and each fault
is a `MemoryUnavailable`. Where memories lie in the home they are read from there, child or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from assistant.core.errors import MemoryUnavailable
from assistant.core.memories import Memory, MemoryChange, MemoryVersion
from assistant.mem0 import memory_form
from assistant.mem0.child_process import ChildProcess
from assistant.mem0.embedder_settings import EmbedderSettings
from assistant.mem0.local_memories import LocalMemories

_CHANGES_A_STEP = 200
_CHARACTERS_A_STEP = 4_000_000


@dataclass(frozen=True, slots=True)
class MemoryStoreSettings:
    """`[memory]`: where memories lie and what embeds them. `seconds` bounds one step."""

    home: Path
    store: str = "local"
    store_url: str = field(default="", repr=False)
    embedder: EmbedderSettings = field(default_factory=EmbedderSettings)
    seconds: float = 60.0


class Mem0Memories:
    """`command` starts the child (`assistant.wire.mem0`); `local` reads memory.db where the store is "local", and
    `fault` says why there is none. `spending` is what the child may spend on an embedder, as its first line says it."""

    def __init__(
        self, settings: MemoryStoreSettings, command: Sequence[str], local: LocalMemories | None = None,
        fault: str = "", spending: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:  # fmt: skip
        self._fault = fault
        first = asdict(settings) | {"home": str(settings.home)}
        self._local = local
        self.child = ChildProcess(command, first, seconds=settings.seconds, now_also=spending)

    async def apply(self, changes: Sequence[MemoryChange]) -> None:
        for step in _steps(changes):
            await self.child.ask("apply", changes=[memory_form.change_to_json(change) for change in step])

    async def get(self, memory_id: str) -> Memory | None:
        if self._local is not None:
            return await self._local.get(memory_id)
        found = await self.child.ask("get", memory_id=memory_id)
        with _meaning_memories():
            return None if found is None else memory_form.from_json(found)

    async def all(self, scope: str | None = None) -> list[Memory]:
        if self._local is not None:
            return await self._local.all(scope)
        found = await self.child.ask("all", scope=scope)
        with _meaning_memories():
            return [memory_form.from_json(one) for one in found]

    def at_hand(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        """Those that can be read without the child, by their ids."""
        return {} if self._local is None or not memory_ids else self._local.at_hand(memory_ids)

    def fault(self) -> str:
        """Why memories of the home cannot be read without the child; "" where they can."""
        return self._fault if self._local is None else self._local.fault()

    async def nearest(self, texts: Sequence[str], scope: str, *, limit: int = 5) -> list[list[tuple[Memory, float]]]:
        if not texts:
            return []
        rows = await self.child.ask("nearest", texts=list(texts), scope=scope, limit=limit)
        with _meaning_memories():
            return [[(memory_form.from_json(one), float(cosine)) for one, cosine in row] for row in rows]

    async def history(self, memory_id: str) -> list[MemoryVersion]:
        if self._local is not None:
            return await self._local.history(memory_id)
        found = await self.child.ask("history", memory_id=memory_id)
        with _meaning_memories():
            return [memory_form.version_from_json(one) for one in found]

    async def erase(self, memory_ids: Sequence[str]) -> None:
        if memory_ids:
            await self.child.ask("erase", memory_ids=list(memory_ids))

    async def reembed(self, limit: int = 500) -> int:
        """Embed at most `limit` memories again where another embedder was chosen; how many are left. The former one
        answers until none is. Raises `MemoryUnavailable`."""
        left = await self.child.ask("reembed", limit=limit)
        with _meaning_memories():
            return int(left)

    async def aclose(self) -> None:
        await self.child.aclose()


def _steps(changes: Sequence[MemoryChange]) -> list[list[MemoryChange]]:
    """Changes in their order, in steps that each fit into the time of one."""
    steps: list[list[MemoryChange]] = []
    characters = 0
    for change in changes:
        characters += len(change.memory.text)
        if not steps or len(steps[-1]) >= _CHANGES_A_STEP or characters > _CHARACTERS_A_STEP:
            steps.append([])
            characters = len(change.memory.text)
        steps[-1].append(change)
    return steps


@contextmanager
def _meaning_memories() -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise MemoryUnavailable(
            "The memory store has something that is no memory. The journal keeps everything that memories are made of."
        ) from error
