"""Discord's gateway: one session that is resumed over broken connections.

A session resumes after the last event that was handled, not the last received: Discord resends what was not stored. A
connection that does not answer heartbeats is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import ClientWebSocketResponse, WSMsgType

from assistant.bridges.discord.api import WRONG_TOKEN, DiscordApi, translate_discord_errors
from assistant.core.errors import BridgeError
from assistant.core.logger import get_logger

log = get_logger()

# Guilds, their messages, direct messages, and message content.
INTENTS = 1 << 0 | 1 << 9 | 1 << 12 | 1 << 15
_DISPATCH, _HEARTBEAT, _IDENTIFY, _RESUME, _RECONNECT, _INVALID, _HELLO, _ACK = 0, 1, 2, 6, 7, 9, 10, 11
_WRONG_TOKEN_CODE, _INTENT_CODES, _LOST_SESSION_CODES = 4004, (4013, 4014), (4007, 4009)
# After another close code than 1000 or 1001 the session can be resumed.
_GOING_ON = 4000
_HELLO_SECONDS = 30.0
_INVALID_SECONDS = (1.0, 5.0)
NO_INTENT = (
    "Discord does not give the bot what is said in channels. Turn on Message Content Intent for it, under Bot at "
    "https://discord.com/developers/applications."
)


class DiscordGateway:
    """The session of one bot. `note_done` is called after each handled event."""

    def __init__(self) -> None:
        self._session = ""
        self._resume_url = ""
        self._received = 0  # the newest received event
        self._done = 0  # the newest handled event
        self._acknowledged = True

    def note_done(self, number: int) -> None:
        """Record the newest handled event (its sequence number), after which a new connection resumes."""
        self._done = number

    async def events(self, api: DiscordApi, token: str) -> AsyncIterator[tuple[int, str, Any]]:
        """Yield number, name and data of each event of one connection; ends if Discord requests a reconnect. Raises
        `BridgeError`."""
        address = self._resume_url
        if not self._session:
            address = str((await api.call("GET", "/gateway/bot"))["url"])
        socket = await api.open_socket(address)
        beating: asyncio.Task[None] | None = None
        try:
            hello = await self._read(socket, _HELLO_SECONDS)
            if hello.get("op") != _HELLO:
                raise BridgeError("Discord closed the connection before it began.")
            beating = asyncio.create_task(self._beat(socket, hello["d"]["heartbeat_interval"] / 1000))
            await self._begin(socket, token)
            while True:
                event = await self._read(socket)
                match event.get("op"):
                    case 0:
                        self._note(event)
                        yield event["s"], event["t"], event["d"]
                    case 1:
                        await self._send(socket, _HEARTBEAT, self._received or None)
                    case 7:
                        return
                    case 9:
                        await self._on_invalid(can_resume=bool(event.get("d")))
                        return
                    case 11:
                        self._acknowledged = True
        finally:
            if beating is not None:
                beating.cancel()
            with contextlib.suppress(ConnectionError):
                await socket.close(code=_GOING_ON)

    def _note(self, event: dict[str, Any]) -> None:
        self._received = event["s"]
        if event["t"] == "READY":
            self._session = str(event["d"]["session_id"])
            self._resume_url = str(event["d"]["resume_gateway_url"])
            self._done = 0

    async def _begin(self, socket: ClientWebSocketResponse, token: str) -> None:
        self._acknowledged = True
        if self._session:
            await self._send(socket, _RESUME, {"token": token, "session_id": self._session, "seq": self._done})
            return
        self._received = 0
        properties = {"os": "linux", "browser": "assistant", "device": "assistant"}
        await self._send(socket, _IDENTIFY, {"token": token, "intents": INTENTS, "properties": properties})

    async def _on_invalid(self, *, can_resume: bool) -> None:
        if not can_resume:
            self._session = ""
        await asyncio.sleep(random.uniform(*_INVALID_SECONDS))

    async def _beat(self, socket: ClientWebSocketResponse, seconds: float) -> None:
        await asyncio.sleep(seconds * random.random())
        while self._acknowledged:
            self._acknowledged = False
            try:
                await self._send(socket, _HEARTBEAT, self._received or None)
            except BridgeError:
                return
            await asyncio.sleep(seconds)
        log.warning("discord does not answer any more: connecting anew")
        await socket.close(code=_GOING_ON)

    async def _send(self, socket: ClientWebSocketResponse, operation: int, data: Any) -> None:
        with translate_discord_errors():
            await socket.send_json({"op": operation, "d": data})

    async def _read(self, socket: ClientWebSocketResponse, seconds: float | None = None) -> dict[str, Any]:
        with translate_discord_errors():
            message = await socket.receive(seconds)
        if message.type == WSMsgType.TEXT:
            event: dict[str, Any] = message.json()
            return event
        code = socket.close_code
        if code == _WRONG_TOKEN_CODE:
            raise BridgeError(WRONG_TOKEN)
        if code in _INTENT_CODES:
            raise BridgeError(NO_INTENT)
        if code in _LOST_SESSION_CODES:
            self._session = ""
        raise BridgeError("The connection to Discord broke.")
