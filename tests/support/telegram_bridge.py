"""The Telegram bridge without an app against the strict Bot API: the handler that it hands messages to, and what it is
given to send. `ThreadedTelegram` serves the strict Bot API from a thread of its own, for tests that are not
asynchronous.
"""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from assistant.bridges.telegram.bridge import TelegramBridge
from assistant.core.bridge_api import InboundMessage, MessageChange, OutgoingPart
from assistant.core.errors import StoreError
from assistant.core.messages import Media
from assistant.core.records import OutboxItem, OutgoingMessage
from tests.strict.telegram import StrictTelegram
from tests.strict.telegram_people import OWNER
from tests.support.inbound import InboundRecorder

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


class TelegramInboundRecorder(InboundRecorder):
    """What is kept moves the position; where the door is full, it takes what comes after that."""

    def record(self, what: InboundMessage | MessageChange) -> None:
        try:
            super().record(what)
        except StoreError:
            self.disk_full = False
            raise
        self.stored_position = what.position

    async def wait_for_count(self, count: int) -> list[InboundMessage | MessageChange]:
        await self.changes.wait_until(lambda: len(self.received) >= count)
        return self.received

    async def last_arrival(self) -> InboundMessage:
        """The last that came in, once one did."""
        kept = (await self.wait_for_count(1))[-1]
        assert isinstance(kept, InboundMessage)
        return kept


def make_telegram_bridge(server: StrictTelegram, token: str = "", **seconds: float) -> TelegramBridge:
    return TelegramBridge(token or server.token, server.url, **{"timeout": 5.0, "typing_seconds": 60.0, **seconds})


@asynccontextmanager
async def run_telegram_bridge(
    bridge: TelegramBridge, door: TelegramInboundRecorder
) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(bridge.run(door))
    yield task
    task.cancel()
    await asyncio.wait([task])


def outgoing_telegram_part(
    text: str = "hello", target: str = str(OWNER), media: Media | None = None, **about: Any
) -> OutgoingPart:
    last = about.pop("last", True)
    outgoing = OutgoingMessage("key", "main", "owner", "telegram", target, text, **about)
    item = OutboxItem(1, outgoing, "sending", 1, datetime(2026, 11, 20, tzinfo=UTC))
    return OutgoingPart(item, 1, "" if media else text, last, media)


T = TypeVar("T")
TIMEOUT_SECONDS = 60.0


class ThreadedTelegram:
    """`with TelegramDesk() as desk:` serves until the end."""

    def __init__(self) -> None:
        self.server = StrictTelegram()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="telegram", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._within(self.server.go_online())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._within(self.server.go_offline())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_SECONDS)
        self._loop.close()

    @property
    def token(self) -> str:
        return self.server.token

    @property
    def url(self) -> str:
        return self.server.url

    def say(self, text: str, user: int = OWNER) -> None:
        async def said() -> None:
            self.server.chats.setdefault(user, {"id": user, "type": "private", "first_name": "Bob"})
            self.server.say(text, user=user)

        self._within(said())

    def texts(self, user: int = OWNER) -> list[str]:
        """What the bot wrote to somebody, oldest first."""

        async def written() -> list[str]:
            return self.server.texts(user)

        return self._within(written())

    def wait_until(self, true: Callable[[list[str]], bool], user: int = OWNER) -> list[str]:
        """Wait until it is so of what the bot wrote to somebody."""
        self._within(self.server.until(lambda: true(self.server.texts(user))))
        return self.texts(user)

    def _within(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(TIMEOUT_SECONDS)
