"""A server that is as strict as the real Messages and Chat Completions APIs, on a real socket of this machine.

    with StrictServer(Answer("hi")) as server:
        model = AnthropicModel("claude-test", server.key, base_url=server.url, clock=clock)

It validates every request, remembers it, and behaves as its script says. Both APIs are served side by side; OpenAI's
address is `server.url + "/v1"`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.strict.behaviour import (
    Behaviour,
    ConnectionCut,
    ErrorEvent,
    ErrorStatus,
    Garbage,
    Held,
    Refusal,
    ScriptedAnswer,
    Stall,
)
from tests.strict.cache import PromptCache
from tests.strict.chat_api import ChatApi
from tests.strict.messages_api import MessagesApi, event
from tests.strict.validate import RequestLimits

KEY = "test-key"
PING = event("ping", {})
ROOMY_LIMITS = RequestLimits()


@dataclass(frozen=True)
class ReceivedRequest:
    """One request to an endpoint that answers. `complaint` is why it was refused, if it was."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    complaint: str = ""


class ResponseCut(Exception):
    """Ends a response in the middle, so that the server closes the connection."""


class StrictServer:
    """`script` says what happens to the accepted requests, in order. `requests` holds all that came; `looks` the other
    paths that were asked for, in order. `clock` gives seconds, for the life of the cache."""

    def __init__(
        self,
        *script: Behaviour,
        bounds: RequestLimits = ROOMY_LIMITS,
        clock: Callable[[], float] = time.monotonic,
        least_cached: int = 512,
        thinking_types: tuple[str, ...] = ("adaptive", "disabled"),
    ) -> None:
        self.key = KEY
        self.play(*script, bounds=bounds, clock=clock, least_cached=least_cached, thinking_types=thinking_types)
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen()
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._released = asyncio.Event()
        self.received = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        routes = [
            Route("/v1/messages", self._messages, methods=["POST"]),
            Route("/v1/chat/completions", self._completions, methods=["POST"]),
            Route("/{path:path}", self._look),
        ]
        config = uvicorn.Config(Starlette(routes=routes), lifespan="off", log_config=None, log_level="critical")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def play(
        self,
        *script: Behaviour,
        bounds: RequestLimits = ROOMY_LIMITS,
        clock: Callable[[], float] = time.monotonic,
        least_cached: int = 512,
        thinking_types: tuple[str, ...] = ("adaptive", "disabled"),
    ) -> Self:
        """Forget everything and begin with this script: a server that serves many tests is a fresh one to each."""
        self.script = deque(script)
        self.requests: list[ReceivedRequest] = []
        self.looks: list[str] = []
        self.other: dict[str, Any] = {}
        self.cache = PromptCache(clock, least_tokens=least_cached)
        self.messages = MessagesApi(bounds, self.cache, thinking_types=thinking_types)
        self.chat = ChatApi(bounds)
        return self

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self.release()
        self._thread.join(timeout=10)
        self._socket.close()

    def release(self) -> None:
        """Let what is held back go."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._released.set)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.body for request in self.requests]

    @property
    def complaints(self) -> list[str]:
        """Of all requests, those that were refused as malformed."""
        return [request.complaint for request in self.requests if request.complaint]

    def behaviour_for(self, body: dict[str, Any]) -> Behaviour:
        """What is done with an accepted request: the next of the script. A server that reads what it is asked has its
        own."""
        return self.script.popleft() if self.script else ScriptedAnswer("ok")

    async def _messages(self, request: Request) -> Response:
        return await self._serve(request, self.messages)

    async def _completions(self, request: Request) -> Response:
        return await self._serve(request, self.chat)

    async def _look(self, request: Request) -> Response:
        path = request.url.path
        self.looks.append(path)
        if path in self.other:
            return JSONResponse(self.other[path])
        if path == "/v1/models":
            return JSONResponse({"object": "list", "data": self.chat.models})
        if path.startswith("/v1/models/"):
            return JSONResponse(self.messages.model_info(path.removeprefix("/v1/models/")))
        return JSONResponse({"error": {"type": "not_found_error", "message": path}}, status_code=404)

    async def _serve(self, request: Request, api: MessagesApi | ChatApi) -> Response:
        self._loop = asyncio.get_running_loop()
        raw = await request.body()
        status, complaint, body = self._judge(request, raw, api)
        self.requests.append(ReceivedRequest(request.url.path, dict(request.headers), body, complaint))
        self.received.set()
        if complaint:
            return _error(api, api.refusal_of_request(status, complaint))
        behaviour = self.behaviour_for(body)
        if isinstance(behaviour, ErrorStatus):
            return _error(api, behaviour)
        if isinstance(behaviour, Held) or (isinstance(behaviour, Stall) and behaviour.before_headers):
            await self._released.wait()
        return StreamingResponse(self._stream(api, body, behaviour), media_type="text/event-stream")

    def _judge(self, request: Request, raw: bytes, api: MessagesApi | ChatApi) -> tuple[int, str, dict[str, Any]]:
        """Status and complaint of a request that is refused ("" for an accepted one), and its body."""
        offered = request.headers.get("authorization", "").removeprefix("Bearer ") or request.headers.get("x-api-key")
        if offered != self.key:
            return 401, "invalid x-api-key", {}
        if api is self.messages and "anthropic-version" not in request.headers:
            return 400, "anthropic-version: header is required", {}
        if len(raw) > api.bounds.max_bytes:
            return 413, "Request exceeds the maximum size", {}
        try:
            body = json.loads(raw)
        except ValueError:
            return 400, "The request body is not valid JSON", {}
        complaints = api.complaints(body)
        return 400, complaints[0] if complaints else "", body if isinstance(body, dict) else {}

    async def _stream(
        self, api: MessagesApi | ChatApi, body: dict[str, Any], behaviour: Behaviour
    ) -> AsyncIterator[bytes]:
        behaviour = behaviour.answer if isinstance(behaviour, Held) else behaviour
        if isinstance(behaviour, ScriptedAnswer | Refusal):
            for chunk in api.events(body, behaviour):
                yield chunk
            return
        assert not isinstance(behaviour, ErrorStatus)
        for chunk in api.opening(body, behaviour.text):
            yield chunk
        match behaviour:
            case ErrorEvent(kind, message):
                yield api.error_event(kind, message)
            case Garbage(raw):
                yield raw
            case Stall(pings=pings):
                for _ in range(pings):
                    yield PING if api is self.messages else b": still here\n\n"
                await self._released.wait()
            case ConnectionCut():
                raise ResponseCut


def _error(api: MessagesApi | ChatApi, status: ErrorStatus) -> JSONResponse:
    return JSONResponse(api.error_body(status), status_code=status.status, headers=dict(status.headers))
