"""Rebuilds semantic memory from the journal, and the journal from the message log.

`rebuild_memories`, for a lost or suspect memory.db: character.db records which entry went into which memory and what
superseded it; texts, dates and scores follow from the entries. The result is the same as by consolidation; it is
idempotent and resumable.

`Reextraction` reads the log from the beginning: existing entries (including corrections, tools' and imports') are
unchanged, so reading again only adds what is missing. What was learned from a message is shown again, to avoid
duplicates in other words. Rules produce the same text and thus the same keys. A model may phrase something differently;
what is not recognised becomes a second entry, which consolidation merges with the first.
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
from assistant.core.sessions import session_name
from assistant.core.store_ports import Conversation, Journal, LogReaderPort
from sleep.cycle.change_plan import derive_memory_id, memory_from_entry, merge_entry
from sleep.cycle.changes import add_changes
from sleep.cycle.consolidate import ConsolidationPhase
from sleep.cycle.extract import EXTRACT_PHASE, Extractor
from sleep.rules.supersede import restate_correction

_AT_ONCE = 100


async def rebuild_memories(consolidations: ConsolidationsPort, memories: Memories, now: datetime) -> int:
    """Make semantic memory match the journal; returns how many memories were added, changed or deleted. Raises
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
    """Yield the memories of all scopes or one, derived from the journal, oldest first. Raises `StoreError`."""
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
    """The result of reading again."""

    read_count: int = 0  # messages with text
    learned_count: int = 0  # new entries
    notes: tuple[str, ...] = ()  # problems, by session


@dataclass(frozen=True, slots=True)
class Reextraction:
    conversation: Conversation
    log_reader: LogReaderPort
    journal: Journal
    extractor: Extractor

    async def run(self, now: datetime) -> ReextractionResult:
        """Read every session to its end. Raises `StoreError`; entries learned until then are kept."""
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
        """Read one generation and return the updated `result`; `learned` has earlier entries by message."""
        seq = 0
        while True:
            try:
                batch = await self.extractor.read_batch(self.log_reader, info.key, generation, seq)
            except CorruptStore as error:
                # Only this conversation's files are damaged.
                return replace(result, notes=(*result.notes, f"{session_name(info.key)}: {error}"))
            if not batch:
                return result
            known_texts = dict.fromkeys(text for record in batch for text in learned.get(record.id, ()))
            extracted = await self.extractor.extract(batch, list(known_texts))
            if extracted.is_temporary_failure:
                why = f"{session_name(info.key)}: {extracted.rejected[0]}. Run it again later."
                return replace(result, notes=(*result.notes, why))
            extracted = await add_changes(extracted, self.journal)
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
    """Return the texts learned from each message."""
    learned: dict[int, list[str]] = {}
    for entry in entries:
        for source in entry.sources if entry.source_type != "context_synthesis" else ():
            learned.setdefault(source, []).append(entry.content)
    return learned
