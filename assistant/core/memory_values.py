"""What is told of memories: which there are, where one came from, what became of a correction. Frozen values.

A journal entry that no memory was made of yet is told of as a `Memory` whose id is "" and whose `entries` are that
entry alone, as in `remembered.Recalled`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from assistant.core.records import Record
from assistant.core.remembered import CycleReport, JournalEntry, Memory, MemoryVersion


@dataclass(frozen=True, slots=True)
class Known:
    """A memory as it stands by now, corrections that semantic memory does not have yet included. `by` is the reference
    of what holds in its place, "" where it holds itself; `entries` are those it was made of, oldest first."""

    memory: Memory
    by: str = ""
    entries: tuple[JournalEntry, ...] = ()

    @property
    def reference(self) -> str:
        return self.memory.reference


@dataclass(frozen=True, slots=True)
class Held:
    """Everything of a scope, oldest first. `note` says why it is only what the journal has; "" where it is all."""

    known: tuple[Known, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Then:
    """What was known at `at`, newest first, or best first where it was searched. `left_out` are older ones beyond the
    limit; `first` is when the first thing that is remembered was noted, None where nothing is."""

    at: datetime
    known: tuple[Known, ...]
    first: datetime | None
    searched: bool = False
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Said:
    """A journal entry with the messages it came from, as the master log has them; `missing` are those it has not."""

    entry: JournalEntry
    records: tuple[Record, ...] = ()
    missing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """Where a memory came from: its entries with their messages, and what it said at what time, oldest first."""

    known: Known
    said: tuple[Said, ...]
    versions: tuple[MemoryVersion, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Corrected:
    """What holds now (`now`) in place of what held before (`former`). `waiting` says why semantic memory does not have
    it yet; "" where it has."""

    former: Known
    now: Memory
    waiting: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where memories lie: the store and the embedder by their names, the size of memory.db in bytes (None: there is
    none)."""

    store: str
    embedder: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """How much is remembered in a scope. `kinds` counts what holds now, by kind; `pending` entries have no memory yet,
    `planned` changes are decided and not made."""

    current: int
    former: int
    kinds: Mapping[str, int]
    pending: int
    planned: int
    slept: CycleReport | None
    place: Place
    note: str = ""


@dataclass(frozen=True, slots=True)
class Imported:
    """`new` entries were written; `there` stood in the journal already; `left_out` are summaries of conversations, of
    which no memories are made."""

    new: int
    there: int
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """`changed` memories were added, changed or taken out. From the log: `read` messages taught `learned` entries that
    the journal did not have; `notes` say what could not be read."""

    changed: int
    read: int = 0
    learned: int = 0
    notes: tuple[str, ...] = field(default=())
