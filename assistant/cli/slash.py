"""The slash commands a terminal knows: offered for completion, and told apart from messages that begin with a slash.

All but `/quit` are answered by the runtime (`assistant/commands/registry.py`). What it answers names them;
in a shell they are named as what can be typed there."""

from __future__ import annotations

import re

from assistant.core.sessions import parse_session_name

SLASH_COMMANDS = (
    "/help",
    "/status",
    "/model",
    "/usage",
    "/todo",
    "/session",
    "/sessions",
    "/reset",
    "/compact",
    "/branch",
    "/pin",
    "/unpin",
    "/pins",
    "/requests",
    "/done",
    "/drop",
    "/remind",
    "/schedule",
    "/memory",
    "/why",
    "/forget",
    "/sleep",
    "/people",
    "/pair",
    "/bridge",
    "/deliveries",
    "/backup",
    "/archive",
    "/undo",
    "/retry",
    "/stop",
)
LEAVE_COMMANDS = ("/quit", "/exit")
_SWITCHING = "/session"
# Reminders are set in other words there, a reset is given its session otherwise.
_NAMED = re.compile(
    r"`/(archive|bridge|compact|deliveries|people|pin|requests|schedule|sessions|sleep|unpin|usage|why"
    r"|remind(?= (?:cancel|history|list)\b)|reset)(?=[ `])"
)
_OF_SHELL = {"pin": "pins add", "unpin": "pins remove", "why": "memory why"}


def is_slash_command(text: str) -> bool:
    return text.split(maxsplit=1)[0].lower() in SLASH_COMMANDS if text.startswith("/") else False


def session_after_command(text: str, session: str) -> str:
    """The session that one is in after this was typed: another one after `/session NAME`. Raises `UsageError` for what
    is no name."""
    name, _, rest = text.strip().partition(" ")
    return parse_session_name(rest.strip()) if name.lower() == _SWITCHING and rest.strip() else session


def rewrite_for_shell(text: str) -> str:
    """`text` with those slash commands that a shell has, with the same words after them, named as it has them."""
    return _NAMED.sub(lambda found: f"`assistant {_OF_SHELL.get(found[1], found[1])}", text)


def is_leave_command(text: str) -> bool:
    return text.strip().lower() in LEAVE_COMMANDS
