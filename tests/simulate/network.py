"""A network with people on it: it hands in what they write until it was acknowledged, shows what it is sent, and is
away or unsure for a while. It stays as it is while the assistant is restarted or killed."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from assistant.core.bridge_api import (
    BridgeCapabilities,
    InboundMessage,
    InboundPort,
    MessageChange,
    OutgoingPart,
    TurnEvent,
)
from assistant.core.errors import BridgeError
from assistant.core.records import InboxReceipt
from tests.simulate.words import scopes_of

OWNER, ANN, IVO, ROOM = "100", "7", "8", "-200"
SENDERS = {"owner": OWNER, "ann": ANN, "ivo": IVO, "room": ANN}
_SCOPES = {OWNER: "owner", ANN: "ann", IVO: "ivo", ROOM: "room"}
# As the program names whose words something is.
SCOPES = ("owner", f"peer:alpha:{ANN}", f"peer:beta:{IVO}", f"room:alpha:{ROOM}")
_A_DAY = 86_400.0


@dataclass
class Network:
    """`complain` is told of what must not be shown. Without `deduplicates` what is sent twice is shown twice."""

    name: str
    deduplicates: bool
    complain: Callable[[str], None]
    on_acknowledged: Callable[[InboundMessage | MessageChange, InboxReceipt | None], None]
    on_shown: Callable[[OutgoingPart], None]
    is_down: bool = False
    is_unsure: bool = False
    queue: deque[InboundMessage | MessageChange] = field(default_factory=deque)
    shown: list[OutgoingPart] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    asked_again: set[str] = field(default_factory=set)  # keys that the owner wants to have once more
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def post(self, item: InboundMessage | MessageChange) -> None:
        """Somebody writes."""
        self.queue.append(item)
        self.woken.set()

    def show(self, part: OutgoingPart) -> None:
        key, outgoing = part.key, part.item.outgoing
        if self.counts[key] and self.deduplicates:
            return
        if self.counts[key] and outgoing.key not in self.asked_again:
            self.complain(f"I8: {key} was shown twice on {self.name}")
        self.counts[key] += 1
        self.shown.append(part)
        self.on_shown(part)
        scope = _SCOPES.get(outgoing.target, "nobody")
        if others := scopes_of(part.text) - {scope}:
            self.complain(f"I10: words of {', '.join(others)} were sent to {scope} ({key})")


class LifeBridge:
    """The network as one life of the process sees it."""

    def __init__(self, network: Network, luck: Random) -> None:
        self.name = network.name
        self.capabilities = BridgeCapabilities(
            dedupe_seconds=_A_DAY if network.deduplicates else 0, max_length=4000, buttons=True
        )
        self._network = network
        self._luck = luck
        self.alive = True

    async def check(self) -> str:
        return self.name

    async def run(self, inbound: InboundPort) -> None:
        network = self._network
        while self.alive:
            if network.is_down:
                raise BridgeError("no route to the network")
            inbound.mark_connected(self.name)
            while network.queue and self.alive and not network.is_down:
                await self._hand_in(network.queue[0], inbound)
            if not network.is_down:
                network.woken.clear()
                await network.woken.wait()

    async def _hand_in(self, item: InboundMessage | MessageChange, inbound: InboundPort) -> None:
        receipt = None
        if isinstance(item, InboundMessage):
            receipt = await inbound.receive(item)
        else:
            await inbound.receive_change(item)
        # A process that was killed meanwhile acknowledges nothing.
        if self.alive:
            self._network.queue.popleft()
            self._network.on_acknowledged(item, receipt)

    async def send(self, part: OutgoingPart) -> None:
        await asyncio.sleep(self._luck.uniform(0.05, 1.5))
        network = self._network
        if not self.alive:
            return
        if network.is_down:
            raise BridgeError("no route to the network")
        luck = self._luck.random() if network.is_unsure else 1.0
        if luck < 0.2:
            raise BridgeError("the connection broke", ambiguous=True)
        network.show(part)
        if luck < 0.4:
            raise BridgeError("the connection broke", ambiguous=True)

    def show(self, event: TurnEvent, target: str) -> None:
        return None

    async def aclose(self) -> None:
        return None
