"""Slash commands as values: one as a person typed it, what is known of each command, and those that wait for their
answer. The rooms that answer commands share these.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from assistant.core.messages import Trust


@dataclass(frozen=True, slots=True)
class CommandInvocation:
    """One command as typed."""

    arguments: str  # everything after its name
    session: str
    bridge: str  # where it was typed
    now: datetime
    target: str = ""  # where an answer goes that comes later
    sender: str = "owner"  # who typed it
    trust: Trust = "owner"  # what their words are


@dataclass(frozen=True, slots=True)
class Command:
    """What is known of one command. One that others than the owner may type reads and changes nothing beyond the
    session, or its scope, that it is typed in."""

    usage: str  # "/name [ARGUMENTS]"
    help_text: str  # one line
    run: Callable[[CommandInvocation], Awaitable[str]]  # gives Markdown and raises `UsageError`
    roles: frozenset[str] = frozenset({"owner"})  # who may type it at most, see `assistant.core.people`


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """A command that was typed on a bridge and is not answered yet."""

    id: int
    bridge: str
    external_id: str
    session: str
    scope: str
    sender: str
    target: str
    text: str
    begun: bool  # whether it may have taken effect
