"""A bridge whose door is watched: what it hands in is noted, and at one of its calls everything can stop, as it does in
a process that is killed there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from assistant.core.bridge_api import Bridge, InboundMessage, InboundPort, MessageChange, OutgoingPart, TurnEvent
from assistant.core.errors import BridgeError, StoreError
from assistant.core.records import InboxReceipt

CrashMoment = Literal["before", "after"]


class ChangeSignal:
    """Wakes whoever waits for something to have happened."""

    def __init__(self) -> None:
        self._moved = asyncio.Event()

    def notify(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def wait_until(self, true: Callable[[], bool]) -> None:
        while not true():
            await self._moved.wait()


@dataclass
class BridgeProbe:
    """What a bridge handed in; and the trouble it will have: `dies_at` is the call of the door, counted from now, that
    is its last, before or after it took effect; with `refuses` the disk refuses that call instead. `send_fails_at` is
    the message, counted from now, that does not go out."""

    changed: ChangeSignal = field(default_factory=ChangeSignal)
    received: list[InboundMessage | MessageChange] = field(default_factory=list)
    crash_at_call: int = 0
    when: CrashMoment = "before"
    disk_full: bool = False
    crashed: bool = False
    send_fails_at: int = 0

    def changes(self) -> list[MessageChange]:
        return [one for one in self.received if isinstance(one, MessageChange)]

    def arrivals(self) -> list[InboundMessage]:
        return [one for one in self.received if isinstance(one, InboundMessage)]


class ProbedInbound:
    def __init__(self, door: InboundPort, watch: BridgeProbe) -> None:
        self._door = door
        self._watch = watch

    async def receive(self, arrival: InboundMessage) -> InboxReceipt | None:
        accepted: InboxReceipt | None = await self._call(lambda: self._door.receive(arrival))
        self._note(arrival)
        return accepted

    async def receive_change(self, change: MessageChange) -> None:
        await self._call(lambda: self._door.receive_change(change))
        self._note(change)

    def accepts_from(self, bridge: str, sender: str, room: str | None, *, addressed: bool) -> bool:
        return self._door.accepts_from(bridge, sender, room, addressed=addressed)

    def load_position(self, bridge: str) -> str:
        return self._door.load_position(bridge)

    def save_position(self, bridge: str, position: str) -> None:
        self._door.save_position(bridge, position)

    def mark_connected(self, bridge: str) -> None:
        self._door.mark_connected(bridge)
        self._watch.changed.notify()

    async def _call(self, call: Callable[[], Awaitable[Any]]) -> Any:
        watch = self._watch
        watch.crash_at_call -= 1
        here = watch.crash_at_call == 0
        if here and watch.disk_full:
            raise StoreError("The disk is full.")
        if here and watch.when == "before":
            await self._die()
        result = await call()
        if here and watch.when == "after":
            await self._die()
        return result

    async def _die(self) -> None:
        self._watch.crashed = True
        self._watch.changed.notify()
        await asyncio.get_running_loop().create_future()

    def _note(self, what: InboundMessage | MessageChange) -> None:
        self._watch.received.append(what)
        self._watch.changed.notify()


class ProbedBridge:
    """All but the door is the bridge's own."""

    def __init__(self, bridge: Bridge, watch: BridgeProbe) -> None:
        self._bridge = bridge
        self._watch = watch
        self.name = bridge.name
        self.capabilities = bridge.capabilities

    async def check(self) -> str:
        return await self._bridge.check()

    async def run(self, inbound: InboundPort) -> None:
        try:
            await self._bridge.run(ProbedInbound(inbound, self._watch))
        finally:
            self._watch.changed.notify()

    async def send(self, part: OutgoingPart) -> None:
        self._watch.send_fails_at -= 1
        if self._watch.send_fails_at == 0:
            raise BridgeError("It does not go out now.")
        try:
            await self._bridge.send(part)
        finally:
            self._watch.changed.notify()

    def show(self, event: TurnEvent, target: str) -> None:
        self._bridge.show(event, target)

    async def aclose(self) -> None:
        await self._bridge.aclose()
