"""What the assistant remembers of what was said: journal entries, memories, what a sleep changed and how far it read;
how a person or a model names a memory (the first digits of its id, or "entry 12"); and the results of showing,
correcting, importing and rebuilding memories. Frozen values; all times are aware and in UTC.

A journal entry that no memory was made of yet appears as a `Memory` whose id is "" and whose `entries` are that
entry alone.
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
    """One thing worth remembering."""

    key: str  # deterministic, so that writing it twice writes it once (I4)
    scope: str
    session: str
    generation: int
    content: str
    timestamp: datetime  # when it was said
    source_type: SourceType
    importance: float = 0.5  # 0 to 1
    tags: tuple[str, ...] = ()  # the kind ("fact", "preference", "decision", "task", "summary") and other groups
    sources: tuple[int, ...] = ()  # ids of the messages it came from (I6)
    id: int | None = None
    superseded_by: int | None = None
    cycle: int | None = None  # the sleep that wrote it


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing in semantic memory, made of journal entries."""

    id: str  # deterministic, made of the key of its first entry: consolidating twice gives the same memories
    scope: str
    text: str
    said_at: datetime
    kind: str = "fact"  # as in `JournalEntry`
    importance: float = 0.5
    entries: tuple[int, ...] = ()  # ids of journal entries
    until: datetime | None = None  # when it was said that it is no longer true
    superseded_by: str = ""  # the memory that took its place

    @property
    def is_current(self) -> bool:
        return self.until is None

    @property
    def reference(self) -> str:
        """By which a person or a model names it: the beginning of its id, or "entry 12" where it is only that yet."""
        return self.id[:8] if self.id else f"entry {self.entries[0]}"


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """What answers a question: a memory, or a journal entry that no memory was made of yet."""

    memory: Memory
    score: float
    is_relevant: bool  # related by more than coincidence, so it may come up unasked
    sources: tuple[int, ...] = ()  # messages of the entries by which it was found
    parts: Mapping[str, float] = field(default_factory=dict)  # what each feature of its best entry adds to the score

    @property
    def reference(self) -> str:
        """By which a person or a model names it."""
        return self.memory.reference


@dataclass(frozen=True, slots=True)
class MemorySearchExplanation:
    """How a search went, and what it found."""

    words: Mapping[str, Sequence[str]]  # a word of the question: stems that stand for it
    asks_for: Sequence[str]  # beside its words, for people: "a time"
    entries: int  # in the journal, of everybody
    by_words: int  # parts of entries that were scored and have words of the question
    by_meaning: int  # those that were scored for their meaning alone
    hits: Sequence[MemoryHit]


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """One change of semantic memory. Carrying it out twice is the same as once."""

    action: Literal["add", "update", "delete"]
    memory: Memory  # as it is to be afterwards; for "delete" only its id counts
    before: Memory | None = None  # what was there, so that a night can be taken back


@dataclass(frozen=True, slots=True)
class MemoryVersion:
    """What a memory said and says, from the history that the memory store keeps."""

    at: datetime
    action: str
    before: str  # "" where it did not exist
    after: str  # the same


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """Changes that were decided and written down before they are made, so that a night that was cut off makes the same
    ones (I4)."""

    key: str
    cycle: int
    scope: str
    changes: tuple[MemoryChange, ...]
    entries: tuple[int, ...]  # the journal entries that they settle
    superseded: tuple[tuple[int, int], ...] = ()  # an entry, and the one that replaces it
    rejected: tuple[tuple[int, str], ...] = ()  # an entry, and why no memory was made of it


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """What was known of a scope at a time."""

    memories: tuple[Memory, ...] = ()  # oldest first
    entries: tuple[JournalEntry, ...] = ()  # those that were no memory, oldest first
    replaced_by: Mapping[int, JournalEntry] = field(default_factory=dict)  # by entry id


EditAuthor = Literal["user", "model", "sleep"]


@dataclass(frozen=True, slots=True)
class UndoableEdit:
    """A change of a memory file or a profile that can be taken back."""

    target: str  # `file:MEMORY.md`, `profile:12`
    scope: str
    by: EditAuthor
    before: str  # the whole text
    after: str  # the whole text
    at: datetime
    cycle: int | None = None
    undone_at: datetime | None = None
    id: int | None = None
    accepted_at: datetime | None = None  # a person said that it is right


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """What a file said at a time."""

    text: str
    is_certain: bool = True  # False: a person edited the file at a time that nobody noted


@dataclass(frozen=True, slots=True)
class PhaseCursor:
    """How far a phase has read a session's log."""

    phase: str
    session: str
    generation: int
    seq: int  # the last one read; 0: nothing yet


FULL_CYCLE_TRIGGERS = ("sleep", "late", "manual")
"""Triggers of sleeps with all phases: at night, after a night that was missed, on command. "nap" and "phase" have
some."""


@dataclass(frozen=True, slots=True)
class SleepReport:
    """What one sleep did."""

    id: int
    trigger: str
    started_at: datetime
    ended_at: datetime | None
    state: Literal["running", "done", "failed", "interrupted", "undoing", "undone"]  # "undoing" until all is undone
    # By phase what it read, wrote, rejected, spent and how it ended.
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
    """What a text may name."""

    id_prefix: str = ""  # of memories; "" for none
    entry_id: int | None = None


def parse_memory_reference(text: str) -> MemoryReference:
    """What a text names; brackets around it may be left. Raises `UsageError` for one that names nothing."""
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
    """The only one of the ids that begins so; "" where none does. Raises `UsageError` where several do, with them."""
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
    """A memory as it is by now, with corrections that semantic memory does not have yet."""

    memory: Memory
    replaced_by: str = ""  # the reference of what is true in its place; "" where it is current
    entries: tuple[JournalEntry, ...] = ()  # those it was made of, oldest first

    @property
    def reference(self) -> str:
        return self.memory.reference


@dataclass(frozen=True, slots=True)
class MemoryList:
    """Everything of a scope."""

    memories: tuple[MemoryState, ...]  # oldest first
    note: str = ""  # why it is only what the journal has; "" where it is all


@dataclass(frozen=True, slots=True)
class MemoryListPage:
    """A page of the list of what a scope remembers."""

    memories: tuple[MemoryState, ...]  # newest first
    more: bool  # whether there are older ones
    note: str = ""  # as in `MemoryList`


@dataclass(frozen=True, slots=True)
class MemoriesAsOf:
    """What was known at a time."""

    at: datetime
    memories: tuple[MemoryState, ...]  # newest first; best first where it was searched
    first_noted_at: datetime | None  # of all that is remembered
    searched: bool = False
    left_out: int = 0  # older ones beyond the limit


@dataclass(frozen=True, slots=True)
class EntryWithMessages:
    """A journal entry with the messages it came from, as the message log has them."""

    entry: JournalEntry
    records: tuple[LogRecord, ...] = ()
    missing_ids: tuple[int, ...] = ()  # messages that the log does not have


@dataclass(frozen=True, slots=True)
class MemoryProvenance(MemoryState):
    """A memory, and where it came from."""

    said: tuple[EntryWithMessages, ...] = ()  # its entries
    versions: tuple[MemoryVersion, ...] = ()  # oldest first
    note: str = ""


@dataclass(frozen=True, slots=True)
class CorrectionResult:
    """A correction."""

    previous: MemoryState
    current: Memory
    pending_reason: str = ""  # why semantic memory does not have it yet; "" where it has


@dataclass(frozen=True, slots=True)
class MemoryStorageInfo:
    """Where memories are stored."""

    store: str
    embedder: str
    size: int | None = None  # of memory.db, in bytes; None: there is none


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """How much is remembered in a scope."""

    current: int
    superseded: int
    kinds: Mapping[str, int]  # current memories by kind
    pending: int  # entries without a memory
    planned: int  # changes that are decided and not made
    last_sleep: SleepReport | None
    storage: MemoryStorageInfo
    note: str = ""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Journal entries that were imported."""

    new: int
    already_present: int
    left_out: int = 0  # summaries of conversations, of which no memories are made


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """Memories that were made again."""

    changed: int  # added, changed or removed
    read: int = 0  # messages of the log
    learned: int = 0  # entries that the journal did not have
    notes: tuple[str, ...] = field(default=())  # what could not be read
