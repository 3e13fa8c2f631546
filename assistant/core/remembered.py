"""What the assistant remembers of what was said: journal entries, and how far it has read. Frozen values.

All times are aware and in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

SourceType = Literal["extraction", "compaction", "context_synthesis", "tool", "reset", "import", "correction"]


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One thing worth remembering. `key` is deterministic, so that writing it twice writes it once (I4).

    `timestamp` is when it was said, `sources` the messages it came from (I6); `importance` is 0 to 1; `tags` are the
    kind of fact ("fact", "preference", "decision", "task", "summary") and whatever else groups it; `cycle` is the sleep
    that wrote it, if one did."""

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
    cycle: int | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing that semantic memory holds, made of journal entries (`entries`, their ids).

    `id` is deterministic (made of the key of its first entry), so that consolidating twice gives the same memories.
    `said_at` is when it was said; what is no longer true has `until`, when that was said, and `superseded_by`, the
    memory that holds now. `kind` and `importance` as in `JournalEntry`."""

    id: str
    scope: str
    text: str
    said_at: datetime
    kind: str = "fact"
    importance: float = 0.5
    entries: tuple[int, ...] = ()
    until: datetime | None = None
    superseded_by: str = ""

    @property
    def is_current(self) -> bool:
        return self.until is None

    @property
    def reference(self) -> str:
        """By which a person or a model names it: the beginning of its id, or "entry 12" where it is only that yet."""
        return self.id[:8] if self.id else f"entry {self.entries[0]}"


@dataclass(frozen=True, slots=True)
class Recalled:
    """What answers a question: a memory, or a journal entry that no memory was made of yet (then `memory.id` is "" and
    `memory.entries` that entry alone). `good`: related by more than coincidence, so that it may come up unasked;
    `sources` are the messages that it was learned from, those of the entries by which it was found."""

    memory: Memory
    score: float
    good: bool
    sources: tuple[int, ...] = ()

    @property
    def reference(self) -> str:
        """By which a person or a model names it."""
        return self.memory.reference


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """One change of semantic memory: `memory` as it is to be afterwards; to "delete" only its id counts. Carrying a
    change out twice is the same as once. `before` is what stood there, so that a night can be taken back."""

    action: Literal["add", "update", "delete"]
    memory: Memory
    before: Memory | None = None


@dataclass(frozen=True, slots=True)
class MemoryVersion:
    """What a memory said and says, from the history that the memory store keeps; "" where it did not exist."""

    at: datetime
    action: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """Changes decided on and written down before they are made, so that a night that was cut off makes the same ones
    (I4). `entries` are the journal entries that they settle, `superseded` maps an entry to the one that replaces it,
    `rejected` an entry to why no memory was made of it."""

    key: str
    cycle: int
    scope: str
    changes: tuple[MemoryChange, ...]
    entries: tuple[int, ...]
    superseded: tuple[tuple[int, int], ...] = ()
    rejected: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class KnownThen:
    """What was known of a scope at a time: its memories as they stood, the entries that were none, both oldest first,
    and by entry id the entry that had taken its place in the journal by then."""

    memories: tuple[Memory, ...] = ()
    entries: tuple[JournalEntry, ...] = ()
    replaced: Mapping[int, JournalEntry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attribute:
    """Something that is known of somebody or something, since when and until when; `sources` are journal entries."""

    name: str
    value: str
    since: datetime
    until: datetime | None = None
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """A person, a place, a project or another thing that conversations come back to. `attributes` oldest first, former
    ones included."""

    scope: str
    kind: Literal["person", "place", "project", "thing"]
    name: str
    aliases: tuple[str, ...] = ()
    summary: str = ""
    attributes: tuple[Attribute, ...] = ()
    updated_at: datetime | None = None
    id: int | None = None


EditedBy = Literal["user", "model", "sleep"]


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a memory file or a profile that can be taken back: the whole text before and after. `target` names
    it: `file:MEMORY.md`, `profile:12`."""

    target: str
    scope: str
    by: EditedBy
    before: str
    after: str
    at: datetime
    cycle: int | None = None
    undone_at: datetime | None = None
    id: int | None = None


@dataclass(frozen=True, slots=True)
class FileThen:
    """What a file said at a time; not `sure` where somebody edited it by hand at a time that nobody noted."""

    text: str
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Reading:
    """How far a phase has read a session's log: everything up to and including `seq` (0: nothing yet)."""

    phase: str
    session: str
    generation: int
    seq: int


WHOLE_SLEEPS = ("sleep", "late", "manual")
"""Triggers of sleeps with all their phases: at night, after a night that was missed, by hand. "nap" and "phase" are in
part."""


@dataclass(frozen=True, slots=True)
class CycleReport:
    """What one sleep cycle did; `phases` has per phase what it read, wrote, rejected, spent and how it ended. What was
    taken back is `undone`, and `undoing` until all of it is."""

    id: int
    trigger: str
    started_at: datetime
    ended_at: datetime | None
    state: Literal["running", "done", "failed", "interrupted", "undoing", "undone"]
    phases: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        return self.trigger in WHOLE_SLEEPS
