"""The child process that talks to one MCP server, `python -m assistant.mcp.session_main`: its settings on the first
line of its input, then one request per line, and one answer per line on its output
(`assistant/service/child_process.py`).

Only this process loads the SDK. A server gets its own environment, not this one's. Messages of a server are limited to
`_MAX_MESSAGE`, and results to the configured size. When the input ends, this process and the server end.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import field
from typing import Any

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage, jsonrpc_message_adapter
from pydantic import ValidationError

from assistant.core.dataclass import dataclass
from assistant.core.network_errors import describe_connection_error
from assistant.core.processes import end_process
from assistant.mcp.questions import ServerRefused, call, list_offers

_MAX_MESSAGE = 16 * 1024 * 1024
_MAX_MEMORY = 2 * 1024 * 1024 * 1024
_MAX_NOISE = 1024 * 1024
_IDLE_SECONDS = 600.0
_SECONDS_TO_END = 1.0
_LONGEST_REASON = 300
_LAST_WORDS = 2_000


@dataclass
class _Server:
    """The configured server, and why it does not answer any more."""

    name: str
    command: str
    args: list[str]
    env: dict[str, str]
    url: str
    headers: dict[str, str]
    timeout_seconds: float
    result_bytes: int
    fault: str = field(default="")
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _last_words: bytes = field(default=b"")

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Client]:
        transport = self._stdio() if self.command else self._http()
        async with Client(transport, read_timeout_seconds=self.timeout_seconds, cache=None) as client:
            # The server is started without this memory limit, which programs that reserve much memory cannot run with.
            resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
            yield client

    @asynccontextmanager
    async def _stdio(self) -> AsyncIterator[Any]:
        """Connect over standard input and output. The SDK's own client buffers lines of any length, and starts the
        server in its own session, where it would survive if this process is killed."""
        process = await asyncio.create_subprocess_exec(
            self.command,
            *self.args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=get_default_environment() | self.env,
            limit=_MAX_MESSAGE,
        )
        received, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write_stream, to_send = anyio.create_memory_object_stream[SessionMessage](0)

        async def receive() -> None:
            assert process.stdout is not None
            async with received:
                with suppress(anyio.BrokenResourceError):
                    async for message in self._messages(process.stdout):
                        await received.send(SessionMessage(message))

        async def send() -> None:
            assert process.stdin is not None
            async with to_send:
                with suppress(OSError):
                    async for message in to_send:
                        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                        process.stdin.write(text.encode() + b"\n")
                        await process.stdin.drain()

        async def listen() -> None:
            assert process.stderr is not None
            while chunk := await process.stderr.read(2**16):
                self._last_words = (self._last_words + chunk)[-_LAST_WORDS:]

        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            group.start_soon(receive)
            group.start_soon(send)
            try:
                yield read_stream, write_stream
            finally:
                group.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await _end(process)

    async def _messages(self, stream: asyncio.StreamReader) -> AsyncIterator[JSONRPCMessage]:
        """Yield the messages. Many programs also print other text: a limited amount is ignored."""
        noise = 0
        try:
            while line := await stream.readline():
                try:
                    message = jsonrpc_message_adapter.validate_json(line)
                except ValueError:
                    noise += len(line)
                    if noise > _MAX_NOISE:
                        self.fault = "it writes what are no messages of MCP"
                        return
                    continue
                noise = 0
                yield message
            await asyncio.sleep(0)  # its last message may be just being read
            words = self._last_words.decode(errors="replace").strip().rpartition("\n")[2]
            self.fault = f"it ended, and said: {words}" if words else "it ended"
        except ValueError:
            self.fault = f"it sent more than {_MAX_MESSAGE // 2**20} MB at once"
        finally:
            self.ended.set()

    @asynccontextmanager
    async def _http(self) -> AsyncIterator[Any]:
        timeout = httpx2.Timeout(self.timeout_seconds)
        async with (
            httpx2.AsyncClient(headers=self.headers, timeout=timeout, transport=_LimitedTransport()) as http,
            streamable_http_client(self.url, http_client=http) as streams,
        ):
            yield streams


class _LimitedTransport(httpx2.AsyncHTTPTransport):
    """Limits the size of answers."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_LimitedStream(response.stream),
            extensions=response.extensions,
        )


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        room = _MAX_MESSAGE
        async for chunk in self._stream:
            room -= len(chunk)
            if room < 0:
                raise httpx2.ReadError(f"more than {_MAX_MESSAGE // 2**20} MB")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _end(process: Process) -> None:
    """Close the server's input, then kill it. Its output is not awaited, since processes it started may keep it
    open."""
    if process.stdin is not None:
        process.stdin.close()
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _SECONDS_TO_END)
    with suppress(TimeoutError):
        await asyncio.wait_for(end_process(process), _SECONDS_TO_END)


def _reason(error: BaseException, server: _Server) -> str:
    """Describe an error on one line, without arguments and secrets."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if server.fault:
        text = server.fault
    elif isinstance(error, ServerRefused | MCPError):
        text = str(error)
    elif isinstance(error, TimeoutError):
        text = f"it did not answer within {server.timeout_seconds:g} s"
    elif isinstance(error, ValidationError):
        text = "what it sent is no answer of MCP"
    elif isinstance(error, FileNotFoundError | PermissionError):
        text = f"its command {server.command!r} cannot be started ({error.strerror})"
    else:
        text = describe_connection_error(error)
    for secret in (*server.env.values(), *server.headers.values()):
        text = text.replace(secret, "***") if secret else text
    return " ".join(text.split())[:_LONGEST_REASON]


async def _answer_all(server: _Server, questions: asyncio.Queue[Mapping[str, Any]]) -> str:
    """Answer until no request has come for a while, or the server is gone; return why."""
    question = await questions.get()
    try:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(server.timeout_seconds):
                client = await stack.enter_async_context(server.connect())
            while True:
                async with asyncio.timeout(server.timeout_seconds):
                    answer = await _answer(client, server, question)
                if server.fault:
                    break
                _write({"id": question["id"], **answer})
                if (next_question := await _next(questions, server)) is None:
                    return ""
                question = next_question
    # Any error of the SDK or a server is reported to the caller; then a new process is started.
    except Exception as error:  # noqa: BLE001
        return _reason(error, server)
    return _reason(EOFError(), server)


async def _next(questions: asyncio.Queue[Mapping[str, Any]], server: _Server) -> Mapping[str, Any] | None:
    """Return the next request; None if none has come for a while, or the server ended: then the next one is for a new
    process, and nobody has to wonder whether this one still did it."""
    asked, ended = asyncio.create_task(questions.get()), asyncio.create_task(server.ended.wait())
    await asyncio.wait({asked, ended}, timeout=_IDLE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    if asked.done():
        return asked.result()
    asked.cancel()
    return None


async def _answer(client: Client, server: _Server, question: Mapping[str, Any]) -> dict[str, Any]:
    try:
        if question["step"] == "list":
            return {"result": await list_offers(client)}
        return {"result": await call(client, question["name"], question["arguments"], server.result_bytes)}
    except (MCPError, ServerRefused) as error:
        return {"error": _reason(error, server)}


def _write(answer: Mapping[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.flush()


async def _run() -> str:
    reader = asyncio.StreamReader(limit=_MAX_MESSAGE)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    server = _Server(**json.loads(await reader.readline()))
    questions: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()

    async def read_questions() -> None:
        while line := await reader.readline():
            questions.put_nowait(json.loads(line))

    answering = asyncio.create_task(_answer_all(server, questions))
    tasks = {asyncio.create_task(read_questions()), answering}
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return answering.result() if answering in done else ""


def main() -> None:
    """Serve one server until the input ends, then kill all it started. Its last line on standard error says why it
    ended."""
    logging.disable()  # the SDK logs what servers send
    try:
        # Written last: the parent shows the last line.
        print(asyncio.run(_run()), file=sys.stderr, flush=True)
    finally:
        # Processes the server started are in the same group, and may still run.
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
