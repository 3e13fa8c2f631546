"""A model server in a process of its own: it answers each request at once, and counts the summaries it was asked for,
and the messages to which something was recalled.

It keeps nothing of what it is sent, so that a soak of hours measures the daemon alone.
"""

from __future__ import annotations

import json
import multiprocessing
import re
import socket
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from assistant.runtime.recall import HISTORY_MARK

_WINDOW = 128_000


class SoakModel:
    """Serves at `url` while its context is open."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        context = multiprocessing.get_context("fork")
        self._summaries = context.Value("i", 0)
        self._recalled = context.Value("i", 0)
        self._process = context.Process(target=self._serve, daemon=True)

    @property
    def summaries(self) -> int:
        return int(self._summaries.value)

    @property
    def recalled(self) -> int:
        """How often something from before stood with what was said."""
        return int(self._recalled.value)

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.join()
        self._socket.close()

    def _serve(self) -> None:
        routes = [
            Route("/v1/chat/completions", self._complete, methods=["POST"]),
            Route("/v1/models", _models),
        ]
        config = uvicorn.Config(Starlette(routes=routes), log_level="error", lifespan="off")
        uvicorn.Server(config).run(sockets=[self._socket])

    async def _complete(self, request: Request) -> Response:
        body = await request.json()
        text = self._answer(_words(body["messages"][0]), _words(body["messages"][-1]))
        return StreamingResponse(_chunks(body["model"], text), media_type="text/event-stream")

    def _answer(self, system: str, asked: str) -> str:
        """What the prompt asks for, in the form that it asks for it; a sentence to a person."""
        if "<summary>" in system or "<summary>" in asked:
            with self._summaries.get_lock():
                self._summaries.value += 1
            return "<summary>\n" + _remembered(asked) + "\n</summary>\n<memories>\n</memories>"
        if "<memories>" in system:
            return f"<memories>\n{_learned(asked)}\n</memories>"
        for tag in ("decisions", "scores"):
            if f"<{tag}>" in system:
                return f"<{tag}>\n</{tag}>"
        if HISTORY_MARK in asked:
            with self._recalled.get_lock():
                self._recalled.value += 1
        return f"Noted, and watered: {asked[-60:]}"


def _words(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _remembered(asked: str) -> str:
    """Some of the names and numbers of what was said, as a summary has to keep them."""
    return "Done: watering was noted. " + " ".join(dict.fromkeys(re.findall(r"Note \d+", asked)[-40:]))


def _learned(asked: str) -> str:
    """An entry of the journal, from the last message that was shown."""
    shown = re.findall(r"^#(\d+) .*\buser\b", asked, re.MULTILINE)
    if not shown:
        return ""
    number = int(shown[-1])
    content = f"In row {number % 97} of the garden somebody waters {number % 13} litres a day."
    return json.dumps({"kind": "fact", "content": content, "importance": 0.5, "sources": [number]})


def _chunks(model: str, text: str) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}
        return f"data: {json.dumps(body)}\n\n".encode()

    yield chunk({"role": "assistant", "content": ""})
    yield chunk({"content": text})
    yield chunk({}, "stop")
    yield b"data: [DONE]\n\n"


async def _models(_: Request) -> JSONResponse:
    return JSONResponse(
        {"object": "list", "data": [{"id": "local-model", "object": "model", "max_model_len": _WINDOW}]}
    )
