"""Value types for memory: journal entries, memories, sleep reports, cursors, memory references (an id prefix or "entry
12"), and results of showing, correcting, importing and rebuilding. Frozen; all times are aware and in UTC.

A journal entry without a memory yet is represented by a `Memory` with id "" and that entry alone in `entries`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Literal

from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.records import LogRecord
from assistant.core.text import lazy_regex, shorten_line

SourceType = Literal["extraction", "compaction", "context_synthesis", "tool", "reset", "import", "correction"]


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One fact worth remembering."""

    key: str  # idempotency key: written at most once (I4)
    scope: str
    session: str
    generation: int
    content: str
    timestamp: datetime  # when it was said
    source_type: SourceType
    importance: float = 0.5  # 0 to 1
    tags: tuple[str, ...] = ()  # the kind ("fact", "preference", "decision", "task", "summary") and other groups
    sources: tuple[int, ...] = ()  # ids of the source messages (I6)
    id: int | None = None
    superseded_by: int | None = None
    cycle: int | None = None  # the sleep cycle that wrote it


@dataclass(frozen=True, slots=True)
class Memory:
    """An item of semantic memory, made of journal entries."""

    id: str  # derived from the key of its first entry, so consolidation is idempotent
    scope: str
    text: str
    said_at: datetime
    kind: str = "fact"  # as in `JournalEntry`
    importance: float = 0.5
    entries: tuple[int, ...] = ()  # ids of journal entries
    until: datetime | None = None  # when it stopped being true; None while current
    superseded_by: str = ""  # the memory that superseded it

    @property
    def is_current(self) -> bool:
        """Whether no later one has replaced it."""
        return self.until is None

    @property
    def reference(self) -> str:
        """Its name for people and models: an id prefix, or "entry 12" if it has no id yet."""
        return self.id[:8] if self.id else f"entry {self.entries[0]}"


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A search result: a memory, or a journal entry without a memory yet."""

    memory: Memory
    score: float
    is_relevant: bool  # beyond chance, so it may be recalled unasked
    sources: tuple[int, ...] = ()  # source messages of the matching entries
    # Feature contributions to the score of its best entry, where the search is explained.
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """Its name for people and models."""
        return self.memory.reference


@dataclass(frozen=True, slots=True)
class MemorySearchExplanation:
    """Details of a search, with its results."""

    words: Mapping[str, Sequence[str]]  # word of the query to the stems that match it
    asks_for: Sequence[str]  # what else it asks for, in words for people: "a time"
    entries: int  # in the whole journal, of all scopes
    by_words: int  # scored parts of entries that match words of the query
    by_meaning: int  # parts scored by meaning alone
    hits: Sequence[MemoryHit]


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """One idempotent change of semantic memory."""

    action: Literal["add", "update", "delete"]
    memory: Memory  # the new state; for "delete" only the id matters
    before: Memory | None = None  # the previous state, for undo


@dataclass(frozen=True, slots=True)
class MemoryVersion:
    """An entry in the history of a memory."""

    at: datetime
    action: str
    before: str  # "" if it did not exist
    after: str  # "" if it does not exist any more


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """Decided changes, persisted before they are applied, so that an interrupted cycle resumes with the same ones
    (I4)."""

    key: str
    cycle: int
    scope: str
    changes: tuple[MemoryChange, ...]
    entries: tuple[int, ...]  # the journal entries that they consolidate
    superseded: tuple[tuple[int, int], ...] = ()  # (entry, its replacement)
    rejected: tuple[tuple[int, str], ...] = ()  # (entry, reason)


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """What was known in a scope at a point in time."""

    memories: tuple[Memory, ...] = ()  # oldest first
    entries: tuple[JournalEntry, ...] = ()  # those without a memory, oldest first
    replaced_by: Mapping[int, JournalEntry] = field(default_factory=dict)  # by entry id


EditAuthor = Literal["user", "model", "sleep"]


@dataclass(frozen=True, slots=True)
class UndoableEdit:
    """A change of a memory file or profile that can be undone."""

    target: str  # `file:MEMORY.md`, `profile:12`
    scope: str
    by: EditAuthor
    before: str  # full text
    after: str  # full text
    at: datetime
    cycle: int | None = None
    undone_at: datetime | None = None
    id: int | None = None
    accepted_at: datetime | None = None  # when a person confirmed it


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """The content of a file at a point in time."""

    text: str
    is_certain: bool = True  # False: edited by a person at an unknown time


@dataclass(frozen=True, slots=True)
class PhaseCursor:
    """How far a phase has read a session's log."""

    phase: str
    session: str
    generation: int
    seq: int  # last one read; 0: none yet


FULL_CYCLE_TRIGGERS = ("sleep", "late", "manual")
"""Triggers of sleep cycles with all phases: nightly, late after a missed night, or on command. "nap" and "phase" run
only some."""

PHASE_NAMES = {
    "settle": "compactions into the journal",
    "extract": "reading",
    "score": "weighing",
    "consolidate": "remembering",
    "curate": "files and profiles",
    "compact": "compacting",
    "imports": "reading what was imported",
    "notes": "notes of the day",
}
"""What people read of each phase of a sleep."""
SLEEP_KINDS = {"sleep": "night", "late": "night, late", "nap": "nap", "manual": "manual", "phase": "one phase"}
"""What people read of each trigger."""


@dataclass(frozen=True, slots=True)
class SleepReport:
    """The result of one sleep cycle."""

    id: int
    trigger: str
    started_at: datetime
    ended_at: datetime | None
    state: Literal["running", "done", "failed", "interrupted", "undoing", "undone"]  # "undoing": until all is undone
    # By phase: what it read, wrote, rejected and spent, and how it ended.
    phases: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def is_full_cycle(self) -> bool:
        return self.trigger in FULL_CYCLE_TRIGGERS


MIN_ID_DIGITS = 4
_ENTRY = lazy_regex(r"(?:entry[ :#]*|e)(\d{1,18})", re.IGNORECASE)
_MEMORY = lazy_regex(rf"(?:memory[ :#]*)?([0-9a-f][0-9a-f-]{{{MIN_ID_DIGITS - 1},35}})", re.IGNORECASE)
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class MemoryReference:
    """A parsed reference to a memory or entry."""

    id_prefix: str = ""  # "" if none
    entry_id: int | None = None


def parse_memory_reference(text: str) -> MemoryReference:
    """Parse a reference; surrounding brackets are allowed. Raises `UsageError` if it is none."""
    bare = text.strip().strip("[]").strip()
    memory, entry = _MEMORY.fullmatch(bare), _ENTRY.fullmatch(bare)
    if memory is None and entry is None:
        raise UsageError(
            f"{shorten_line(bare, 40)!r} names no memory: give {MIN_ID_DIGITS} or more of the first digits of its id, "
            "as in 1a2b3c4d, or the number of a journal entry, as in e12; `/memory search` finds both. Nothing was "
            "changed."
        )
    return MemoryReference(memory[1].lower() if memory else "", int(entry[1]) if entry else None)


def resolve_id_prefix(prefix: str, ids: Iterable[str]) -> str:
    """Return the only id with this prefix, or "" if there is none. Raises `UsageError`, listing them, if there are
    several."""
    matches = sorted(memory_id for memory_id in ids if memory_id.startswith(prefix))
    if len(matches) > 1:
        more = ", ..." if len(matches) > _SHOWN else ""
        raise UsageError(
            f"{len(matches)} memories begin with {prefix}: {', '.join(map(_shorten_id, matches[:_SHOWN]))}{more}. "
            "Give more digits. Nothing was changed."
        )
    return matches[0] if matches else ""


def _shorten_id(memory_id: str) -> str:
    return memory_id[:13]


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The current state of a memory, including corrections that are not yet in semantic memory."""

    memory: Memory
    replaced_by: str = ""  # reference of its replacement; "" while current
    entries: tuple[JournalEntry, ...] = ()  # its entries, oldest first

    @property
    def reference(self) -> str:
        return self.memory.reference


@dataclass(frozen=True, slots=True)
class MemoryList:
    """All memories of a scope."""

    memories: tuple[MemoryState, ...]  # oldest first
    note: str = ""  # why the list has journal entries only; "" if complete


@dataclass(frozen=True, slots=True)
class MemoryListPage:
    """One page of a scope's memories."""

    memories: tuple[MemoryState, ...]  # newest first
    more: bool  # whether there are older ones
    note: str = ""  # as in `MemoryList`


@dataclass(frozen=True, slots=True)
class MemoriesAsOf:
    """What was known at a point in time."""

    at: datetime
    memories: tuple[MemoryState, ...]  # newest first; best first for a search
    first_noted_at: datetime | None  # earliest of all memories
    searched: bool = False
    left_out: int = 0  # older ones beyond the limit


@dataclass(frozen=True, slots=True)
class EntryWithMessages:
    """A journal entry with its source messages from the message log."""

    entry: JournalEntry
    records: tuple[LogRecord, ...] = ()
    missing_ids: tuple[int, ...] = ()  # not in the log


@dataclass(frozen=True, slots=True)
class MemoryProvenance(MemoryState):
    """A memory and its sources."""

    said: tuple[EntryWithMessages, ...] = ()  # its entries
    versions: tuple[MemoryVersion, ...] = ()  # oldest first
    note: str = ""


@dataclass(frozen=True, slots=True)
class CorrectionResult:
    """The result of a correction."""

    previous: MemoryState
    current: Memory
    pending_reason: str = ""  # why it is not yet in semantic memory; "" if it is


@dataclass(frozen=True, slots=True)
class MemoryStorageInfo:
    """Where memories are stored."""

    store: str
    embedder: str
    size: int | None = None  # bytes of memory.db; None: no file


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """Memory statistics of a scope."""

    current: int
    superseded: int
    kinds: Mapping[str, int]  # current memories by kind
    pending: int  # entries without a memory
    planned: int  # decided changes that are not applied yet
    last_sleep: SleepReport | None
    storage: MemoryStorageInfo
    note: str = ""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of importing journal entries."""

    new: int
    already_present: int
    left_out: int = 0  # conversation summaries, which never become memories


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """The result of rebuilding memories."""

    changed: int  # added, changed or removed
    read: int = 0  # messages of the log
    learned: int = 0  # entries that were missing in the journal
    notes: tuple[str, ...] = field(default=())  # what could not be read
