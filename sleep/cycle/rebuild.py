"""Semantic memory made again from the journal, and the journal read from the message log once more.

Memory (`rebuild_memories`), after memory.db was lost or whenever somebody doubts it: what an entry went into, and
what replaced it, is in the journal's own database; texts, dates and weights follow from the entries. So the
memories are the same as consolidation made them; cut off, it continues where it was; run again, it changes nothing.

Journal (`Reextraction`), from the beginning of the log: an entry whose key is there stays as it is, and so does
whatever else the journal has (corrections, what tools and imports wrote), so that reading again adds what is missing
and takes nothing away. What was learned from a message is known when the message is read again: the same in other
words is not written again. Rules give the same words, and so the same keys, for the same messages. A model may put
what it learns in other words at another time; what differs too much to be known again becomes a second entry, which
consolidation joins to the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import reduce

from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore
from assistant.core.memories import JournalEntry, Memory, MemoryChange, PhaseCursor
from assistant.core.memory_api import ConsolidationsPort, Memories
from assistant.core.records import SessionInfo
from assistant.core.store_ports import Conversation, Journal, LogReaderPort
from sleep.cycle.change_plan import derive_memory_id, memory_from_entry, merge_entry
from sleep.cycle.consolidate import ConsolidationPhase
from sleep.cycle.extract import EXTRACT_PHASE, Extractor
from sleep.rules.supersede import restate_correction

_AT_ONCE = 100


async def rebuild_memories(consolidations: ConsolidationsPort, memories: Memories, now: datetime) -> int:
    """Make semantic memory what the journal says; how many memories were added, changed or taken out. Raises
    `MemoryUnavailable` and `StoreError`."""
    await ConsolidationPhase(consolidations, memories).apply_planned(now)
    wanted = {memory.id: memory for memory in derive_memories(consolidations)}
    current = {memory.id: memory for memory in await memories.all()}
    changes = [MemoryChange("delete", memory, memory) for name, memory in current.items() if name not in wanted]
    changes += [
        MemoryChange("add" if name not in current else "update", memory, current.get(name))
        for name, memory in wanted.items()
        if current.get(name) != memory
    ]
    for start in range(0, len(changes), _AT_ONCE):
        await memories.apply(changes[start : start + _AT_ONCE])
        await asyncio.sleep(0)
    return len(changes)


def derive_memories(consolidations: ConsolidationsPort, scope: str | None = None) -> Iterator[Memory]:
    """The memories of all scopes or one as the journal has them, oldest first. Raises `StoreError`."""
    groups = {memory_id: consolidations.entries_of_memory(memory_id) for memory_id in consolidations.memory_ids(scope)}
    by_entry = {entry.id: entry for entries in groups.values() for entry in entries}
    into: dict[int | None, str] = {}
    replaced: dict[int | None, list[str]] = {}
    for memory_id, entries in groups.items():
        for entry in entries:
            into[entry.id] = memory_id
            if entry.superseded_by is not None:
                replaced.setdefault(entry.superseded_by, []).append(memory_id)
    texts: dict[str, str] = {}
    for memory_id, entries in groups.items():
        first = next((entry for entry in entries if derive_memory_id(entry) == memory_id), entries[0])
        memory = replace(memory_from_entry(first), id=memory_id)
        former = [texts[other] for other in replaced.get(first.id or 0, ()) if other in texts]
        if former:
            memory = replace(memory, text=restate_correction(memory.text, former[0]))
        memory = reduce(merge_entry, (entry for entry in entries if entry.id != first.id), memory)
        texts[memory_id] = memory.text
        ends = [by_entry[entry.superseded_by] for entry in entries if entry.superseded_by in by_entry]
        if ends:
            by = min(ends, key=lambda entry: (entry.timestamp, entry.id or 0))
            if into[by.id] != memory_id:
                memory = replace(memory, until=by.timestamp, superseded_by=into[by.id])
        yield memory


_EVERYTHING = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ReextractionResult:
    """What reading again came to."""

    read_count: int = 0  # messages with words in them
    learned_count: int = 0  # entries that are new
    notes: tuple[str, ...] = ()  # what went wrong, by session


@dataclass(frozen=True, slots=True)
class Reextraction:
    conversation: Conversation
    log_reader: LogReaderPort
    journal: Journal
    extractor: Extractor

    async def run(self, now: datetime) -> ReextractionResult:
        """Read every session to its end. Raises `StoreError`; what was learned until then stays."""
        result = ReextractionResult()
        for info in self.conversation.list_sessions():
            learned = _by_source(self.journal.entries(info.scope, limit=_EVERYTHING))
            for generation in range(1, info.generation + 1):
                result = await self._read_session(info, generation, learned, result, now)
        return result

    async def _read_session(
        self,
        info: SessionInfo,
        generation: int,
        learned: dict[int, list[str]],
        result: ReextractionResult,
        now: datetime,
    ) -> ReextractionResult:
        """`result` with what reading one generation came to; `learned` has what each message taught before."""
        seq = 0
        while True:
            try:
                batch = await self.extractor.read_batch(self.log_reader, info.key, generation, seq)
            except CorruptStore as error:
                # The files of one conversation; the others can be read.
                return replace(result, notes=(*result.notes, f"{info.key}: {error}"))
            if not batch:
                return result
            known_texts = dict.fromkeys(text for record in batch for text in learned.get(record.id, ()))
            extracted = await self.extractor.extract(batch, list(known_texts))
            if extracted.is_temporary_failure:
                why = f"{info.key}: {extracted.rejected[0]}. Run it again later."
                return replace(result, notes=(*result.notes, why))
            seq = batch[-1].seq
            cursor = PhaseCursor(EXTRACT_PHASE, info.key, generation, seq)
            new = self.journal.add(extracted.entries, now, reading=cursor)
            result = replace(
                result,
                read_count=result.read_count + extracted.read_count,
                learned_count=result.learned_count + len(new),
            )
            await asyncio.sleep(0)


def _by_source(entries: Sequence[JournalEntry]) -> dict[int, list[str]]:
    """What was learned from each message."""
    learned: dict[int, list[str]] = {}
    for entry in entries:
        for source in entry.sources if entry.source_type != "context_synthesis" else ():
            learned.setdefault(source, []).append(entry.content)
    return learned
