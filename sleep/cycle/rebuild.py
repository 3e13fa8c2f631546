"""Semantic memory made again from the journal, and the journal read from the message log once more.

Memory (`rebuild_memories`), after memory.db was lost or whenever somebody doubts it: what an entry went into, and
what replaced it, stands in the journal's own database; texts, dates and weights follow from the entries. So the
memories are the same as consolidation made them; cut off, it goes on where it was; run again, it changes nothing.

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
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce

from assistant.core.errors import CorruptStore
from assistant.core.memories import JournalEntry, Memory, MemoryChange, PhaseCursor
from assistant.core.memory_api import ConsolidationsPort, Memories
from assistant.core.records import LogRecord, SessionInfo
from assistant.core.store_ports import Conversation, Journal, LogReaderPort
from sleep.cycle.change_plan import derive_memory_id, memory_from_entry, merge_entry
from sleep.cycle.consolidate import ConsolidationPhase
from sleep.cycle.cycle import BATCH_RECORDS, EXTRACT_PHASE
from sleep.cycle.extract import Extractor
from sleep.rules.supersede import restate_correction

_AT_ONCE = 100


async def rebuild_memories(consolidations: ConsolidationsPort, memories: Memories, now: datetime) -> int:
    """Make semantic memory what the journal says; how many memories were added, changed or taken out. Raises
    `MemoryUnavailable` and `StoreError`."""
    await ConsolidationPhase(consolidations, memories).apply_planned(now)
    wanted = {memory.id: memory for memory in derive_memories(consolidations)}
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


def derive_memories(consolidations: ConsolidationsPort, scope: str | None = None) -> Iterator[Memory]:
    """The memories of all scopes or one as the journal has them, oldest first. Raises `StoreError`."""
    groups = {one: consolidations.entries_of_memory(one) for one in consolidations.memory_ids(scope)}
    by_entry = {entry.id: entry for entries in groups.values() for entry in entries}
    into = {entry.id: one for one, entries in groups.items() for entry in entries}
    replaced: dict[int, list[str]] = {}
    for one, entries in groups.items():
        for entry in entries:
            if entry.superseded_by is not None:
                replaced.setdefault(entry.superseded_by, []).append(one)
    texts: dict[str, str] = {}
    for one, entries in groups.items():
        first = next((entry for entry in entries if derive_memory_id(entry) == one), entries[0])
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
    begun = replace(memory_from_entry(first), id=one)
    if about is not None:
        begun = replace(begun, text=restate_correction(begun.text, about))
    others = [entry for entry in entries if entry.id != first.id]
    return reduce(merge_entry, others, begun)


_EVERYTHING = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ReextractionResult:
    """What reading again came to."""

    read_count: int = 0  # messages with words in them
    learned_count: int = 0  # entries that are new
    notes: tuple[str, ...] = ()  # what went wrong, by session


class Reextraction:
    def __init__(
        self, conversation: Conversation, log_reader: LogReaderPort, journal: Journal, extractor: Extractor
    ) -> None:
        self._conversation = conversation
        self._log = log_reader
        self._journal = journal
        self._extractor = extractor

    async def run(self, now: datetime) -> ReextractionResult:
        """Read every session to its end. Raises `StoreError`; what was learned until then stays."""
        done = ReextractionResult()
        for info in self._conversation.list_sessions():
            known = _by_source(self._journal.entries(info.scope, limit=_EVERYTHING))
            for generation in range(1, info.generation + 1):
                one = await self._read_session(info, generation, known, now)
                done = ReextractionResult(
                    done.read_count + one.read_count, done.learned_count + one.learned_count, (*done.notes, *one.notes)
                )
        return done

    async def _read_session(
        self, info: SessionInfo, generation: int, known: dict[int, list[str]], now: datetime
    ) -> ReextractionResult:
        seq = read = learned = 0
        while True:
            try:
                records = self._log.read_after(info.key, generation, seq, limit=BATCH_RECORDS + 1)
            except CorruptStore as error:
                # The files of one conversation; the others can be read.
                return ReextractionResult(read, learned, (f"{info.key}: {error}",))
            batch = await self._extractor.next_batch(records, BATCH_RECORDS)
            if not batch:
                return ReextractionResult(read, learned)
            found = await self._extractor.extract(batch, _known_of(batch, known))
            if found.is_temporary_failure:
                return ReextractionResult(read, learned, (f"{info.key}: {found.rejected[0]}. Run it again later.",))
            seq = batch[-1].seq
            new = self._journal.add(found.entries, now, reading=PhaseCursor(EXTRACT_PHASE, info.key, generation, seq))
            read, learned = read + found.read_count, learned + len(new)
            await asyncio.sleep(0)


def _by_source(entries: Sequence[JournalEntry]) -> dict[int, list[str]]:
    """What was learned from each message."""
    found: dict[int, list[str]] = {}
    for entry in entries:
        for source in entry.sources if entry.source_type != "context_synthesis" else ():
            found.setdefault(source, []).append(entry.content)
    return found


def _known_of(batch: Sequence[LogRecord], known: dict[int, list[str]]) -> list[str]:
    return list(dict.fromkeys(text for record in batch for text in known.get(record.id, ())))
