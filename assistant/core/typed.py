"""What a person types after a slash, and what is known of each such command: values that the rooms which answer them
share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assistant.core.messages import Trust


@dataclass(frozen=True, slots=True)
class Typed:
    """One command as typed: `rest` is everything after its name; `bridge` and `target` are where it was typed, and
    where an answer goes that comes later; `sender` who typed it, and `trust` what their words are."""

    rest: str
    session: str
    bridge: str
    now: datetime
    target: str = ""
    sender: str = "owner"
    trust: Trust = "owner"


@dataclass(frozen=True, slots=True)
class Command:
    """`usage` is "/name [ARGUMENTS]", `text` a line of help. `run` gives Markdown and raises `UsageError`. `roles` may
    type it at most (see `assistant.core.authority`): one that others than the owner may type reads and changes nothing
    beyond the session, or its scope, that it is typed in."""

    usage: str
    text: str
    run: Callable[[Typed], Awaitable[str]]
    roles: frozenset[str] = frozenset({"owner"})


class Answering(Protocol):
    """A room that answers commands."""

    def entries(self) -> Mapping[str, Command]:
        """Its commands by name, without the slash, in the order in which help lists them."""
        ...
