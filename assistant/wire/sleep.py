"""Builds the sleep cycle: extraction, the cycle and its schedule, undo and dry run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from assistant.core.calendar import SleepSchedule
from assistant.core.dataclass import dataclass
from assistant.core.model_api import CallPurpose
from assistant.core.ports import Model
from assistant.models.prices import cost_usd_of_call, load_prices, worst_case_usd
from assistant.runtime.compaction_service import CompactionService
from assistant.runtime.sleep_scheduler import NapTrigger, NightTrigger, SleepScheduler, run_cycle
from assistant.settings.prompts import load_prompt_asking_for
from assistant.settings.settings import Settings, shipped_config_dir
from assistant.wire.models import PRICES_FILE
from assistant.wire.stores import Stores
from assistant.wire.turns import Base
from sleep.compaction.budget import OFFLINE, BudgetedModel, SleepBudget
from sleep.compaction.values import CompactionResult
from sleep.cycle.consolidate import ConsolidationPhase
from sleep.cycle.curate import CurationPhase
from sleep.cycle.cycle import PhaseFunction, SleepCycle
from sleep.cycle.dry_run import SleepDryRun
from sleep.cycle.extract import Extractor
from sleep.cycle.imports import ImportReading
from sleep.cycle.judge import EntryJudge, ScoringPhase
from sleep.cycle.notes import DayNotes
from sleep.cycle.phase import JsonLinesModel
from sleep.cycle.undo import SleepUndo

_EXTRACTION_BATCH_TOKENS = 8_000


@dataclass(frozen=True, slots=True)
class Learning:
    """Extracts journal entries from conversations, within the budget of a sleep cycle."""

    budget: SleepBudget
    model: Callable[[], Model]  # the current economical model, used only while the budget lasts
    extractor: Extractor


@dataclass(frozen=True, slots=True)
class Sleep:
    """The parts of sleep. `recover_after_crash` is called once at start-up."""

    cycle: SleepCycle
    notes: DayNotes
    scheduler: SleepScheduler
    undo: SleepUndo
    dry_run: SleepDryRun
    recover_after_crash: Callable[[datetime], None]


def build_learning(base: Base) -> Learning:
    """Raises `SettingsError` for an unreadable prompt."""
    settings = base.settings
    prices = load_prices(shipped_config_dir() / PRICES_FILE)
    worst_case = partial(worst_case_usd, prices, base.estimates.request_tokens)
    budget = SleepBudget(settings.values.sleep.max_usd, base.stores.ledger.sleep_usd_since, worst_case)

    # `/model` may replace the models at any time.
    def model() -> Model:
        return BudgetedModel(base.models.writing, budget)

    extractor = Extractor(
        model,
        load_prompt_asking_for(settings.home, "extraction", "<memories>"),
        batch_tokens=_EXTRACTION_BATCH_TOKENS,
        zone=settings.zone,
        learns_from=settings.values.permissions().may_learn_from,
        rest=base.running.let_turns_pass,
    )
    return Learning(budget, model, extractor)


def build_sleep(base: Base, learning: Learning, compaction: CompactionService) -> Sleep:
    """Build sleep, and let it know of every compaction. Raises `SettingsError` for an unreadable prompt."""
    settings, stores = base.settings, base.stores
    notes = DayNotes(stores.journal, stores.files, settings.zone, base.running.wait_until_quiet)
    score, consolidate, curate = _memory_phases(settings, stores, learning.model)
    phases = (("score", score.run), ("consolidate", consolidate.run), ("curate", curate.run))
    cycle = _build_cycle(base, learning, compaction, phases, notes)
    scheduler = _build_scheduler(base, cycle, compaction)
    dry_run = _build_dry_run(base, learning, compaction, consolidate)

    def reads_by_rules() -> bool:
        # A model that summarised has also named what to keep; otherwise rules extract from compacted messages.
        return learning.model().provider == OFFLINE

    async def note_compaction(session: str, outcome: CompactionResult, person_waits: bool) -> None:
        learned = any(checkpoint.key_facts.get("memories") for checkpoint in outcome.checkpoints)
        if not learned and reads_by_rules():
            was_asleep = scheduler.is_asleep()
            reading = scheduler.start_extraction(session)
            if person_waits and not was_asleep:
                await asyncio.wait([reading])
        notes.write_or_log(base.clock())

    def recover_after_crash(now: datetime) -> None:
        stores.journal.interrupt_cycles()
        notes.write_or_log(now)
        for info in stores.conversation.list_sessions() if reads_by_rules() else ():
            if info.unextracted:
                scheduler.start_extraction(info.key)

    compaction.on_compacted = note_compaction
    return Sleep(cycle, notes, scheduler, _build_undo(stores, compaction), dry_run, recover_after_crash)


def _build_cycle(
    base: Base,
    learning: Learning,
    compaction: CompactionService,
    extra_phases: tuple[tuple[str, PhaseFunction], ...],
    notes: DayNotes,
) -> SleepCycle:
    stores, values = base.stores, base.settings.values
    return SleepCycle(
        stores.conversation,
        stores.log_reader,
        stores.journal,
        stores.breakers,
        learning.extractor,
        partial(compaction.compact_for_cycle, budget=learning.budget),
        failures=values.compaction.breaker_failures,
        cool_down=timedelta(minutes=values.compaction.breaker_minutes),
        clock=base.clock,
        extra_phases=extra_phases,
        write_notes=notes.run,
        sleep_budget=learning.budget,
        imports=ImportReading(stores.conversation, stores.imports, stores.journal, values.sleep.imported_messages),
        tracer=base.tracer,
    )


def _build_scheduler(base: Base, cycle: SleepCycle, compaction: CompactionService) -> SleepScheduler:
    stores, sleep = base.stores, base.settings.values.sleep
    naps = NapTrigger(
        stores.conversation, sleep.nap_minutes, compaction.needs_sleep_compaction, base.running.is_running
    )
    nights = NightTrigger(SleepSchedule(sleep.at, base.settings.zone), stores.conversation, stores.journal)
    return SleepScheduler(partial(run_cycle, cycle), naps, nights, base.clock, base.sleep_lock)


def _build_dry_run(
    base: Base, learning: Learning, compaction: CompactionService, consolidate: ConsolidationPhase
) -> SleepDryRun:
    stores = base.stores
    return SleepDryRun(
        stores.conversation,
        stores.log_reader,
        stores.journal,
        stores.consolidations,
        consolidate,
        learning.extractor,
        lambda: base.models.writing,
        partial(cost_usd_of_call, load_prices(shipped_config_dir() / PRICES_FILE)),
        compaction.preview_sleep,
    )


def _build_undo(stores: Stores, compaction: CompactionService) -> SleepUndo:
    return SleepUndo(
        stores.journal, stores.consolidations, stores.memories, stores.files, stores.conversation, compaction.undo
    )


def _memory_phases(
    settings: Settings, stores: Stores, model: Callable[[], Model]
) -> tuple[ScoringPhase, ConsolidationPhase, CurationPhase]:
    """Build the phases that turn journal entries into memories, memory files and profiles."""
    cost = partial(cost_usd_of_call, load_prices(shipped_config_dir() / PRICES_FILE))

    def json_model(purpose: CallPurpose, tag: str) -> JsonLinesModel:
        return JsonLinesModel(model, load_prompt_asking_for(settings.home, purpose, f"<{tag}>"), tag, purpose, cost)

    score = ScoringPhase(stores.journal, stores.consolidations, json_model("scoring", "scores"))
    judge = EntryJudge(json_model("consolidation", "decisions"), zone=settings.zone)
    consolidate = ConsolidationPhase(stores.consolidations, stores.memories, judge)
    curate = CurationPhase(
        stores.journal,
        stores.profiles,
        stores.files,
        settings.zone,
        stores.counter.count_text,
        settings.values.memory.file_max_tokens,
    )
    return score, consolidate, curate
