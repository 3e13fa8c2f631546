"""The door of a house that is not there: what a bridge by itself hands in is kept in a list."""

from __future__ import annotations

from dataclasses import dataclass, field

from assistant.core.bridge_api import InboundMessage, MessageChange
from assistant.core.errors import StoreError
from assistant.core.records import InboxReceipt
from tests.contract.bridges.watched import Moves


@dataclass
class ListDoor:
    """While it is `full` nothing is kept; `connections` counts how often a bridge said that it is connected."""

    kept: list[InboundMessage | MessageChange] = field(default_factory=list)
    at: str = ""
    strangers: tuple[str, ...] = ()
    full: bool = False
    connections: int = 0
    moves: Moves = field(default_factory=Moves)

    async def receive(self, arrival: InboundMessage) -> InboxReceipt | None:
        self.keep(arrival)
        return InboxReceipt(len(self.kept), len(self.kept))

    async def change(self, change: MessageChange) -> None:
        self.keep(change)

    def keep(self, what: InboundMessage | MessageChange) -> None:
        """Raises `StoreError` while it is full."""
        self.moves.move()
        if self.full:
            raise StoreError("The disk is full.")
        self.kept.append(what)

    def expects(self, bridge: str, sender: str, room: str | None, *, addressed: bool) -> bool:
        return sender not in self.strangers

    def position(self, bridge: str) -> str:
        return self.at

    def advance(self, bridge: str, position: str) -> None:
        self.at = position
        self.moves.move()

    def connected(self, bridge: str) -> None:
        self.connections += 1
        self.moves.move()
