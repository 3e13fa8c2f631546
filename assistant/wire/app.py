"""The composition root: builds a running assistant (`App`) from settings. The only package that knows every room.

Heavy dependencies (SDKs, web framework, vocabularies) are imported on first use, by the adapter that needs them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial

from assistant.agenda.zone_changes import follow_time_zone
from assistant.bridges.configured import ConfiguredBridges
from assistant.bridges.terminal.bridge import TerminalBridge
from assistant.calendars.service import CalendarService
from assistant.core.bridge_api import Bridge
from assistant.core.notices import NoticeKind
from assistant.core.ports import Model, ModelPair
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.core.shutdown import SHUTDOWN_TIMEOUTS, ShutdownTimeouts
from assistant.gateway.attachments import load_outgoing_file
from assistant.gateway.dispatcher import Dispatcher, OutgoingRouter
from assistant.gateway.notices import NoticeSender
from assistant.health.telemetry import open_telemetry
from assistant.models.offline.model import OfflineModel
from assistant.notify.browser_push import PushKey
from assistant.people.pairing import supersede_denied
from assistant.runtime.context_meter import TokenEstimates
from assistant.runtime.current_models import CurrentModels, ModelChoice
from assistant.runtime.file_indexer import FileIndexer
from assistant.runtime.maintenance import Maintenance
from assistant.runtime.running_turns import RunningTurns
from assistant.runtime.sleep_scheduler import SleepLock
from assistant.service.heartbeat import StallDetector
from assistant.settings.consistency import check_names
from assistant.settings.sections import WEB_PORT_KEY
from assistant.settings.settings import DEFAULTS_ORIGIN, Settings, load_settings
from assistant.settings.watch import SettingsWatch
from assistant.store.home.browser_sessions import BrowserSessions
from assistant.store.home.config_file import keep_valid_config
from assistant.store.home.guard import remember_home
from assistant.web.deps import ApiDeps, DaemonControl
from assistant.web.servers import WebServers, ensure_web_token
from assistant.web.shell_commands import ShellCommands
from assistant.wire.models import ModelDeps, build_models, list_model_choices
from assistant.wire.notifications import build_notifier
from assistant.wire.replica import attach_replica, mark_replicated, stop_replica
from assistant.wire.services import (
    build_agenda,
    build_briefs,
    build_clock_changes,
    build_daemon_status,
    build_erasure_and_backups,
    build_inbound,
    build_mcp_servers,
    build_memory,
    build_read_api,
    build_resets,
    build_slash_commands,
    tell_mcp_change,
)
from assistant.wire.sleep import build_learning, build_sleep
from assistant.wire.stores import Stores, build_late_delivery, build_token_counter
from assistant.wire.turns import (
    Base,
    build_approvals,
    build_background_compaction,
    build_contexts,
    build_delegation,
    build_runtime,
    build_tools,
    build_turn_runner,
    journal_sync,
    take_over_calendars,
)
from sleep.cycle.rebuild import Reextraction
from tools.mcp import mcp_tools
from tools.skills import skill_tools
from tools.toolbox import MAX_RESULT_BYTES, delegate_tool


class App:
    """All running parts for one data folder: what the daemon serves and commands use."""

    def __init__(
        self,
        settings: Settings,
        stores: Stores,
        clock: Callable[[], datetime],
        bridges: Mapping[str, Bridge],
        models: ModelPair | None,
        read_settings: Callable[[], Settings],
        *,
        listens: bool,
    ) -> None:
        """Build parts in dependency order; `models` replace the configured ones. `listens`: also serve the web API over
        TCP, if a port is set."""
        self._listens = listens
        self.stores, self._clock = stores, clock
        self.started_at = clock()
        self.telemetry = open_telemetry(settings.values.telemetry)
        self.progress = StallDetector(settings.values.turn.max_seconds)
        self._build_models(settings, models)
        self._build_bridges(settings, bridges)
        self.watch = SettingsWatch(settings, read_settings, self._take_over, keep_valid_config)
        # A raised cap applies to the call it would have refused.
        stores.ledger.reload_budget = self.watch.check_files
        self._build_turns()
        self._build_access(settings)
        self.replica = attach_replica(self)

    def _build_models(self, settings: Settings, models: ModelPair | None) -> None:
        stores = self.stores
        self.running_turns = RunningTurns(stores.conversation)
        wake = self.running_turns.wake.set
        notices = NoticeSender(stores.ledger.notices, stores.outages, stores.resets, settings.zone, self._clock, wake)
        self.estimates = TokenEstimates(stores.model_facts, partial(build_token_counter, settings))
        deps = ModelDeps(
            stores.ledger,
            stores.model_facts,
            self.estimates.request_tokens,
            self._clock,
            OfflineModel,
            tracer=self.telemetry.tracer,
            outages=notices,
        )
        self.models = CurrentModels(models or build_models(settings, deps))
        self.sleep_lock = SleepLock(self.models.use)
        self.base = Base(
            settings,
            stores,
            self._clock,
            self.telemetry.tracer,
            self.models,
            self.estimates,
            self.running_turns,
            notices,
            self.sleep_lock,
        )
        self.model_choice = ModelChoice(
            self.models,
            lambda choice: build_models(settings.with_model(choice), deps),
            lambda: self.running_turns.any_running,
            lambda: list_model_choices(settings, deps),
        )

    def _build_bridges(self, settings: Settings, bridges: Mapping[str, Bridge]) -> None:
        stores = self.stores
        self.terminal = TerminalBridge(stores.outbox)
        self.networks = ConfiguredBridges(settings, stores.people)
        self.dispatcher = Dispatcher(
            stores.outbox,
            {self.terminal.name: self.terminal, **self.networks.open_all(), **bridges},
            self._clock,
            OutgoingRouter(stores.people, stores.places, self.terminal.name).resolve_destination,
            stores.bridge_states,
            partial(load_outgoing_file, stores.workspace),
            build_late_delivery(settings, stores),
            self.telemetry.tracer,
        )
        self.browsers = BrowserSessions(settings.home.browser_sessions, self._clock)
        self.push_key = PushKey(settings.home.push_key)
        self.terminal.on_attach = partial(self.dispatcher.retry_held_back, self.terminal.name)

    def _build_turns(self) -> None:
        """Build everything for turns: tools may read or change memories, reminders and all that can be erased."""
        base, stores, settings = self.base, self.stores, self.base.settings
        self.learning = build_learning(base)
        self.reextraction = Reextraction(
            stores.conversation, stores.log_reader, stores.journal, self.learning.extractor
        )
        self.memory = build_memory(base, self.reextraction)
        wake = self.running_turns.wake.set
        self.agenda, self.agenda_scheduler = build_agenda(settings, stores, wake, base.clock)
        self.clock_changes = build_clock_changes(base)
        self.erasure, self.backup_scheduler = build_erasure_and_backups(base, self.terminal.show_changed)
        self.calendars = CalendarService(settings.values.calendar, stores.calendars, settings.zone, base.clock)
        self._skill_tools = skill_tools(stores.skills, stores.folders, MAX_RESULT_BYTES)
        self.mcp = build_mcp_servers(settings, stores, base.clock, partial(tell_mcp_change, base.notices))
        self.file_indexer = FileIndexer(stores.folders, stores.file_search.index, stores.file_finder)
        self.toolbox = build_tools(base, self.memory, self.erasure, self.agenda, self.file_indexer, self.calendars)
        self.contexts = build_contexts(base, self.toolbox)
        window = self.contexts.window
        self.toolbox.add(delegate_tool(build_delegation(base, self.toolbox, window)))
        self.mcp.on_change = lambda: self.toolbox.replace_deferred("mcp", mcp_tools(self.mcp))
        self.mcp.on_change()
        self._offer_skills()
        self.approvals = build_approvals(base, self.toolbox)
        self.turn_runner = build_turn_runner(base, self.toolbox, window, self.dispatcher, self.approvals)
        self.runtime = build_runtime(base, self.turn_runner, self.dispatcher, self.contexts)
        self.background_compaction = build_background_compaction(base, self.contexts, self.learning.budget)
        self.runtime.on_turn_ended = self._after_turn
        self.terminal.find_disk_trouble = self.runtime.find_disk_trouble
        indexes = {
            "Message": stores.message_index,
            "Journal entry": stores.journal_index,
            "Page of a file": stores.file_finder,
        }
        self.maintenance = Maintenance(
            stores.conversation,
            stores.files,
            indexes,
            stores.home_guard,
            self.running_turns,
            lambda: self.memory.rebuild(base.clock()),
            settings.home.path,
            lambda: stores.record(base.clock()),
            self._tell_damage,
            self.file_indexer,
            lambda: stores.mentioned_dates.keep_up(OWNER_SCOPE, base.clock()),
            lambda: self.web.wait_until_quiet(),
        )
        self.sync_journal = journal_sync(settings, stores)
        self.sleep = build_sleep(base, self.learning, self.contexts.compaction)
        self.resets = build_resets(base, self.contexts, self.sleep, self.dispatcher)
        self.notifier = build_notifier(
            base, self.terminal.is_attached, lambda: self.settings, self.browsers, self.push_key
        )
        self.briefs = build_briefs(base, self.sleep.scheduler.is_night_due, lambda: self.settings)

    def _build_access(self, settings: Settings) -> None:
        """Build what people and programs connect to."""
        stores = self.stores
        self.daemon_status = build_daemon_status(self)
        self.status = self.daemon_status.report
        self.commands = build_slash_commands(self)
        shipped = all(settings.origins[key] == DEFAULTS_ORIGIN for key in ("guest.commands", "room.commands"))
        check_names(settings.values, self.toolbox.allowed_roles, None if shipped else self.commands.grantable_roles())
        self.inbound = build_inbound(self.base, self.commands, self.runtime.accept, self.dispatcher)
        shell = ShellCommands(settings.home.path)
        self.control = DaemonControl(self.runtime, self.commands, stores.conversation, self.daemon_status, shell)
        self.read_api = build_read_api(self)
        deps = ApiDeps(self.control, self.read_api, self.terminal, self.daemon_status, self.browsers, self.push_key)
        web = settings.values.web
        any_port = settings.origins[WEB_PORT_KEY] == DEFAULTS_ORIGIN
        self.web = WebServers(
            settings.home.socket, web, deps, self._web_token, listens=self._listens, any_port=any_port
        )
        self.running_turns.is_answering = self.web.is_answering

    # ------------------------------------------------------------------------------------------------------- life cycle

    async def start(self) -> None:
        """Recover what an earlier process left unfinished, then start receiving. Raises `StoreError`."""
        if self.replica is not None:
            await self.replica.start()
        await self.runtime.start(self._recover)
        await self.dispatcher.start(self.inbound)

    async def _recover(self, now: datetime) -> None:
        stores = self.stores
        stores.message_edits.recover_after_crash(now)
        stores.workspace.remove_partial()
        supersede_denied(stores.conversation, stores.people, now)
        self.agenda_scheduler.recover_after_crash(now)
        self.clock_changes.recover_after_crash(now)
        follow_time_zone(stores.jobs, self.settings.zone, partial(self.base.notices.send_to_session, MAIN_SESSION))
        self.sync_journal(now)
        self.sleep.recover_after_crash(now)
        self.maintenance.recover_files()
        stores.archive.remove_partial()
        await self.erasure.recover_after_crash(now)
        await self.approvals.recover_after_crash()
        self.inbound.recover_after_crash()
        self.notifier.recover_after_crash(now)
        for remark in stores.remarks:
            self._tell_damage(remark)
        self.maintenance.tell_damage()

    def _tell_damage(self, line: str) -> None:
        """Raises `StoreError`."""
        notice = NoticeKind.DATA_DAMAGED.fill(f"{self._clock():%Y-%m-%d}:{line}", what=line)
        self.base.notices.send_to_session(MAIN_SESSION, notice)

    def _after_turn(self, session: str) -> None:
        self.stores.ledger.ahead.keep_only(self.running_turns.awaited_sessions)
        self.background_compaction.after_turn(session)

    def _offer_skills(self) -> None:
        """Add the skill tools if there are skills, so that prompts do not mention them otherwise."""
        tools = self._skill_tools if self.stores.skills.has_any() else []
        self.toolbox.replace_deferred("skills", tools)

    async def stop(
        self,
        drain_seconds: float,
        timeouts: ShutdownTimeouts = SHUTDOWN_TIMEOUTS,
        force_stop: asyncio.Event | None = None,
    ) -> None:
        """End the turns (see `Runtime.stop`), flush deliveries, and close the bridges."""
        await self.runtime.stop(drain_seconds, timeouts, force_stop)
        await self.background_compaction.stop()
        await self.calendars.stop()
        await self.mcp.aclose()
        await self.dispatcher.stop(timeouts)
        await stop_replica(self)

    def serve(self) -> AbstractAsyncContextManager[None]:
        """Serve the control socket, and TCP if configured, within the context."""
        return self.web.serve()

    def check_due(self) -> None:
        """Check everything that may be due; called at every wake-up."""
        self.watch.check_files()
        self.clock_changes.check()
        self.networks.check_due(self.dispatcher)
        self._offer_skills()
        self.running_turns.wake.set()
        # A message that waited may have been withdrawn.
        self.stores.ledger.ahead.keep_only(self.running_turns.awaited_sessions)
        self.agenda_scheduler.check_due()
        self.calendars.check_due()
        self.approvals.check_due()
        self.sleep.scheduler.check_due()
        self.briefs.check_due()
        self.notifier.check_due()
        self.background_compaction.check_due()
        self.backup_scheduler.check_due()
        self.resets.check_due()

    async def warm(self) -> None:
        """Preload what was not needed to be ready: the SDK, the model's limits, the index."""
        await self.models.answering.limits()
        await self.maintenance.index_new_messages()
        await self.maintenance.remake_memories()

    def close(self) -> None:
        """Close the stores and send the last spans. Everything that runs must have ended."""
        self.stores.close()
        self.telemetry.close()

    # --------------------------------------------------------------------------------------------------------- settings

    @property
    def settings(self) -> Settings:
        """Return the current settings."""
        return self.watch.settings

    def _take_over(self, settings: Settings) -> None:
        self.stores.ledger.budget = settings.values.budget
        self.networks.take_over(settings, self.dispatcher)
        take_over_calendars(self.stores, self.calendars, self.toolbox, settings)

    def _web_token(self) -> str:
        """Return the token; a new one is valid from the next request on."""
        self.watch.check_files()
        return self.settings.values.web.token.get_secret_value()

    def problems(self) -> list[str]:
        """Return problems that need a person and are not in the stores."""
        errors = (self.backup_scheduler.trouble, self.agenda_scheduler.last_error, self.telemetry.problem)
        return [
            *(self.replica.find_problems() if self.replica is not None else ()),
            *self.maintenance.file_problems,
            *self.stores.remarks,
            *self.watch.problems(),
            *self.web.problems(),
            *self.calendars.problems(),
            *self.clock_changes.problems(self._clock()),
            *(error for error in errors if error),
            *self.notifier.problems(),
        ]

    def note_health(self) -> None:
        """Send notices about problems where nobody is looking; errors in doing so are ignored."""
        if self.notifier.is_used():
            own = self.notifier.problems()
            self.notifier.note_health(line for line in self.status()["problems"] if line not in own)


def build_app(
    settings: Settings,
    clock: Callable[[], datetime],
    *,
    bridges: Mapping[str, Bridge] | None = None,
    model: Model | None = None,
    writer: Model | None = None,
    reread: Callable[[], Settings] | None = None,
    listens: bool = False,
) -> App:
    """Open the data folder and build everything. `model` replaces the configured one, and then `writer` summarises, or
    the built-in model. `reread` reads changed settings instead of the folder and the environment. `listens`: the web
    API is served over TCP even if no port was chosen.

    Raises `HomeError`, `StoreError`, `SettingsError`."""
    mark_replicated(settings)
    stores = Stores(settings, clock())
    remember_home(settings.home.path, settings.home.folder_list)
    models = None if model is None else ModelPair(model, writer or OfflineModel())
    read_settings = reread or partial(load_settings, settings.home, ring=None)
    try:
        listens = listens or settings.origins[WEB_PORT_KEY] != DEFAULTS_ORIGIN
        known = ensure_web_token(settings) if listens else settings
        return App(known, stores, clock, bridges or {}, models, read_settings, listens=listens)
    except BaseException:
        stores.close()
        raise
