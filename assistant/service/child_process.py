"""Runs a child process that answers requests, one line of JSON each.

It handles one request at a time. It is started at first use, killed if it does not answer in time, and started again
after it died; after an answer that does not fit its request it is no longer trusted and ends. Configuration is passed
on standard input, never on the command line, where others could read it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from abc import ABC, abstractmethod
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from assistant.core.errors import AssistantError
from assistant.core.processes import end_process

ChildFault = Literal["silent", "nonsense", "ended", "refused"]
"""It did not answer in time; what it answered is none; its process ended; it said why it does not do it."""

MAX_ANSWER_BYTES = 1 << 28
_OUTPUT_LINES_KEPT = 20
_SECONDS_TO_END = 5.0


class ChildProcess(ABC):
    """`command` is run with `first_line` and, at each start, the result of `first_line_extra` in it. `seconds` limits
    each step, the first one including the start. `last_output` are the last lines the child wrote besides its answers.
    With `own_group`, all processes it started end with it."""

    def __init__(
        self,
        command: Sequence[str],
        first_line: Mapping[str, Any],
        *,
        seconds: float,
        first_line_extra: Callable[[], Mapping[str, Any]] = dict,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        own_group: bool = False,
    ) -> None:
        self._command = tuple(command)
        self._first = first_line
        self._now_also = first_line_extra
        self.seconds = seconds
        self._max_answer_bytes = max_answer_bytes
        self._own_group = own_group
        self._process: Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self.last_output: deque[str] = deque(maxlen=_OUTPUT_LINES_KEPT)
        self._asked = 0
        self._turn = asyncio.Lock()

    @abstractmethod
    def failure(self, fault: ChildFault, detail: str) -> AssistantError:
        """Return the error to raise. `detail`: the child's own message for "refused"; otherwise its last output, or
        ""."""

    def encode(self, message: Mapping[str, Any]) -> str:
        return json.dumps(message, ensure_ascii=False)

    @property
    def pid(self) -> int | None:
        """Return the id of the running process."""
        return None if self._process is None or self._process.returncode is not None else self._process.pid

    async def ask(self, step: str, **question: Any) -> Any:
        """Return the child's answer. Raises the error made by `failure` if there is none, or it is an error."""
        async with self._turn:
            self._asked += 1
            line = self.encode({"id": self._asked, "step": step, **question}).encode() + b"\n"
            try:
                async with asyncio.timeout(self.seconds):
                    answer = await self._exchanged(line)
            except TimeoutError as error:
                await self._kill()
                raise self.failure("silent", "") from error
            except (OSError, EOFError, ValueError) as error:
                await self._kill()
                last = next((line for line in reversed(self.last_output) if line), "")
                raise self.failure("nonsense" if isinstance(error, ValueError) else "ended", last) from error
            except BaseException:
                # The caller is gone; the answer would be taken for that of the next request.
                await self._kill()
                raise
        if "error" in answer:
            raise self.failure("refused", str(answer["error"]))
        return answer.get("result")

    async def aclose(self) -> None:
        """End the child: first by closing its input, then by killing it."""
        async with self._turn:
            process = self._process
            if process is not None and process.stdin is not None and process.returncode is None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), _SECONDS_TO_END)
            await self._kill()

    async def _exchanged(self, line: bytes) -> dict[str, Any]:
        """Raises `OSError` or `EOFError` if the child died, `ValueError` for an invalid answer."""
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
        """Start a process with its three streams piped."""
        return await asyncio.create_subprocess_exec(
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=self._max_answer_bytes,
            start_new_session=self._own_group,
        )

    async def _listen(self, process: Process) -> None:
        """Keep the last output lines of the child, which show why it died."""
        assert process.stderr is not None
        with contextlib.suppress(ValueError):
            while line := await process.stderr.readline():
                self.last_output.append(line.decode(errors="replace").strip())

    async def _kill(self) -> None:
        """Kill the child if it still runs, and read its output to the end."""
        process, listening = self._process, self._listening
        self._process = self._listening = None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            if self._own_group:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        try:
            if listening is not None:
                # Processes the child started may keep the pipe open.
                await asyncio.wait({listening}, timeout=_SECONDS_TO_END)
                listening.cancel()
        finally:
            await end_process(process)
