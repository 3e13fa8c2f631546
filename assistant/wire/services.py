"""Builds the services that use the stores outside of turns (memory, agenda, backups, people, sessions), and what
commands use."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from assistant.agenda.brief import BriefReader
from assistant.agenda.brief_scheduler import BriefScheduler, BriefTimes
from assistant.agenda.clock_changes import ClockChanges
from assistant.agenda.scheduler import AgendaScheduler
from assistant.agenda.service import AgendaConfig, AgendaService
from assistant.backup.scheduler import BackupScheduler
from assistant.bridges.terminal.bridge import TerminalBridge
from assistant.commands.argv import command_name
from assistant.commands.context import CommandServices, CommandStores
from assistant.commands.registry import CommandRegistry
from assistant.core.backups import BackupKind, BackupResult
from assistant.core.calendar import SleepSchedule, utc_now
from assistant.core.errors import ToolError
from assistant.core.mcp import McpToolPin, approval_code
from assistant.core.notices import NoticeKind
from assistant.core.quoting import quote_text
from assistant.core.records import InboxReceipt, IncomingMessage, PendingCommand
from assistant.core.sessions import MAIN_SESSION
from assistant.erasure.backups import BackupErasure
from assistant.erasure.service import ErasureService
from assistant.gateway.bridge_operations import BridgeOperations
from assistant.gateway.dispatcher import Dispatcher
from assistant.gateway.inbound import InboundHandler
from assistant.gateway.notices import NoticeSender
from assistant.health.status import DaemonStatus
from assistant.health.status_text import render_lines
from assistant.mcp.servers import McpServer, McpServers
from assistant.memory.service import MemoryService
from assistant.people.pairing import PairingRules, PairingService
from assistant.runtime.context_parts import ContextParts
from assistant.runtime.context_pressures import ContextPressures
from assistant.service.clock import SteadyClock
from assistant.sessions.reset import ResetContext, ResetStores, SessionResetter
from assistant.sessions.scheduler import ResetScheduler
from assistant.settings.settings import Settings
from assistant.store.home.workspace import ADDED_FOLDER, WorkspaceFiles, page_file_name
from assistant.web.deps import OwnerReadApi
from assistant.wire.memories import memory_storage_info
from assistant.wire.sleep import Sleep
from assistant.wire.stores import (
    Stores,
    build_lateness_policy,
    build_memory_deps,
    build_reset_policies,
    build_session_reader,
    build_status_sources,
    first_message_at,
)
from assistant.wire.turns import Base, Contexts, page_fetcher
from sleep.compaction.message_cache import FOUND_IN_MESSAGES
from sleep.cycle.rebuild import Reextraction

if TYPE_CHECKING:
    from assistant.wire.app import App


def build_memory(base: Base, reextraction: Reextraction) -> MemoryService:
    return MemoryService(
        build_memory_deps(base.stores),
        partial(memory_storage_info, base.settings),
        is_asleep=base.sleep_lock.is_asleep,
        keep_awake=base.sleep_lock.keep_awake,
        reextract=reextraction.run,
    )


def build_agenda(
    settings: Settings, stores: Stores, wake: Callable[[], None], clock: Callable[[], datetime]
) -> tuple[AgendaService, AgendaScheduler]:
    """`wake` is called when there is something to deliver or to answer."""
    agenda, lateness = settings.values.agenda, build_lateness_policy(settings)
    scheduler = AgendaScheduler(
        stores.jobs, lateness, settings.zone, wake, clock, longest_wait=settings.values.daemon.watch_seconds
    )
    config = AgendaConfig(settings.zone, agenda.catch_up, agenda.max_pending, lateness)
    return AgendaService(stores.jobs, config, scheduler.check_due), scheduler


def build_clock_changes(base: Base) -> ClockChanges:
    """A clock that is injected does not jump."""
    clock = base.clock if isinstance(base.clock, SteadyClock) else None
    tell = partial(base.notices.send_to_session, MAIN_SESSION)
    return ClockChanges(clock, base.stores.clock_steps, base.stores.spending, base.settings.zone, tell)


def build_briefs(
    base: Base, is_night_due: Callable[[datetime], bool], settings_now: Callable[[], Settings]
) -> BriefScheduler:
    """`settings_now` is asked for the times at every look, so that changed ones hold at once."""
    stores, lateness = base.stores, build_lateness_policy(base.settings)

    def times() -> BriefTimes:
        brief = settings_now().values.brief
        return BriefTimes(brief.morning, brief.evening, base.settings.zone, lateness)

    return BriefScheduler(
        BriefReader(stores.agenda_days, stores.requests, stores.approvals, stores.journal),
        stores.ledger.notices,
        times,
        partial(base.notices.send_to_session, MAIN_SESSION),
        is_night_due,
        base.clock,
    )


def build_erasure_and_backups(base: Base, show_changed: Callable[[], None]) -> tuple[ErasureService, BackupScheduler]:
    """Build both; each is blocked while the other works. `show_changed` tells who looks at what was said."""
    stores, backup = base.stores, base.settings.values.backup

    async def make_backup(kind: BackupKind, now: datetime) -> BackupResult:
        from assistant.backup.process import make_in_child  # loaded with what packs archives

        return await make_in_child(stores.backups, backup.workspace, kind, now)

    erasure = ErasureService(
        stores.erasure, stores.memories, base.sleep_lock.is_asleep, BackupErasure(stores.backups, make_backup)
    )
    backups = BackupScheduler(
        stores.backups,
        make_backup,
        SleepSchedule(backup.at, base.settings.zone),
        backup.keep,
        first_message_at=partial(first_message_at, stores),
        is_erasing=erasure.is_running,
        clock=base.clock,
    )
    erasure.defer_while(backups.is_running)
    # What was found in forgotten messages leaves the memory of the process as well.
    erasure.on_erased += [FOUND_IN_MESSAGES.clear, stores.requests.clear_texts, show_changed]
    return erasure, backups


def tell_mcp_change(notices: NoticeSender, server: str, changed: Sequence[McpToolPin]) -> None:
    """Raises `StoreError`."""
    names = ", ".join(quote_text(pin.name) for pin in changed)
    notice = NoticeKind.MCP_TOOLS_CHANGED.fill(f"{server}:{approval_code(changed)}", server=server, tools=names)
    notices.send_to_session(MAIN_SESSION, notice)


def build_pairing(settings: Settings, stores: Stores) -> PairingService:
    people = settings.values.people
    rules = PairingRules(people.unknown, people.pairing_minutes, people.pairing_pending, people.pairing_tries)
    return PairingService(stores.people, stores.pairings, stores.places, rules, settings.zone, TerminalBridge.name)


def build_inbound(
    base: Base,
    commands: CommandRegistry,
    accept: Callable[[IncomingMessage], Awaitable[InboxReceipt]],
    dispatcher: Dispatcher,
) -> InboundHandler:
    settings, stores = base.settings, base.stores
    pairing = build_pairing(settings, stores)

    async def run_command(command: PendingCommand) -> str:
        return await commands.run(
            command.text, command.session, bridge=command.bridge, target=command.target, sender=command.sender
        )

    return InboundHandler(
        stores.people,
        stores.places,
        stores.typed_commands,
        stores.bridge_states,
        stores.message_edits,
        accept=accept,
        handle_stranger=pairing.handle_stranger,
        redeem_link_code=pairing.redeem_link_code,
        command_name=command_name,
        command_names=commands.names,
        run_command=run_command,
        dispatcher=dispatcher,
        answers_everything_in_rooms=settings.values.room.answers == "everything",
        clock=base.clock,
    )


def build_resets(base: Base, contexts: Contexts, sleep: Sleep, dispatcher: Dispatcher) -> ResetScheduler:
    settings, stores = base.settings, base.stores
    reset_stores = ResetStores(
        stores.conversation,
        stores.generations,
        stores.resets,
        stores.archive,
        stores.requests,
        stores.todos,
        stores.delegations,
    )
    context = ResetContext(
        extract=sleep.cycle.extract_session,
        write_notes=sleep.notes.write_or_log,
        continue_extraction=sleep.scheduler.start_extraction,
        hold_session=base.running.pause_session,
        block_sleep=base.sleep_lock.keep_awake,
        is_compacting=contexts.compaction.is_compacting,
        is_sleep_due=sleep.scheduler.is_night_due,
        pressure=contexts.meter.load_pressure_ratio,
        count_tokens=stores.counter.count_text,
        show_progress=dispatcher.show_progress,
        clock=base.clock,
        zone=settings.zone,
    )
    reset = settings.values.reset
    resetter = SessionResetter(
        reset_stores,
        context,
        handover_tokens=reset.handover_max_tokens,
        learn_for=timedelta(seconds=reset.learn_seconds),
    )
    return ResetScheduler(resetter, reset_stores, context, build_reset_policies(settings))


def build_daemon_status(app: App) -> DaemonStatus:
    return DaemonStatus(
        app.watch,
        build_status_sources(app.settings, app.stores, is_served=True),
        app.runtime,
        app.progress,
        app.stores.home_guard,
        app.dispatcher.bridge_states,
        lambda: app.maintenance.passed_over,
        app.models,
        app.estimates,
        ContextPressures(app.contexts.meter),
        lambda: app.web.status(),
        app.problems,
        app.telemetry.metrics,
        app.base.clock,
        app.started_at,
    )


def build_slash_commands(app: App) -> CommandRegistry:
    stores, settings = app.stores, app.settings
    return CommandRegistry(
        settings.values.permissions(),
        app.base.clock,
        build_command_stores(settings, stores, app.agenda, app.memory, app.mcp),
        _command_services(app),
        settings.zone,
        app.watch.check_files,
    )


def build_command_stores(
    settings: Settings,
    stores: Stores,
    agenda: AgendaService | None = None,
    memory: MemoryService | None = None,
    mcp: McpServers | None = None,
) -> CommandStores:
    """Return the stores commands read. `agenda`, `memory` and `mcp` are those of the running assistant, if there is
    one."""
    return CommandStores(
        conversation=stores.conversation,
        pins=stores.pins,
        requests=stores.requests,
        sessions=build_session_reader(settings, stores),
        places=stores.places,
        archive=stores.archive,
        history=stores.history,
        journal=stores.journal,
        memory=memory or MemoryService(build_memory_deps(stores), partial(memory_storage_info, settings)),
        consolidations=stores.consolidations,
        profiles=stores.profiles,
        files=stores.files,
        people=stores.people,
        todos=stores.todos,
        ledger=stores.ledger,
        pairing=build_pairing(settings, stores),
        agenda=agenda or build_agenda(settings, stores, lambda: None, utc_now)[0],
        days=stores.agenda_days,
        outbox=stores.outbox,
        deliveries=stores.deliveries,
        backups=stores.backups,
        approvals=stores.approvals,
        workspace=stores.workspace,
        imports=stores.imports,
        calendars=stores.calendars,
        calendar_sources=lambda: stores.calendar_settings.sources,
        skills=stores.skills,
        mcp=mcp or build_mcp_servers(settings, stores, utc_now),
        file_search=stores.file_search,
    )


def build_mcp_servers(
    settings: Settings,
    stores: Stores,
    clock: Callable[[], datetime],
    tell_changed: Callable[[str, Sequence[McpToolPin]], None] = lambda server, pins: None,
) -> McpServers:
    """Nothing of the SDK is loaded, and no server started, before one of its tools is used."""
    secrets = {name: value.get_secret_value() for name, value in settings.mcp_secrets.items()}
    servers = [
        McpServer(name, chosen, {key.split(".")[2]: secrets[key] for key in secrets if key.split(".")[1] == name})
        for name, chosen in settings.values.mcp.servers.items()
    ]
    return McpServers(servers, stores.mcp_tools, clock, tell_changed)


def find_missing_values(text: str, summary: str) -> Mapping[str, Sequence[str]]:
    """Return by kind ("identifiers", "numbers", "names", "tasks") what is in `text` but not in `summary`."""
    from sleep.compaction import validate  # patterns only needed by one command

    return validate.find_missing_values([text], summary)


def _command_services(app: App) -> CommandServices:
    settings = app.settings
    return CommandServices(
        compaction=app.contexts.compaction,
        cached_prompt=app.contexts.window.cached_request,
        pins_max_tokens=settings.values.compaction.pins_max_tokens,
        count_tokens=app.stores.counter.count_text,
        resets=app.resets,
        sleep_now=app.sleep.scheduler.run_now,
        sleep_dry_run=app.sleep.dry_run,
        sleep_undo=app.sleep.undo,
        keep_awake=app.sleep_lock.keep_awake,
        bridges=_bridge_operations(app),
        backups=app.backup_scheduler,
        models=app.model_choice,
        accept=app.runtime.accept,
        stop_turn=app.runtime.stop_turn,
        is_running=app.running_turns.is_running,
        show_changed=app.dispatcher.show_changed,
        status=app.daemon_status.report,
        status_lines=render_lines,
        tool_changes=app.toolbox.changes,
        terminal=app.terminal.name,
        erasure=app.erasure,
        approvals=app.approvals,
        bridge_names=lambda: [name for name in app.dispatcher.bridges if name != app.terminal.name],
        wake=app.running_turns.wake.set,
        browsers=app.browsers,
        context_parts=ContextParts(
            app.stores.conversation, app.models, app.contexts.meter, app.contexts.window, app.contexts.economy
        ),
        calendars=app.calendars,
        mcp=app.mcp,
        file_indexer=app.file_indexer,
        save_page=partial(_save_page, settings, app.stores.workspace),
        page_url=lambda: app.web.url(),
        notifier=app.notifier,
    )


def build_read_api(app: App) -> OwnerReadApi:
    stores, settings = app.stores, app.settings
    return OwnerReadApi(
        stores.conversation,
        stores.history,
        stores.journal,
        stores.ledger,
        build_session_reader(settings, stores),
        app.memory,
        stores.workspace,
        stores.outbox,
        app.base.clock,
        settings.zone,
    )


async def _save_page(settings: Settings, files: WorkspaceFiles, address: str, now: datetime) -> str:
    """Raises `ToolError`, `StoreError`."""
    fetcher = page_fetcher(settings.values.tools)
    if fetcher is None:
        raise ToolError("No page was read: `tools.fetch_pages` is off.")
    page = await fetcher.fetch(address)
    suffix = mimetypes.guess_extension(page.content_type) or ".txt"
    name = page_file_name(page.address, suffix, now.astimezone(settings.zone).date())
    return await asyncio.to_thread(files.save, ADDED_FOLDER, (name,), page.data)


def _bridge_operations(app: App) -> BridgeOperations:
    stores, dispatcher = app.stores, app.dispatcher

    async def reload(name: str) -> None:
        await app.networks.reload(name, dispatcher)

    return BridgeOperations(
        dispatcher, reload, stores.outbox, stores.deliveries, stores.bridge_states, stores.places, app.terminal.name
    )
