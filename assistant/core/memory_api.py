"""Semantic memory (`Memories`), and what a sleep needs of the stores of consolidations, profiles and memory files;
rooms above the store use the stores themselves. The rules of `assistant.core.ports` apply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Protocol

from assistant.core.memories import (
    ChangePlan,
    EditAuthor,
    JournalEntry,
    Memory,
    MemoryChange,
    MemoryVersion,
    PhaseCursor,
    UndoableEdit,
)
from assistant.core.profiles import Profile


class NearestMemories(Protocol):
    """What is asked of memories to decide on entries; raises as `Memories` does."""

    async def get(self, memory_id: str) -> Memory | None: ...

    async def all(self, scope: str | None = None) -> list[Memory]:
        """Every memory, or those of a scope, superseded ones included, oldest first."""

    async def nearest(self, texts: Sequence[str], scope: str, *, limit: int = 5) -> list[list[tuple[Memory, float]]]:
        """For each text the memories of the scope that are closest in meaning, best first, with their cosine."""


class Memories(NearestMemories, Protocol):
    """Semantic memory (Mem0). Every method raises `MemoryUnavailable` where the store cannot be reached or does not
    answer in time; the journal has everything then, and a later sleep catches up (F30)."""

    async def get_many(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        """By id, those that are there."""

    async def apply(self, changes: Sequence[MemoryChange]) -> None:
        """Carry changes out in order. An "add" of an id that is there and a "delete" of one that is not change
        nothing, so that the same changes may be applied again after a crash."""

    async def history(self, memory_id: str) -> list[MemoryVersion]:
        """Oldest first; empty where the id was never there, or was erased."""

    async def erase(self, memory_ids: Sequence[str]) -> None:
        """Take memories out so that none of their words is left, their history included."""

    async def reembed(self, limit: int = 500) -> int:
        """Embed at most `limit` memories again where another embedder was chosen; how many are left. The previous
        one answers until none is."""

    async def aclose(self) -> None: ...


class ConsolidationsPort(Protocol):
    """Which journal entries went into which memories, and changes that are decided but not yet made (character.db)."""

    def pending_entries(self, *, scope: str | None = None, limit: int = 200) -> list[JournalEntry]:
        """Entries, of all scopes or one, that no memory was made of yet, nor rejected, oldest first; summaries of
        conversations (`context_synthesis`) are left out."""

    def unscored_entries(
        self, after_id: int, min_importance: float, max_importance: float, *, limit: int = 100
    ) -> list[JournalEntry]:
        """Pending entries with a larger id whose importance is within these bounds, by their ids."""

    def save_scores(self, weights: Mapping[int, float], reading: PhaseCursor, now: datetime) -> None:
        """Set the importance of entries, and how far was read for that, in one transaction."""

    def save_plan(self, plan: ChangePlan, now: datetime) -> None:
        """Write down what is to be changed. A plan whose key is known is left as it is."""

    def unapplied_plans(self) -> list[ChangePlan]:
        """Plans that were written down and not carried out, oldest first."""

    def mark_applied(self, key: str, now: datetime) -> None:
        """The plan was carried out: its entries are consolidated or rejected, `superseded_by` is set, all in one
        transaction."""

    def entries_of_memory(self, memory_id: str) -> list[JournalEntry]:
        """The entries that a memory was made of, oldest first."""

    def memory_ids(self, scope: str | None = None, prefix: str = "") -> list[str]:
        """Of memories that entries went into, in all scopes or one, with ids that begin so, by their oldest entries."""

    def memories_superseded_by(self, entry_ids: Sequence[int]) -> dict[int, list[str]]:
        """The ids of memories with entries that these entries took the place of, by entry id."""

    def applied_plans(self, cycle: int) -> list[ChangePlan]:
        """What a sleep changed, newest first."""

    def last_plan_of_memory(self, memory_id: str, scope: str) -> ChangePlan | None:
        """What was last carried out of what changed a memory."""

    def split_plan(self, rest: ChangePlan, part: ChangePlan) -> None:
        """A plan that was carried out becomes two of the same time, in one transaction: `rest` under its key, and
        `part`."""

    def mark_accepted(self, keys: Sequence[str], now: datetime) -> None:
        """A person said that the changes of these plans are right."""

    def mark_undone(self, keys: Sequence[str], now: datetime) -> None:
        """The changes of these plans were taken back: their entries are neither pending nor consolidated."""

    def entries_of_cycle(self, cycle: int, checkpoints: Sequence[int] = ()) -> list[JournalEntry]:
        """The entries that a sleep extracted, and those that stand for these compactions, oldest first, but for those
        that were taken back."""

    def withdraw_entries(self, entries: Sequence[JournalEntry], now: datetime) -> None:
        """The entries stay, and nothing is made of them any more: they are neither pending nor consolidated, and the
        journal no longer lists or finds them."""


class ProfilesPort(Protocol):
    """Who and what the conversations come back to (character.db)."""

    def list_profiles(self, scope: str) -> list[Profile]:
        """By name."""

    def save(
        self, profile: Profile, by: EditAuthor, now: datetime, *, key: str | None = None, cycle: int | None = None
    ) -> Profile:
        """Write a profile (by its id, else by its name) and keep what was there as an `UndoableEdit`, in one
        transaction. What was written under `key` before is left as it is."""


class MemoryFilesPort(Protocol):
    """MEMORY.md and the files of the days, as a person may open and edit them: `memory/DATE.md` of the owner,
    `memory/<scope>/DATE.md` of others. Whatever a person wrote there wins."""

    def read_memory_file(self) -> str:
        """MEMORY.md; "" where there is none."""

    def replace_memory_file(
        self, text: str, base: str, by: EditAuthor, now: datetime, *, key: str | None = None, cycle: int | None = None
    ) -> UndoableEdit:
        """Replace MEMORY.md if it is still `base`, keeping an `UndoableEdit`. Raises `StaleView` where somebody edited
        it meanwhile, and `UsageError` where the text is over its limit."""

    def read_daily_note(self, scope: str, day: date) -> str: ...

    def append_daily_note(
        self, scope: str, day: date, time: str, lines: Sequence[str], key: str, *, cycle: int | None = None
    ) -> bool:
        """Append lines under a header with the time; False where `key` was appended before."""

    def list_edits(self, scope: str, *, target: str | None = None, limit: int = 20) -> list[UndoableEdit]:
        """Of files and profiles, newest first."""

    def edits_of_cycle(self, cycle: int) -> list[UndoableEdit]:
        """What a sleep changed of files and profiles of every scope and was not taken back, newest first."""

    def accept_edit(self, edit_id: int, scope: str, now: datetime) -> UndoableEdit:
        """A person said that it is right. Raises `UsageError` where the scope has no such edit, or it was undone."""

    def undo_edit(self, edit_id: int, scope: str, now: datetime) -> UndoableEdit:
        """Put back what stood before an edit. Raises `UsageError` where something was changed there since."""
