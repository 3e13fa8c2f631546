"""One sleep: what the day taught goes into the journal, what is full is compacted, and a report tells of it.

What always holds:
- Each phase stands alone: one that fails is named in the report, and the others go on. Each goes on where the last one
  was cut off: what it read and what it wrote of that are committed together (I4).
- Nothing new, no model call (F32). A model that fails again and again is left alone for a while (F07).
- A message never waits: between any two steps others have their turn, and nothing that a step does outlasts some
  milliseconds but for waiting on a model.
- A sleep that read something and saved nothing says so (F34).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import structlog

from assistant.compactions import Checkpoint
from assistant.errors import AssistantError, StoreError
from assistant.ports import Conversation
from assistant.records import Record, SessionInfo
from assistant.remembered import CycleReport, JournalEntry, Reading
from assistant.sleep_ports import Breakers, Compactions, Journal, LogReader
from sleep.extraction import Extracted, Extractor

log = structlog.get_logger()

PHASE = "extract"
FUSE = "extraction"
_RECORDS = 60
_CHARS_A_TOKEN = 3
_BATCHES = 400
_KNOWN = 40


@dataclass(frozen=True, slots=True)
class Compacted:
    """What compacting one session came to, for the report; tokens of the whole prompt."""

    messages: int
    tokens_before: int
    tokens_after: int
    cost_usd: float | None
    tier: str


@dataclass(slots=True)
class _Counts:
    """What the extract phase did."""

    read: int = 0
    written: int = 0
    repeated: int = 0
    rejected: list[str] = field(default_factory=list)
    calls: int = 0
    cost_usd: float | None = 0.0
    waiting: int = 0

    def add(self, found: Extracted, written: int) -> None:
        self.read += found.read
        self.written += written
        self.repeated += len(found.entries) - written
        self.rejected += found.rejected
        self.calls += found.calls
        known = self.cost_usd is not None and found.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (found.cost_usd or 0.0) if known else None

    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "read": self.read, "written": self.written, "repeated": self.repeated, "calls": self.calls,
            "cost_usd": self.cost_usd, "rejected": list(dict.fromkeys(self.rejected))[:10], "waiting": self.waiting,
        }  # fmt: skip
        if self.read and not self.written and not self.repeated:
            told["warning"] = f"{self.read} messages were read and nothing was saved from them"
        return told


class Cycle:
    """Runs sleep cycles over the stores of a home."""

    def __init__(
        self,
        conversation: Conversation,
        unread: LogReader,
        journal: Journal,
        breakers: Breakers,
        extractor: Extractor,
        compact: Callable[[str, str], Awaitable[Compacted | None]],
        *,
        batch_tokens: int,
        failures: int,
        cool_down: timedelta,
    ) -> None:
        """`compact` compacts one session for a trigger, where that is due. `batch_tokens` is about what one call of the
        extractor reads. After `failures` in a row no model reads for `cool_down`; then one try is let through."""
        self._conversation = conversation
        self._unread = unread
        self._journal = journal
        self._breakers = breakers
        self._extractor = extractor
        self._compact = compact
        self._batch_chars = batch_tokens * _CHARS_A_TOKEN
        self._failures = failures
        self._cool_down = cool_down

    async def run_sleep_tick(
        self, now: datetime, *, trigger: str = "sleep", sessions: Sequence[str] | None = None
    ) -> CycleReport:
        """One sleep over all sessions, or those named. Raises `StoreError` where not even the report can be kept."""
        report = CycleReport(self._journal.begin_cycle(trigger, now), trigger, now, None, "running")
        wanted = [info for info in self._conversation.sessions() if sessions is None or info.key in sessions]
        failed = False
        for name, phase in (("settle", self._settle), ("extract", self._extract), ("compact", self._compact_all)):
            try:
                told = await phase(wanted, trigger, now)
            except AssistantError as error:
                told, failed = {"error": str(error)}, True
                log.error("a phase of sleep failed", phase=name, error=str(error))
            report = replace(report, phases={**report.phases, name: told})
            await asyncio.sleep(0)
        report = replace(report, ended_at=now, state="failed" if failed else "done")
        self._journal.note_cycle(report)
        return report

    async def extract_session(self, session: str, now: datetime) -> dict[str, Any]:
        """Read all of one session for the journal, as before a reset. Raises `StoreError`."""
        wanted = [info for info in self._conversation.sessions() if info.key == session]
        return await self._extract(wanted, "reset", now)

    # ----------------------------------------------------------------------------------------------------------- phases

    async def _settle(self, _: Sequence[SessionInfo], __: str, now: datetime) -> dict[str, Any]:
        return {"written": settle_checkpoints(self._conversation, self._journal, now)}

    async def _extract(self, sessions: Sequence[SessionInfo], _: str, now: datetime) -> dict[str, Any]:
        counts = _Counts()
        for info in sessions:
            for _batch in range(_BATCHES):
                if not await self._next_batch(info, counts, now):
                    break
                await asyncio.sleep(0)
            else:
                counts.waiting += 1
        return counts.told()

    async def _next_batch(self, info: SessionInfo, counts: _Counts, now: datetime) -> bool:
        """Read on in a session: whether there was anything, and the cursor moved behind it."""
        seq = self._journal.reading(PHASE, info.key, info.generation)
        records = self._unread.after(info.key, info.generation, seq, limit=_RECORDS)
        batch = list(_fitting(records, self._batch_chars))
        if not batch:
            return False
        found = await self._read(batch, now)
        last = batch[-1].seq
        reading = Reading(PHASE, info.key, info.generation, last)
        counts.add(found, len(self._journal.add(found.entries, now, reading=reading)))
        self._conversation.extracted(info.key, info.generation, last, now)
        return True

    async def _read(self, batch: Sequence[Record], now: datetime) -> Extracted:
        """By the model, unless it failed too often of late."""
        fuse = self._breakers.get(FUSE)
        if fuse.opened_at is not None and now < fuse.opened_at + self._cool_down:
            return self._extractor.plainly(batch)
        scope = batch[0].scope
        known = self._journal.entries(scope, since=now - timedelta(days=1), limit=_KNOWN)
        found = await self._extractor.extract(batch, [entry.content for entry in known])
        if found.failed:
            self._breakers.failed(FUSE, found.rejected[0], self._failures, now)
        elif found.calls:
            self._breakers.succeeded(FUSE)
        return found

    async def _compact_all(self, sessions: Sequence[SessionInfo], trigger: str, now: datetime) -> dict[str, Any]:
        done: dict[str, Any] = {}
        for info in sessions:
            compacted = await self._compact(info.key, trigger)
            if compacted is not None:
                done[info.key] = {
                    "messages": compacted.messages, "tokens_before": compacted.tokens_before,
                    "tokens_after": compacted.tokens_after, "cost_usd": compacted.cost_usd, "tier": compacted.tier,
                }  # fmt: skip
            await asyncio.sleep(0)
        return {"compacted": done} if done else {}


def settle_checkpoints(conversation: Compactions, journal: Journal, now: datetime) -> int:
    """Write what finished compactions leave for the journal and a crash may have kept from it: how many entries were
    new. The summary becomes an entry, and so does each memory that was found on the way."""
    written = 0
    for checkpoint in conversation.unjournaled():
        written += len(journal.add(list(_entries_of(checkpoint)), now))
        conversation.journaled(checkpoint.id)
    return written


def settle_quietly(conversation: Compactions, journal: Journal, now: datetime) -> None:
    """The same right after a compaction, which stands whether or not the journal can be written now."""
    try:
        settle_checkpoints(conversation, journal, now)
    except StoreError as error:
        log.error("the journal lacks a compaction until the next sleep", error=str(error))


def _entries_of(checkpoint: Checkpoint) -> Iterator[JournalEntry]:
    sources = (checkpoint.from_message_id, checkpoint.to_message_id)
    if "merged" not in checkpoint.key_facts:
        yield _entry(checkpoint, f"synthesis:{checkpoint.id}", checkpoint.summary, "summary", sources)
    for number, memory in enumerate(checkpoint.key_facts.get("memories", ()), 1):
        yield _entry(checkpoint, f"memories:{checkpoint.id}:{number}", str(memory), "fact", sources)


def _entry(checkpoint: Checkpoint, key: str, content: str, tag: str, sources: tuple[int, ...]) -> JournalEntry:
    return JournalEntry(
        key=key,
        scope=checkpoint.scope,
        session=checkpoint.session,
        generation=checkpoint.generation,
        content=content,
        timestamp=checkpoint.created_at,
        source_type="context_synthesis" if tag == "summary" else "compaction",
        tags=(tag,),
        sources=sources,
    )


def _fitting(records: Sequence[Record], room: int) -> Iterator[Record]:
    """The first records that fit a batch; always one, however long it is."""
    for number, record in enumerate(records):
        room -= len(record.content)
        if number and room < 0:
            return
        yield record
