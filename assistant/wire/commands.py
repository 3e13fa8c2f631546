"""Builds the slash commands of a running assistant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from assistant.agenda.service import AgendaService
from assistant.commands.context import CommandServices, CommandStores
from assistant.commands.registry import CommandRegistry
from assistant.core.calendar import utc_now
from assistant.gateway.bridge_operations import BridgeOperations
from assistant.memory.service import MemoryService
from assistant.settings.settings import Settings
from assistant.wire.services import build_agenda, build_pairing
from assistant.wire.stores import Stores, memory_deps, memory_storage_info, session_reader

if TYPE_CHECKING:
    from assistant.wire.app import App, Clock


def build_slash_commands(app: App, clock: Clock) -> CommandRegistry:
    stores, settings = app.stores, app.settings
    return CommandRegistry(
        settings.values.permissions(),
        clock,
        command_stores(settings, stores, app.agenda, app.memory),
        _command_services(app),
        settings.zone,
    )


def command_stores(
    settings: Settings, stores: Stores, agenda: AgendaService | None = None, memory: MemoryService | None = None
) -> CommandStores:
    """What commands read. `agenda` and `memory` are those of the running assistant, where there is one."""
    return CommandStores(
        conversation=stores.conversation,
        pins=stores.pins,
        requests=stores.requests,
        sessions=session_reader(settings, stores),
        places=stores.places,
        archive=stores.archive,
        history=stores.history,
        journal=stores.journal,
        memory=memory or MemoryService(memory_deps(stores), partial(memory_storage_info, settings)),
        files=stores.files,
        people=stores.people,
        todos=stores.todos,
        ledger=stores.ledger,
        pairing=build_pairing(settings, stores),
        agenda=agenda or build_agenda(settings, stores, lambda: None, utc_now)[0],
        outbox=stores.outbox,
        deliveries=stores.deliveries,
        backups=stores.backups,
    )


def find_missing_values(text: str, summary: str) -> Mapping[str, Sequence[str]]:
    """By kind ("identifiers", "numbers", "names", "tasks") what `text` names and `summary` does not."""
    from sleep.compaction import validate  # patterns that one command needs

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
        status=app.daemon_status.report,
        tool_effects=app.toolbox.effects,
        terminal=app.terminal.name,
        erasure=app.erasure,
        bridge_names=lambda: [name for name in app.dispatcher.bridges if name != app.terminal.name],
        wake=app.running_turns.wake.set,
    )


def _bridge_operations(app: App) -> BridgeOperations:
    stores, dispatcher = app.stores, app.dispatcher

    async def reload(name: str) -> None:
        await app.networks.reload(name, dispatcher)

    return BridgeOperations(
        dispatcher, reload, stores.outbox, stores.deliveries, stores.bridge_states, stores.places, app.terminal.name
    )
