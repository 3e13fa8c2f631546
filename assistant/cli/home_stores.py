"""The stores of the data folder, opened for a command that reads them, whether a daemon runs or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from assistant.cli.logging_setup import configure_logging
from assistant.core.calendar import utc_now
from assistant.core.errors import HomeError, UsageError
from assistant.core.store_ports import Conversation
from assistant.settings.settings import Settings
from assistant.wire.stores import Stores, is_restore_unfinished, open_stores


@contextmanager
def open_home_stores(settings: Settings, *, reading: bool = True) -> Iterator[Stores]:
    """The stores beside a running daemon; to change them (`reading` False) the caller holds the home's lock.

    Raises `HomeError` where nothing was ever said, `NewerSchema`, `StoreError`."""
    require_home(settings)
    configure_logging("warning")
    stores = open_stores(settings, utc_now(), reading=reading)
    try:
        yield stores
    finally:
        stores.close()


def require_home(settings: Settings) -> None:
    """Raises `HomeError` where nothing was ever said, so that a command which changes a data folder creates none."""
    if is_restore_unfinished(settings.home.path):
        raise HomeError(
            f"A restore of {settings.home.path} was interrupted. Nothing is lost; starting the assistant finishes it, "
            "and so does `assistant backup restore` without a name."
        )
    if not (settings.home.path / "script.db").exists() and any(settings.home.path.glob("log/*/*.jsonl")):
        raise HomeError(
            f"{settings.home.path / 'script.db'} is missing. The message log is there, so nothing is lost; "
            "`assistant run` rebuilds it from the log."
        )
    if not (settings.home.path / "script.db").exists():
        raise HomeError(
            f"There is nothing in {settings.home.path} yet. Begin with `assistant chat`; if there was something, "
            "bring it back first (is its disk mounted?)."
        )


def scope_of_session(conversation: Conversation, session: str) -> str:
    """The scope of a session's messages. Raises `UsageError` for a session that does not exist."""
    scopes = {info.key: info.scope for info in conversation.list_sessions()}
    if session not in scopes:
        names = ", ".join(sorted(scopes)) or "none yet"
        raise UsageError(f"There is no conversation {session!r}. Conversations: {names}.")
    return scopes[session]
