"""The semantic memory interface (`Memories`), and the storage ports a sleep cycle uses for consolidations, profiles and
memory files; rooms above `store` use the stores directly. The rules of `assistant.core.ports` apply.
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
    """The queries needed to decide on entries; raises as `Memories` does."""

    async def get(self, memory_id: str) -> Memory | None:
        """Return None if there is no such memory."""

    async def all(self, scope: str | None = None) -> list[Memory]:
        """Return all memories, or those of a scope, including superseded ones, oldest first."""

    async def nearest(self, texts: Sequence[str], scope: str, *, limit: int = 5) -> list[list[tuple[Memory, float]]]:
        """For each text, return the semantically closest memories of the scope with their cosine similarity, best
        first."""


class Memories(NearestMemories, Protocol):
    """Semantic memory (Mem0). Methods raise `MemoryUnavailable` if the store is unreachable or times out; the journal
    still has everything, and a later cycle catches up (F30)."""

    async def get_many(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        """Return the existing ones, by id."""

    async def apply(self, changes: Sequence[MemoryChange]) -> None:
        """Apply changes in order. Idempotent: adding an existing id or deleting a missing one does nothing, so changes
        can be applied again after a crash."""

    async def history(self, memory_id: str) -> list[MemoryVersion]:
        """Return the history, oldest first; empty if the id is unknown or erased."""

    async def erase(self, memory_ids: Sequence[str]) -> None:
        """Delete memories with their history, leaving no trace of their text."""

    async def reembed(self, limit: int = 500) -> int:
        """Re-embed at most `limit` memories after the embedder changed, and return how many remain. The previous
        embedder serves queries until none remain."""

    async def aclose(self) -> None:
        """Stop the store's process, if it runs."""


class ConsolidationsPort(Protocol):
    """Which journal entries were consolidated into which memories, and decided changes that are not yet applied
    (character.db)."""

    def pending_entries(self, *, scope: str | None = None, limit: int = 200) -> list[JournalEntry]:
        """Return entries, oldest first, that are neither consolidated nor rejected; conversation summaries
        (`context_synthesis`) are excluded."""

    def unscored_entries(
        self, after_id: int, min_importance: float, max_importance: float, *, limit: int = 100
    ) -> list[JournalEntry]:
        """Return pending entries after an id with an importance within the bounds, by id."""

    def save_scores(self, weights: Mapping[int, float], reading: PhaseCursor, now: datetime) -> None:
        """Save the importance of entries and the reading position, in one transaction."""

    def save_plan(self, plan: ChangePlan, now: datetime) -> None:
        """Persist a plan. Does nothing if its key exists."""

    def unapplied_plans(self) -> list[ChangePlan]:
        """Return plans that were saved but not applied, oldest first."""

    def mark_applied(self, key: str, now: datetime) -> None:
        """Mark a plan applied: consolidate or reject its entries and set `superseded_by`, in one transaction."""

    def entries_of_memory(self, memory_id: str) -> list[JournalEntry]:
        """Return the entries of a memory, oldest first."""

    def memory_ids(self, scope: str | None = None, prefix: str = "") -> list[str]:
        """Return ids of consolidated memories with a prefix, in all scopes or one, ordered by their oldest entry."""

    def memories_superseded_by(self, entry_ids: Sequence[int]) -> dict[int, list[str]]:
        """Return the ids of memories with entries that these entries superseded, by entry id."""

    def applied_plans(self, cycle: int) -> list[ChangePlan]:
        """Return the applied plans of a sleep cycle, newest first."""

    def last_plan_of_memory(self, memory_id: str, scope: str) -> ChangePlan | None:
        """Return the latest applied plan that changed a memory."""

    def split_plan(self, rest: ChangePlan, part: ChangePlan) -> None:
        """Split an applied plan, in one transaction, into `rest` (keeps the key) and `part`, both with the original
        time."""

    def mark_accepted(self, keys: Sequence[str], now: datetime) -> None:
        """Mark plans as confirmed by a person."""

    def mark_undone(self, keys: Sequence[str], now: datetime) -> None:
        """Mark plans as undone: their entries become neither pending nor consolidated."""

    def entries_of_cycle(self, cycle: int, checkpoints: Sequence[int] = ()) -> list[JournalEntry]:
        """Return the entries that a cycle extracted, and those of these compactions, oldest first, without undone
        ones."""

    def withdraw_entries(self, entries: Sequence[JournalEntry], now: datetime) -> None:
        """Withdraw entries: they stay stored, but are neither pending nor consolidated, and the journal no longer lists
        or finds them."""


class ProfilesPort(Protocol):
    """Profiles of people, places and things (character.db)."""

    def list_profiles(self, scope: str) -> list[Profile]:
        """Return the profiles of a scope by name."""

    def save(
        self, profile: Profile, by: EditAuthor, now: datetime, *, key: str | None = None, cycle: int | None = None
    ) -> Profile:
        """Save a profile (by id, else by name) and the previous version as an `UndoableEdit`, in one transaction. Does
        nothing if `key` was saved before."""


class MemoryFilesPort(Protocol):
    """MEMORY.md and the daily notes, which people may edit: `memory/DATE.md` for the owner, `memory/<scope>/DATE.md`
    for others. A person's edits take precedence."""

    def read_memory_file(self) -> str:
        """Return MEMORY.md, or "" if there is none."""

    def replace_memory_file(
        self, text: str, base: str, by: EditAuthor, now: datetime, *, key: str | None = None, cycle: int | None = None
    ) -> UndoableEdit:
        """Replace MEMORY.md if it still equals `base`, and store an `UndoableEdit`. Raises `StaleView` if it was edited
        meanwhile, and `UsageError` if the text exceeds its limit."""

    def read_daily_note(self, scope: str, day: date) -> str:
        """Return the note of that day, or "" if there is none."""

    def append_daily_note(
        self, scope: str, day: date, time: str, lines: Sequence[str], key: str, *, cycle: int | None = None
    ) -> bool:
        """Append lines under a header with the time. Returns False if `key` was appended before."""

    def list_edits(self, scope: str, *, target: str | None = None, limit: int = 20) -> list[UndoableEdit]:
        """Return edits of files and profiles, newest first."""

    def edits_of_cycle(self, cycle: int) -> list[UndoableEdit]:
        """Return a cycle's edits of files and profiles in all scopes that were not undone, newest first."""

    def accept_edit(self, edit_id: int, scope: str, now: datetime) -> UndoableEdit:
        """Mark an edit as confirmed by a person. Raises `UsageError` if the scope has no such edit or it was undone."""

    def undo_edit(self, edit_id: int, scope: str, now: datetime) -> UndoableEdit:
        """Restore the state before an edit. Raises `UsageError` if the target changed since."""
