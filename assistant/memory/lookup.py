"""The current state of memories: one by its reference, or all of a scope.

- Queries are limited to one scope; other scopes' memories are reported as not existing (I10).
- Corrections are visible at once, from the journal, whether or not semantic memory has applied them.
- If semantic memory is unavailable, memories are derived from the journal, with a note saying so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from assistant.core.errors import MemoryUnavailable, UsageError
from assistant.core.memories import (
    JournalEntry,
    Memory,
    MemoryList,
    MemoryListPage,
    MemoryState,
    parse_memory_reference,
    resolve_id_prefix,
)
from assistant.core.memory_api import Memories
from assistant.core.store_ports import Journal
from assistant.core.text import pluralize, shorten_line
from assistant.store.character.consolidations import StoredConsolidations
from sleep.cycle.change_plan import memory_from_entry
from sleep.cycle.rebuild import derive_memories

NO_LIMIT = 1_000_000_000
_MOST_AT_ONCE = 1000
_BY_JOURNAL = "This list is from the journal."


class MemoryLookup:
    def __init__(self, memories: Memories, consolidations: StoredConsolidations, journal: Journal) -> None:
        self._memories = memories
        self._consolidations = consolidations
        self._journal = journal

    async def find(self, text: str, scope: str) -> MemoryState:
        """Return what a reference names; for an entry, the memory made of it. Raises `UsageError` if nothing in the
        scope matches, or several do."""
        reference = parse_memory_reference(text)
        memory_id = reference.id_prefix and resolve_id_prefix(
            reference.id_prefix, self._consolidations.memory_ids(scope, reference.id_prefix)
        )
        entry = self._entry(reference.entry_id, scope)
        if memory_id and entry is not None:
            raise UsageError(
                f"Both the memory {memory_id[:8]} and entry {entry.id} may be meant. Write `e{entry.id}`, or more "
                "digits of the memory's id. Nothing was changed."
            )
        if memory_id:
            return await self._memory_state(memory_id, scope)
        if entry is None:
            raise UsageError(
                f"There is no {shorten_line(text, 40)} here. Nothing was changed; `/memory list` shows what there is."
            )
        into = self._consolidations.memory_ids_by_entry([entry.id or 0]).get(entry.id or 0)
        if into is None:
            return self._entry_state(entry, self._entry(entry.superseded_by, scope))
        return await self._memory_state(into, scope)

    async def list_all(self, scope: str) -> MemoryList:
        """Return everything in the scope, including superseded memories and entries without one, oldest first."""
        memories, note = await self._stored_memories(scope)
        planned, settled = self._planned(scope)
        for memory_id, memory in planned.items():
            memories.pop(memory_id, None)
            if memory is not None:
                memories[memory_id] = memory
        pending = [entry for entry in self.pending_entries(scope) if entry.id not in settled]
        waiting = {entry.id or 0: entry for entry in pending}
        replaced = self._consolidations.memories_superseded_by(list(waiting))
        by = {memory: waiting[number] for number, memories in replaced.items() for memory in memories}
        bare = [self._entry_state(entry, self._entry(entry.superseded_by, scope)) for entry in pending]
        return MemoryList(_in_order([*_with_corrections(memories.values(), by), *bare]), note)

    async def list_page(self, scope: str, limit: int, before_reference: str, *, include_former: bool) -> MemoryListPage:
        """Return the newest of `list_all`, optionally before a reference. Reads only what it lists and skips. Raises
        `UsageError` for an unknown reference."""
        end = _place(await self.find(before_reference, scope)) if before_reference else None
        try:
            states, note = await self._newest(scope, end, limit + 1, include_former)
        except MemoryUnavailable:
            everything = await self.list_all(scope)
            states = [state for state in reversed(everything.memories) if include_former or state.memory.is_current]
            states = [state for state in states if end is None or _place(state) < end]
            note = everything.note
        return MemoryListPage(tuple(states[:limit]), len(states) > limit, note)

    def list_as_of(self, scope: str, at: datetime) -> MemoryList:
        """Return the list as of a point in time, from the journal alone: it records what semantic memory made of it."""
        then = self._consolidations.known_as_of(scope, at)
        bare = [self._entry_state(entry, then.replaced_by.get(entry.id or 0)) for entry in then.entries]
        waiting = {entry.id for entry in then.entries}
        by = {
            memory.id: then.replaced_by[entry]
            for memory in then.memories
            for entry in memory.entries
            if entry in then.replaced_by and then.replaced_by[entry].id in waiting
        }
        return MemoryList(_in_order([*_with_corrections(then.memories, by), *bare]))

    def pending_entries(self, scope: str) -> list[JournalEntry]:
        """Return entries of the scope without a memory yet, oldest first."""
        return self._consolidations.pending_entries(scope=scope, limit=NO_LIMIT)

    # ----------------------------------------------------------------------------------------------------------- one

    async def _memory_state(self, memory_id: str, scope: str) -> MemoryState:
        entries = tuple(self._consolidations.entries_of_memory(memory_id))
        try:
            memory = await self._memories.get(memory_id)
        except MemoryUnavailable:
            memory = None
        if memory is None or memory.scope != scope:
            memory = next(
                derived for derived in derive_memories(self._consolidations, scope) if derived.id == memory_id
            )
        after = self._successor(entries, memory_id)
        if after is not None:
            by = self._consolidations.memory_ids_by_entry([after.id or 0]).get(after.id or 0, "")
            memory = replace(memory, until=memory.until or after.timestamp, superseded_by=memory.superseded_by or by)
            return MemoryState(memory, memory.superseded_by[:8] or f"entry {after.id}", entries)
        return MemoryState(memory, memory.superseded_by[:8], entries)

    def _successor(self, entries: Sequence[JournalEntry], memory_id: str) -> JournalEntry | None:
        """Return the first entry that superseded a memory."""
        numbers = [entry.superseded_by for entry in entries if entry.superseded_by is not None]
        into = self._consolidations.memory_ids_by_entry(numbers)
        others = [number for number in numbers if into.get(number) != memory_id]
        successors = self._journal.read(others, entries[0].scope) if others else []
        return min(successors, key=lambda entry: (entry.timestamp, entry.id or 0), default=None)

    def _entry(self, number: int | None, scope: str) -> JournalEntry | None:
        return next(iter(self._journal.read([number], scope)), None) if number is not None else None

    @staticmethod
    def _entry_state(entry: JournalEntry, by: JournalEntry | None) -> MemoryState:
        memory = replace(memory_from_entry(entry), id="")
        if by is None:
            return MemoryState(memory, "", (entry,))
        return MemoryState(replace(memory, until=by.timestamp), f"entry {by.id}", (entry,))

    # ----------------------------------------------------------------------------------------------------------- page

    async def _newest(
        self, scope: str, end: tuple[datetime, int] | None, count: int, include_former: bool
    ) -> tuple[list[MemoryState], str]:
        """Return at least `count` items before a position, if there are, newest first. Raises `MemoryUnavailable`."""
        planned, settled = self._planned(scope)
        decided = [MemoryState(memory, memory.superseded_by[:8]) for memory in planned.values() if memory is not None]
        chosen = [state for state in decided if end is None or _place(state) < end]
        listed: list[MemoryState] = []
        place, missing, batch = end, 0, count
        while len(listed) < count:
            rows = self._consolidations.first_entries(scope, place, batch)
            states, lost = await self._states_of(scope, rows, planned, settled)
            listed += [state for state in states if include_former or state.memory.is_current]
            missing += lost
            if len(rows) < batch:
                break
            place, batch = _entry_place(rows[-1][0]), min(2 * batch, _MOST_AT_ONCE)
        chosen = [state for state in chosen if include_former or state.memory.is_current]
        return sorted([*listed, *chosen], key=_place, reverse=True), _missing_note(missing)

    async def _states_of(
        self,
        scope: str,
        rows: Sequence[tuple[JournalEntry, str]],
        planned: Mapping[str, Memory | None],
        settled: Collection[int],
    ) -> tuple[list[MemoryState], int]:
        """Return the states of first entries, without those decided by plans, and how many memories the store lacks."""
        wanted = [memory_id for _, memory_id in rows if memory_id and memory_id not in planned]
        found = await self._memories.get_many(wanted)
        stored = {memory_id: memory for memory_id, memory in found.items() if memory.scope == scope}
        lacking = [memory_id for memory_id in wanted if memory_id not in stored]
        if lacking:
            derived = self._of_the_journal(scope)
            stored |= {memory_id: derived[memory_id] for memory_id in lacking}
        successors = self._consolidations.pending_successors(wanted)
        by = {memory_id: entry for memory_id, entry in successors.items() if entry.id not in settled}
        bare = [entry for entry, memory_id in rows if not memory_id and entry.id not in settled]
        states = [self._entry_state(entry, self._entry(entry.superseded_by, scope)) for entry in bare]
        return [*_with_corrections(stored.values(), by), *states], len(lacking)

    # ----------------------------------------------------------------------------------------------------------- all

    def _planned(self, scope: str) -> tuple[dict[str, Memory | None], set[int]]:
        """Return unapplied changes: memories by id (None if deleted), and the entries they concern."""
        plans = [plan for plan in self._consolidations.unapplied_plans() if plan.scope == scope]
        changes = [change for plan in plans for change in plan.changes]
        planned = {it.memory.id: None if it.action == "delete" else it.memory for it in changes}
        return planned, {entry for plan in plans for entry in plan.entries}

    async def _stored_memories(self, scope: str) -> tuple[dict[str, Memory], str]:
        known_ids = self._consolidations.memory_ids(scope)
        if not known_ids:
            return {}, ""
        try:
            stored = {memory.id: memory for memory in await self._memories.all(scope)}
        except MemoryUnavailable as error:
            return self._of_the_journal(scope), f"{error} {_BY_JOURNAL}"
        missing = [memory_id for memory_id in known_ids if memory_id not in stored]
        if not missing:
            return stored, ""
        stored |= {
            memory_id: memory for memory_id, memory in self._of_the_journal(scope).items() if memory_id not in stored
        }
        return stored, _missing_note(len(missing))

    def _of_the_journal(self, scope: str) -> dict[str, Memory]:
        return {memory.id: memory for memory in derive_memories(self._consolidations, scope)}


def _missing_note(count: int) -> str:
    missing = pluralize(count, "memory", "memories")
    return f"Missing in the store: {missing}; `assistant memory rebuild` makes what is missing again." if count else ""


def _with_corrections(memories: Iterable[Memory], by: Mapping[str, JournalEntry]) -> Iterator[MemoryState]:
    """Yield memories, marking those that a pending entry supersedes."""
    for memory in memories:
        if memory.is_current and memory.id in by:
            yield MemoryState(replace(memory, until=by[memory.id].timestamp), f"entry {by[memory.id].id}")
        else:
            yield MemoryState(memory, memory.superseded_by[:8])


def _in_order(states: Iterable[MemoryState]) -> tuple[MemoryState, ...]:
    return tuple(sorted(states, key=lambda state: (state.memory.said_at, state.memory.entries)))


def _place(state: MemoryState) -> tuple[datetime, int]:
    return state.memory.said_at, next(iter(state.memory.entries), 0)


def _entry_place(entry: JournalEntry) -> tuple[datetime, int]:
    return entry.timestamp, entry.id or 0
