"""Semantic memory for the rest of the assistant: the port `Memories` over a child process that runs Mem0, and over
memory.db itself for reading, at any moment, while another process writes.

What always holds:
- The child answers one question at a time, a line each. It is started when it is first needed, stopped when it does not
  answer in time, started again after it died; after an answer that does not fit its question it is not trusted further
  and ends. Each fault is a `MemoryUnavailable`.
- Configuration goes in over the input, never on the command line, where others could read it.
- Where memories lie in the home they are read from there, child or not.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from assistant.core.errors import CorruptStore, HomeError, MemoryUnavailable, StoreError
from assistant.core.memories import Memory, MemoryChange, MemoryVersion
from assistant.mem0.codec import EmbedderSettings, memory_from_payload, version_from_row
from assistant.store.memory.vectors import MemoryVectors
from assistant.store.rows import dump_json, from_values

T = TypeVar("T")

MEMORY_DB_UNREADABLE = (
    "memory.db cannot be read: restart the assistant, which makes it again from the journal; if it is a "
    "folder, remove it first. The journal has everything."
)


def unreadable_reason(error: HomeError | StoreError) -> str:
    """Why memory.db does not serve, and what to do."""
    is_damaged = isinstance(error, CorruptStore | HomeError)
    return MEMORY_DB_UNREADABLE if is_damaged else f"{error} The journal keeps everything."


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
        """By id, those that are there and can be read, at once; that the others cannot is reported where memories are
        what is asked for."""
        with self._lock:
            try:
                payloads = self._store.get_many(memory_ids)
                return {memory_id: memory_from_payload(memory_id, payloads[memory_id]) for memory_id in payloads}
            except (StoreError, ValueError, KeyError, TypeError):
                return {}

    def unavailable_reason(self) -> str:
        """Why nothing can be read; "" where it can."""
        with self._lock:
            try:
                self._store.active_embedder()
            except StoreError as error:
                return unreadable_reason(error)
        return ""


_NOTHING_LOST = "The journal keeps everything; the next sleep tries again"
MAX_ANSWER_BYTES = 1 << 28
_OUTPUT_LINES_KEPT = 20
_SECONDS_TO_END = 5.0


class ChildProcess:
    """`command` is run with `first_line`, and in it what `first_line_extra` says at each start. `seconds` bounds each
    step, the first one its start too. `last_output` are the last lines that the child wrote beside its answers."""

    def __init__(
        self,
        command: Sequence[str],
        first_line: Mapping[str, Any],
        *,
        seconds: float,
        first_line_extra: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self._command = tuple(command)
        self._first = first_line
        self._now_also = first_line_extra
        self.seconds = seconds
        self._process: Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self.last_output: deque[str] = deque(maxlen=_OUTPUT_LINES_KEPT)
        self._asked = 0
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """Of the running process."""
        return None if self._process is None or self._process.returncode is not None else self._process.pid

    async def ask(self, step: str, **question: Any) -> Any:
        """The answer of the child. Raises `MemoryUnavailable` where there is none, or it is an error."""
        async with self._turn:
            self._asked += 1
            line = dump_json({"id": self._asked, "step": step, **question}).encode() + b"\n"
            try:
                async with asyncio.timeout(self.seconds):
                    answer = await self._exchanged(line)
            except TimeoutError as error:
                await self._kill()
                raise MemoryUnavailable(
                    f"The memory store did not answer within {self.seconds:g} s and was stopped. {_NOTHING_LOST}."
                ) from error
            except (OSError, EOFError, ValueError) as error:
                raise await self._ended(error) from error
            except BaseException:
                # Whoever asked has gone; the answer would be taken for that of the next question.
                await self._kill()
                raise
        if "error" in answer:
            raise MemoryUnavailable(str(answer["error"]))
        return answer.get("result")

    async def aclose(self) -> None:
        """End the child: politely, then not."""
        async with self._turn:
            process = self._process
            if process is not None and process.stdin is not None and process.returncode is None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), _SECONDS_TO_END)
            await self._kill()

    async def _exchanged(self, line: bytes) -> dict[str, Any]:
        """Raises `OSError` or `EOFError` where the child has died, `ValueError` for an answer that is none."""
        process = await self._running()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(line)
        await process.stdin.drain()
        answer_line = await process.stdout.readline()
        if not answer_line.endswith(b"\n"):
            raise EOFError
        answer = json.loads(answer_line)
        if not isinstance(answer, dict) or answer.get("id") != self._asked:
            raise ValueError("an answer to another question")
        return answer

    async def _running(self) -> Process:
        if self.pid is None:
            await self._kill()
            self._process = await self.start()
            self.last_output.clear()
            self._listening = asyncio.create_task(self._listen(self._process))
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({**self._first, **self._now_also()}).encode() + b"\n")
        assert self._process is not None
        return self._process

    async def start(self) -> Process:
        """A new process, its three streams piped."""
        return await asyncio.create_subprocess_exec(
            *self._command, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=MAX_ANSWER_BYTES
        )

    async def _listen(self, process: Process) -> None:
        """Keep the last lines that the child says beside its answers: they tell why it died."""
        assert process.stderr is not None
        with contextlib.suppress(ValueError):
            while line := await process.stderr.readline():
                self.last_output.append(line.decode(errors="replace").strip())

    async def _ended(self, error: Exception) -> MemoryUnavailable:
        await self._kill()
        if isinstance(error, ValueError):
            return MemoryUnavailable(f"The memory store answered with nonsense and was stopped. {_NOTHING_LOST}.")
        if MEMORY_DB_UNREADABLE in self.last_output:
            return MemoryUnavailable(MEMORY_DB_UNREADABLE)
        why = next((f" ({line})" for line in reversed(self.last_output) if line), "")
        return MemoryUnavailable(f"The memory store's process ended{why}. {_NOTHING_LOST}.")

    async def _kill(self) -> None:
        """End the child if it still runs, and take it down to the last line it said."""
        process, listening = self._process, self._listening
        self._process = self._listening = None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if listening is not None:
            # Something that the child started may hold its end of the pipe open.
            await asyncio.wait({listening}, timeout=_SECONDS_TO_END)
            listening.cancel()


_CHANGES_A_STEP = 200
_CHARACTERS_A_STEP = 4_000_000


@dataclass(frozen=True, slots=True)
class MemoryStoreSettings:
    """`[memory]`: where memories are stored and what embeds them."""

    home: Path
    store: str = "local"
    store_url: str = field(default="", repr=False)
    embedder: EmbedderSettings = field(default_factory=EmbedderSettings)
    seconds: float = 60.0  # for one step


class Mem0Client:
    """`command` starts the child (`assistant.wire.memory_worker_main`); `local` reads memory.db where the store is
    "local", and `fault` says why there is none. `spending` is what the child may spend on an
    embedder, as its first line says it."""

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
        self.child = ChildProcess(command, first, seconds=settings.seconds, first_line_extra=spending)

    async def apply(self, changes: Sequence[MemoryChange]) -> None:
        for step in _split_into_steps(changes):
            # What stood there before is for taking it back, which is not done here.
            await self.child.ask("apply", changes=[replace(change, before=None) for change in step])

    async def get(self, memory_id: str) -> Memory | None:
        if self._local is not None:
            return await self._local.get(memory_id)
        memory = await self.child.ask("get", memory_id=memory_id)
        return None if memory is None else _checked(lambda: from_values(Memory, memory))

    async def all(self, scope: str | None = None) -> list[Memory]:
        if self._local is not None:
            return await self._local.all(scope)
        memories = await self.child.ask("all", scope=scope)
        return _checked(lambda: from_values(list[Memory], memories))

    def read_locally(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        """Those that can be read without the child, by their ids."""
        return {} if self._local is None or not memory_ids else self._local.read_locally(memory_ids)

    def unavailable_reason(self) -> str:
        """Why memories of the home cannot be read without the child; "" where they can."""
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
        """Embed at most `limit` memories again where another embedder was chosen; how many are left. The former one
        answers until none is. Raises `MemoryUnavailable`."""
        remaining = await self.child.ask("reembed", limit=limit)
        return _checked(lambda: from_values(int, remaining))

    async def aclose(self) -> None:
        await self.child.aclose()


def _split_into_steps(changes: Sequence[MemoryChange]) -> list[list[MemoryChange]]:
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


def _checked(read: Callable[[], T]) -> T:
    """What it reads. Raises `MemoryUnavailable` where that is not what it should be."""
    try:
        return read()
    except (ValueError, KeyError, TypeError) as error:
        raise MemoryUnavailable(
            "The memory store has something that is no memory. The journal keeps everything that memories are made of."
        ) from error
