"""The slash commands a terminal knows: offered for completion, and told apart from messages that begin with a slash.

All but `/quit` are answered by the runtime (`assistant/commands.py`)."""

from __future__ import annotations

from assistant.sessions import session_named

COMMANDS = (
    "/help", "/status", "/model", "/usage", "/todo", "/session", "/sessions", "/reset", "/compact", "/branch", "/pin",
    "/unpin", "/pins", "/requests", "/done", "/drop", "/remind", "/schedule", "/memory", "/why", "/forget", "/sleep",
    "/people", "/pair", "/bridge", "/deliveries", "/backup", "/archive", "/undo", "/retry", "/stop",
)  # fmt: skip
LEAVING = ("/quit", "/exit")
_SWITCHING = "/session"


def is_command(text: str) -> bool:
    return text.split(maxsplit=1)[0].lower() in COMMANDS if text.startswith("/") else False


def switched(text: str, session: str) -> str:
    """The session that one is in after this was typed: another one after `/session NAME`. Raises `UsageError` for what
    is no name."""
    name, _, rest = text.strip().partition(" ")
    return session_named(rest.strip()) if name.lower() == _SWITCHING and rest.strip() else session


def leaves(text: str) -> bool:
    return text.strip().lower() in LEAVING
