"""A Telegram bridge without a house: the door that it hands in at, and what it is given to send."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from assistant.bridge_ports import Arrival, Change, Part
from assistant.bridges.telegram.bridge import TelegramBridge
from assistant.errors import StoreError
from assistant.messages import Media
from assistant.records import Accepted, OutboxItem, Outgoing
from tests.strict.telegram import StrictTelegram
from tests.strict.telegram_people import OWNER

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@dataclass
class KeptDoor:
    """A door whose home is a list. With `refuse` the next that comes in is not kept."""

    kept: list[Arrival | Change] = field(default_factory=list)
    at: str = ""
    strangers: tuple[str, ...] = ()
    connections: int = 0
    refuse: bool = False
    moved: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def receive(self, arrival: Arrival) -> Accepted | None:
        await self._keep(arrival)
        return None

    async def change(self, change: Change) -> None:
        await self._keep(change)

    async def _keep(self, what: Arrival | Change) -> None:
        if self.refuse:
            self.refuse = False
            raise StoreError("The disk is full.")
        self.at = what.position
        async with self.moved:
            self.kept.append(what)
            self.moved.notify_all()

    def expects(self, bridge: str, sender: str, room: str | None, *, addressed: bool) -> bool:
        return sender not in self.strangers

    def position(self, bridge: str) -> str:
        return self.at

    def advance(self, bridge: str, position: str) -> None:
        self.at = position

    def connected(self, bridge: str) -> None:
        self.connections += 1

    async def until(self, count: int) -> list[Arrival | Change]:
        async with self.moved:
            await self.moved.wait_for(lambda: len(self.kept) >= count)
        return self.kept

    async def arrival(self) -> Arrival:
        """The last that came in, once one did."""
        kept = (await self.until(1))[-1]
        assert isinstance(kept, Arrival)
        return kept


def made(server: StrictTelegram, token: str = "", **seconds: float) -> TelegramBridge:
    return TelegramBridge(token or server.token, server.url, **{"timeout": 5.0, "typing_seconds": 60.0, **seconds})


@asynccontextmanager
async def running(bridge: TelegramBridge, door: KeptDoor) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(bridge.run(door))
    yield task
    task.cancel()
    await asyncio.wait([task])


def part(text: str = "hello", target: str = str(OWNER), media: Media | None = None, **about: Any) -> Part:
    last = about.pop("last", True)
    outgoing = Outgoing("key", "main", "owner", "telegram", target, text, **about)
    item = OutboxItem(1, outgoing, "sending", 1, datetime(2026, 11, 20, tzinfo=UTC))
    return Part(item, 1, "" if media else text, last, media)
