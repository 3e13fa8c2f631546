"""A daemon's outside for tests: the control API on a real Unix socket, with a scripted runtime behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from assistant.bridges.terminal import TerminalBridge
from assistant.cli.client import SocketLink, socket_link
from assistant.errors import UsageError
from assistant.records import Accepted, Incoming
from assistant.unix_socket import short_address
from assistant.web.listener import serve_control
from assistant.web.server import control_server


class ScriptedControl:
    """Implements `ports.Control`: keeps what it accepted, and fails as it is told."""

    def __init__(self) -> None:
        self.accepted: dict[str, Incoming] = {}
        self.failure: Exception | None = None
        self.stopped: list[str] = []

    async def accept(self, incoming: Incoming) -> Accepted:
        if self.failure is not None:
            raise self.failure
        known = list(self.accepted)
        duplicate = incoming.external_id in known
        if not duplicate:
            self.accepted[incoming.external_id] = incoming
        number = list(self.accepted).index(incoming.external_id) + 1
        return Accepted(number, 100 + number, duplicate)

    async def command(self, text: str, session: str, *, bridge: str = "terminal") -> str:
        if text == "/nonsense":
            raise UsageError("There is no command /nonsense.\nNothing was changed.")
        return f"**{text}** in {session} from {bridge}"

    async def stop_turn(self, session: str) -> bool:
        self.stopped.append(session)
        return len(self.stopped) == 1

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        if inbox_id > len(self.accepted):
            raise UsageError(f"There is no message {inbox_id} in the inbox.")
        return {"state": "answered", "reply": "yes"}

    def status(self) -> Mapping[str, Any]:
        return {"ok": True, "problems": []}


class Served:
    """A daemon's outside: the socket, and what lies behind it."""

    def __init__(self, path: Path, control: ScriptedControl, terminal: TerminalBridge, link: SocketLink) -> None:
        self.path = path
        self.control = control
        self.terminal = terminal
        self.link = link

    async def raw(self, method: str, address: str, **request: Any) -> httpx2.Response:
        with short_address(self.path) as short:
            async with httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=short)) as client:
                return await client.request(method, f"http://assistant/v1{address}", **request)


@asynccontextmanager
async def serving(path: Path, terminal: TerminalBridge) -> AsyncIterator[Served]:
    control = ScriptedControl()
    async with serve_control(lambda: control_server(control, terminal), path), socket_link(path) as link:
        try:
            yield Served(path, control, terminal, link)
        finally:
            await terminal.stop()
