"""A terminal as the conformance suite plays it: the owner at one that stays open, over the control socket of the app.

It shows a key once, confirms it, and attaches again when its connection broke; what it was told outlives the app.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any, Literal

import httpx2

from assistant.cli.client import SocketLink, open_socket_link
from assistant.cli.link import LinkLost
from assistant.core.bridge_api import Bridge
from assistant.core.sessions import MAIN_SESSION
from assistant.service.home_lock import short_address
from assistant.settings.settings import Settings
from assistant.wire.app import App
from tests.support.networks.network import (
    ConversationPlace,
    Network,
    NetworkAbilities,
    NetworkRefused,
    PersonKind,
    VisibleMessage,
)
from tests.support.networks.probed_bridge import ChangeSignal

_NOBODY = "No app is served."


class TerminalNetwork:
    name = "terminal"
    abilities = NetworkAbilities(
        strangers=False,
        rooms=False,
        edits=False,
        deletes=False,
        redelivers=False,
        refuses=False,
        outages=False,
    )
    room = ""

    def __init__(self) -> None:
        self.send_attempts = 0
        self._app: App | None = None
        self._link: SocketLink | None = None
        self._numbers = itertools.count(1)
        self._said: dict[str, dict[str, Any]] = {}
        self._shown: dict[str, VisibleMessage] = {}
        self._drafts: list[str] = []
        self._typing = 0
        self.live_texts: list[str] = []  # what was shown to those who are connected, and is stored nowhere
        self._cuts: list[Literal["before", "after"]] = []
        self._moves = ChangeSignal()

    def bridge(self, settings: Settings, clock: Callable[[], datetime]) -> Bridge | None:
        return None

    def serve_app(self, app: App) -> AbstractAsyncContextManager[None]:
        return self._serving(app)

    @asynccontextmanager
    async def _serving(self, app: App) -> AsyncIterator[None]:
        async with app.serve(), open_socket_link(app.settings.home.socket) as link:
            self._app, self._link = app, link
            attached = asyncio.Event()
            looking = asyncio.create_task(self._look(link, attached))
            try:
                await attached.wait()
                yield
            finally:
                self._app = self._link = None
                looking.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await looking

    # ----------------------------------------------------------------------------------------------------- the terminal

    async def _look(self, link: SocketLink, attached: asyncio.Event) -> None:
        """Attached until the app ends it; again whenever the connection broke."""
        broke = True
        while broke:
            with contextlib.suppress(LinkLost):
                broke = await self._broke(link, attached)

    async def _broke(self, link: SocketLink, attached: asyncio.Event) -> bool:
        async with contextlib.aclosing(link.events(MAIN_SESSION)) as events:
            async for kind, data in events:
                attached.set()
                if kind == "deliver" and not await self._deliver(link, data):
                    return True
                if kind == "turn" and data["state"] == "started":
                    self._typing += 1
                if kind == "delta":
                    self._drafts.append(data["text"])
                if kind == "notice":
                    self.live_texts.append(data["text"])
                self._moves.notify()
        return False

    async def _deliver(self, link: SocketLink, data: Mapping[str, Any]) -> bool:
        """Whether the terminal lived to confirm it."""
        self.send_attempts += 1
        cut = self._cuts.pop(0) if self._cuts else None
        if cut != "before" and data["key"] not in self._shown:
            drafts, self._drafts = tuple(self._drafts), []
            self._shown[data["key"]] = VisibleMessage(data["key"], data["body"], len(data["body"]), drafts)
        self._moves.notify()
        if cut is None:
            await link.acknowledge(data["key"])
        return cut is None

    # --------------------------------------------------------------------------------------------------- what people do

    def account(self, who: PersonKind) -> str:
        return ""

    async def say(
        self,
        who: PersonKind,
        text: str,
        *,
        where: ConversationPlace = "private",
        addressed: bool = True,
        thread: str = "",
    ) -> str:
        name = f"said{next(self._numbers)}"
        if text.startswith("/") and self._link is not None:
            answer = await self._link.run_command(text, MAIN_SESSION)
            self._shown[name] = VisibleMessage(name, answer, len(answer))
            self._moves.notify()
            return name
        session = MAIN_SESSION if who == "owner" and where == "private" else f"peer:terminal:{who}"
        thread_of = {"thread": thread} if thread else {}
        return await self._post({"text": text, "external_id": name, "session": session, **thread_of})

    async def edit(self, who: PersonKind, message: str, text: str) -> None:
        await self._ask("PUT", f"/messages/{message}", {"text": text})

    async def delete(self, who: PersonKind, message: str) -> None:
        await self._ask("DELETE", f"/messages/{message}")

    async def press(self, who: PersonKind, message: str, label: str) -> None:
        await self._ask("POST", f"/messages/{message}/buttons", {"label": label})

    async def send_picture(self, who: PersonKind, data: bytes, caption: str = "") -> str:
        return await self._send("image/png", "picture.png", data, caption)

    async def send_file(self, who: PersonKind, name: str, data: bytes, caption: str = "") -> str:
        return await self._send("text/plain", name, data, caption)

    async def _send(self, mime: str, name: str, data: bytes, caption: str) -> str:
        medium = {"mime": mime, "name": name, "data": base64.b64encode(data).decode()}
        return await self._post({"text": caption, "external_id": f"said{next(self._numbers)}", "media": [medium]})

    async def redeliver(self, message: str) -> None:
        await self._post(self._said[message])

    async def _post(self, body: dict[str, Any]) -> str:
        await self._ask("POST", "/messages", body)
        self._said[body["external_id"]] = body
        return str(body["external_id"])

    async def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> None:
        if self._app is None:
            raise NetworkRefused(_NOBODY)
        with short_address(self._app.settings.home.socket) as address:
            async with httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=address), timeout=60) as client:
                answer = await client.request(method, f"http://assistant/v1{path}", json=body)
        if not answer.is_success:
            raise NetworkRefused(answer.text)

    # -------------------------------------------------------------------------------------------------- what people see

    def visible_messages(self, who: PersonKind, where: ConversationPlace = "private") -> tuple[VisibleMessage, ...]:
        return tuple(self._shown.values()) if (who, where) == ("owner", "private") else ()

    def typing_count(self, who: PersonKind, where: ConversationPlace = "private") -> int:
        return self._typing

    async def wait_until(self, true: Callable[[], bool]) -> None:
        await self._moves.wait_until(true)

    # --------------------------------------------------------------------------------------------------------- troubles

    def refuse_sends(self, calls: int, retry_after: float | None) -> None:
        raise NetworkRefused("A terminal takes whatever comes.")

    def cut_connections(self, when: Literal["before", "after"], calls: int = 1) -> None:
        self._cuts += [when] * calls

    async def go_offline(self) -> None:
        raise NetworkRefused("The app itself is the network.")

    async def go_online(self) -> None:
        raise NetworkRefused("The app itself is the network.")

    async def aclose(self) -> None:
        return None


@asynccontextmanager
async def open_terminal_network() -> AsyncIterator[Network]:
    yield TerminalNetwork()
