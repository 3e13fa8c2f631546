"""Builds what answers messages: the tools, the context of a conversation and its compaction, helpers, and turns."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from assistant.agenda.service import AgendaService
from assistant.calendars.service import CalendarService
from assistant.core.dataclass import dataclass
from assistant.core.messages import LOOKUP_TOOLS
from assistant.core.telemetry import Tracer
from assistant.documents.fetch import PageFetcher
from assistant.documents.web_search import WebSearch
from assistant.erasure.service import ErasureService
from assistant.gateway.attachments import AttachmentIntake
from assistant.gateway.dispatcher import Dispatcher
from assistant.gateway.notices import NoticeSender
from assistant.memory.service import MemoryService
from assistant.models.prices import cost_usd_of_call, find_price_rise, load_prices
from assistant.runtime.approvals import ApprovalGate, ApprovalService
from assistant.runtime.background_compaction import BackgroundCompaction
from assistant.runtime.compaction_service import CompactionService
from assistant.runtime.context_economy import ContextEconomy
from assistant.runtime.context_meter import ContextMeter, TokenEstimates
from assistant.runtime.context_window import ContextWindow
from assistant.runtime.current_models import CurrentModels
from assistant.runtime.delegation import DelegationRunner
from assistant.runtime.file_indexer import FileIndexer
from assistant.runtime.recall import HistoryRecall, MemoryRecall, ProfileRecall
from assistant.runtime.recall_streaks import RecallStreaks
from assistant.runtime.running_turns import RunningTurns
from assistant.runtime.runtime import Runtime
from assistant.runtime.secret_notice import find_message_secrets
from assistant.runtime.sleep_scheduler import SleepLock
from assistant.runtime.standing_memory import StandingMemory
from assistant.runtime.tool_registry import ToolRegistry
from assistant.runtime.turn import TurnRunner
from assistant.runtime.turn_context import TurnContextBuilder
from assistant.runtime.turn_guard import TurnGuard
from assistant.runtime.turn_recall import TurnRecall
from assistant.settings.prompts import load_persona, load_prompt, load_prompt_asking_for, load_system_prompt
from assistant.settings.sections import SettingsValues, ToolSettings, WebSearchSettings
from assistant.settings.settings import Settings, shipped_config_dir
from assistant.wire.mail import own_mail_accounts
from assistant.wire.models import PRICES_FILE
from assistant.wire.sandbox import build_command_sandbox
from assistant.wire.stores import Stores
from assistant.wire.voice import build_spoken_answers, build_voice_messages
from sleep.compaction.budget import SleepBudget
from sleep.compaction.compactor import Compactor
from sleep.compaction.deps import CompactionDeps
from sleep.compaction.prompts import SummaryPrompts
from sleep.compaction.summarise import Summariser
from sleep.compaction.values import BreakerLimits, CompactionPolicy
from sleep.cycle.cycle import sync_journal_or_log
from sleep.rules.classifier import classify_request, score_importance
from tools.file_search import FileToolDeps
from tools.toolbox import MAX_RESULT_BYTES, MemoryToolDeps, build_toolbox, calendar_tools

# A lease lasts this much longer than the longest summary.
_LEASE_MARGIN = timedelta(seconds=30)
# In most scripts quoted text takes fewer bytes per token.
_BYTES_A_TOKEN = 2.4
# Tools whose results quote earlier messages.
_QUOTING_TOOLS = LOOKUP_TOOLS | {"manage_todo_list", "close_requests", "delegate"}


@dataclass(frozen=True, slots=True)
class Base:
    """The parts every other part is built from."""

    settings: Settings
    stores: Stores
    clock: Callable[[], datetime]
    tracer: Tracer
    models: CurrentModels
    estimates: TokenEstimates
    running: RunningTurns
    notices: NoticeSender
    sleep_lock: SleepLock


@dataclass(frozen=True, slots=True)
class Contexts:
    """Measures the contexts of conversations, and keeps them small enough."""

    standing_memory: StandingMemory
    meter: ContextMeter
    compaction: CompactionService
    economy: ContextEconomy
    window: ContextWindow
    streaks: RecallStreaks


def build_tools(
    base: Base,
    memory: MemoryService,
    erasure: ErasureService,
    agenda: AgendaService,
    indexer: FileIndexer,
    calendars: CalendarService,
) -> ToolRegistry:
    """Return all tools except `delegate`, which needs the last sent context of a turn."""
    settings, stores, tools = base.settings, base.stores, base.settings.values.tools
    return build_toolbox(
        stores.history,
        stores.todos,
        workspace=settings.home.workspace,
        zone=settings.zone,
        requests=stores.requests,
        memory=MemoryToolDeps(
            stores.memory_search, memory, stores.journal, stores.profiles, stores.files, erasure, score_importance
        ),
        reminders=(agenda, stores.agenda_days),
        sending=(stores.workspace, stores.turn_files),
        pages=page_fetcher(tools),
        web_search=_web_search(settings.values.web_search),
        files=FileToolDeps(stores.folders, stores.file_search, indexer),
        sandbox=build_command_sandbox(settings),
        allowed_commands=settings.values.run_command.allow,
        calendars=calendars if calendars.settings.sources else None,
        mail=own_mail_accounts(settings.values.mail_account),
        timeout_seconds=tools.timeout_seconds,
        result_bytes=max_page_bytes(tools),
        authority=settings.values.permissions(),
        tracer=base.tracer,
    )


def page_fetcher(tools: ToolSettings) -> PageFetcher | None:
    """Return None if no page may be read."""
    return PageFetcher(frozenset(map(str.lower, tools.fetch_private_hosts))) if tools.fetch_pages else None


def _web_search(settings: WebSearchSettings) -> WebSearch | None:
    if not settings.provider:
        return None
    return WebSearch(settings.provider, settings.url, settings.key.get_secret_value())


def take_over_calendars(stores: Stores, calendars: CalendarService, toolbox: ToolRegistry, settings: Settings) -> None:
    """Add the calendar tools with the first calendar; without calendars prompts do not have them."""
    chosen = settings.values.calendar
    stores.calendar_settings = chosen
    calendars.take_over(chosen)
    if chosen.sources and toolbox.find("find_events", "owner") is None:
        for tool in calendar_tools(calendars, max_page_bytes(settings.values.tools)):
            toolbox.add(tool)


def max_page_bytes(settings: ToolSettings) -> int:
    """Return the maximum size of a page of quoted text, in bytes of UTF-8, so that it is not truncated in the
    context."""
    if settings.output_policy == "bytes":
        return min(MAX_RESULT_BYTES, settings.output_max_bytes // 2)
    return min(MAX_RESULT_BYTES, int(settings.output_max_tokens * _BYTES_A_TOKEN))


def build_contexts(base: Base, toolbox: ToolRegistry) -> Contexts:
    """Raises `SettingsError` for an unreadable prompt."""
    settings, stores, estimates, values = base.settings, base.stores, base.estimates, base.settings.values
    standing_memory = StandingMemory(
        stores.conversation,
        stores.journal,
        stores.files,
        settings.zone,
        base.clock,
        stores.counter.count_text,
        file_max_tokens=values.memory.file_max_tokens,
        day_max_tokens=values.memory.day_max_tokens,
    )
    meter = ContextMeter(
        stores.conversation,
        stores.pins,
        toolbox,
        base.models,
        estimates,
        values.context,
        values.compaction,
        rules=load_system_prompt(),
        persona=load_persona(settings.home),
        standing_memory=standing_memory.prompt_block,
        zone=settings.zone,
    )
    compactor = Compactor(_compaction_deps(base), base.tracer)
    prices, policy = load_prices(shipped_config_dir() / PRICES_FILE), compaction_policy(values)
    economy = ContextEconomy(stores.conversation, meter, base.models, prices, policy, settings.zone)
    streaks = RecallStreaks()
    compaction = CompactionService(stores.conversation, compactor, meter, economy, streaks, base.notices, base.clock)
    window = ContextWindow(
        stores.conversation,
        estimates,
        meter,
        compaction,
        economy,
        pacer=base.running.pacer,
        max_output_tokens=values.model.max_output_tokens,
    )
    return Contexts(standing_memory, meter, compaction, economy, window, streaks)


def build_background_compaction(base: Base, contexts: Contexts, budget: SleepBudget) -> BackgroundCompaction:
    return BackgroundCompaction(
        base.stores.conversation,
        contexts.compaction,
        contexts.economy,
        contexts.meter,
        contexts.window,
        base.running,
        budget,
        base.clock,
        base.stores.message_index.index_next_batch,
    )


def _compaction_deps(base: Base) -> CompactionDeps:
    settings, stores, values = base.settings, base.stores, base.settings.values.compaction
    names = ("summary", "summary_merge", "summary_prefix")
    summariser = Summariser(
        base.models.use,
        SummaryPrompts(*(load_prompt_asking_for(settings.home, name, "<summary>") for name in names)),
        base.estimates.counter,
        partial(cost_usd_of_call, load_prices(shipped_config_dir() / PRICES_FILE)),
        restored_max_tokens=values.restored_max_tokens,
        timeout_seconds=values.summary_seconds,
        price_rise=partial(find_price_rise, load_prices(shipped_config_dir() / PRICES_FILE)),
        rest=base.running.let_turns_pass,
    )
    return CompactionDeps(
        stores.conversation,
        stores.history.recent,
        stores.journal,
        stores.requests.list_open,
        stores.todos.list_todos,
        stores.breakers,
        summariser,
        compaction_policy(settings.values),
        BreakerLimits(values.breaker_failures, timedelta(minutes=values.breaker_minutes)),
        lease_duration=timedelta(seconds=values.summary_seconds) + _LEASE_MARGIN,
        sync_journal=journal_sync(settings, stores),
        clock=base.clock,
        wait_until_idle=base.running.wait_until_quiet,
    )


def journal_sync(settings: Settings, stores: Stores) -> Callable[[datetime], None]:
    """Return what writes to the journal what compactions before a crash did not."""
    learns = settings.values.permissions().may_learn_from
    return partial(sync_journal_or_log, stores.conversation, stores.journal, learns_from=learns)


def build_delegation(base: Base, toolbox: ToolRegistry, window: ContextWindow) -> DelegationRunner:
    settings = base.settings
    return DelegationRunner(
        toolbox,
        window.last_call,
        base.stores.delegations,
        settings.values.delegation,
        base.clock,
        prompt=load_prompt(settings.home, "delegate"),
        count_request_tokens=base.estimates.request_tokens,
    )


def build_approvals(base: Base, toolbox: ToolRegistry) -> ApprovalService:
    wake = base.running.wake.set
    allowed_for = timedelta(days=base.settings.values.tools.approval_days)
    return ApprovalService(base.stores.approvals, toolbox, base.settings.zone, base.clock, wake, allowed_for)


def build_turn_runner(
    base: Base, toolbox: ToolRegistry, window: ContextWindow, dispatcher: Dispatcher, approvals: ApprovalService
) -> TurnRunner:
    settings, ledger, notices = base.settings, base.stores.ledger, base.stores.ledger.notices
    valid_for = timedelta(hours=settings.values.tools.approval_hours)
    gate = ApprovalGate(
        base.stores.approvals, base.stores.conversation, toolbox, settings.zone, valid_for, approvals.allowed_for
    )
    # The limit may change while the daemon runs.
    guard = TurnGuard(settings.zone, lambda: ledger.budget.runaway_calls, notices.was_sent, notices.mark_sent)
    return TurnRunner(
        base.stores.conversation,
        base.models,
        toolbox,
        window,
        guard,
        settings.values.turn,
        dispatcher.show,
        base.notices,
        base.clock,
        gate,
        approvals,
        base.tracer,
    )


def _judge_text(text: str) -> None:
    """What the beginning of a turn asks about a message; both remember their answer."""
    find_message_secrets(text)
    classify_request(text)


def build_runtime(base: Base, turn_runner: TurnRunner, dispatcher: Dispatcher, contexts: Contexts) -> Runtime:
    settings, stores = base.settings, base.stores
    values, count, zone = settings.values, stores.counter.count_text, settings.zone
    recall_budget = contexts.meter.recall_budget
    history_budget = partial(recall_budget, values.compaction.recall_max_tokens)
    memory_budget = partial(recall_budget, values.memory.recall_max_tokens)
    recall = TurnRecall(
        stores.conversation,
        HistoryRecall(stores.history, count, zone, history_budget, quoting_tools=_QUOTING_TOOLS),
        MemoryRecall(stores.memory_search, count, zone, memory_budget),
        ProfileRecall(stores.profiles, count, zone, values.memory.profiles_max_tokens),
        contexts.standing_memory,
        contexts.streaks,
        _judge_text,
    )
    turn_context = TurnContextBuilder(stores.conversation, stores.requests, stores.delegations, recall, zone)
    return Runtime(
        stores.conversation,
        stores.outbox,
        turn_runner,
        turn_context,
        base.running,
        base.clock,
        wake_outbox=dispatcher.wake,
        show=dispatcher.show,
        follow_turn=dispatcher.follow_turn,
        check_home=stores.home_guard.require_present,
        store_attachments=AttachmentIntake(stores.workspace, zone).store_attachments,
        voice=build_voice_messages(base),
        spoken=build_spoken_answers(base),
    )


def compaction_policy(values: SettingsValues) -> CompactionPolicy:
    """Return the compaction policy of the settings."""
    context, compaction = values.context, values.compaction
    return CompactionPolicy(
        compaction.strategy,
        context.preserve_messages,
        context.preserve_share,
        compaction.user_messages_max_tokens,
        compaction.summary_max_tokens,
        compaction.restored_max_tokens,
        compaction.max_checkpoints,
        compaction.sleep_threshold,
    )
