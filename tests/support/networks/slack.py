"""Slack as the conformance suite plays it: the bridge over a strict Slack, and people with their apps.

What begins with a slash is no message there: people type it behind the app's own command.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import datetime
from typing import Any, Literal

from assistant.bridges.slack.bridge import SlackBridge
from assistant.core.bridge_api import Bridge
from assistant.settings.settings import Settings
from assistant.wire.app import App
from tests.strict.slack import SENDING, SlackApiFault, StrictSlack
from tests.strict.slack_people import ME, OWNER, ROOM, buttons_of
from tests.support.networks.network import (
    ConversationPlace,
    Network,
    NetworkAbilities,
    NetworkRefused,
    PersonKind,
    VisibleMessage,
)

_ACCOUNTS: dict[PersonKind, str] = {"owner": OWNER, "guest": "U0GUEST", "stranger": "U0STRANGER"}


class SlackNetwork:
    name = "slack"
    abilities = NetworkAbilities(threads=True)
    room = ROOM

    def __init__(self, server: StrictSlack) -> None:
        self.server = server
        self._said: dict[str, tuple[str, dict[str, Any]]] = {}
        for who, user in _ACCOUNTS.items():
            server.names[user] = who

    def bridge(self, settings: Settings, clock: Callable[[], datetime]) -> Bridge:
        return SlackBridge(self.server.tokens, self.server.url)

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
        if text.startswith("/"):
            await self.wait_until(lambda: self.server.is_connected)
            payload = self.server.command(text[1:], user=_ACCOUNTS[who], channel=self._channel(who, where))
            self._said[payload["trigger_id"]] = ("slash_commands", payload)
            return str(payload["trigger_id"])
        if where == "room" and addressed:
            text = f"<@{ME}> {text}"
        fields = {"thread_ts": thread.partition(":")[2]} if thread else {}
        return await self._put(who, where, text, **fields)

    async def _put(self, who: PersonKind, where: ConversationPlace, text: str, **fields: Any) -> str:
        # A new app's past is not answered: its bridge has to be there before anybody says something.
        await self.wait_until(lambda: self.server.connections > 0)
        channel = self._channel(who, where)
        message = self.server.say(text, user=_ACCOUNTS[who], channel=channel, **fields)
        identity = f"{channel}:{message['ts']}"
        self._said[identity] = (channel, message)
        return identity

    async def edit(self, who: PersonKind, message: str, text: str) -> None:
        self.server.edit(*_place(message), text)

    async def delete(self, who: PersonKind, message: str) -> None:
        self.server.delete(*_place(message))

    async def press(self, who: PersonKind, message: str, label: str) -> None:
        channel, ts = _place(message)
        if label not in [one["text"]["text"] for one in buttons_of(self.server.find(channel, ts))]:
            raise NetworkRefused("There is no such button.")
        self.server.press(channel, ts, label, user=_ACCOUNTS[who])

    async def send_picture(self, who: PersonKind, data: bytes, caption: str = "") -> str:
        return await self._send_file(who, "picture.png", data, caption, "image/png")

    async def send_file(self, who: PersonKind, name: str, data: bytes, caption: str = "") -> str:
        return await self._send_file(who, name, data, caption, "text/plain")

    async def _send_file(self, who: PersonKind, name: str, data: bytes, caption: str, mime: str) -> str:
        file = self.server.keep_file(name, data, mimetype=mime)
        return await self._put(who, "private", caption, subtype="file_share", files=[file])

    async def redeliver(self, message: str) -> None:
        channel, what = self._said[message]
        if channel == "slash_commands":
            self.server.send_envelope(channel, what)
        else:
            self.server.tell(channel, what)

    # -------------------------------------------------------------------------------------------------- what people see

    def visible_messages(self, who: PersonKind, where: ConversationPlace = "private") -> tuple[VisibleMessage, ...]:
        channel = self._channel(who, where)
        return tuple(self._as_seen(channel, one) for one in self.server.messages.get(channel, ()) if one["user"] == ME)

    def _as_seen(self, channel: str, message: dict[str, Any]) -> VisibleMessage:
        blocks = [block["text"] for block in message.get("blocks", ()) if block["type"] == "markdown"]
        text = "\n".join(blocks) or message["text"]
        file = next((file["id"] for file in message.get("files", ())), "")
        name, data = self.server.files.get(file, ("", None))
        thread = message.get("thread_ts", "")
        return VisibleMessage(
            f"{channel}:{message['ts']}",
            text,
            len(text),
            buttons=tuple(one["text"]["text"] for one in buttons_of(message)),
            thread=f"{channel}:{thread}" if thread else "",
            file=data,
            file_name=name,
        )

    def typing_count(self, who: PersonKind, where: ConversationPlace = "private") -> int:
        return 0

    @property
    def send_attempts(self) -> int:
        return sum(method in SENDING for method, _ in self.server.calls)

    async def wait_until(self, true: Callable[[], bool]) -> None:
        await self.server.changes.wait_until(true)

    def _channel(self, who: PersonKind, where: ConversationPlace) -> str:
        return ROOM if where == "room" else self.server.direct(_ACCOUNTS[who])

    # --------------------------------------------------------------------------------------------------------- troubles

    def refuse_sends(self, calls: int, retry_after: float | None) -> None:
        if retry_after is None:
            refusal = SlackApiFault("is_archived")
        else:
            refusal = SlackApiFault("ratelimited", 429, retry_after=retry_after)
        self.server.trouble("send", *[refusal] * calls)

    def cut_connections(self, when: Literal["before", "after"], calls: int = 1) -> None:
        self.server.trouble("send", *[when] * calls)

    async def go_offline(self) -> None:
        await self.server.go_offline()

    async def go_online(self) -> None:
        await self.server.go_online()

    async def aclose(self) -> None:
        await self.server.go_offline()


def _place(message: str) -> tuple[str, str]:
    channel, _, ts = message.partition(":")
    return channel, ts


@asynccontextmanager
async def open_slack_network() -> AsyncIterator[Network]:
    async with StrictSlack() as server:
        yield SlackNetwork(server)
