"""Operations on memories for people, models and commands: one method per action.

Every action is limited to one scope (I10). Queries change nothing; changes report their result. Text of memories is
returned verbatim; displaying code must quote it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.errors import MemoryUnavailable, UsageError
from assistant.core.memories import (
    EntryWithMessages,
    ImportResult,
    JournalEntry,
    MemoriesAsOf,
    MemoryCounts,
    MemoryHit,
    MemoryList,
    MemoryListPage,
    MemoryProvenance,
    MemorySearchExplanation,
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
    """The stores used."""

    memories: Memories
    consolidations: StoredConsolidations
    journal: Journal
    search: StoredMemorySearch
    history: StoredHistory


@asynccontextmanager
async def no_sleep_lock() -> AsyncIterator[None]:
    """A lock that does nothing, for a process without sleep cycles (beside a running daemon)."""
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
        """`is_asleep`: whether a sleep cycle is running; `keep_awake` excludes cycles while it is open, and raises
        `UsageError` while one runs. `reextract` reads the whole log for the journal."""
        self._deps = deps
        self._storage_info = storage_info
        self._keep_awake = keep_awake
        self._reextract = reextract
        self._lookup = MemoryLookup(deps.memories, deps.consolidations, deps.journal)
        corrector = MemoryCorrector(self._lookup, deps.memories, deps.consolidations, deps.journal, is_asleep)
        self.correct = corrector.correct

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
        """Search memories, best first; with `as_of`, what was known then. Raises `UsageError` for an empty query,
        `StoreError`."""
        if not text.strip():
            raise UsageError("Say what to look for.")
        return self._deps.search.search(text, scope, limit=limit, after=after, before=before, as_of=as_of)

    def explain(
        self, text: str, scope: str, *, limit: int = 8, after: datetime | None = None, before: datetime | None = None
    ) -> MemorySearchExplanation:
        """Search memories and return details. Raises `UsageError` for an empty query, `StoreError`."""
        if not text.strip():
            raise UsageError("Say what to look for.")
        return self._deps.search.explain(text, scope, limit=limit, after=after, before=before)

    async def list_all(self, scope: str) -> MemoryList:
        """Return all memories, oldest first. Raises `StoreError`."""
        return await self._lookup.list_all(scope)

    async def list_page(
        self, scope: str, *, limit: int, include_former: bool = False, before_reference: str = ""
    ) -> MemoryListPage:
        """Return the newest memories, optionally before a reference. Raises `UsageError`, `StoreError`."""
        return await self._lookup.list_page(scope, limit, before_reference, include_former=include_former)

    async def search_as_of(self, text: str, scope: str, at: datetime, *, limit: int) -> MemoriesAsOf:
        """Search what was known at a time, best first. Raises `UsageError` for an empty query, `StoreError`."""
        hits = await asyncio.to_thread(self.search, text, scope, limit=limit, as_of=at)
        states = tuple(MemoryState(hit.memory, hit.memory.superseded_by[:8]) for hit in hits)
        return MemoriesAsOf(at, states, self._deps.consolidations.first_noted_at(scope), True)

    def list_as_of(self, scope: str, at: datetime, *, limit: int = 100, include_former: bool = False) -> MemoriesAsOf:
        """Return what was known at a time: current memories, with `include_former` also superseded ones. Raises
        `StoreError`."""
        first = self._deps.consolidations.first_noted_at(scope)
        states = [
            state
            for state in reversed(self._lookup.list_as_of(scope, at).memories)
            if include_former or state.memory.is_current
        ]
        return MemoriesAsOf(at, tuple(states[:limit]), first, left_out=max(0, len(states) - limit))

    async def show(self, reference: str, scope: str) -> MemoryState:
        """Return a memory. Raises `UsageError` if the reference matches nothing or several; `StoreError`."""
        return await self._lookup.find(reference, scope)

    async def why(self, reference: str, scope: str) -> MemoryProvenance:
        """Return a memory's sources and history. Raises `UsageError`, `StoreError`."""
        state = await self._lookup.find(reference, scope)
        said = tuple(self._with_messages(entry) for entry in state.entries)
        versions: list[MemoryVersion] = []
        note = ""
        try:
            versions = await self._deps.memories.history(state.memory.id) if state.memory.id else []
        except MemoryUnavailable as error:
            note = f"What it said before cannot be read: {error}"
        return MemoryProvenance(state.memory, state.replaced_by, state.entries, said, tuple(versions), note)

    async def stats(self, scope: str) -> MemoryCounts:
        """Return statistics. Raises `StoreError`."""
        memories = await self._lookup.list_all(scope)
        stored = [item.memory for item in memories.memories if item.memory.id]
        current = [memory for memory in stored if memory.is_current]
        planned = [plan for plan in self._deps.consolidations.unapplied_plans() if plan.scope == scope]
        return MemoryCounts(
            current=len(current),
            superseded=len(stored) - len(current),
            kinds=dict(sorted(Counter(memory.kind for memory in current).items())),
            pending=len(self._lookup.pending_entries(scope)),
            planned=sum(len(plan.changes) for plan in planned),
            last_sleep=next((it for it in self._deps.journal.list_cycles(sleeps_only=True) if it.ended_at), None),
            storage=self._storage_info(),
            note=memories.note,
        )

    async def export(self, scope: str, now: datetime) -> dict[str, Any]:
        """Export the scope as JSON. Raises `StoreError`."""
        entries = self._deps.journal.entries(scope, limit=NO_LIMIT)
        return exchange.export_scope(scope, entries, (await self._lookup.list_all(scope)).memories, now)

    def _with_messages(self, entry: JournalEntry) -> EntryWithMessages:
        records: list[LogRecord] = []
        missing = []
        for source in entry.sources:
            matching = [record for record in self._deps.history.read(source, entry.scope) if record.id == source]
            records += matching
            missing += [] if matching else [source]
        return EntryWithMessages(entry, tuple(records), tuple(missing))

    # --------------------------------------------------------------------------------------------------------- changing

    async def import_text(self, text: str, scope: str, session: str, now: datetime) -> ImportResult:
        """Import an exported or plain file into the journal; the next sleep cycle makes memories of it. Parsed in a
        thread, written in batches; after an interruption, importing the file again completes it. Raises `UsageError`
        for malformed content (nothing was changed), `StoreError`."""
        journal = self._deps.journal
        items = await asyncio.to_thread(exchange.parse_import, text, now)
        existing = {(item.content, item.timestamp): item for item in journal.entries(scope, limit=NO_LIMIT)}
        plan = await asyncio.to_thread(exchange.plan_import, items, existing, scope, session, now)
        new = 0
        for batch in plan.batches:
            new += len(journal.add(batch.entries, now, replaced=batch.replaced))
            await asyncio.sleep(0)
        return ImportResult(new, plan.entry_count - new, len(items) - plan.entry_count)

    async def rebuild(self, now: datetime, *, from_log: bool = False) -> RebuildResult:
        """Rebuild semantic memory of all scopes from the journal; with `from_log`, first extract the log again. Raises
        `UsageError` while a sleep cycle runs, `MemoryUnavailable`, `StoreError`."""
        if from_log and self._reextract is None:
            raise UsageError("Only the running assistant can read the log again. Nothing was changed.")
        async with self._keep_awake():
            read = await self._reextract(now) if from_log and self._reextract is not None else ReextractionResult()
            try:
                changed = await rebuild_memories(self._deps.consolidations, self._deps.memories, now)
            finally:
                await self._deps.memories.aclose()
        return RebuildResult(changed, read.read_count, read.learned_count, read.notes)
