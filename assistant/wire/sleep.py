"""Everything that keeps a conversation within its context, reads it for the journal and recalls what bears on a new
message, put together: one part of the composition root (`assistant.wire.app`).
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from assistant.context.memory_block import profiles_block
from assistant.context.tokens import TokenCounter
from assistant.core.calendar import SleepSchedule
from assistant.core.memories import SleepReport
from assistant.core.messages import Usage
from assistant.core.model_api import BACKGROUND_PURPOSES, CallPurpose, ModelRequest
from assistant.core.ports import Model
from assistant.core.records import ContextView, InboxItem
from assistant.core.telemetry import NULL_TRACER, Tracer
from assistant.models.factory import PRICES_FILE, cost_usd_of_call
from assistant.models.prices import Prices, load_prices
from assistant.runtime.compaction_service import CompactionService
from assistant.runtime.context_meter import ContextMeter
from assistant.runtime.context_window import ContextWindow
from assistant.runtime.current_models import CurrentModels
from assistant.runtime.recall import HistoryRecall, MemoryRecall, recall_budget
from assistant.runtime.sleep_scheduler import NapTrigger, NightTrigger, SleepLock, SleepRequest, SleepScheduler
from assistant.runtime.tool_registry import ToolRegistry
from assistant.runtime.turn_context import StandingMemory, TurnContextBuilder
from assistant.settings.settings import Settings, shipped_config_dir
from assistant.wire.prompts import load_prompt_asking_for, load_summary_prompts, load_system_prompts
from assistant.wire.stores import Stores, build_authority, token_counter_for
from sleep.compaction.budget import BudgetedModel, SleepBudget
from sleep.compaction.compactor import CompactionDeps, Compactor
from sleep.compaction.summarise import Summariser
from sleep.compaction.values import BreakerLimits, CompactionPolicy
from sleep.cycle.consolidate import ConsolidationPhase
from sleep.cycle.curate import CurationPhase
from sleep.cycle.cycle import CompactedSession, PhaseFunction, SleepCycle
from sleep.cycle.dry_run import SleepDryRun
from sleep.cycle.extract import Extractor
from sleep.cycle.journal_sync import sync_journal_or_log
from sleep.cycle.judge import EntryJudge
from sleep.cycle.llm_json import JsonLinesModel
from sleep.cycle.phase_result import PhaseResult
from sleep.cycle.rebuild import Reextraction
from sleep.cycle.score import ScoringPhase
from sleep.cycle.undo import SleepUndo

Clock = Callable[[], datetime]

_EXTRACTION_BATCH_TOKENS = 8_000
# A lease outlives the longest summary by this much.
_LEASE_MARGIN = timedelta(seconds=30)
# What a sleep asks models for.
_SLEEP_PURPOSES = BACKGROUND_PURPOSES - {"schedule"}


@dataclass(frozen=True, slots=True)
class SleepSetup:
    """Working context, compaction and sleep of a home. `settle` writes what compactions before a crash left for the
    journal; `undoing` takes the last sleep back, `foreseeing` tells what one would do, `rereading` reads the whole
    log for the journal again."""

    context_meter: ContextMeter
    standing_memory: StandingMemory
    context_window: ContextWindow
    compaction: CompactionService
    cycle: SleepCycle
    scheduler: SleepScheduler
    sync_journal: Callable[[datetime], None]
    undo: SleepUndo
    dry_run: SleepDryRun
    reextraction: Reextraction


def build_sleep(
    settings: Settings,
    stores: Stores,
    toolbox: Callable[[], ToolRegistry],
    models: CurrentModels,
    sleep_lock: SleepLock,
    wait_until_quiet: Callable[[], Awaitable[None]],
    clock: Clock,
    is_running: Callable[[str], bool],
    tracer: Tracer = NULL_TRACER,
) -> SleepSetup:
    """Raises `SettingsError` for a prompt that cannot be read."""
    values = settings.values
    standing = _standing_memory(settings, stores, clock)
    measures = _context_meter(settings, stores, toolbox, models, standing)
    learns = build_authority(settings).may_learn_from
    sync_journal = partial(sync_journal_or_log, stores.conversation, stores.journal, learns_from=learns)
    compactor = Compactor(
        _compaction_deps(settings, stores, models, measures, wait_until_quiet, sync_journal, clock), tracer
    )
    compacting = CompactionService(stores.conversation, compactor, measures, clock)
    context = ContextWindow(
        stores.conversation, stores.model_facts, measures, compacting, max_output_tokens=values.model.max_output_tokens
    )
    purse = _sleep_budget(settings, stores, context)

    # In sleep as in conversations, but no longer than the purse lasts.
    def budgeted_model() -> Model:
        return BudgetedModel(models.writing, purse)

    extractor = Extractor(
        budgeted_model,
        load_prompt_asking_for(settings.home, "extraction", "<memories>"),
        batch_tokens=_EXTRACTION_BATCH_TOKENS,
        zone=settings.zone,
        learns_from=learns,
    )
    cycle = _cycle(settings, stores, budgeted_model, compacting, extractor, purse, clock, tracer)

    async def tick(wanted: SleepRequest, now: datetime) -> SleepReport:
        await measures.load_model_limits()
        return await cycle.run(now, trigger=wanted.trigger, sessions=wanted.sessions, phase=wanted.phase)

    naps = NapTrigger(stores.conversation, values.sleep.nap_minutes, compacting.needs_sleep_compaction, is_running)
    bedtime = NightTrigger(SleepSchedule(values.sleep.at, settings.zone), stores.conversation, stores.journal)
    sleeper = SleepScheduler(tick, naps, bedtime, clock, sleep_lock)
    undoing = SleepUndo(
        stores.journal, stores.consolidations, stores.memories, stores.files, stores.conversation, compacting.undo
    )
    foreseeing = _dry_run(stores, extractor, models, compacting)
    rereading = Reextraction(stores.conversation, stores.log_reader, stores.journal, extractor)
    parts = (measures, standing, context, compacting, cycle, sleeper, sync_journal, undoing, foreseeing, rereading)
    return SleepSetup(*parts)


def _dry_run(stores: Stores, extractor: Extractor, models: CurrentModels, compacting: CompactionService) -> SleepDryRun:
    return SleepDryRun(
        stores.conversation,
        stores.log_reader,
        stores.journal,
        stores.consolidations,
        extractor,
        lambda: models.writing,
        partial(cost_usd_of_call, load_prices(shipped_config_dir() / PRICES_FILE)),
        compacting.preview_sleep,
    )


def _standing_memory(settings: Settings, stores: Stores, clock: Clock) -> StandingMemory:
    return StandingMemory(
        stores.conversation,
        stores.journal,
        stores.files,
        settings.zone,
        clock,
        token_counter_for(settings, settings.values.model.name).count_text,
        file_max_tokens=settings.values.memory.file_max_tokens,
        day_max_tokens=settings.values.memory.day_max_tokens,
    )


def _context_meter(
    settings: Settings,
    stores: Stores,
    toolbox: Callable[[], ToolRegistry],
    models: CurrentModels,
    standing: StandingMemory,
) -> ContextMeter:
    values = settings.values
    return ContextMeter(
        stores.conversation,
        stores.model_facts,
        stores.pins,
        toolbox,
        models,
        partial(token_counter_for, settings),
        values.context,
        values.compaction,
        load_system_prompts(settings.home),
        standing.prompt_block,
        settings.zone,
    )


def _sleep_budget(settings: Settings, stores: Stores, context: ContextWindow) -> SleepBudget:
    prices = load_prices(shipped_config_dir() / PRICES_FILE)

    def worst(model: Model, request: ModelRequest) -> float | None:
        price = prices.get(model.provider, Prices()).price_for_model(model.name)
        prompt = context.request_tokens(request, model.name) if price is not None else 0
        return None if price is None else price.worst_case(prompt, request.max_output_tokens)

    def spent(since: datetime) -> float:
        return sum(one.usd for kind, one in stores.ledger.spent_by("kind", since) if kind in _SLEEP_PURPOSES)

    return SleepBudget(settings.values.sleep.max_usd, spent, worst)


def _compaction_deps(
    settings: Settings,
    stores: Stores,
    models: CurrentModels,
    measures: ContextMeter,
    wait_until_quiet: Callable[[], Awaitable[None]],
    settle: Callable[[datetime], None],
    clock: Clock,
) -> CompactionDeps:
    values = settings.values
    wanted, context = values.compaction, values.context
    policy = CompactionPolicy(
        wanted.strategy,
        context.preserve_messages,
        context.preserve_share,
        wanted.user_messages_max_tokens,
        wanted.summary_max_tokens,
        wanted.restored_max_tokens,
        wanted.max_checkpoints,
        wanted.sleep_threshold,
    )
    prices = load_prices(shipped_config_dir() / PRICES_FILE)

    def cost(provider: str, model: str, usage: Usage) -> float | None:
        return cost_usd_of_call(prices, provider, model, usage)

    summariser = Summariser(
        models.use,
        load_summary_prompts(settings.home),
        _counters(measures),
        cost,
        restored_max_tokens=wanted.restored_max_tokens,
        timeout_seconds=wanted.summary_seconds,
    )
    return CompactionDeps(
        stores.conversation,
        stores.history.recent,
        stores.journal,
        stores.requests.list_open,
        stores.todos.list_todos,
        stores.breakers,
        summariser,
        policy,
        BreakerLimits(wanted.breaker_failures, timedelta(minutes=wanted.breaker_minutes)),
        lease_holder=uuid.uuid4().hex,
        lease_duration=timedelta(seconds=wanted.summary_seconds) + _LEASE_MARGIN,
        sync_journal=settle,
        clock=clock,
        wait_until_idle=wait_until_quiet,
    )


def _cycle(
    settings: Settings,
    stores: Stores,
    budgeted_model: Callable[[], Model],
    compacting: CompactionService,
    extractor: Extractor,
    purse: SleepBudget,
    clock: Clock,
    tracer: Tracer,
) -> SleepCycle:
    wanted, conversation = settings.values.compaction, stores.conversation

    async def compact(session: str, trigger: str) -> CompactedSession | None:
        known = {one.id for one in conversation.checkpoints(session)}
        outcome = await compacting.compact_in_sleep(session, trigger, budget=purse)
        if outcome is None or not outcome.checkpoints:
            return None
        costs = [one.cost_usd for one in outcome.checkpoints]
        cost = None if None in costs else sum(one for one in costs if one)
        # Those that joined records into one too, which are in no outcome.
        made = tuple(one.id for one in conversation.checkpoints(session) if one.id not in known)
        before, after = outcome.before.prompt_tokens, outcome.after.prompt_tokens
        return CompactedSession(outcome.message_count, before, after, cost, outcome.checkpoints[-1].tier, made)

    return SleepCycle(
        stores.conversation,
        stores.log_reader,
        stores.journal,
        stores.breakers,
        extractor,
        compact,
        failures=wanted.breaker_failures,
        cool_down=timedelta(minutes=wanted.breaker_minutes),
        clock=clock,
        extra_phases=_memory_phases(settings, stores, budgeted_model),
        sleep_budget=purse,
        tracer=tracer,
    )


def _memory_phases(
    settings: Settings, stores: Stores, budgeted_model: Callable[[], Model]
) -> tuple[tuple[str, PhaseFunction], ...]:
    """The phases by which what was learned is weighed, goes into semantic memory, and into files and profiles."""
    prices = load_prices(shipped_config_dir() / PRICES_FILE)
    cost = partial(cost_usd_of_call, prices)

    def asker(name: CallPurpose, tag: str) -> JsonLinesModel:
        return JsonLinesModel(budgeted_model, load_prompt_asking_for(settings.home, name, f"<{tag}>"), tag, name, cost)

    scoring = ScoringPhase(stores.journal, stores.consolidations, asker("scoring", "scores"))
    judge = EntryJudge(asker("consolidation", "decisions"), zone=settings.zone)
    consolidation = ConsolidationPhase(stores.consolidations, stores.memories, judge)
    counter = token_counter_for(settings, settings.values.model.name)
    curating = CurationPhase(
        stores.journal,
        stores.profiles,
        stores.files,
        settings.zone,
        counter.count_text,
        settings.values.memory.file_max_tokens,
    )

    async def consolidate(cycle: int, outcome: PhaseResult, now: datetime) -> None:
        try:
            await consolidation.run(cycle, outcome, now)
        finally:
            # The child gives back what it took of memory.
            await stores.memories.aclose()

    return ("score", scoring.run), ("consolidate", consolidate), ("curate", curating.run)


def _counters(measures: ContextMeter) -> Callable[[str], TokenCounter]:
    def counter(model: str) -> TokenCounter:
        return measures.counter(model)

    return counter


# -------------------------------------------------------------------------------------------------------------- prompts


def count_request_tokens(context: Callable[[], ContextWindow], request: ModelRequest, model: str) -> int:
    return context().request_tokens(request, model)


# Tools whose results quote the past.
_QUOTING_TOOLS = frozenset(
    {"search_history", "read_history", "search_memory", "manage_todo_list", "close_requests", "delegate"}
)


def build_turn_context(settings: Settings, stores: Stores, sleep_setup: SleepSetup) -> TurnContextBuilder:
    """Everything that stands with a new message beside the conversation."""
    return TurnContextBuilder(
        stores.conversation,
        stores.requests,
        stores.delegations,
        _history_recall(settings, stores, sleep_setup),
        _profile_lookup(settings, stores),
        _memory_recall(settings, stores, sleep_setup),
        settings.zone,
    )


def _history_recall(settings: Settings, stores: Stores, sleeping: SleepSetup) -> HistoryRecall:
    """What was said that bears on a message."""
    most = settings.values.compaction.recall_max_tokens
    counter = token_counter_for(settings, settings.values.model.name)
    return HistoryRecall(
        stores.history,
        counter.count_text,
        settings.zone,
        lambda: recall_budget(most, sleeping.context_meter.effective_window()),
        quoting_tools=_QUOTING_TOOLS,
    )


def _memory_recall(
    settings: Settings, stores: Stores, sleeping: SleepSetup
) -> Callable[[InboxItem, ContextView, datetime], str]:
    """What memory has that bears on a message."""
    most = settings.values.memory.recall_max_tokens
    counter = token_counter_for(settings, settings.values.model.name)
    remembering = MemoryRecall(
        stores.memory_search,
        counter.count_text,
        settings.zone,
        lambda: recall_budget(most, sleeping.context_meter.effective_window()),
    )

    def of(item: InboxItem, view: ContextView, now: datetime) -> str:
        asked = item.incoming
        standing = sleeping.standing_memory.prompt_block(asked.session)
        return remembering.recall(asked.content, asked.scope, view, standing, now)

    return of


def _profile_lookup(settings: Settings, stores: Stores) -> Callable[[str, str], str]:
    """The profiles of those whom a text names."""
    most = settings.values.memory.profiles_max_tokens
    counter = token_counter_for(settings, settings.values.model.name)

    def of(text: str, scope: str) -> str:
        named = stores.profiles.find_in_text(text, scope) if most else []
        return profiles_block(named, counter.count_text, most, settings.zone) if named else ""

    return of
