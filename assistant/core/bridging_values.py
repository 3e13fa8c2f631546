"""How a bridge stands, and what did not get to where it was to go. Frozen values; times are aware and in UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from assistant.core.records import OutboxState

# Set up in config.toml, each under its own section.
NETWORKS = ("telegram", "matrix")

BridgeState = Literal["connected", "connecting", "paused", "failing", "off"]


@dataclass(frozen=True, slots=True)
class Standing:
    """One bridge. `account` is who we are there, "" where nobody told yet; `since` is when it came into this state;
    `waiting` counts what is to go out there; `error` is the last trouble, "" where there is none."""

    name: str
    state: BridgeState
    account: str = ""
    since: datetime | None = None
    waiting: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Undelivered:
    """Something that goes out by itself no more: it may or may not have arrived (`ambiguous`), was refused (`failed`),
    or must not (`withheld`); or something that is still to go out (`pending`, `sending`), with an `error` where it was
    tried in vain. `parts_sent`: how many of its parts the network has for certain."""

    id: int
    state: OutboxState
    bridge: str
    target: str
    session: str
    scope: str
    body: str
    error: str
    parts_sent: int
    attempts: int
    created_at: datetime
    updated_at: datetime

    @property
    def goes_by_itself(self) -> bool:
        """Whether it is sent without anybody's word."""
        return self.state in ("pending", "sending")


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one delivery."""

    state: OutboxState
    error: str


@dataclass(frozen=True, slots=True)
class Brought:
    """What became of what waited for a bridge: so many deliveries of the owner's go to the terminal, so many for
    others still wait."""

    home: int
    left: int


@dataclass(frozen=True, slots=True)
class Login:
    """A device of an account's, and what it shows to be let in."""

    user: str
    device: str
    token: str = field(repr=False)
