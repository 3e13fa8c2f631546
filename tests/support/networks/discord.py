"""Discord as the conformance suite plays it: the bridge over a strict Discord, and people with their apps. Between two
there are no threads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import datetime
from typing import Any, Literal

from assistant.bridges.discord.bridge import DiscordBridge
from assistant.core.bridge_api import Bridge
from assistant.settings.settings import Settings
from assistant.wire.app import App
from tests.strict.discord import ME, OWNER, ROOM, DiscordFault, StrictDiscord, buttons_of
from tests.support.networks.network import (
    ConversationPlace,
    Network,
    NetworkAbilities,
    NetworkRefused,
    PersonKind,
    VisibleMessage,
)

_ACCOUNTS: dict[PersonKind, str] = {"owner": OWNER, "guest": "1002", "stranger": "1003"}


class DiscordNetwork:
    name = "discord"
    abilities = NetworkAbilities()
    room = ROOM

    def __init__(self, server: StrictDiscord) -> None:
        self.server = server
        self._said: dict[str, dict[str, Any]] = {}
        for who, user in _ACCOUNTS.items():
            server.names[user] = who

    def bridge(self, settings: Settings, clock: Callable[[], datetime]) -> Bridge:
        return DiscordBridge(self.server.token, self.server.url)

    def serve_app(self, app: App) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def account(self, who: PersonKind) -> str:
        return _ACCOUNTS[who]

    # --------------------------------------------------------------------------------------------------- what people do

    async def say(
        self,
        who: PersonKind,
        text: str,
        *,
        where: ConversationPlace = "private",
        addressed: bool = True,
        thread: str = "",
    ) -> str:
        if thread:
            raise NetworkRefused("Between two there are no threads.")
        return await self._put(who, where, f"<@{ME}> {text}" if where == "room" and addressed else text)

    async def _put(self, who: PersonKind, where: ConversationPlace, text: str, **fields: Any) -> str:
        # A new bot's past is not answered: it has to be there before anybody says something.
        await self.wait_until(lambda: self.server.identified > 0)
        message = self.server.say(text, user=_ACCOUNTS[who], channel=self._channel(who, where), **fields)
        self._said[message["id"]] = message
        return str(message["id"])

    async def edit(self, who: PersonKind, message: str, text: str) -> None:
        self.server.edit(self._said[message], text)

    async def delete(self, who: PersonKind, message: str) -> None:
        self.server.delete(self._said[message])

    async def press(self, who: PersonKind, message: str, label: str) -> None:
        sent = next(one for one in self.server.sent if one["id"] == message)
        if label not in [one["label"] for one in buttons_of(sent)]:
            raise NetworkRefused("There is no such button.")
        self.server.press(sent, label, user=_ACCOUNTS[who])

    async def send_picture(self, who: PersonKind, data: bytes, caption: str = "") -> str:
        file = self.server.keep_file("picture.png", data, "image/png")
        return await self._put(who, "private", caption, attachments=[file])

    async def send_file(self, who: PersonKind, name: str, data: bytes, caption: str = "") -> str:
        file = self.server.keep_file(name, data, "text/plain")
        return await self._put(who, "private", caption, attachments=[file])

    async def redeliver(self, message: str) -> None:
        self.server.tell("MESSAGE_CREATE", self._said[message])

    # -------------------------------------------------------------------------------------------------- what people see

    def visible_messages(self, who: PersonKind, where: ConversationPlace = "private") -> tuple[VisibleMessage, ...]:
        channel = self._channel(who, where)
        return tuple(self._as_seen(one) for one in self.server.messages.get(channel, ()) if one["author"]["id"] == ME)

    def _as_seen(self, message: dict[str, Any]) -> VisibleMessage:
        file = next(iter(message["attachments"]), None)
        return VisibleMessage(
            message["id"],
            message["content"],
            len(message["content"].encode("utf-16-le")) // 2,
            buttons=tuple(one["label"] for one in buttons_of(message)),
            file=None if file is None else self.server.files[file["id"]],
            file_name="" if file is None else file["filename"],
        )

    def typing_count(self, who: PersonKind, where: ConversationPlace = "private") -> int:
        return self.server.typing.count(self._channel(who, where))

    @property
    def send_attempts(self) -> int:
        return sum(method == "POST" and path.endswith("/messages") for method, path, _ in self.server.calls)

    async def wait_until(self, true: Callable[[], bool]) -> None:
        await self.server.changes.wait_until(true)

    def _channel(self, who: PersonKind, where: ConversationPlace) -> str:
        return ROOM if where == "room" else self.server.direct(_ACCOUNTS[who])

    # --------------------------------------------------------------------------------------------------------- troubles

    def refuse_sends(self, calls: int, retry_after: float | None) -> None:
        if retry_after is None:
            refusal = DiscordFault(403, 50007, "Cannot send messages to this user")
        else:
            refusal = DiscordFault(429, 0, "You are being rate limited.", retry_after=retry_after)
        self.server.trouble("send", *[refusal] * calls)

    def cut_connections(self, when: Literal["before", "after"], calls: int = 1) -> None:
        self.server.trouble("send", *[when] * calls)

    async def go_offline(self) -> None:
        await self.server.go_offline()

    async def go_online(self) -> None:
        await self.server.go_online()

    async def aclose(self) -> None:
        await self.server.go_offline()


@asynccontextmanager
async def open_discord_network() -> AsyncIterator[Network]:
    async with StrictDiscord() as server:
        yield DiscordNetwork(server)
