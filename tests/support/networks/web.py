"""A client of the web API as the conformance suite plays it: the owner, over TCP, with the token.

Unlike a terminal it does not tell deliveries apart by their keys: what it is given it shows. When its connection broke
it comes again with the id of the last delivery it has, and so it does in the next app; that it shows nothing twice is
for the stream to see to.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from assistant.web.app import build_web_app
from assistant.web.deps import AccessRules
from assistant.web.server import build_tcp_server
from assistant.web.tcp_listener import TcpAddress, TcpListener
from assistant.wire.app import App
from tests.support.networks.network import ConversationPlace, Network, NetworkRefused, PersonKind, VisibleMessage
from tests.support.networks.terminal import TerminalNetwork
from tests.support.web_api import TOKEN


class WebNetwork(TerminalNetwork):
    def __init__(self) -> None:
        super().__init__()
        self._client: httpx2.AsyncClient | None = None
        self._last = "0"

    @asynccontextmanager
    async def _serving(self, app: App) -> AsyncIterator[None]:
        behind = build_web_app(app.web.deps)
        # A port of its own for each app: the system chooses.
        listener = TcpListener(
            lambda tls: build_tcp_server(behind, AccessRules(lambda: TOKEN), tls, time.monotonic),
            TcpAddress("127.0.0.1", 0),
        )
        async with listener.serve():
            await listener.opened.wait()
            assert listener.address is not None
            address = "http://{}:{}".format(*listener.address)
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with httpx2.AsyncClient(base_url=address, headers=headers, timeout=30) as client:
                self._client = client
                attached = asyncio.Event()
                looking = asyncio.create_task(self._come_again(client, attached))
                try:
                    await attached.wait()
                    yield
                finally:
                    self._client = None
                    looking.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await looking

    async def _come_again(self, client: httpx2.AsyncClient, attached: asyncio.Event) -> None:
        """As long as there is an app."""
        while await self._stream(client, attached):
            pass

    async def _stream(self, client: httpx2.AsyncClient, attached: asyncio.Event) -> bool:
        """Whether the connection broke."""
        async with client.sse("/v1/events", headers={"Last-Event-ID": self._last}) as stream:
            async for event in stream:
                attached.set()
                data = json.loads(event.data)
                if event.event == "deliver" and not await self._given(client, data, event.id or "0"):
                    return True
                if event.event == "turn" and data["state"] == "started":
                    self._typing += 1
                if event.event == "delta":
                    self._drafts.append(data["text"])
                if event.event == "notice":
                    self.live_texts.append(data["text"])
                self._moves.notify()
        return False

    async def _given(self, client: httpx2.AsyncClient, data: Mapping[str, Any], number: str) -> bool:
        """Whether the client lived to confirm it."""
        self.send_attempts += 1
        cut = self._cuts.pop(0) if self._cuts else None
        if cut != "before":
            drafts, self._drafts = tuple(self._drafts), []
            self._shown[f"{number}:{len(self._shown)}"] = VisibleMessage(
                number, data["body"], len(data["body"]), drafts
            )
            self._last = number
        self._moves.notify()
        if cut is None:
            await client.post("/v1/deliveries/ack", json={"key": data["key"]})
        return cut is None

    async def say(
        self,
        who: PersonKind,
        text: str,
        *,
        where: ConversationPlace = "private",
        addressed: bool = True,
        thread: str = "",
    ) -> str:
        if not text.startswith("/") or self._client is None:
            return await super().say(who, text, where=where, addressed=addressed, thread=thread)
        answer = (await self._client.post("/v1/commands", json={"text": text})).json()["text"]
        name = f"command{len(self._shown)}"
        self._shown[name] = VisibleMessage(name, answer, len(answer))
        self._moves.notify()
        return name

    async def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> None:
        if self._client is None:
            raise NetworkRefused("Nothing listens there.")
        answer = await self._client.request(method, f"/v1{path}", json=body)
        if not answer.is_success:
            raise NetworkRefused(answer.text)


@asynccontextmanager
async def open_web_network() -> AsyncIterator[Network]:
    yield WebNetwork()
