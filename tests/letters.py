"""An outbox of its own, and what is put into it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assistant.core.records import OutgoingMessage
from assistant.store.database import Database
from assistant.store.schema.script import script_migrations
from assistant.store.script.outbox import StoredOutbox
from tests.scripted import SteppingClock


@contextmanager
def outbox_in(path: Path, clock: SteppingClock) -> Iterator[StoredOutbox]:
    db = Database.open(path / "script.db", script_migrations, clock())
    yield StoredOutbox(db)
    db.close()


def letter(key: str, bridge: str = "kept") -> OutgoingMessage:
    return OutgoingMessage(key, "main", "owner", bridge, "main", f"body of {key}")
