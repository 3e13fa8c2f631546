"""The journal read from the master log once more, from its beginning.

What always holds: an entry whose key is there stays as it is, and so does whatever else the journal has (corrections,
what tools and imports wrote), so that reading again adds what is missing and takes nothing away. What was learned from
a message is known when the message is read again: the same in other words is not written again.

Rules give the same words, and so the same keys, for the same messages. A model may put what it learns in other words at
another time; what differs too much to be known again becomes a second entry, which consolidation joins to the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from assistant.core.errors import CorruptStore
from assistant.core.memories import JournalEntry, PhaseCursor
from assistant.core.records import LogRecord, SessionInfo
from assistant.core.store_ports import Conversation, Journal, LogReaderPort
from sleep.cycle.cycle import BATCH_RECORDS, PHASE
from sleep.cycle.extraction import Extractor

_EVERYTHING = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Reread:
    """`read` messages with words in them, `learned` entries that are new, and per session what went wrong."""

    read: int = 0
    learned: int = 0
    notes: tuple[str, ...] = ()


class Rereading:
    def __init__(
        self, conversation: Conversation, unread: LogReaderPort, journal: Journal, extractor: Extractor
    ) -> None:
        self._conversation = conversation
        self._unread = unread
        self._journal = journal
        self._extractor = extractor

    async def read_again(self, now: datetime) -> Reread:
        """Read every session to its end. Raises `StoreError`; what was learned until then stays."""
        done = Reread()
        for info in self._conversation.sessions():
            known = _by_source(self._journal.entries(info.scope, limit=_EVERYTHING))
            for generation in range(1, info.generation + 1):
                one = await self._read_session(info, generation, known, now)
                done = Reread(done.read + one.read, done.learned + one.learned, (*done.notes, *one.notes))
        return done

    async def _read_session(
        self, info: SessionInfo, generation: int, known: dict[int, list[str]], now: datetime
    ) -> Reread:
        seq = read = learned = 0
        while True:
            try:
                records = self._unread.after(info.key, generation, seq, limit=BATCH_RECORDS + 1)
            except CorruptStore as error:
                # The files of one conversation; the others can be read.
                return Reread(read, learned, (f"{info.key}: {error}",))
            batch = await self._extractor.batch(records, BATCH_RECORDS)
            if not batch:
                return Reread(read, learned)
            found = await self._extractor.extract(batch, _known_of(batch, known))
            if found.passing:
                return Reread(read, learned, (f"{info.key}: {found.rejected[0]}. Run it again later.",))
            seq = batch[-1].seq
            new = self._journal.add(found.entries, now, reading=PhaseCursor(PHASE, info.key, generation, seq))
            read, learned = read + found.read, learned + len(new)
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
