"""Forecasts a sleep cycle without changes or model calls.

Batches are the same as in the cycle. Without a model they are extracted and decided here too, over in-memory copies, so
the numbers match the cycle's. With a model the results are unknown: follow-up calls (scoring and judging new entries)
are counted for pending entries, and as for one new entry in each scope that has none; decisions are predicted by rules.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta

from assistant.core.dataclass import dataclass
from assistant.core.errors import MemoryUnavailable
from assistant.core.memories import JournalEntry
from assistant.core.memory_api import ConsolidationsPort
from assistant.core.messages import Usage
from assistant.core.ports import Model
from assistant.core.records import SessionInfo
from assistant.core.store_ports import Conversation, Journal, LogReaderPort
from sleep.compaction.budget import OFFLINE, CostFunction
from sleep.compaction.preview import CompactionPreview
from sleep.compaction.values import SummaryEstimate
from sleep.cycle.changes import add_changes
from sleep.cycle.consolidate import ConsolidationPhase
from sleep.cycle.extract import EXTRACT_PHASE, KNOWN_ENTRIES, Extractor, estimate_tokens, known_texts
from sleep.cycle.judge import SCORE_PHASE, count_scoring_calls
from sleep.cycle.phase import PhaseResult
from sleep.rules.classifier import UNCERTAIN_BAND

_COUNT_LIMIT = 100_000
# Provisional ids of entries that are not written.
_UNWRITTEN_IDS = 10**12
# Approximate tokens per call for the prompt, per entry, and per answer.
_AROUND = 800
_AN_ENTRY = 120
_ANSWER = 400


@dataclass(frozen=True, slots=True)
class UnreadSession:
    """Unread messages of a session, and about the calls and tokens that extraction needs."""

    session: str
    messages: int
    calls: int
    tokens: int
    entries: int | None = None  # new journal entries; None if a model would decide


@dataclass(frozen=True, slots=True)
class FullSession:
    """A session that would be compacted: prompt tokens before and approximately after, its share of the context, and
    the estimated cost."""

    session: str
    ratio: float
    tokens_before: int
    tokens_after: int
    estimate: SummaryEstimate | None


@dataclass(frozen=True, slots=True)
class SleepForecast:
    """The forecast of a cycle."""

    unread: tuple[UnreadSession, ...]
    pending: int  # entries to be consolidated
    unscored: int  # the part of them to be scored
    planned: int  # saved plans not applied yet
    full: tuple[FullSession, ...]
    model: str  # "" if none would be called
    calls: int
    tokens: int
    usd: float | None  # None if a price is unknown
    # predicted results of pending entries; None if the memory store is unavailable
    changes: Mapping[str, int] | None = field(default_factory=dict)
    calls_by_phase: Mapping[str, int] = field(default_factory=dict)
    refused: str = ""  # why the budget leaves all of these calls to the rules, as a sentence


@dataclass(frozen=True, slots=True)
class SleepDryRun:
    """Computes forecasts."""

    conversation: Conversation
    log: LogReaderPort
    journal: Journal
    consolidations: ConsolidationsPort
    consolidation: ConsolidationPhase
    extractor: Extractor
    model: Callable[[], Model]  # for extraction, scoring and judging
    cost: CostFunction
    # preview for a session, None if nothing would be done
    compaction: Callable[[str], Awaitable[CompactionPreview | None]]

    async def run(self, now: datetime) -> SleepForecast:
        """Return the forecast. Raises `StoreError`."""
        sessions = self.conversation.list_sessions()
        to_read = (*self.conversation.list_unread_generations(), *sessions)
        found: dict[str, list[JournalEntry]] = {}
        read = [(info.scope, await self._unread(info, now, found)) for info in to_read]
        unread = [session for _, session in read if session.messages]
        full = [would for info in sessions if (would := await self._full(info.key)) is not None]
        written = self.consolidations.pending_entries(limit=_COUNT_LIMIT)
        waiting = _in_order([*written, *(entry for new in found.values() for entry in new)])
        last = self.journal.read_position(SCORE_PHASE, "", 0)
        to_score = self.consolidations.unscored_entries(last, *UNCERTAIN_BAND, limit=_COUNT_LIMIT)
        planned, model = len(self.consolidations.unapplied_plans()), self.model()
        decided = await self._decided(waiting)
        changes = decided.details if decided is not None else None
        counted = (tuple(unread), len(waiting), len(to_score), planned, tuple(full))
        if model.provider == OFFLINE:
            return SleepForecast(*counted, "", 0, 0, 0.0, changes)
        summaries = [session.estimate for session in full if session.estimate is not None]
        scopes = {scope for scope, session in read if session.calls} - {entry.scope for entry in waiting}
        calls = {
            EXTRACT_PHASE: sum(session.calls for session in unread),
            SCORE_PHASE: count_scoring_calls(to_score),
            "consolidate": (decided.calls if decided is not None else 0) + len(scopes),
        }
        labelled = calls[SCORE_PHASE] + calls["consolidate"]
        tokens = sum(session.tokens for session in unread)
        tokens += labelled * _AROUND + (len(to_score) + len(waiting)) * _AN_ENTRY
        usage = Usage(input=tokens, output=sum(calls.values()) * _ANSWER)
        costs = [
            self.cost(model.provider, model.name, usage) if any(calls.values()) else 0.0,
            *(estimate.usd for estimate in summaries),
        ]
        calls["compact"] = sum(estimate.calls for estimate in summaries)
        return SleepForecast(
            *counted,
            model.name,
            sum(calls.values()),
            tokens + sum(estimate.input_tokens for estimate in summaries),
            None if None in costs else sum(cost or 0.0 for cost in costs),
            changes,
            calls,
        )

    async def _decided(self, waiting: Sequence[JournalEntry]) -> PhaseResult | None:
        try:
            return await self.consolidation.forecast(waiting)
        except MemoryUnavailable:
            return None

    async def _unread(self, info: SessionInfo, now: datetime, found: dict[str, list[JournalEntry]]) -> UnreadSession:
        """Forecast a session's extraction; its new entries are added to `found` (by scope), where it also reads those
        of earlier sessions."""
        new = found.setdefault(info.scope, [])
        before, since = len(new), now - timedelta(days=1)
        seq = self.journal.read_position(EXTRACT_PHASE, info.key, info.generation)
        has_model = self.model().provider != OFFLINE
        messages = calls = tokens = 0
        while batch := await self.extractor.read_batch(self.log, info.key, info.generation, seq):
            spoken = self.extractor.readable(batch)
            messages += len(spoken)
            if spoken and has_model:
                calls += 1
                tokens += _AROUND + sum(map(estimate_tokens, spoken))
            elif spoken:
                stored = self.journal.entries(info.scope, since=since, limit=KNOWN_ENTRIES)
                today = sorted(
                    [*stored, *(entry for entry in new if entry.timestamp >= since)], key=lambda entry: entry.timestamp
                )
                extracted = self.extractor.extract_without_model(spoken, known_texts(today[-KNOWN_ENTRIES:]))
                new += (await add_changes(extracted, self.journal, new)).entries
            seq = batch[-1].seq
            await asyncio.sleep(0)
        return UnreadSession(info.key, messages, calls, tokens, None if has_model else len(new) - before)

    async def _full(self, session: str) -> FullSession | None:
        preview = await self.compaction(session)
        if preview is None:
            return None
        before, after = preview.result.before, preview.result.after
        return FullSession(session, before.ratio, before.prompt_tokens, after.prompt_tokens, preview.estimate)


def _in_order(entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    """Return entries in the order in which they will be pending, with provisional ids."""
    numbered = [
        entry if entry.id is not None else replace(entry, id=_UNWRITTEN_IDS + place)
        for place, entry in enumerate(entries)
    ]
    return sorted(numbered, key=lambda entry: (entry.timestamp, entry.id or 0))
