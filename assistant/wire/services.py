"""Builds what works on the stores beside the turns: memory, agenda, backups, people, sessions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial

from assistant.agenda.scheduler import AgendaScheduler
from assistant.agenda.service import AgendaConfig, AgendaService
from assistant.backup.process import make_in_child
from assistant.backup.scheduler import BackupScheduler
from assistant.bridges.terminal.bridge import TerminalBridge
from assistant.commands.registry import CommandRegistry
from assistant.core.calendar import SleepSchedule
from assistant.core.records import InboxReceipt, IncomingMessage, PendingCommand
from assistant.erasure.backups import BackupErasure
from assistant.erasure.service import ErasureService
from assistant.gateway.dispatcher import Dispatcher
from assistant.gateway.inbound import InboundHandler
from assistant.memory.service import MemoryService
from assistant.people.pairing import PairingRules, PairingService
from assistant.runtime.running_turns import RunningTurns
from assistant.runtime.sleep_scheduler import SleepLock
from assistant.sessions.reset import ResetContext, ResetStores, SessionResetter
from assistant.sessions.scheduler import ResetScheduler
from assistant.settings.settings import Settings
from assistant.wire.sleep import Sleep
from assistant.wire.stores import (
    Stores,
    home_begun_at,
    lateness_policy,
    memory_deps,
    memory_storage_info,
    reset_policies,
)
from assistant.wire.turns import Contexts
from sleep.cycle.rebuild import Reextraction

Clock = Callable[[], datetime]


def build_memory(settings: Settings, stores: Stores, lock: SleepLock, reextraction: Reextraction) -> MemoryService:
    return MemoryService(
        memory_deps(stores),
        partial(memory_storage_info, settings),
        is_asleep=lock.is_asleep,
        keep_awake=lock.keep_awake,
        reextract=reextraction.run,
    )


def build_agenda(
    settings: Settings, stores: Stores, wake: Callable[[], None], clock: Clock
) -> tuple[AgendaService, AgendaScheduler]:
    """`wake` is called when there is something to deliver or to answer."""
    agenda, lateness = settings.values.agenda, lateness_policy(settings)
    scheduler = AgendaScheduler(
        stores.jobs, lateness, settings.zone, wake, clock, longest_wait=settings.values.daemon.watch_seconds
    )
    config = AgendaConfig(settings.zone, agenda.catch_up, agenda.max_pending, lateness)
    return AgendaService(stores.jobs, config, scheduler.check_due), scheduler


def build_erasure_and_backups(
    settings: Settings, stores: Stores, lock: SleepLock, clock: Clock
) -> tuple[ErasureService, BackupScheduler]:
    """Neither works while the other does."""
    backup = settings.values.backup
    make_backup = partial(make_in_child, stores.backups, backup.workspace)
    erasure = ErasureService(
        stores.erasure, stores.memories, lock.is_asleep, BackupErasure(stores.backups, make_backup)
    )
    backups = BackupScheduler(
        stores.backups,
        make_backup,
        SleepSchedule(backup.at, settings.zone),
        backup.keep,
        home_begun_at=partial(home_begun_at, stores),
        is_erasing=erasure.is_running,
        clock=clock,
    )
    erasure.defer_while(backups.is_running)
    return erasure, backups


def build_pairing(settings: Settings, stores: Stores) -> PairingService:
    people = settings.values.people
    rules = PairingRules(people.unknown, people.pairing_minutes, people.pairing_pending, people.pairing_tries)
    return PairingService(stores.people, stores.pairings, stores.places, rules, settings.zone, TerminalBridge.name)


def build_inbound(
    settings: Settings,
    stores: Stores,
    commands: CommandRegistry,
    accept: Callable[[IncomingMessage], Awaitable[InboxReceipt]],
    dispatcher: Dispatcher,
    clock: Clock,
) -> InboundHandler:
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
        command_names=commands.names,
        run_command=run_command,
        dispatcher=dispatcher,
        answers_everything_in_rooms=settings.values.room.answers == "everything",
        clock=clock,
    )


def build_resets(
    settings: Settings,
    stores: Stores,
    contexts: Contexts,
    sleep: Sleep,
    lock: SleepLock,
    running: RunningTurns,
    dispatcher: Dispatcher,
    clock: Clock,
) -> ResetScheduler:
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
        continue_extraction=sleep.scheduler.start_extraction,
        hold_session=running.pause_session,
        block_sleep=lock.keep_awake,
        is_compacting=contexts.compaction.is_compacting,
        is_sleep_due=sleep.scheduler.is_night_due,
        pressure=contexts.meter.load_pressure_ratio,
        count_tokens=stores.counter.count_text,
        notify_next_turn=contexts.compaction.add_pending_notice,
        show_progress=dispatcher.show_notice,
        clock=clock,
        zone=settings.zone,
    )
    reset = settings.values.reset
    resetter = SessionResetter(
        reset_stores,
        context,
        handover_tokens=reset.handover_max_tokens,
        learn_for=timedelta(seconds=reset.learn_seconds),
    )
    return ResetScheduler(resetter, reset_stores, context, reset_policies(settings))
