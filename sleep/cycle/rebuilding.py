"""Semantic memory made again from the journal: after memory.db was lost, or whenever somebody doubts it.

What always holds: what an entry went into, and what replaced it, stands in the journal's own database; texts, dates and
weights follow from the entries. So the memories are the same as consolidation made them; cut off, it goes on where it
was; run again, it changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import reduce

from assistant.core.memories import JournalEntry, Memory, MemoryChange
from assistant.core.memory_api import ConsolidationsPort, Memories
from sleep.cycle.change_plan import first_memory, memory_id, merged
from sleep.cycle.consolidation import Consolidation
from sleep.rules.contradiction import restated

_AT_ONCE = 100


async def rebuild(consolidations: ConsolidationsPort, memories: Memories, now: datetime) -> int:
    """Make semantic memory what the journal says; how many memories were added, changed or taken out. Raises
    `MemoryUnavailable` and `StoreError`."""
    await Consolidation(consolidations, memories).carry_out(now)
    wanted = {memory.id: memory for memory in made_again(consolidations)}
    there = {memory.id: memory for memory in await memories.all()}
    changes = [MemoryChange("delete", memory, memory) for one, memory in there.items() if one not in wanted]
    changes += [
        MemoryChange("add" if one not in there else "update", memory, there.get(one))
        for one, memory in wanted.items()
        if there.get(one) != memory
    ]
    for start in range(0, len(changes), _AT_ONCE):
        await memories.apply(changes[start : start + _AT_ONCE])
        await asyncio.sleep(0)
    return len(changes)


def made_again(consolidations: ConsolidationsPort, scope: str | None = None) -> Iterator[Memory]:
    """The memories of all scopes or one as the journal has them, oldest first. Raises `StoreError`."""
    groups = {one: consolidations.entries_of(one) for one in consolidations.memory_ids(scope)}
    by_entry = {entry.id: entry for entries in groups.values() for entry in entries}
    into = {entry.id: one for one, entries in groups.items() for entry in entries}
    replaced: dict[int, list[str]] = {}
    for one, entries in groups.items():
        for entry in entries:
            if entry.superseded_by is not None:
                replaced.setdefault(entry.superseded_by, []).append(one)
    texts: dict[str, str] = {}
    for one, entries in groups.items():
        first = next((entry for entry in entries if memory_id(entry) == one), entries[0])
        about = next((texts[other] for other in replaced.get(first.id or 0, ()) if other in texts), None)
        memory = _memory(one, first, entries, about)
        texts[one] = memory.text
        ends = [by_entry[entry.superseded_by] for entry in entries if entry.superseded_by in by_entry]
        if ends:
            by = min(ends, key=lambda entry: (entry.timestamp, entry.id or 0))
            if into[by.id] != one:
                memory = replace(memory, until=by.timestamp, superseded_by=into[by.id])
        yield memory


def _memory(one: str, first: JournalEntry, entries: Sequence[JournalEntry], about: str | None) -> Memory:
    begun = replace(first_memory(first), id=one)
    if about is not None:
        begun = replace(begun, text=restated(begun.text, about))
    others = [entry for entry in entries if entry.id != first.id]
    return reduce(merged, others, begun)
