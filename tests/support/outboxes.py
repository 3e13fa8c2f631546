"""What went out, or is to go out."""

from __future__ import annotations

from assistant.core.records import OutboxItem
from assistant.store.script.outbox import StoredOutbox


def recent_items(outbox: StoredOutbox, session: str, *, limit: int = 20) -> list[OutboxItem]:
    """The newest items of a session on any bridge, oldest first."""
    return outbox._items("session = ? ORDER BY id DESC LIMIT ?", (session, limit))[::-1]
