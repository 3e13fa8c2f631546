"""One sleep: what the day taught goes into the journal, what is full is compacted, and a report tells of it.

What always holds:
- Each phase stands alone: one that fails is named in the report, and the others go on. Each goes on where the last one
  was cut off: what it read and what it wrote of that are committed together (I4).
- Nothing new, no model call (F32). A model that fails again and again is left alone for a while (F07); then the rules
  read instead, so that nothing waits for ever (F28, F30).
- A message never waits: between any two steps others have their turn, and nothing that a step does outlasts some
  milliseconds but for waiting on a model.
- A sleep that read what there was something to learn from and saved nothing says so (F34): a day of questions and
  greetings alone is none. One that ended before its time is `interrupted`.
- A sleep that has spent what it may goes on by the rules, and its report says so.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog

from assistant.core.errors import AssistantError, CorruptStore, StoreError
from assistant.core.memories import PhaseCursor, SleepReport
from assistant.core.ports import BreakersPort
from assistant.core.records import LogRecord, SessionInfo
from assistant.core.store_ports import Conversation, Journal, LogReaderPort
from assistant.core.telemetry import NULL_TRACER, Tracer
from assistant.core.text import pluralize
from sleep.compaction.budget import SleepBudget
from sleep.cycle.extract import ExtractionResult, Extractor
from sleep.cycle.journal_sync import sync_journal
from sleep.cycle.phase_result import PhaseResult
from sleep.cycle.validate import count_unlearned_statements

log = structlog.get_logger()

EXTRACT_PHASE = "extract"
EXTRACTION_BREAKER = "extraction"
BATCH_RECORDS = 60
_BATCHES = 400
_KNOWN = 60
# So much is not said without anything that is worth keeping.
_MANY_STATEMENTS = 20
# As whom a sleep compacts; what was meant to happen at night is the night's, and a phase alone is by hand.
_COMPACTS_AS = {"late": "sleep", "phase": "manual"}
PHASES = ("extract", "score", "consolidate", "curate", "compact")
"""Those that may be carried out alone."""


@dataclass(frozen=True, slots=True)
class CompactedSession:
    """What compacting one session came to, for the report."""

    message_count: int
    tokens_before: int  # of the whole prompt
    tokens_after: int
    cost_usd: float | None
    tier: str
    checkpoints: tuple[int, ...] = ()  # those made


PhaseFunction = Callable[[int, PhaseResult, datetime], Awaitable[None]]
"""A phase over the whole home: (cycle, what it fills in, now). Raises `AssistantError`; the others go on then."""
_Step = Callable[[PhaseResult, datetime], Awaitable[None]]


class SleepCycle:
    """Runs sleep cycles over the stores of a home."""

    def __init__(
        self,
        conversation: Conversation,
        log_reader: LogReaderPort,
        journal: Journal,
        breakers: BreakersPort,
        extractor: Extractor,
        compact_session: Callable[[str, str], Awaitable[CompactedSession | None]],
        *,
        failures: int,
        cool_down: timedelta,
        clock: Callable[[], datetime],
        extra_phases: Sequence[tuple[str, PhaseFunction]] = (),
        sleep_budget: SleepBudget | None = None,
        tracer: Tracer = NULL_TRACER,
    ) -> None:
        """`compact_session` compacts one session for a trigger, where that is due; `extra_phases` are phases by their
        names, carried out between extracting and compacting, but for naps, which are for making room alone. After
        `failures` in a row no model reads for `cool_down`; then one try is let through. `sleep_budget` is started and
        stopped with each sleep."""
        self._conversation = conversation
        self._log = log_reader
        self._journal = journal
        self._breakers = breakers
        self._extractor = extractor
        self._compact_session = compact_session
        self._failures = failures
        self._cool_down = cool_down
        self._clock = clock
        self._extra_phases = tuple(extra_phases)
        self._sleep_budget = sleep_budget
        self._tracer = tracer

    async def run(
        self, now: datetime, *, trigger: str = "sleep", sessions: Sequence[str] | None = None, phase: str = ""
    ) -> SleepReport:
        """One sleep over all sessions, or those named; all its phases, or one of `PHASES` alone. Raises `StoreError`
        where not even the report can be kept."""
        with self._tracer.span("sleep", trigger=trigger) as span:
            report = await self._slept(now, trigger, sessions, phase)
            span.set_attributes(state=report.state)
        return report

    async def _slept(self, now: datetime, trigger: str, sessions: Sequence[str] | None, phase: str) -> SleepReport:
        report = SleepReport(self._journal.begin_cycle(trigger, now), trigger, now, None, "running")
        sessions_to_read = [
            info for info in self._conversation.list_sessions() if sessions is None or info.key in sessions
        ]
        unread_generations = [
            info for info in self._conversation.list_unread_generations() if sessions is None or info.key in sessions
        ]
        ended = False
        try:
            if self._sleep_budget is not None:
                self._sleep_budget.start(now)
            for name, step in self._phases(report.id, sessions_to_read, unread_generations, trigger):
                if not phase or phase == name:
                    report = await self._carried_out(report, name, step, now)
            ended = True
        finally:
            if self._sleep_budget is not None:
                self._sleep_budget.stop()
            if not ended:
                self._note(replace(report, ended_at=self._clock(), state="interrupted"))
        failed = any(one["state"] == "failed" for one in report.phases.values())
        report = replace(report, ended_at=self._clock(), state="failed" if failed else "done")
        self._journal.save_cycle(report)
        return report

    async def _carried_out(self, report: SleepReport, name: str, step: _Step, now: datetime) -> SleepReport:
        """The report with what came of one phase."""

        def follow(so_far: PhaseResult) -> None:
            self._note(replace(report, phases={**report.phases, name: {**so_far.as_json(), "state": "running"}}))

        outcome = PhaseResult(on_progress=follow)
        outcome.report_progress()
        with self._tracer.span("phase", phase=name) as span:
            try:
                await step(outcome, now)
            except AssistantError as error:
                outcome.errors.append(str(error))
                log.error("a phase of sleep failed", phase=name, error=str(error))
            span.set_attributes(state="failed" if outcome.errors else "done")
        if self._sleep_budget is not None and self._sleep_budget.is_exhausted:
            outcome.details["budget"] = self._sleep_budget.exhausted_reason
        report = replace(report, phases={**report.phases, name: outcome.as_json()})
        self._journal.save_cycle(report)
        await asyncio.sleep(0)
        return report

    def _note(self, report: SleepReport) -> None:
        """What goes on is for those who look; where it cannot be written, what is worth keeping is none the worse."""
        with contextlib.suppress(StoreError):
            self._journal.save_cycle(report)

    async def extract_session(self, session: str, now: datetime, until: datetime | None = None) -> dict[str, Any]:
        """Read one session to its end for the journal, or as far as that goes until then, as before a reset. What was
        not read, as where the model cannot be had, is left, and said so. Raises `StoreError`."""
        outcome = PhaseResult()
        for info in self._conversation.list_sessions():
            if info.key == session:
                await self._read_session(info, outcome, now, until=until)
                # Once more, for a crash may have kept it from being noted.
                seq = self._journal.read_position(EXTRACT_PHASE, info.key, info.generation)
                self._conversation.mark_extracted(info.key, info.generation, seq)
        return outcome.as_json()

    # ----------------------------------------------------------------------------------------------------------- phases

    def _phases(
        self, cycle: int, sessions: Sequence[SessionInfo], unread_generations: Sequence[SessionInfo], trigger: str
    ) -> Iterator[tuple[str, _Step]]:
        """`unread_generations` are ended generations that were not read to their end."""
        yield "settle", self._settle
        yield "extract", partial(self._extract, (*unread_generations, *sessions), cycle)
        for name, phase in () if trigger == "nap" else self._extra_phases:
            yield name, partial(phase, cycle)
        yield "compact", partial(self._compact_all, sessions, trigger)

    async def _settle(self, outcome: PhaseResult, now: datetime) -> None:
        settled = sync_journal(self._conversation, self._journal, now, self._extractor.learns_from)
        outcome.read_count, outcome.written_count = settled.checkpoint_count, settled.entry_count

    async def _extract(self, sessions: Sequence[SessionInfo], cycle: int, outcome: PhaseResult, now: datetime) -> None:
        for info in sessions:
            try:
                await self._read_session(info, outcome, now, cycle=cycle)
            except CorruptStore as error:
                # The files of one conversation; the others can be read.
                outcome.errors.append(f"{info.key}: {error}")
            await asyncio.sleep(0)
        unsaved = outcome.read_count and not outcome.written_count and not outcome.repeated_count
        if unsaved and (outcome.had_learnable or outcome.rejected or outcome.unlearned_count >= _MANY_STATEMENTS):
            outcome.details["warning"] = (
                f"{pluralize(outcome.read_count, 'message')} read, and nothing was saved from them"
            )

    async def _compact_all(
        self, sessions: Sequence[SessionInfo], trigger: str, outcome: PhaseResult, now: datetime
    ) -> None:
        done: dict[str, Any] = {}
        outcome.details["compacted"] = done
        for info in sessions:
            outcome.read_count += 1
            try:
                compacted = await self._compact_session(info.key, _COMPACTS_AS.get(trigger, trigger))
            except AssistantError as error:
                outcome.errors.append(f"{info.key}: {error}")
                continue
            if compacted is not None:
                outcome.add_cost(compacted.cost_usd)
                done[info.key] = {
                    "messages": compacted.message_count,
                    "tokens_before": compacted.tokens_before,
                    "tokens_after": compacted.tokens_after,
                    "tier": compacted.tier,
                    "cost_usd": compacted.cost_usd,
                    "checkpoints": list(compacted.checkpoints),
                }
                outcome.report_progress()
            await asyncio.sleep(0)
        outcome.written_count = len(done)

    # ---------------------------------------------------------------------------------------------------------- reading

    async def _read_session(
        self,
        info: SessionInfo,
        outcome: PhaseResult,
        now: datetime,
        *,
        cycle: int | None = None,
        until: datetime | None = None,
    ) -> None:
        seq = self._journal.read_position(EXTRACT_PHASE, info.key, info.generation)
        if seq and info.unextracted:
            # A crash came between the commit of the journal and the note that it was read.
            self._conversation.mark_extracted(info.key, info.generation, seq)
        for _ in range(_BATCHES):
            if not await self._read_on(info, outcome, now, cycle):
                return
            if until is not None and self._clock() >= until:
                break
            await asyncio.sleep(0)
        outcome.waiting_count += 1

    async def _read_on(self, info: SessionInfo, outcome: PhaseResult, now: datetime, cycle: int | None) -> bool:
        """Read the next batch of a session: whether there was one, and the cursor moved behind it."""
        seq = self._journal.read_position(EXTRACT_PHASE, info.key, info.generation)
        records = self._log.read_after(info.key, info.generation, seq, limit=BATCH_RECORDS + 1)
        batch = await self._extractor.next_batch(records, BATCH_RECORDS)
        if not batch:
            return False
        found = await self._extract_batch(batch, now)
        outcome.calls += found.calls
        outcome.rejected += found.rejected
        outcome.add_cost(found.cost_usd)
        if found.is_temporary_failure and self._may_ask(now):
            outcome.waiting_count += 1
            outcome.errors.append(f"{info.key} is read at the next sleep: {found.rejected[0]}")
            return False
        last = batch[-1].seq
        reading = PhaseCursor(EXTRACT_PHASE, info.key, info.generation, last)
        written = len(self._add_entries(found, reading, now, cycle))
        outcome.read_count += found.read_count
        outcome.written_count += written
        outcome.repeated_count += len(found.entries) - written
        if not found.entries:
            outcome.unlearned_count += count_unlearned_statements(batch)
            outcome.had_learnable |= bool(found.calls and self._extractor.extract_without_model(batch, ()).entries)
        self._conversation.mark_extracted(info.key, info.generation, last)
        outcome.report_progress()
        return True

    async def _extract_batch(self, batch: Sequence[LogRecord], now: datetime) -> ExtractionResult:
        """By the model, unless it failed too often of late; by the rules then."""
        today = self._journal.entries(batch[0].scope, since=now - timedelta(days=1), limit=_KNOWN)
        known = [entry.content for entry in today if entry.source_type != "context_synthesis"]
        if not self._may_ask(now):
            return self._extractor.extract_without_model(batch, known)
        found = await self._extractor.extract(batch, known)
        if found.failed:
            self._breakers.record_failure(EXTRACTION_BREAKER, found.rejected[0], self._failures, now)
        elif found.calls:
            self._breakers.record_success(EXTRACTION_BREAKER)
        return found

    def _add_entries(
        self, found: ExtractionResult, reading: PhaseCursor, now: datetime, cycle: int | None
    ) -> Sequence[object]:
        try:
            return self._journal.add([replace(one, cycle=cycle) for one in found.entries], now, reading=reading)
        except StoreError as error:
            if found.calls:
                # What was paid for is asked for again; not for ever.
                self._breakers.record_failure(EXTRACTION_BREAKER, str(error), self._failures, now)
            raise

    def _may_ask(self, now: datetime) -> bool:
        return self._breakers.get(EXTRACTION_BREAKER).allows_call(now, self._cool_down)
