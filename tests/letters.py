"""An outbox of its own, and what is put into it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assistant.core.records import OutgoingMessage
from assistant.store.database import Database
from assistant.store.outbox import Outbox
from assistant.store.script_schema import script
from tests.scripted import SteppingClock


@contextmanager
def outbox_in(path: Path, clock: SteppingClock) -> Iterator[Outbox]:
    db = Database.open(path / "script.db", script, clock())
    yield Outbox(db)
    db.close()


def letter(key: str, bridge: str = "kept") -> OutgoingMessage:
    return OutgoingMessage(key, "main", "owner", bridge, "main", f"body of {key}")
