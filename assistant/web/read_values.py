"""What the owner may read of a running daemon over the web API: conversations, messages, memories, sleeps,
compactions, costs. Everything is of the owner's scope, and changes nothing (I10).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from assistant.core.records import SessionInfo
from assistant.core.sessions import Generation


@dataclass(frozen=True, slots=True)
class GenerationDetails:
    """One generation of a session: `info` of the session where it is the current one, `archive` the address of its
    archive, "" where it has none. `handover` and `summary` are what it began with and its newest summary; "" where
    there is none, or where only a list was asked for."""

    generation: Generation
    info: SessionInfo | None = None
    archive: str = ""
    handover: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From `after` until, and without, `before`; None for no bound."""

    after: datetime | None = None
    before: datetime | None = None
