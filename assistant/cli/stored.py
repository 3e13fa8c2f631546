"""The stores of the home, opened for a command that only looks: with or without a daemon running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from assistant import wire
from assistant.daemon import utc_now
from assistant.errors import UsageError
from assistant.ports import Conversation
from assistant.settings import Settings


@contextmanager
def opened(settings: Settings) -> Iterator[wire.Stores]:
    """Raises `StoreError` when the home cannot be read."""
    stores = wire.open_stores(settings, utc_now())
    try:
        yield stores
    finally:
        stores.close()


def scope_of_session(conversation: Conversation, session: str) -> str:
    """The scope in which a session's words stand. Raises `UsageError` for a session that does not exist."""
    known = {info.key: info.scope for info in conversation.sessions()}
    if session not in known:
        names = ", ".join(sorted(known)) or "none yet"
        raise UsageError(f"There is no session {session!r}. Sessions: {names}.")
    return known[session]
