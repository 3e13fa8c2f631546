"""The Discord bridge: a bot of the owner, over Discord's gateway and HTTP API (version 10), with aiohttp.

- A message has its own nonce, by which Discord recognizes a resend for some minutes. Later, an uncertain delivery is
  reported and not retried (I8).
- Messages mention nobody, and have no link previews.
- Typing indicators are provisional and limited.
"""

from __future__ import annotations

import asyncio
import base64

from assistant.bridges.discord import events as form
from assistant.bridges.discord.api import OFFICIAL, DiscordApi
from assistant.bridges.discord.gateway import NO_INTENT, DiscordGateway
from assistant.bridges.discord.receiver import DiscordReceiver
from assistant.core.bridge_api import BridgeCapabilities, InboundPort, OutgoingPart, TurnEvent
from assistant.core.errors import BridgeError
from assistant.core.text import lazy_regex

_TOKEN = lazy_regex(r"[A-Za-z0-9_-]{4,100}\.[A-Za-z0-9_-]{2,100}\.[A-Za-z0-9_-]{4,200}")
_TIMEOUT_SECONDS = 30.0
# Discord documents "the past few minutes".
_DEDUPE_SECONDS = 120.0
# Flags for whether a bot may read messages in channels: on many servers, or on few.
_READS_CONTENT = 1 << 18 | 1 << 19
# Discord shows it for ten seconds.
_TYPING_SECONDS = 8.0
_MAX_TYPING_SECONDS = 900.0
_MAX_TYPING_PLACES = 64


class DiscordBridge:
    """See `Bridge`. A target is a channel, direct or on a server, or a thread, such as "41771983423143937"."""

    name = "discord"
    capabilities = BridgeCapabilities(
        typing=True,
        media=True,
        buttons=True,
        max_length=form.MAX_TEXT,
        length_unit="utf-16",
        dedupe_seconds=_DEDUPE_SECONDS,
    )

    def __init__(self, token: str, base_url: str = OFFICIAL, *, timeout: float = _TIMEOUT_SECONDS) -> None:
        """Raises `BridgeError` for an invalid token."""
        if _TOKEN.fullmatch(token) is None:
            raise BridgeError(
                "This is not a bot's token. The page of your bot at Discord shows it once, under Bot, Reset Token: "
                "`assistant bridge add discord`."
            )
        self._token = token
        self._base_url = base_url
        self._timeout = timeout
        self._api_or_none: DiscordApi | None = None
        self._gateway = DiscordGateway()
        self._typing: dict[str, tuple[str, asyncio.Task[None]]] = {}

    @property
    def _api(self) -> DiscordApi:
        if self._api_or_none is None:
            self._api_or_none = DiscordApi(self._token, self._base_url, self._timeout)
        return self._api_or_none

    async def check(self) -> str:
        """As the port says. Raises `BridgeError` also if the application may not read messages (the message content
        intent)."""
        me = await self._api.call("GET", "/users/@me")
        application = await self._api.call("GET", "/applications/@me")
        if not int(application.get("flags") or 0) & _READS_CONTENT:
            raise BridgeError(NO_INTENT)
        return f"@{me['username']}"

    async def run(self, inbound: InboundPort) -> None:
        await DiscordReceiver(self._api, self._gateway, self._token, inbound).run()

    async def aclose(self) -> None:
        tasks = [task for _, task in self._typing.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        api, self._api_or_none = self._api_or_none, None
        if api is not None:
            await api.close()

    # --------------------------------------------------------------------------------------------------------- sending

    async def send(self, part: OutgoingPart) -> None:
        """As the port says. A file whose data is gone is sent as its name."""
        outgoing = part.item.outgoing
        channel = form.require_channel(outgoing.target)
        if outgoing.kind == "reply":
            self._stop_typing(channel)
        media, file = part.media, None
        text = part.text or (f"[{media.name or media.mime}]" if media and media.data is None else "")
        if media is not None and media.data is not None:
            file = (media.name or media.mime.replace("/", "."), base64.b64decode(media.data))
        buttons = outgoing.buttons if part.last else ()
        payload = form.message_payload(text, form.nonce_of(part.key, channel), buttons)
        await self._api.call("POST", f"/channels/{channel}/messages", payload, file=file)

    # ---------------------------------------------------------------------------------------------------------- typing

    def show(self, event: TurnEvent, target: str) -> None:
        """Show "typing" for as long as the turn runs, in at most `_MAX_TYPING_PLACES` places at once."""
        if event.kind != "turn":
            return
        if event.data.get("state") != "started":
            if self._typing.get(target, ("",))[0] == event.turn:
                self._stop_typing(target)
            return
        self._stop_typing(target)
        if len(self._typing) < _MAX_TYPING_PLACES:
            task = asyncio.create_task(self._keep_typing(target), name=f"typing {target}")
            self._typing[target] = (event.turn, task)

    def _stop_typing(self, target: str) -> None:
        _, task = self._typing.pop(target, ("", None))
        if task is not None:
            task.cancel()

    async def _keep_typing(self, target: str) -> None:
        """Keep showing the indicator until Discord refuses."""
        try:
            async with asyncio.timeout(_MAX_TYPING_SECONDS):
                while True:
                    await self._api.call("POST", f"/channels/{target}/typing")
                    await asyncio.sleep(_TYPING_SECONDS)
        except (BridgeError, TimeoutError):
            return
