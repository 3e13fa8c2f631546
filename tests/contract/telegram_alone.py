"""A Telegram bridge without a house: the door that it hands in at, and what it is given to send."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from assistant.bridges.telegram.bridge import TelegramBridge
from assistant.core.bridge_api import InboundMessage, MessageChange, OutgoingPart
from assistant.core.errors import StoreError
from assistant.core.messages import Media
from assistant.core.records import OutboxItem, OutgoingMessage
from tests.kept_door import ListDoor
from tests.strict.telegram import StrictTelegram
from tests.strict.telegram_people import OWNER

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


class KeptDoor(ListDoor):
    """What is kept moves the position; where the door is full, it takes what comes after that."""

    def keep(self, what: InboundMessage | MessageChange) -> None:
        try:
            super().keep(what)
        except StoreError:
            self.full = False
            raise
        self.at = what.position

    async def until(self, count: int) -> list[InboundMessage | MessageChange]:
        await self.moves.until(lambda: len(self.kept) >= count)
        return self.kept

    async def arrival(self) -> InboundMessage:
        """The last that came in, once one did."""
        kept = (await self.until(1))[-1]
        assert isinstance(kept, InboundMessage)
        return kept


def made(server: StrictTelegram, token: str = "", **seconds: float) -> TelegramBridge:
    return TelegramBridge(token or server.token, server.url, **{"timeout": 5.0, "typing_seconds": 60.0, **seconds})


@asynccontextmanager
async def running(bridge: TelegramBridge, door: KeptDoor) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(bridge.run(door))
    yield task
    task.cancel()
    await asyncio.wait([task])


def part(text: str = "hello", target: str = str(OWNER), media: Media | None = None, **about: Any) -> OutgoingPart:
    last = about.pop("last", True)
    outgoing = OutgoingMessage("key", "main", "owner", "telegram", target, text, **about)
    item = OutboxItem(1, outgoing, "sending", 1, datetime(2026, 11, 20, tzinfo=UTC))
    return OutgoingPart(item, 1, "" if media else text, last, media)
