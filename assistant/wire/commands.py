"""The slash commands and the tools of a running assistant: one part of the composition root (`assistant.wire.app`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.commands.context import CommandServices
from assistant.commands.context import CommandStores as TableStores
from assistant.commands.memory import MemoryCommandGroup
from assistant.commands.registry import CommandRegistry, CommandStores
from assistant.commands.sessions import ArchiveCommands
from assistant.commands.sleep import SleepCommands
from assistant.runtime.delegation import DelegationRunner
from assistant.runtime.tool_registry import ToolRegistry
from assistant.settings.sections import ToolSettings
from assistant.wire.backup import build_backup_commands
from assistant.wire.bridges import build_bridge_commands
from assistant.wire.people import build_people_commands
from assistant.wire.prompts import load_prompt
from assistant.wire.stores import Stores, build_authority, token_counter_for
from sleep.rules.importance import score_importance
from tools.toolbox import MAX_RESULT_BYTES, MemoryToolDeps, build_toolbox

if TYPE_CHECKING:
    from assistant.wire.app import App, Clock


def build_slash_commands(app: App, clock: Clock) -> CommandRegistry:
    stores, settings = app.stores, app.settings
    groups = (
        app.sessions.commands,
        MemoryCommandGroup(app.memory, stores.conversation, settings.zone),
        app.agenda.commands,
        _sleep_commands(app),
        build_backup_commands(settings, app.backup_scheduler),
        ArchiveCommands(stores.archive, stores.history, settings.zone),
        build_people_commands(settings, stores, app.people_bridges),
        *build_bridge_commands(settings, stores, app.dispatcher, app.networks, app.terminal.name),
    )
    shared = CommandStores(stores.conversation, stores.outbox, stores.todos, stores.ledger)
    return CommandRegistry(
        app,
        shared,
        app.toolbox,
        groups,
        app.erasure,
        build_authority(settings),
        clock,
        command_stores(stores),
        _command_services(app),
        settings.zone,
    )


def command_stores(stores: Stores) -> TableStores:
    return TableStores(conversation=stores.conversation, pins=stores.pins, requests=stores.requests)


def _command_services(app: App) -> CommandServices:
    settings = app.settings
    return CommandServices(
        compaction=app.sleep_setup.compaction,
        cached_prompt=app.context_window.cached_request,
        pins_max_tokens=settings.values.compaction.pins_max_tokens,
        count_tokens=token_counter_for(settings, settings.values.model.name).count_text,
    )


def _sleep_commands(app: App) -> SleepCommands:
    setup = app.sleep_setup
    return SleepCommands(
        app.sleep_now,
        app.sleep_lock.keep_awake,
        setup.undo,
        setup.dry_run,
        app.stores.journal,
        app.settings.zone,
    )


def _delegation(app: App, clock: Clock) -> DelegationRunner:
    wanted = app.settings.values.delegation
    return DelegationRunner(
        lambda: app.toolbox,
        lambda turn: app.context_window.last_call(turn),
        app.stores.delegations,
        wanted,
        clock,
        prompt=load_prompt(app.settings.home, "delegate"),
        count_request_tokens=lambda request, model: app.context_window.request_tokens(request, model),
        max_seconds=wanted.max_seconds,
    )


# Quoted words in most scripts take more bytes a token than this.
_PAGE_BYTES_A_TOKEN = 2.4


def build_tools(app: App, clock: Clock) -> ToolRegistry:
    return build_toolbox(
        app.stores.history,
        app.stores.todos,
        workspace=app.settings.home.workspace,
        zone=app.settings.zone,
        requests=app.stores.requests,
        helpers=_delegation(app, clock),
        memory=MemoryToolDeps(
            app.stores.memory_search,
            app.memory,
            app.stores.journal,
            app.stores.profiles,
            app.stores.files,
            app.erasure,
            score_importance,
        ),
        reminders=app.agenda.agenda,
        sending=(app.stores.workspace, app.stores.turn_files),
        timeout_seconds=app.settings.values.tools.timeout_seconds,
        result_bytes=_page_bytes(app.settings.values.tools),
        authority=build_authority(app.settings),
        tracer=app.telemetry.tracer,
    )


def _page_bytes(tools: ToolSettings) -> int:
    """How long a page of quoted words may be so that it is not cut when it enters the working context."""
    if tools.output_policy == "bytes":
        return min(MAX_RESULT_BYTES, tools.output_max_bytes // 2)
    return min(MAX_RESULT_BYTES, int(tools.output_max_tokens * _PAGE_BYTES_A_TOKEN))
