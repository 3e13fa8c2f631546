"""Telegram as the conformance suite plays it: the bridge over a strict Bot API, and people with their apps.

Telegram tells bots nothing of deletions. A thread is a topic: it begins at a message here, and has its number.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import datetime
from typing import Any, Literal

from assistant.bridges.telegram.bridge import TelegramBridge
from assistant.core.bridge_api import Bridge
from assistant.settings.settings import Settings
from assistant.wire.app import App
from tests.strict.telegram import BotApiError, StrictTelegram
from tests.strict.telegram_people import BOT, ROOM, SentMessage
from tests.strict.telegram_rules import units
from tests.support.networks.network import (
    ConversationPlace,
    Network,
    NetworkAbilities,
    NetworkRefused,
    PersonKind,
    VisibleMessage,
)

_ACCOUNTS: dict[PersonKind, int] = {"owner": 1001, "guest": 1002, "stranger": 1003}
_SENDING = ("sendmessage", "sendphoto", "senddocument")
# Apart from each other by no more than this in seconds, drafts are seen by a test too.
_DRAFTS_APART = 0.001


class TelegramNetwork:
    name = "telegram"
    abilities = NetworkAbilities(threads=True, deletes=False)
    room = str(ROOM)

    def __init__(self, server: StrictTelegram) -> None:
        self.server = server
        self._said: dict[str, dict[str, Any]] = {}
        for who, number in _ACCOUNTS.items():
            server.chats[number] = {"id": number, "type": "private", "first_name": who}

    def bridge(self, settings: Settings, clock: Callable[[], datetime]) -> Bridge:
        return TelegramBridge(self.server.token, self.server.url, draft_seconds=_DRAFTS_APART)

    def serve_app(self, app: App) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def account(self, who: PersonKind) -> str:
        return str(_ACCOUNTS[who])

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
        if where == "room" and addressed:
            mention = f"@{BOT['username']}"
            entity = {"type": "mention", "offset": 0, "length": units(mention)}
            return self._put(who, where, f"{mention} {text}", entities=[entity])
        if not thread:
            return self._put(who, where, text)
        topic = int(thread.partition(":")[2])
        self.server.topics.add((self._chat(who, where), topic))
        return self._put(who, where, text, message_thread_id=topic, is_topic_message=True)

    async def edit(self, who: PersonKind, message: str, text: str) -> None:
        self._said[message] = {**self._said[message], "text": text, "edit_date": 1_790_000_060}
        self.server.put({"edited_message": self._said[message]})

    async def delete(self, who: PersonKind, message: str) -> None:
        raise NetworkRefused("Telegram tells bots nothing of deletions.")

    async def press(self, who: PersonKind, message: str, label: str) -> None:
        sent = next(one for one in self.server.sent if _id(one) == message)
        if label not in dict(sent.buttons):
            raise NetworkRefused("There is no such button.")
        self.server.press(sent, label, user=_ACCOUNTS[who])

    async def send_picture(self, who: PersonKind, data: bytes, caption: str = "") -> str:
        size = {**self.server.keep_file(data), "width": 1, "height": 1}
        return self._put(who, "private", None, photo=[size], caption=caption)

    async def send_file(self, who: PersonKind, name: str, data: bytes, caption: str = "") -> str:
        file = {**self.server.keep_file(data), "file_name": name, "mime_type": "text/plain"}
        return self._put(who, "private", None, document=file, caption=caption)

    async def redeliver(self, message: str) -> None:
        self.server.put({"message": self._said[message]})

    def _put(self, who: PersonKind, where: ConversationPlace, text: str | None, **fields: Any) -> str:
        message = self.server.written(text, user=_ACCOUNTS[who], chat=self._chat(who, where), **fields)
        name = f"{message['chat']['id']}:{message['message_id']}"
        self._said[name] = message
        self.server.put({"message": message})
        return name

    # -------------------------------------------------------------------------------------------------- what people see

    def visible_messages(self, who: PersonKind, where: ConversationPlace = "private") -> tuple[VisibleMessage, ...]:
        chat = self._chat(who, where)
        drafts = self._drafts(chat)
        sent = [one for one in self.server.sent if one.chat == chat]
        return tuple(
            VisibleMessage(
                _id(one),
                one.text,
                units(one.text),
                before,
                tuple(label for label, _ in one.buttons),
                "" if one.thread is None else f"{chat}:{one.thread}",
                one.file,
                one.file_name,
            )
            for one, before in zip(sent, drafts, strict=True)
        )

    def typing_count(self, who: PersonKind, where: ConversationPlace = "private") -> int:
        return self.server.timeline.count((self._chat(who, where), "typing", ""))

    @property
    def send_attempts(self) -> int:
        return sum(method in _SENDING for method, _ in self.server.calls)

    async def wait_until(self, true: Callable[[], bool]) -> None:
        await self.server.until(true)

    def _chat(self, who: PersonKind, where: ConversationPlace) -> int:
        return ROOM if where == "room" else _ACCOUNTS[who]

    def _drafts(self, chat: int) -> list[tuple[str, ...]]:
        """What was drafted before each message of a chat."""
        found: list[tuple[str, ...]] = []
        before: list[str] = []
        for place, kind, text in self.server.timeline:
            if place == chat and kind == "message":
                found.append(tuple(before))
                before = []
            elif place == chat and kind == "draft":
                before.append(text)
        return found

    # --------------------------------------------------------------------------------------------------------- troubles

    def refuse_sends(self, calls: int, retry_after: float | None) -> None:
        if retry_after is None:
            refusal = BotApiError(403, "Forbidden: bot was blocked by the user")
        else:
            refusal = BotApiError(429, f"Too Many Requests: retry after {retry_after:g}", retry_after=retry_after)
        self.server.trouble("send", *[refusal] * calls)

    def cut_connections(self, when: Literal["before", "after"], calls: int = 1) -> None:
        self.server.trouble("send", *[when] * calls)

    async def go_offline(self) -> None:
        await self.server.go_offline()

    async def go_online(self) -> None:
        await self.server.go_online()

    async def aclose(self) -> None:
        await self.server.go_offline()


def _id(sent: SentMessage) -> str:
    return f"{sent.chat}:{sent.id}"


@asynccontextmanager
async def open_telegram_network() -> AsyncIterator[Network]:
    async with StrictTelegram() as server:
        yield TelegramNetwork(server)
