"""One child process that answers questions a line at a time, watched: started when it is first needed, killed when it
does not answer in time, started again after it died.

What always holds: one question at a time; after an answer that does not fit its question the process is not trusted
further and ends. Configuration goes in over the input, never on the command line, where others could read it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assistant.core.errors import MemoryUnavailable
from assistant.mem0.local_memories import UNREADABLE

_KEPT = "The journal keeps everything; the next sleep tries again"
LONGEST_ANSWER = 1 << 28
_LINES_KEPT = 20
_SECONDS_TO_END = 5.0


class ChildProcess:
    """`command` is run with `first` as its first line, and in it what `now_also` says at each start. `seconds` bounds
    each step, the first one its start too. `said` are the last lines that the child wrote beside its answers."""

    def __init__(
        self, command: Sequence[str], first: Mapping[str, Any], *, seconds: float,
        now_also: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:  # fmt: skip
        self._command = tuple(command)
        self._first = first
        self._now_also = now_also
        self.seconds = seconds
        self._process: Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self.said: deque[str] = deque(maxlen=_LINES_KEPT)
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
            line = json.dumps({"id": self._asked, "step": step, **question}).encode() + b"\n"
            try:
                async with asyncio.timeout(self.seconds):
                    answer = await self._exchanged(line)
            except TimeoutError as error:
                await self._kill()
                raise MemoryUnavailable(
                    f"The memory store did not answer within {self.seconds:g} s and was stopped. {_KEPT}."
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
        said = await process.stdout.readline()
        if not said.endswith(b"\n"):
            raise EOFError
        answer = json.loads(said)
        if not isinstance(answer, dict) or answer.get("id") != self._asked:
            raise ValueError("an answer to another question")
        return answer

    async def _running(self) -> Process:
        if self.pid is None:
            await self._kill()
            self._process = await self.start()
            self.said.clear()
            self._listening = asyncio.create_task(self._listen(self._process))
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({**self._first, **self._now_also()}).encode() + b"\n")
        assert self._process is not None
        return self._process

    async def start(self) -> Process:
        """A new process, its three streams piped."""
        return await asyncio.create_subprocess_exec(
            *self._command, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=LONGEST_ANSWER
        )

    async def _listen(self, process: Process) -> None:
        """Keep the last lines that the child says beside its answers: they tell why it died."""
        assert process.stderr is not None
        with contextlib.suppress(ValueError):
            while line := await process.stderr.readline():
                self.said.append(line.decode(errors="replace").strip())

    async def _ended(self, error: Exception) -> MemoryUnavailable:
        await self._kill()
        if isinstance(error, ValueError):
            return MemoryUnavailable(f"The memory store answered with nonsense and was stopped. {_KEPT}.")
        if UNREADABLE in self.said:
            return MemoryUnavailable(UNREADABLE)
        why = next((f" ({line})" for line in reversed(self.said) if line), "")
        return MemoryUnavailable(f"The memory store's process ended{why}. {_KEPT}.")

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
