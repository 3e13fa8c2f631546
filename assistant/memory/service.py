"""What a person, a model and a command line do with memories: one method an action, over ports.

What always holds: every action is of one scope (I10). Looking changes nothing; what changes something says what became
of it. Words of memories are data and come back as they are: whoever shows them quotes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assistant.core.errors import MemoryUnavailable, UsageError
from assistant.core.memories import (
    EntryWithMessages,
    ImportResult,
    JournalEntry,
    MemoriesAsOf,
    MemoryCounts,
    MemoryHit,
    MemoryList,
    MemoryProvenance,
    MemoryState,
    MemoryStorageInfo,
    MemoryVersion,
    RebuildResult,
)
from assistant.core.memory_api import Memories
from assistant.core.records import LogRecord
from assistant.core.store_ports import Journal
from assistant.memory import exchange
from assistant.memory.correct import MemoryCorrector
from assistant.memory.lookup import NO_LIMIT, MemoryLookup
from assistant.store.character.consolidations import StoredConsolidations
from assistant.store.memory.search import StoredMemorySearch
from assistant.store.search.history import StoredHistory
from sleep.cycle.rebuild import ReextractionResult, rebuild_memories


@dataclass(frozen=True, slots=True)
class MemoryDeps:
    """What is looked at and changed."""

    memories: Memories
    consolidations: StoredConsolidations
    journal: Journal
    search: StoredMemorySearch
    history: StoredHistory


@asynccontextmanager
async def no_sleep_lock() -> AsyncIterator[None]:
    """Where there is no sleeper, as beside a running daemon."""
    yield


class MemoryService:
    def __init__(
        self,
        deps: MemoryDeps,
        storage_info: Callable[[], MemoryStorageInfo],
        *,
        is_asleep: Callable[[], bool] = lambda: False,
        keep_awake: Callable[[], AbstractAsyncContextManager[None]] = no_sleep_lock,
        reextract: Callable[[datetime], Awaitable[ReextractionResult]] | None = None,
    ) -> None:
        """`asleep`: whether a sleep is under way; nobody sleeps while `awake` is open, and it raises `UsageError` while
        somebody does. `read_again` reads the whole log for the journal."""
        self._stores = deps
        self._place = storage_info
        self._awake = keep_awake
        self._read_again = reextract
        self._known = MemoryLookup(deps.memories, deps.consolidations, deps.journal)
        correcting = MemoryCorrector(self._known, deps.memories, deps.consolidations, deps.journal, is_asleep)
        self.correct = correcting.correct

    # ---------------------------------------------------------------------------------------------------------- looking

    def search(
        self,
        text: str,
        scope: str,
        *,
        limit: int = 8,
        after: datetime | None = None,
        before: datetime | None = None,
        as_of: datetime | None = None,
    ) -> list[MemoryHit]:
        """Best first; with `as_of` what was known then. Raises `UsageError` for nothing to look for, `StoreError`."""
        if not text.strip():
            raise UsageError("Say what to look for.")
        return self._stores.search.search(text, scope, limit=limit, after=after, before=before, as_of=as_of)

    async def list_all(self, scope: str) -> MemoryList:
        """Everything, oldest first. Raises `StoreError`."""
        return await self._known.list_all(scope)

    def list_as_of(
        self, text: str, scope: str, at: datetime, *, limit: int = 100, include_former: bool = False
    ) -> MemoriesAsOf:
        """What was known at a time: all that held, with `former` what had held before too; what bears on `text`, if
        that says anything. Raises `StoreError`."""
        first = self._stores.consolidations.first_noted_at(scope)
        if text.strip():
            found = self.search(text, scope, limit=limit, as_of=at)
            return MemoriesAsOf(
                at, tuple(MemoryState(one.memory, one.memory.superseded_by[:8]) for one in found), first, True
            )
        held = [
            one
            for one in reversed(self._known.list_as_of(scope, at).memories)
            if include_former or one.memory.is_current
        ]
        return MemoriesAsOf(at, tuple(held[:limit]), first, left_out=max(0, len(held) - limit))

    async def show(self, reference: str, scope: str) -> MemoryState:
        """Raises `UsageError` for a reference that names nothing, or several; `StoreError`."""
        return await self._known.find(reference, scope)

    async def why(self, reference: str, scope: str) -> MemoryProvenance:
        """Where it came from. Raises `UsageError`, `StoreError`."""
        known = await self._known.find(reference, scope)
        said = tuple(self._said(entry) for entry in known.entries)
        versions: list[MemoryVersion] = []
        note = ""
        try:
            versions = await self._stores.memories.history(known.memory.id) if known.memory.id else []
        except MemoryUnavailable as error:
            note = f"What it said before cannot be read: {error}"
        return MemoryProvenance(known, said, tuple(versions), note)

    async def stats(self, scope: str) -> MemoryCounts:
        """Raises `StoreError`."""
        held = await self._known.list_all(scope)
        made = [one.memory for one in held.memories if one.memory.id]
        current = [memory for memory in made if memory.is_current]
        planned = [plan for plan in self._stores.consolidations.unapplied_plans() if plan.scope == scope]
        return MemoryCounts(
            current=len(current),
            superseded=len(made) - len(current),
            kinds=dict(sorted(Counter(memory.kind for memory in current).items())),
            pending=len(self._known.pending_entries(scope)),
            planned=sum(len(plan.changes) for plan in planned),
            last_sleep=next((one for one in self._stores.journal.list_cycles() if one.ended_at is not None), None),
            storage=self._place(),
            note=held.note,
        )

    async def export(self, scope: str, now: datetime) -> dict[str, Any]:
        """Everything of the scope, as JSON. Raises `StoreError`."""
        entries = self._stores.journal.entries(scope, limit=NO_LIMIT)
        held = await self._known.list_all(scope)
        return {
            **exchange.export_header(scope, now),
            "entries": exchange.export_entries(entries),
            "memories": exchange.export_memories(held),
        }

    def _said(self, entry: JournalEntry) -> EntryWithMessages:
        records: list[LogRecord] = []
        missing = []
        for source in entry.sources:
            found = [one for one in self._stores.history.read(source, entry.scope) if one.id == source]
            records += found
            missing += [] if found else [source]
        return EntryWithMessages(entry, tuple(records), tuple(missing))

    # --------------------------------------------------------------------------------------------------------- changing

    def import_text(self, text: str, scope: str, session: str, now: datetime) -> ImportResult:
        """Write what an exported or plain file says into the journal; sleep makes memories of it. Raises `UsageError`
        naming what is malformed (then nothing was changed), `StoreError`."""
        told = exchange.parse_import(text)
        exchange.reject_future_dates(told, now)
        incoming = [one for one in told if not one.summary]
        there = {(one.content, one.timestamp): one for one in self._stores.journal.entries(scope, limit=NO_LIMIT)}
        entries = [
            there.get((one.text, one.at or now)) or exchange.to_journal_entry(one, scope, session, now)
            for one in incoming
        ]
        both = list(zip(incoming, entries, strict=True))
        keys = {one.number: entry.key for one, entry in both if one.number is not None}
        replaced = {entry.key: keys[one.superseded_by] for one, entry in both if one.superseded_by in keys}
        new = self._stores.journal.add([entry for entry in entries if entry.id is None], now, replaced=replaced)
        return ImportResult(len(new), len(entries) - len(new), len(told) - len(incoming))

    async def rebuild(self, now: datetime, *, from_log: bool = False) -> RebuildResult:
        """Make semantic memory what the journal says, of every scope; before that, where wanted, read the log for the
        journal once more. Raises `UsageError` while somebody sleeps, `MemoryUnavailable`, `StoreError`."""
        if from_log and self._read_again is None:
            raise UsageError("The log can be read again only where the home is served. Nothing was changed.")
        async with self._awake():
            read = await self._read_again(now) if from_log and self._read_again is not None else ReextractionResult()
            try:
                changed = await rebuild_memories(self._stores.consolidations, self._stores.memories, now)
            finally:
                await self._stores.memories.aclose()
        return RebuildResult(changed, read.read_count, read.learned_count, read.notes)
