"""What the assistant remembers of what was said: journal entries, memories, what a sleep changed and how far it read;
how a person or a model names a memory (the first digits of its id, or "entry 12"); and the results of showing,
correcting, importing and rebuilding memories. Frozen values; all times are aware and in UTC.

A journal entry that no memory was made of yet appears as a `Memory` whose id is "" and whose `entries` are that
entry alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from assistant.core.errors import UsageError
from assistant.core.records import LogRecord
from assistant.core.text import lazy_regex, shorten_line

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
class MemoryHit:
    """What answers a question: a memory, or a journal entry that no memory was made of yet (then `memory.id` is "" and
    `memory.entries` that entry alone). `good`: related by more than coincidence, so that it may come up unasked;
    `sources` are the messages that it was learned from, those of the entries by which it was found."""

    memory: Memory
    score: float
    is_relevant: bool
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
class MemorySnapshot:
    """What was known of a scope at a time: its memories as they stood, the entries that were none, both oldest first,
    and by entry id the entry that had taken its place in the journal by then."""

    memories: tuple[Memory, ...] = ()
    entries: tuple[JournalEntry, ...] = ()
    replaced_by: Mapping[int, JournalEntry] = field(default_factory=dict)


EditAuthor = Literal["user", "model", "sleep"]


@dataclass(frozen=True, slots=True)
class UndoableEdit:
    """A change of a memory file or a profile that can be taken back: the whole text before and after. `target` names
    it: `file:MEMORY.md`, `profile:12`."""

    target: str
    scope: str
    by: EditAuthor
    before: str
    after: str
    at: datetime
    cycle: int | None = None
    undone_at: datetime | None = None
    id: int | None = None


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """What a file said at a time; not `sure` where somebody edited it by hand at a time that nobody noted."""

    text: str
    is_certain: bool = True


@dataclass(frozen=True, slots=True)
class PhaseCursor:
    """How far a phase has read a session's log: everything up to and including `seq` (0: nothing yet)."""

    phase: str
    session: str
    generation: int
    seq: int


FULL_CYCLE_TRIGGERS = ("sleep", "late", "manual")
"""Triggers of sleeps with all their phases: at night, after a night that was missed, by hand. "nap" and "phase" are in
part."""


@dataclass(frozen=True, slots=True)
class SleepReport:
    """What one sleep cycle did; `phases` has per phase what it read, wrote, rejected, spent and how it ended. What was
    taken back is `undone`, and `undoing` until all of it is."""

    id: int
    trigger: str
    started_at: datetime
    ended_at: datetime | None
    state: Literal["running", "done", "failed", "interrupted", "undoing", "undone"]
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
    """What a text may name: the memories whose ids have this `beginning` ("" for none), the journal entry of this
    number."""

    id_prefix: str = ""
    entry_id: int | None = None


def parse_memory_reference(text: str) -> MemoryReference:
    """What a text names; brackets around it may be left. Raises `UsageError` for one that names nothing."""
    bare = text.strip().strip("[]").strip()
    memory, entry = _MEMORY.fullmatch(bare), _ENTRY.fullmatch(bare)
    if memory is None and entry is None:
        raise UsageError(
            f"{shorten_line(bare, 40)!r} names no memory: give {MIN_ID_DIGITS} or more of the first digits of its id, "
            "as in 1a2b3c4d, or `entry 12`. Nothing was changed."
        )
    return MemoryReference(memory[1].lower() if memory else "", int(entry[1]) if entry else None)


def resolve_id_prefix(prefix: str, ids: Iterable[str]) -> str:
    """The only one of the ids that begins so; "" where none does. Raises `UsageError` where several do, with them."""
    found = sorted(one for one in ids if one.startswith(prefix))
    if len(found) > 1:
        more = ", ..." if len(found) > _SHOWN else ""
        raise UsageError(
            f"{len(found)} memories begin with {prefix}: {', '.join(map(_shorten_id, found[:_SHOWN]))}{more}. "
            f"Give more "
            "digits. Nothing was changed."
        )
    return found[0] if found else ""


def _shorten_id(memory_id: str) -> str:
    return memory_id[:13]


@dataclass(frozen=True, slots=True)
class MemoryState:
    """A memory as it stands by now, corrections that semantic memory does not have yet included. `by` is the reference
    of what holds in its place, "" where it holds itself; `entries` are those it was made of, oldest first."""

    memory: Memory
    replaced_by: str = ""
    entries: tuple[JournalEntry, ...] = ()

    @property
    def reference(self) -> str:
        return self.memory.reference


@dataclass(frozen=True, slots=True)
class MemoryList:
    """Everything of a scope, oldest first. `note` says why it is only what the journal has; "" where it is all."""

    memories: tuple[MemoryState, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class MemoriesAsOf:
    """What was known at `at`, newest first, or best first where it was searched. `left_out` are older ones beyond the
    limit; `first` is when the first thing that is remembered was noted, None where nothing is."""

    at: datetime
    memories: tuple[MemoryState, ...]
    first_noted_at: datetime | None
    searched: bool = False
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class EntryWithMessages:
    """A journal entry with the messages it came from, as the master log has them; `missing` are those it has not."""

    entry: JournalEntry
    records: tuple[LogRecord, ...] = ()
    missing_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryProvenance:
    """Where a memory came from: its entries with their messages, and what it said at what time, oldest first."""

    memory_state: MemoryState
    entries: tuple[EntryWithMessages, ...]
    versions: tuple[MemoryVersion, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class CorrectionResult:
    """What holds now (`now`) in place of what held before (`former`). `waiting` says why semantic memory does not have
    it yet; "" where it has."""

    previous: MemoryState
    current: Memory
    pending_reason: str = ""


@dataclass(frozen=True, slots=True)
class MemoryStorageInfo:
    """Where memories lie: the store and the embedder by their names, the size of memory.db in bytes (None: there is
    none)."""

    store: str
    embedder: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """How much is remembered in a scope. `kinds` counts what holds now, by kind; `pending` entries have no memory yet,
    `planned` changes are decided and not made."""

    current: int
    superseded: int
    kinds: Mapping[str, int]
    pending: int
    planned: int
    last_sleep: SleepReport | None
    storage: MemoryStorageInfo
    note: str = ""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """`new` entries were written; `there` stood in the journal already; `left_out` are summaries of conversations, of
    which no memories are made."""

    new: int
    already_present: int
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """`changed` memories were added, changed or taken out. From the log: `read` messages taught `learned` entries that
    the journal did not have; `notes` say what could not be read."""

    changed: int
    read: int = 0
    learned: int = 0
    notes: tuple[str, ...] = field(default=())
