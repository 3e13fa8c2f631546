"""What the assistant remembers of what was said: journal entries, and how far it has read. Frozen values.

All times are aware and in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

SourceType = Literal["extraction", "compaction", "context_synthesis", "tool", "reset", "import"]


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One thing worth remembering. `key` is deterministic, so that writing it twice writes it once (I4).

    `timestamp` is when it was said, `sources` the messages it came from (I6); `importance` is 0 to 1; `tags` are the
    kind of fact ("fact", "preference", "decision", "task", "summary") and whatever else groups it."""

    key: str
    scope: str
    session: str
    generation: int
    content: str
    timestamp: datetime
    source_type: SourceType
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    sources: tuple[int, ...] = ()
    id: int | None = None
    superseded_by: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """How far a phase has read a session's log: everything up to and including `seq` (0: nothing yet)."""

    phase: str
    session: str
    generation: int
    seq: int


@dataclass(frozen=True, slots=True)
class CycleReport:
    """What one sleep cycle did; `phases` has per phase what it read, wrote, rejected, spent and how it ended."""

    id: int
    trigger: str
    started_at: datetime
    ended_at: datetime | None
    state: Literal["running", "done", "failed", "interrupted"]
    phases: dict[str, dict[str, Any]] = field(default_factory=dict)
