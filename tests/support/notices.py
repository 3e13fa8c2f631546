"""What sends notices, over the stores of a test."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from assistant.gateway.notices import NoticeSender
from assistant.store.database import Database
from assistant.store.script.generations import StoredResets
from assistant.store.script.notices import StoredNotices, StoredOutages


def notice_sender(db: Database, clock: Callable[[], datetime]) -> NoticeSender:
    """Nobody is woken by it."""
    return NoticeSender(StoredNotices(db), StoredOutages(db), StoredResets(db), ZoneInfo("UTC"), clock, lambda: None)
