"""A working context over a test home's stores, compacting without a model, for tests that wire a turn by hand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from assistant.context.tokens import CountingTier, TokenCounter
from assistant.core.ports import Model, ToolboxPort
from assistant.models.offline.model import OfflineModel
from assistant.runtime.compaction_service import CompactionService
from assistant.runtime.context_meter import ContextMeter, SystemPrompts
from assistant.runtime.context_window import ContextWindow
from assistant.settings.sections import SettingsValues
from assistant.store.character.journal import StoredJournal
from assistant.store.character.todos import StoredTodos
from assistant.store.database import Database
from assistant.store.schema.character import character_migrations
from assistant.store.script.requests import Pins, UserRequests
from assistant.store.script.state import CircuitBreakers, ModelFacts
from assistant.store.search.history import StoredHistory
from sleep.compaction.compactor import BreakerLimits, CompactionDeps, Compactor
from sleep.compaction.prompts import SummaryPrompts
from sleep.compaction.summarise import Summariser
from sleep.compaction.values import CompactionPolicy
from sleep.cycle.journal_sync import sync_journal_or_log
from tests.store_home import NOW, StoreHome

COUNTER = TokenCounter(CountingTier("estimate", "", ""))
PROMPTS = SummaryPrompts("Summarise in $budget tokens.", "Merge in $budget tokens.", "Summarise up to #$last.")


def working_context(
    home: StoreHome,
    history: StoredHistory,
    toolbox: ToolboxPort,
    values: SettingsValues,
    model: Callable[[], Model],
    *,
    writer: Callable[[], Model] = OfflineModel,
    clock: Callable[[], datetime] = lambda: NOW,
    policy: CompactionPolicy = CompactionPolicy(),  # noqa: B008 - frozen
) -> ContextWindow:
    """`model` answers, `writer` summarises."""
    people = Database.open(home.path / "character.db", character_migrations, NOW)
    journal, facts = StoredJournal(people), ModelFacts(home.db)
    measures = ContextMeter(
        home.conversation, facts, Pins(people), lambda: toolbox, model, lambda name: COUNTER, values.context,
        values.compaction, SystemPrompts("Be kind.", ""),
    )  # fmt: skip
    summariser = Summariser(
        writer, model, PROMPTS, lambda name: COUNTER, lambda *_: 0.0, restored_max_tokens=200, seconds=30
    )

    def settle(now: datetime) -> None:
        sync_journal_or_log(home.conversation, journal, now)

    means = CompactionDeps(
        home.conversation, history, journal, UserRequests(home.db, home.log), StoredTodos(people),
        CircuitBreakers(home.db),
        summariser, policy, BreakerLimits(3, timedelta(minutes=30)), holder="this process", lease=timedelta(minutes=1),
        settle=settle, clock=clock,
    )  # fmt: skip
    compactor = Compactor(means)
    compacting = CompactionService(home.conversation, compactor, measures, clock)
    return ContextWindow(home.conversation, facts, measures, compacting, max_output_tokens=1000)
