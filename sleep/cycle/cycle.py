"""One sleep cycle: extracts messages to the journal, consolidates memories, compacts full contexts, and reports.

- Phases are independent: one that fails is reported, and the others run. Each resumes where it was interrupted: reading
  position and results are committed together (I4).
- Nothing new means no model call (F32). A repeatedly failing model is skipped for a while (F07), and the rules are
  used, so that nothing waits forever (F28, F30).
- Messages are never delayed: every step yields to the event loop, and blocks it for milliseconds at most.
- A cycle that read learnable content but saved nothing says so (F34), unless it was only questions and greetings. An
  incomplete cycle is `interrupted`.
- A cycle that used up its budget continues with rules, and reports it; then it reads no more imported conversations.
  These are read over many nights, after everything said here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from assistant.core.checkpoints import Checkpoint
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, CorruptStore, StoreError
from assistant.core.logger import get_logger
from assistant.core.memories import JournalEntry, PhaseCursor, SleepReport
from assistant.core.ports import BreakersPort
from assistant.core.records import LogRecord, SessionInfo
from assistant.core.sessions import session_name
from assistant.core.store_ports import Conversation, Journal, LogReaderPort
from assistant.core.telemetry import NULL_TRACER, Tracer
from assistant.core.text import pluralize
from sleep.compaction.budget import SleepBudget
from sleep.compaction.plan import has_summary
from sleep.cycle.changes import add_changes
from sleep.cycle.extract import (
    EXTRACT_PHASE,
    KNOWN_ENTRIES,
    ExtractionResult,
    Extractor,
    known_texts,
    learn_from_all,
)
from sleep.cycle.imports import IMPORTS_PHASE, ImportReading
from sleep.cycle.notes import NOTES_PHASE
from sleep.cycle.phase import PhaseResult
from sleep.cycle.validate import count_unlearned_statements
from sleep.rules.classifier import score_importance
from sleep.rules.sentence_cache import forget_sentences

log = get_logger()

EXTRACTION_BREAKER = "extraction"
_BATCHES = 400
# So many statements always contain something worth saving.
_MANY_STATEMENTS = 20
# Compaction trigger by cycle trigger: late cycles count as nightly, single phases as manual.
_COMPACTS_AS = {"late": "sleep", "phase": "manual"}
PHASES = ("extract", "score", "consolidate", "curate", "compact", "imports", "notes")
"""The phases that can be run on their own."""


@dataclass(frozen=True, slots=True)
class CompactedSession:
    """The result of compacting one session, for the report."""

    messages: int
    tokens_before: int  # of the whole prompt
    tokens_after: int
    cost_usd: float | None
    tier: str
    checkpoints: tuple[int, ...] = ()  # new ones


PhaseFunction = Callable[[int, PhaseResult, datetime], Awaitable[None]]
"""A phase over the whole home: (cycle, result to fill in, now). Raises `AssistantError`; the other phases still run."""
_Step = Callable[[PhaseResult, datetime], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SleepCycle:
    """Runs sleep cycles over the stores of a home.

    - `compact_session`: compacts a session for a trigger, if due.
    - `failures`, `cool_down`: circuit breaker for extraction by a model.
    - `extra_phases`: named phases between extraction and compaction; skipped in naps, which only make room.
    - `write_notes`: the last phase; also runs after a single phase.
    - `sleep_budget`: started and stopped with each cycle.
    - `imports`: reads imported conversations with the remaining budget.
    """

    conversation: Conversation
    log_reader: LogReaderPort
    journal: Journal
    breakers: BreakersPort
    extractor: Extractor
    compact_session: Callable[[str, str], Awaitable[CompactedSession | None]]
    failures: int = field(kw_only=True)
    cool_down: timedelta = field(kw_only=True)
    clock: Callable[[], datetime] = field(kw_only=True)
    extra_phases: tuple[tuple[str, PhaseFunction], ...] = field(default=(), kw_only=True)
    write_notes: PhaseFunction | None = field(default=None, kw_only=True)
    sleep_budget: SleepBudget | None = field(default=None, kw_only=True)
    imports: ImportReading | None = field(default=None, kw_only=True)
    tracer: Tracer = field(default=NULL_TRACER, kw_only=True)

    async def run(
        self, now: datetime, *, trigger: str = "sleep", sessions: Sequence[str] | None = None, phase: str = ""
    ) -> SleepReport:
        """Run a cycle over all sessions, or those named, with all phases or one of `PHASES`. Raises `StoreError` if the
        report cannot be saved."""
        with self.tracer.span("sleep", trigger=trigger) as span:
            report = await self._run(now, trigger, sessions, phase)
            span.set_attributes(state=report.state)
        return report

    async def _run(self, now: datetime, trigger: str, sessions: Sequence[str] | None, phase: str) -> SleepReport:
        report = SleepReport(self.journal.begin_cycle(trigger, now), trigger, now, None, "running")
        current, ended_unread = (
            [info for info in infos if sessions is None or info.key in sessions]
            for infos in (self.conversation.list_sessions(), self.conversation.list_unread_generations())
        )
        ended = False
        try:
            if self.sleep_budget is not None:
                self.sleep_budget.start(now)
            is_whole = sessions is None and trigger != "nap"
            for name, step in self._phases(report.id, current, ended_unread, trigger, is_whole):
                if phase in ("", name) or (phase, name) == (EXTRACT_PHASE, NOTES_PHASE):
                    report = await self._carry_out(report, name, step, now)
            ended = True
        finally:
            if self.sleep_budget is not None:
                self.sleep_budget.stop()
            forget_sentences()
            if not ended:
                self._note(replace(report, ended_at=self.clock(), state="interrupted"))
        failed = any(result["state"] == "failed" for result in report.phases.values())
        report = replace(report, ended_at=self.clock(), state="failed" if failed else "done")
        self.journal.save_cycle(report)
        return report

    async def _carry_out(self, report: SleepReport, name: str, step: _Step, now: datetime) -> SleepReport:
        """Run one phase and return the report with its result."""

        def follow(so_far: PhaseResult) -> None:
            self._note(replace(report, phases={**report.phases, name: {**so_far.as_json(), "state": "running"}}))

        outcome, budget = PhaseResult(on_progress=follow), self.sleep_budget
        calls, spent = (budget.calls, budget.spent_usd()) if budget is not None else (0, 0.0)
        outcome.report_progress()
        with self.tracer.span("phase", phase=name) as span:
            try:
                await step(outcome, now)
            except AssistantError as error:
                outcome.errors.append(str(error))
                log.error("a phase of sleep failed", phase=name, error=str(error))
            span.set_attributes(state="failed" if outcome.errors else "done")
        if budget is not None:
            # Includes failed calls and those for summaries.
            outcome.calls = max(outcome.calls, budget.calls - calls)
            if outcome.cost_usd is not None:
                outcome.cost_usd = max(outcome.cost_usd, budget.spent_usd() - spent)
            if budget.is_exhausted:
                outcome.details["budget"] = budget.exhausted_reason
        report = replace(report, phases={**report.phases, name: outcome.as_json()})
        self.journal.save_cycle(report)
        await asyncio.sleep(0)
        return report

    def _note(self, report: SleepReport) -> None:
        """Save progress; failures are ignored, since it is only informational."""
        with contextlib.suppress(StoreError):
            self.journal.save_cycle(report)

    async def extract_session(self, session: str, now: datetime, until: datetime | None = None) -> dict[str, Any]:
        """Extract one session to its end or until a deadline, as before a reset. Unread messages, e.g. because the
        model failed, stay pending and are reported. Raises `StoreError`."""
        outcome = PhaseResult()
        for info in self.conversation.list_sessions():
            if info.key == session:
                await self._read_session(info, outcome, now, until=until)
        return outcome.as_json()

    # ----------------------------------------------------------------------------------------------------------- phases

    def _phases(
        self,
        cycle: int,
        sessions: Sequence[SessionInfo],
        ended_unread: Sequence[SessionInfo],
        trigger: str,
        is_whole: bool,
    ) -> Iterator[tuple[str, _Step]]:
        """`ended_unread` are ended generations with unread messages; `is_whole`: not restricted to some sessions."""
        yield "settle", self._sync_journal
        yield EXTRACT_PHASE, partial(self._extract, (*ended_unread, *sessions), cycle)
        for name, phase in () if trigger == "nap" else self.extra_phases:
            yield name, partial(phase, cycle)
        yield "compact", partial(self._compact_all, sessions, trigger)
        if is_whole and self.imports is not None and self.imports.has_unread():
            yield IMPORTS_PHASE, partial(self.imports.read, self._read_on, self._is_exhausted, cycle)
        if self.write_notes is not None:
            yield NOTES_PHASE, partial(self.write_notes, cycle)

    def _is_exhausted(self) -> bool:
        return self.sleep_budget is not None and self.sleep_budget.is_exhausted

    async def _sync_journal(self, outcome: PhaseResult, now: datetime) -> None:
        settled = sync_journal(self.conversation, self.journal, now, self.extractor.learns_from)
        outcome.read_count, outcome.written_count = settled.read_count, settled.written_count

    async def _extract(self, sessions: Sequence[SessionInfo], cycle: int, outcome: PhaseResult, now: datetime) -> None:
        for info in sessions:
            try:
                await self._read_session(info, outcome, now, cycle=cycle)
            except CorruptStore as error:
                # Only this session's files are damaged.
                outcome.errors.append(f"{session_name(info.key)}: {error}")
            await asyncio.sleep(0)
        unsaved = outcome.read_count and not outcome.written_count and not outcome.repeated_count
        if unsaved and (outcome.had_learnable or outcome.rejected or outcome.unlearned_count >= _MANY_STATEMENTS):
            outcome.details["warning"] = (
                f"{pluralize(outcome.read_count, 'message')} read, and nothing was saved from them"
            )

    async def _compact_all(
        self, sessions: Sequence[SessionInfo], trigger: str, outcome: PhaseResult, now: datetime
    ) -> None:
        outcome.details["compacted"] = {}
        for info in sessions:
            outcome.read_count += 1
            try:
                compacted = await self.compact_session(info.key, _COMPACTS_AS.get(trigger, trigger))
            except AssistantError as error:
                outcome.errors.append(f"{session_name(info.key)}: {error}")
                continue
            if compacted is not None:
                outcome.add_cost(compacted.cost_usd)
                outcome.details["compacted"][info.key] = {
                    **asdict(compacted),
                    "checkpoints": list(compacted.checkpoints),
                }
                outcome.report_progress()
            await asyncio.sleep(0)
        outcome.written_count = len(outcome.details["compacted"])

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
        seq = self.journal.read_position(EXTRACT_PHASE, info.key, info.generation)
        if seq > info.extracted_seq:
            # A crash after the journal's commit: mark it as read now.
            self.conversation.mark_extracted(info.key, info.generation, seq)
        for _ in range(_BATCHES):
            if not await self._read_on(info, outcome, now, cycle):
                return
            if until is not None and self.clock() >= until:
                break
            await asyncio.sleep(0)
        outcome.waiting_count += 1

    async def _read_on(self, info: SessionInfo, outcome: PhaseResult, now: datetime, cycle: int | None) -> bool:
        """Extract the next batch of a session and advance the cursor; returns whether there was one."""
        seq = self.journal.read_position(EXTRACT_PHASE, info.key, info.generation)
        batch = await self.extractor.read_batch(self.log_reader, info.key, info.generation, seq)
        if not batch:
            return False
        extracted = await self._extract_batch(batch, now)
        outcome.calls += extracted.calls
        outcome.rejected += extracted.rejected
        outcome.add_cost(extracted.cost_usd)
        if extracted.is_temporary_failure and self._may_ask(now):
            outcome.waiting_count += 1
            outcome.errors.append(f"{session_name(info.key)} is read at the next sleep: {extracted.rejected[0]}")
            return False
        last = batch[-1].seq
        cursor = PhaseCursor(EXTRACT_PHASE, info.key, info.generation, last)
        try:
            entries = [replace(entry, cycle=cycle) for entry in extracted.entries]
            written = len(self.journal.add(entries, now, reading=cursor))
        except StoreError as error:
            if extracted.calls:
                # A paid call will be repeated; the breaker limits that.
                self.breakers.record_failure(EXTRACTION_BREAKER, str(error), self.failures, now)
            raise
        outcome.read_count += extracted.read_count
        outcome.written_count += written
        outcome.repeated_count += len(entries) - written
        if not entries:
            outcome.unlearned_count += count_unlearned_statements(batch)
            outcome.had_learnable |= bool(extracted.calls and self.extractor.extract_without_model(batch, ()).entries)
        self.conversation.mark_extracted(info.key, info.generation, last)
        outcome.report_progress()
        return True

    async def _extract_batch(self, batch: Sequence[LogRecord], now: datetime) -> ExtractionResult:
        """Extract by model, or by rules while the breaker is open."""
        known = known_texts(self.journal.entries(batch[0].scope, since=now - timedelta(days=1), limit=KNOWN_ENTRIES))
        if not self._may_ask(now):
            # In a thread: the rules are slow on long texts.
            extracted = await asyncio.to_thread(self.extractor.extract_without_model, batch, known)
        else:
            extracted = await self.extractor.extract(batch, known)
        if extracted.failed:
            self.breakers.record_failure(EXTRACTION_BREAKER, extracted.rejected[0], self.failures, now)
        elif extracted.calls:
            self.breakers.record_success(EXTRACTION_BREAKER)
        return await add_changes(extracted, self.journal, rest=self.extractor.rest)

    def _may_ask(self, now: datetime) -> bool:
        return self.breakers.get(EXTRACTION_BREAKER).allows_call(now, self.cool_down)


# ---------------------------------------------------------------------------------------------------------- compactions


def sync_journal(
    conversation: Conversation,
    journal: Journal,
    now: datetime,
    learns_from: Callable[[str], bool] = learn_from_all,
) -> PhaseResult:
    """Write the entries of committed compactions (summary and extracted memories) that the journal does not have yet:
    at start-up, after each compaction, and in every cycle; except for sessions excluded from learning. Returns counts
    of checkpoints read and new entries. Raises `StoreError`; entries already written are kept.

    Keys derive from the checkpoint, which is marked only after the journal has its entries, so that a crash in between
    neither loses nor duplicates any (I4). Compactions never wait for this.
    """
    result = PhaseResult()
    while waiting := conversation.list_unjournaled_checkpoints():
        for checkpoint in waiting:
            entries = list(_entries_of(checkpoint)) if learns_from(checkpoint.session) else []
            result.written_count += len(journal.add(entries, now)) if entries else 0
            conversation.mark_journaled(checkpoint.id)
        result.read_count += len(waiting)
    return result


def sync_journal_or_log(
    conversation: Conversation, journal: Journal, now: datetime, learns_from: Callable[[str], bool] = learn_from_all
) -> None:
    """Call `sync_journal` after a compaction, logging errors: the compaction is valid either way."""
    try:
        sync_journal(conversation, journal, now, learns_from)
    except StoreError as error:
        log.error("the journal lacks a compaction until the next sleep", error=str(error))


def _entries_of(checkpoint: Checkpoint) -> Iterator[JournalEntry]:
    """Yield the journal entries of a checkpoint; none if it only references the log, was merged from several, or only
    added recalled text, which the journal already has."""
    if len(checkpoint.key_facts.get("merged", ())) > 1 or "recalled" in checkpoint.key_facts:
        return
    if has_summary(checkpoint) and checkpoint.summary.strip():
        yield _entry(checkpoint, f"synthesis:{checkpoint.id}", checkpoint.summary, "summary")
    for number, memory in enumerate(checkpoint.key_facts.get("memories", ()), 1):
        yield _entry(checkpoint, f"memories:{checkpoint.id}:{number}", str(memory), "fact")


def _entry(checkpoint: Checkpoint, key: str, content: str, tag: str) -> JournalEntry:
    return JournalEntry(
        key=key,
        scope=checkpoint.scope,
        session=checkpoint.session,
        generation=checkpoint.generation,
        content=content,
        timestamp=checkpoint.created_at,
        source_type="context_synthesis" if tag == "summary" else "compaction",
        importance=0.5 if tag == "summary" else score_importance(tag, content),
        tags=(tag,),
        sources=(checkpoint.from_message_id, checkpoint.to_message_id),
    )
