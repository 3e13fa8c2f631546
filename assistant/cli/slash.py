"""The slash commands a terminal knows: offered for completion, and told apart from messages that begin with a slash.

All but `/quit` are answered by the runtime (`assistant/commands.py`)."""

from __future__ import annotations

COMMANDS = (
    "/help", "/status", "/model", "/usage", "/todo", "/compact", "/branch", "/pin", "/unpin", "/pins", "/requests",
    "/done", "/drop", "/memory", "/why", "/forget", "/sleep", "/undo", "/retry", "/stop",
)  # fmt: skip
LEAVING = ("/quit", "/exit")


def is_command(text: str) -> bool:
    return text.split(maxsplit=1)[0].lower() in COMMANDS if text.startswith("/") else False


def leaves(text: str) -> bool:
    return text.strip().lower() in LEAVING
