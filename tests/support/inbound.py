"""Both ends of a bridge that runs without an app: what it hands in is recorded in a list; the outbox, and messages to
put into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from assistant.core.bridge_api import InboundMessage, MessageChange
from assistant.core.errors import StoreError
from assistant.core.records import InboxReceipt, OutgoingMessage
from assistant.store.database import Database
from assistant.store.schema.migrations import script_migrations
from assistant.store.script.outbox import StoredOutbox
from tests.support.networks.probed_bridge import ChangeSignal
from tests.support.scripted import SteppingClock


@dataclass
class InboundRecorder:
    """While it is `full` nothing is kept; `connections` counts how often a bridge said that it is connected."""

    received: list[InboundMessage | MessageChange] = field(default_factory=list)
    stored_position: str = ""
    unexpected_senders: tuple[str, ...] = ()
    disk_full: bool = False
    connections: int = 0
    changes: ChangeSignal = field(default_factory=ChangeSignal)

    async def receive(self, arrival: InboundMessage) -> InboxReceipt | None:
        self.record(arrival)
        return InboxReceipt(len(self.received), len(self.received))

    async def receive_change(self, change: MessageChange) -> None:
        self.record(change)

    def record(self, what: InboundMessage | MessageChange) -> None:
        """Raises `StoreError` while it is full."""
        self.changes.notify()
        if self.disk_full:
            raise StoreError("The disk is full.")
        self.received.append(what)

    def accepts_from(self, bridge: str, sender: str, room: str | None, *, addressed: bool) -> bool:
        return sender not in self.unexpected_senders

    def load_position(self, bridge: str) -> str:
        return self.stored_position

    def save_position(self, bridge: str, position: str) -> None:
        self.stored_position = position
        self.changes.notify()

    def mark_connected(self, bridge: str) -> None:
        self.connections += 1
        self.changes.notify()


@contextmanager
def open_outbox(path: Path, clock: SteppingClock) -> Iterator[StoredOutbox]:
    db = Database.open(path / "script.db", script_migrations, clock())
    yield StoredOutbox(db)
    db.close()


def outgoing_message(key: str, bridge: str = "kept") -> OutgoingMessage:
    return OutgoingMessage(key, "main", "owner", bridge, "main", f"body of {key}")
