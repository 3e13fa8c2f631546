"""The composition root: from settings to a running assistant (`App`). The only package that knows every adapter.

What is heavy (provider SDKs, the web framework, vocabularies) is imported by the adapter that needs it, and those
adapters are loaded when they are first used.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from typing import Any

import structlog

from assistant.bridges.terminal.bridge import TerminalBridge
from assistant.core.bridge_api import Bridge, TurnEvent
from assistant.core.errors import AssistantError, StoreError
from assistant.core.memories import SleepReport
from assistant.core.ports import Model
from assistant.erasure.service import ErasureService
from assistant.gateway.attachments import AttachmentIntake, load_outgoing_file
from assistant.gateway.dispatcher import Dispatcher
from assistant.memory.service import MemoryService
from assistant.models.factory import ModelDeps, build_model_chain, build_summary_model
from assistant.models.offline.model import OfflineModel
from assistant.runtime.current_models import CurrentModels
from assistant.runtime.runtime import Runtime
from assistant.runtime.sleep_scheduler import SleepLock
from assistant.runtime.turn import TurnRunner
from assistant.service.heartbeat import StallDetector
from assistant.service.malloc import trim_heap
from assistant.settings.settings import Settings
from assistant.web.deps import ApiDeps, DaemonControl
from assistant.wire.agenda import build_agenda
from assistant.wire.backup import build_backup_erasure, build_backup_scheduler
from assistant.wire.backup import tidy_backups as settle_backups
from assistant.wire.bridges import ConfiguredBridges
from assistant.wire.commands import build_slash_commands, build_tools
from assistant.wire.people import (
    build_denied_notices,
    build_destinations,
    build_inbound,
    check_grants,
)
from assistant.wire.sessions import SessionHooks, build_sessions
from assistant.wire.settings import build_settings_watch, build_turn_guard, settings_with_model
from assistant.wire.sleep import build_sleep, build_turn_context, count_request_tokens
from assistant.wire.status import AppVitals, model_label, running_status
from assistant.wire.stores import (
    Stores,
    memory_deps,
    memory_storage_info,
    open_stores,
)
from assistant.wire.telemetry import open_telemetry
from assistant.wire.web import WebServers, build_read_api, ensure_web_token

Clock = Callable[[], datetime]

log = structlog.get_logger()

# Longest that work nobody waits for gives way to messages between two of its steps.
_MAX_QUIET_WAIT_SECONDS = 5.0


class App:
    """A home with everybody in it: what the daemon serves and the commands change."""

    def __init__(
        self,
        settings: Settings,
        stores: Stores,
        clock: Clock,
        bridges: Mapping[str, Bridge],
        model: Model | None,
        writer: Model | None,
        reread: Callable[[], Settings] | None = None,
    ) -> None:
        self.settings = settings
        self.stores = stores
        self._clock = clock
        self._odd_files: tuple[str, ...] = ()
        self.started_at = clock()
        self.telemetry = open_telemetry(settings)
        self.metrics = self.telemetry.metrics
        self._watch = build_settings_watch(settings, stores.ledger, self._take_over, reread)
        self.progress = StallDetector(settings.values.turn.max_seconds)
        self.terminal = TerminalBridge(stores.outbox)
        self.models = self._current_models(model, writer)
        self.sleep_lock = SleepLock(self.models.use)
        self.backup_scheduler = build_backup_scheduler(
            settings, stores.conversation, lambda: self.erasure.is_running, clock
        )
        self.erasure = ErasureService(stores.erasure, stores.memories, self._is_busy, build_backup_erasure(settings))
        self.memory = self._memory_commands()
        self.agenda = build_agenda(settings, stores, lambda: self.runtime.wake(), clock)
        self.toolbox = build_tools(self, clock)
        self.networks = ConfiguredBridges(settings, stores.people)
        self._renewing: asyncio.Future[None] | None = None
        self.dispatcher = self._delivery(bridges)
        self.terminal.on_attach = partial(self.dispatcher.retry_held_back, self.terminal.name)
        self.sleep_setup = build_sleep(
            settings,
            stores,
            lambda: self.toolbox,
            self.models,
            self.sleep_lock,
            self._until_quiet,
            clock,
            self._is_running,
            self.telemetry.tracer,
        )
        self.context_window = self.sleep_setup.context_window
        self.turn_runner = self._turns()
        self.runtime = self._runtime()
        live = SessionHooks(self.runtime.pause_session, self._show, self.terminal.name)
        self.sessions = build_sessions(settings, stores, self.sleep_setup, self.sleep_lock, live, clock)
        self.commands = build_slash_commands(self, clock)
        check_grants(settings, self.toolbox.allowed_roles, self.commands.grantable_roles())
        self.inbound = build_inbound(settings, stores, self.commands, self.runtime.accept, self.dispatcher, clock)
        self.control = DaemonControl(self.runtime, self.commands, stores.conversation, self.status)
        self.read_api = build_read_api(settings, stores, self.memory, clock)
        self.vitals = AppVitals(self, self.status, clock)
        self.web = WebServers(
            settings, ApiDeps(self.control, self.read_api, self.terminal, self.vitals), self._web_token
        )
        self.accept, self.stop_turn = self.runtime.accept, self.runtime.stop_turn
        self.is_running = self.runtime.is_running

    def _current_models(self, model: Model | None, writer: Model | None) -> CurrentModels:
        """Those that are handed in; else the configured ones."""
        if model is not None:
            return CurrentModels(model, writer or OfflineModel())
        return CurrentModels(
            build_model_chain(self.settings, self._means()), build_summary_model(self.settings, self._means())
        )

    def _delivery(self, bridges: Mapping[str, Bridge]) -> Dispatcher:
        there = {self.terminal.name: self.terminal, **self.networks.open_all(), **bridges}
        stores, allowed = self.stores, build_destinations(self.stores, self.terminal.name)
        return Dispatcher(
            stores.outbox,
            there,
            self._clock,
            allowed,
            stores.bridge_states,
            partial(load_outgoing_file, stores.workspace),
            self.telemetry.tracer,
        )

    def _turns(self) -> TurnRunner:
        settings, stores = self.settings, self.stores
        return TurnRunner(
            stores.conversation,
            self.models,
            self.toolbox,
            self.context_window,
            settings.values.turn,
            self.dispatcher.show,
            self._clock,
            self.telemetry.tracer,
            build_turn_guard(settings, stores.ledger),
        )

    def _runtime(self) -> Runtime:
        settings, stores = self.settings, self.stores
        around = build_turn_context(settings, stores, self.sleep_setup)
        return Runtime(
            stores.conversation,
            self.turn_runner,
            self.dispatcher,
            around,
            self._settle,
            lambda: self.inbound,
            self._clock,
            stores.home_guard.require_present,
            AttachmentIntake(stores.workspace, settings.zone).store_attachments,
        )

    def _memory_commands(self) -> MemoryService:
        return MemoryService(
            memory_deps(self.stores),
            partial(memory_storage_info, self.settings),
            is_asleep=lambda: self.sleep_lock.is_asleep,
            keep_awake=self.sleep_lock.keep_awake,
            reextract=lambda now: self.sleep_setup.reextraction.run(now),
        )

    async def _settle(self, now: datetime) -> None:
        """What an earlier process left half done, before anything is answered."""
        self.stores.message_edits.recover_after_crash(now)
        self.stores.workspace.remove_partial()
        build_denied_notices(self.stores).supersede_denied(now)
        self.agenda.alarm.recover_after_crash(now)
        self.sleep_setup.sync_journal(now)
        self._settle_files()
        self.stores.archive.remove_partial()
        try:
            settle_backups(self.settings)
            for done in await self.erasure.finish_interrupted(now):
                log.info("forgetting was finished", complete=done.complete)
        except AssistantError as error:
            log.error("a forgetting is not finished", error=str(error))
        self.inbound.recover_after_crash()

    def _settle_files(self) -> None:
        """What cannot be settled is told by `status` until it can."""
        self._odd_files = tuple(self.stores.files.recover_after_crash())
        for told in self._odd_files:
            log.warning("a memory file needs a look", file=told)

    def _is_busy(self) -> bool:
        """Whether a sleep or a backup reads what a forgetting would change."""
        return self.sleep_lock.is_asleep or self.backup_scheduler.is_running

    def _is_running(self, session: str) -> bool:
        return self.runtime.is_running(session)

    async def _until_quiet(self) -> None:
        await self.runtime.wait_until_quiet(_MAX_QUIET_WAIT_SECONDS)

    def _show(self, session: str, text: str) -> None:
        """What goes on, for whoever looks on now."""
        self.dispatcher.show(TurnEvent("notice", session, "", {"text": text}))

    def people_bridges(self) -> list[str]:
        """The bridges over which people can be met."""
        return [name for name in self.dispatcher.bridges if name != self.terminal.name]

    def serve(self) -> AbstractAsyncContextManager[None]:
        """The control socket, and TCP where that is wanted, served while the context is open."""
        return self.web.serve()

    def check_due(self) -> None:
        """Something may be due by the wall clock: called at every wake-up."""
        self._watch.check_files()
        if self.networks.has_pending and (self._renewing is None or self._renewing.done()):
            self._renewing = asyncio.ensure_future(self.networks.retry_pending(self.dispatcher))
        self.runtime.wake()
        self.agenda.alarm.check_due()
        self.sleep_setup.scheduler.check_due()
        self.backup_scheduler.check_due()
        self.sessions.resets.check_due()

    def _web_token(self) -> str:
        """One that was made anew holds for the next request; the former, which somebody may have got, for none."""
        self._watch.check_files()
        return self.settings.values.web.token.get_secret_value()

    def _take_over(self, settings: Settings) -> None:
        """Settings that hold from now on; what they change in others is changed already."""
        self.settings = settings
        self._renewing = asyncio.ensure_future(self.networks.apply_settings(settings, self.dispatcher))

    def upkeep(self) -> None:
        """Small, regular work on the stores; left for later while a turn runs, or when the disk refuses."""
        if not self.runtime.busy:
            with contextlib.suppress(StoreError):
                self.stores.conversation.run_maintenance()
            if self._odd_files:
                self._settle_files()

    async def warm(self) -> None:
        """Load what is heavy and was not needed to be ready: the provider's SDK, the model's limits."""
        await self.models.answering.limits()
        await self.index_new_messages()

    async def index_new_messages(self) -> None:
        """Take in what was said and cannot be found yet, a little at a time, beside whatever else is done."""
        try:
            self.stores.home_guard.require_present()
            for finder in (self.stores.message_index, self.stores.journal_index):
                while await asyncio.to_thread(finder.index_next_batch):
                    pass
            await asyncio.to_thread(trim_heap)
        except StoreError as error:
            log.error("what was said last is not indexed yet", error=str(error))

    async def close_models(self) -> None:
        await self.models.aclose()

    async def sleep_now(self, trigger: str, phase: str = "") -> SleepReport | None:
        """Sleep now (see `Sleeper.begin`), in one phase alone where one is named; what it did, None where it failed.
        The sleep goes on where whoever asked for it goes away."""
        return await asyncio.shield(self.sleep_setup.scheduler.start(trigger, phase=phase))

    def close(self) -> None:
        self.stores.close()
        self.telemetry.close()

    # ------------------------------------------------------------------------------------------------------------ model

    def _means(self) -> ModelDeps:
        """What models are made with."""
        estimate = partial(count_request_tokens, lambda: self.context_window)
        return ModelDeps(
            self.stores.ledger,
            self.stores.model_facts,
            estimate,
            self._clock,
            OfflineModel,
            tracer=self.telemetry.tracer,
        )

    def describe_model(self) -> str:
        model = self.models.answering
        return f"{model_label(model)}; tokens: {self.context_window.describe_token_counting(model.name)}"

    def choose_model(self, choice: str) -> str:
        """Have `provider` or `provider:name` answer until the daemon is restarted. Raises `UsageError`."""
        chosen, means = settings_with_model(self.settings, choice), self._means()
        self.models.replace(build_model_chain(chosen, means), build_summary_model(chosen, means))
        since = "From the next message on" if self.runtime.busy else "From now on"
        return f"{since}: {self.describe_model()}"

    # ----------------------------------------------------------------------------------------------------------- status

    def status(self) -> Mapping[str, Any]:
        self._watch.check_files()
        problems = [*self._odd_files, *self._watch.problems(), *self.web.problems()]
        problems += [
            one for one in (self.backup_scheduler.trouble, self.agenda.alarm.last_error, self.telemetry.problem) if one
        ]
        return running_status(self, self._clock(), problems, self._watch.keys_for_next_start())


def build_app(
    settings: Settings,
    clock: Clock,
    *,
    bridges: Mapping[str, Bridge] | None = None,
    model: Model | None = None,
    writer: Model | None = None,
    reread: Callable[[], Settings] | None = None,
) -> App:
    """Open the home and wire everything; `model` answers instead of the configured one, and then `writer` summarises,
    the built-in model where there is none. `reread` reads the settings again when config.toml has changed; without it
    they are read from the home and the environment.

    Raises `HomeError`, `StoreError`, `SettingsError`."""
    stores = open_stores(settings, clock())
    try:
        return App(ensure_web_token(settings), stores, clock, bridges or {}, model, writer, reread)
    except BaseException:
        stores.close()
        raise
