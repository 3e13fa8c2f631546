"""The assistant's account on a Matrix server in tests: bridges that are made from it, and the door of their app."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from assistant.bridges.matrix.bridge import MatrixBridge
from assistant.core.bridge_api import DeviceLogin, InboundMessage, MessageChange, OutgoingPart, TurnEvent
from assistant.core.messages import Media
from assistant.core.records import OutboxItem, OutgoingMessage
from tests.support.inbound import InboundRecorder
from tests.support.matrix_users import MatrixUser
from tests.support.synapse import Synapse

NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


class MatrixInboundRecorder(InboundRecorder):
    """What comes again is kept once; `ready` once a bridge is connected."""

    def __init__(self, stored_position: str = "") -> None:
        super().__init__(stored_position=stored_position)
        self.ready = asyncio.Event()

    def record(self, what: InboundMessage | MessageChange) -> None:
        if what in self.received:
            self.changes.notify()
        else:
            super().record(what)

    def mark_connected(self, bridge: str) -> None:
        super().mark_connected(bridge)
        self.ready.set()

    async def wait_until(self, true: Callable[[], Any]) -> None:
        async with asyncio.timeout(40):
            await self.changes.wait_until(true)

    async def wait_for_texts(self, *texts: str) -> list[InboundMessage]:
        """Wait until just these words have come, in this order."""
        await self.wait_until(lambda: len(self.received) >= len(texts))
        assert [one.content for one in self.received] == list(texts)
        return [one for one in self.received if isinstance(one, InboundMessage)]


@dataclass
class MatrixBot:
    """The assistant's account, from which bridges are made."""

    server: Synapse
    user: str
    device: str
    token: str
    store: Path
    invites: tuple[str, ...] = ()
    encryption: bool = False

    def bridge(self, url: str = "") -> MatrixBridge:
        return MatrixBridge(
            url or self.server.url,
            DeviceLogin(self.user, self.device, self.token),
            store=self.store,
            encryption=self.encryption,
            invites=self.invites,
            is_owners=lambda account: "erik" in account,
            edit_seconds=0.0,
        )

    @asynccontextmanager
    async def run_bridge(
        self, door: MatrixInboundRecorder, bridge: MatrixBridge | None = None
    ) -> AsyncIterator[MatrixBridge]:
        bridge = bridge or self.bridge()
        door.ready.clear()
        task = asyncio.create_task(bridge.run(door))
        ready = asyncio.create_task(door.ready.wait())
        try:
            async with asyncio.timeout(40):
                await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
            yield bridge
        finally:
            ready.cancel()
            task.cancel()
            ended = (await asyncio.gather(task, return_exceptions=True))[0]
            await bridge.aclose()
            assert isinstance(ended, asyncio.CancelledError), ended


def outgoing_part(
    target: str,
    text: str,
    key: str = "reply:1",
    *,
    number: int = 1,
    media: Media | None = None,
    kind: Literal["reply", "notice"] = "reply",
) -> OutgoingPart:
    outgoing = OutgoingMessage(key, "main", "owner", "matrix", target, text, kind)
    return OutgoingPart(OutboxItem(1, outgoing, "sending", 1, NOW), number, text, media=media)


def turn_event(kind: Any, name: str = "t1", **data: Any) -> TurnEvent:
    return TurnEvent(kind, "main", name, data)


async def open_direct_room(bot: MatrixBot, person: MatrixUser, door: MatrixInboundRecorder) -> str:
    """A room between the two, into which the bridge came."""
    room = await person.create_room(bot.user, is_direct=True)
    async with bot.run_bridge(door):
        await person.sync_until(lambda: has_joined(person, room, bot.user))
    return room


def has_joined(person: MatrixUser, room: str, user: str) -> bool:
    return any(
        one["type"] == "m.room.member" and one["state_key"] == user and one["content"]["membership"] == "join"
        for one in person.events.get(room, [])
    )
