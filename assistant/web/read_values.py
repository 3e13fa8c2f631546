"""What the owner may read of a running daemon over the web API: conversations, messages, memories, sleeps,
compactions, costs. Everything is of the owner's scope, and changes nothing (I10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from assistant.core.checkpoints import Checkpoint
from assistant.core.memories import MemoryHit, MemoryList, SleepReport
from assistant.core.model_api import UsageKey
from assistant.core.records import LogRecord, SearchHit, SessionInfo
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


class ReadApiPort(Protocol):
    """What is named and is not there raises `UsageError`, in words for people; everything raises `StoreError`."""

    def sessions(self, most: int) -> Sequence[GenerationDetails]:
        """The latest spoken in first; of each at most so many generations, newest first."""
        ...

    def session(self, session: str, number: int | None) -> GenerationDetails:
        """A generation, the current one unless numbered."""
        ...

    async def recent_messages(self, session: str, *, limit: int, before_id: int | None = None) -> Sequence[LogRecord]:
        """The newest messages of a session, those with smaller ids than `before_id`; oldest first."""
        ...

    async def search(self, text: str, period: TimeRange, *, session: str | None, limit: int) -> Sequence[SearchHit]:
        """Best first."""
        ...

    async def read_around(self, message_id: int, neighbours: int) -> Sequence[LogRecord]:
        """A message with those around it, oldest first."""
        ...

    async def memories(self) -> MemoryList: ...

    async def recall(
        self, text: str, period: TimeRange, *, limit: int, as_of: datetime | None = None
    ) -> Sequence[MemoryHit]:
        """Best first; with `as_of` as it was known then."""
        ...

    def list_sleeps(self, limit: int) -> Sequence[SleepReport]:
        """Newest first."""
        ...

    def render_cycle_report(self, cycle: SleepReport) -> str:
        """The report of a sleep as people read it, Markdown."""
        ...

    def compactions(self, session: str) -> Sequence[Checkpoint]:
        """Newest first."""
        ...

    def usage(self, by: UsageKey, days: int) -> Mapping[str, Any]:
        """What models cost in the last so many days and how the budget stands, as `assistant usage --json` has it."""
        ...
