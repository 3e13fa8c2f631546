"""Compaction in a running app: a context window wired by hand over a home's stores, compacting without a model; and
conversations that are long enough to be compacted, with a scripted model that writes their summaries.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assistant.context.tokens import TokenCounter
from assistant.core.checkpoints import Checkpoint
from assistant.core.messages import Message, Role
from assistant.core.pacing import Pacer
from assistant.core.records import CountingTier
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.runtime.compaction_service import CompactionService
from assistant.runtime.context_economy import ContextEconomy
from assistant.runtime.context_meter import ContextMeter, TokenEstimates
from assistant.runtime.context_window import ContextWindow
from assistant.runtime.current_models import CurrentModels
from assistant.runtime.recall_streaks import RecallStreaks
from assistant.runtime.tool_registry import ToolRegistry
from assistant.settings.sections import SettingsValues
from assistant.store.character.journal import StoredJournal
from assistant.store.character.todos import StoredTodos
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations
from assistant.store.script.turns import Pins, UserRequests
from assistant.store.script.usage import CircuitBreakers, ModelFacts
from assistant.store.search.history import StoredHistory
from sleep.compaction.compactor import Compactor
from sleep.compaction.deps import CompactionDeps
from sleep.compaction.prompts import SummaryPrompts
from sleep.compaction.summarise import Summariser
from sleep.compaction.values import BreakerLimits, CompactionPolicy
from sleep.cycle.cycle import sync_journal_or_log
from tests.support.imports import import_messages
from tests.support.notices import notice_sender
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import ScriptedModel
from tests.support.store_home import NOW, StoreHome

COUNTER = TokenCounter(CountingTier("estimate", "", ""))
PROMPTS = SummaryPrompts("Summarise in $budget tokens.", "Merge in $budget tokens.", "Summarise up to #$last.")


def make_context_window(
    home: StoreHome,
    history: StoredHistory,
    toolbox: ToolRegistry,
    values: SettingsValues,
    models: CurrentModels,
    *,
    clock: Callable[[], datetime] = lambda: NOW,
    policy: CompactionPolicy = CompactionPolicy(),  # noqa: B008 - frozen
) -> ContextWindow:
    people = Database.open(home.path / "character.db", character_migrations, NOW)
    journal, estimates = StoredJournal(people), TokenEstimates(ModelFacts(home.db), lambda name: COUNTER)
    measures = ContextMeter(
        home.conversation,
        Pins(people),
        toolbox,
        models,
        estimates,
        values.context,
        values.compaction,
        rules="Be kind.",
        persona="",
    )
    summariser = Summariser(
        models.use, PROMPTS, lambda name: COUNTER, lambda *_: 0.0, restored_max_tokens=200, timeout_seconds=30
    )

    def settle(now: datetime) -> None:
        sync_journal_or_log(home.conversation, journal, now)

    means = CompactionDeps(
        home.conversation,
        history.recent,
        journal,
        UserRequests(home.db, home.log).list_open,
        StoredTodos(people).list_todos,
        CircuitBreakers(home.db),
        summariser,
        policy,
        BreakerLimits(3, timedelta(minutes=30)),
        lease_duration=timedelta(minutes=1),
        sync_journal=settle,
        clock=clock,
    )
    compactor = Compactor(means)
    economy = ContextEconomy(home.conversation, measures, models, {}, policy, UTC)
    notices = notice_sender(home.db, clock)
    compacting = CompactionService(home.conversation, compactor, measures, economy, RecallStreaks(), notices, clock)
    return ContextWindow(
        home.conversation, estimates, measures, compacting, economy, pacer=Pacer(1), max_output_tokens=1000
    )


SUMMARY_ANSWER = (
    "<summary>\nThe two of them talked about walks along the shore and over the hill, day after day.\n</summary>\n"
    "<memories>\n- The person walks along the shore.\n</memories>\n<facts>\nentities: shore\n</facts>"
)


LONG_MESSAGE = "I went along the shore and back over the hill today. " * 12


SMALL_CONTEXT = {"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "15000"}


# With room for copies of what was said besides what every request has.
ROOMY_CONTEXT = {"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "20000"}


def summary_writer(*script: object, window: int = 32_000) -> ScriptedModel:
    return ScriptedModel(*(script or (SUMMARY_ANSWER,)), window=window, name="writer-1")  # type: ignore[arg-type]


@asynccontextmanager
async def app_with_long_messages(
    home: Path, walks: int, *, by: ScriptedModel | None = None, **environ: str
) -> AsyncIterator[LiveApp]:
    """A conversation of that many walks, in a small context; `by` writes summaries."""
    model = ScriptedModel("A fine walk.", window=200_000)
    async with run_app(home, model=model, writer=by or summary_writer(), **{**SMALL_CONTEXT, **environ}) as it:
        for number in range(walks):
            # Nobody walks so fast that the summary which the next turn needs is not ready.
            await it.app.background_compaction.wait_until_idle()
            await it.say(f"walk {number}: {LONG_MESSAGE}")
            await it.wait_answered()
        yield it


LARGE_CONTEXT = {"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "0"}


@asynccontextmanager
async def app_with_long_history(
    home: Path, walks: int, *, by: ScriptedModel | None = None, **environ: str
) -> AsyncIterator[LiveApp]:
    """A conversation of that many walks, the last of them said now, in a large context; nothing was compacted."""
    model = ScriptedModel("A fine walk.", window=200_000)
    async with run_app(home, model=model, writer=by or summary_writer(), **{**LARGE_CONTEXT, **environ}) as it:
        earlier = [Message(role, text) for number in range(walks - 1) for role, text in _walk(number)]
        import_messages(it.app.stores.conversation, MAIN_SESSION, OWNER_SCOPE, earlier, it.clock())
        await it.say(f"walk {walks - 1}: {LONG_MESSAGE}")
        await it.wait_answered()
        yield it


def _walk(number: int) -> tuple[tuple[Role, str], ...]:
    return ("user", f"walk {number}: {LONG_MESSAGE}"), ("assistant", "A fine walk.")


async def settle_background(it: LiveApp) -> None:
    it.app.background_compaction.check_due()
    await it.app.background_compaction.wait_until_idle()


async def go_cold(it: LiveApp) -> None:
    """Long enough for any cache to die, and the next wake-up."""
    it.clock.now += timedelta(hours=2)
    await settle_background(it)


def checkpoints_in(it: LiveApp, state: str = "live") -> list[Checkpoint]:
    return [one for one in it.app.stores.conversation.checkpoints("main") if one.state == state]


def context_pressure(it: LiveApp) -> float:
    found = it.app.contexts.window.pressure("main")
    assert found is not None
    return found


def notices(it: LiveApp) -> list[str]:
    """What was told beside the answers."""
    return [body for item in it.bridge.sent if item.outgoing.kind == "notice" for body in [item.outgoing.body]]
