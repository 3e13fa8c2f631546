"""Services that notify people, as strict as the real ones, on a real socket of this machine: ntfy (publishing as JSON)
and Gotify (creating a message).

    async with StrictPushServices() as server:
        url = server.ntfy_url

What was taken stands in `messages`; what was asked in the wrong way is refused as the real one does, and stands in
`complaints`. `refusals` are statuses with which the next requests are refused; while `gate` is not set nothing is
answered.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from aiohttp import web

NTFY_TOKEN, GOTIFY_TOKEN = "tk_strictstrictstrictstrictstri", "AstrictGotifyTkn"
TOPIC = "my-secret-topic"
_TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")
_NTFY_KEYS = {"topic", "message", "title", "tags", "priority", "actions", "click", "attach", "filename", "markdown"}
_LONGEST_MESSAGE = 4_096


@dataclass(frozen=True)
class PushMessage:
    service: str
    title: str
    message: str


class StrictPushServices:
    def __init__(self) -> None:
        self.messages: list[PushMessage] = []
        self.complaints: list[str] = []
        self.requests = 0
        self.refusals: list[int] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.arrived = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/", self._ntfy)
        app.router.add_post("/gotify/message", self._gotify)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        self.gate.set()
        await self._runner.cleanup()

    @property
    def ntfy_url(self) -> str:
        return f"ntfy://{NTFY_TOKEN}@127.0.0.1:{self._port}/{TOPIC}"

    @property
    def gotify_url(self) -> str:
        return f"gotify://127.0.0.1:{self._port}/gotify/{GOTIFY_TOKEN}"

    async def _ntfy(self, request: web.Request) -> web.Response:
        body, refused = await self._begin(request)
        if refused is not None:
            return web.json_response({"code": refused * 100, "http": refused, "error": "refused"}, status=refused)
        if request.headers.get("Authorization") != f"Bearer {NTFY_TOKEN}":
            return self._complain(403, 40301, "forbidden")
        if body is None or body.keys() - _NTFY_KEYS:
            return self._complain(400, 40024, "invalid request: request body must be valid JSON")
        if not isinstance(body.get("topic"), str) or not _TOPIC.fullmatch(body["topic"]) or body["topic"] != TOPIC:
            return self._complain(400, 40009, "invalid request: topic invalid")
        message = body.get("message", "")
        if not isinstance(message, str) or len(message.encode()) > _LONGEST_MESSAGE:
            return self._complain(413, 41301, "message too large")
        self.messages.append(PushMessage("ntfy", body.get("title", ""), message))
        return web.json_response({"id": "x1", "time": 1, "event": "message", "topic": TOPIC, "message": message})

    async def _gotify(self, request: web.Request) -> web.Response:
        body, refused = await self._begin(request)
        if refused is not None:
            return web.json_response({"error": "refused", "errorCode": refused}, status=refused)
        if request.headers.get("X-Gotify-Key") != GOTIFY_TOKEN:
            return self._complain(401, 401, "you need to provide a valid access token or user credentials")
        if body is None or not isinstance(body.get("message"), str) or not body["message"]:
            return self._complain(400, 400, "Field 'message' is required")
        if not isinstance(body.get("priority", 0), int):
            return self._complain(400, 400, "cannot unmarshal string into priority of type int")
        self.messages.append(PushMessage("gotify", body.get("title", ""), body["message"]))
        return web.json_response({"id": 1, "appid": 1, **body, "date": "2026-11-28T10:00:00Z"})

    async def _begin(self, request: web.Request) -> tuple[dict[str, Any] | None, int | None]:
        self.requests += 1
        text = await request.text()
        self.arrived.set()
        await self.gate.wait()
        body: Any = None
        if request.content_type == "application/json":
            try:
                body = json.loads(text)
            except ValueError:
                body = None
        return (body if isinstance(body, dict) else None), (self.refusals.pop(0) if self.refusals else None)

    def _complain(self, status: int, code: int, text: str) -> web.Response:
        self.complaints.append(text)
        return web.json_response({"code": code, "http": status, "error": text}, status=status)
