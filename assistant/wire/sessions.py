"""Resets and sessions of a home, put together: one part of the composition root (`assistant.wire.app`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta

from assistant.commands.sessions import SessionCommands
from assistant.core.calendar import SleepSchedule, find_first_message_time
from assistant.core.sessions import SessionKind
from assistant.runtime.sleep_scheduler import SleepLock
from assistant.sessions.listing import SessionReader
from assistant.sessions.reset import ResetContext, ResetStores, SessionResetter
from assistant.sessions.scheduler import ResetPolicies, ResetScheduler, SessionResetPolicy, find_reset_problems
from assistant.settings.settings import Settings
from assistant.wire.sleep import SleepSetup
from assistant.wire.stores import Stores, token_counter_for

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class SessionHooks:
    """What resets need of the running house: `holding` keeps turns of a session from beginning, `show` tells whoever
    looks on; on the bridge `terminal` a dialog keeps by itself which conversation it is in."""

    pause_session: Callable[[str], AbstractContextManager[None]]
    show: Callable[[str, str], None]
    terminal: str


@dataclass(frozen=True, slots=True)
class SessionSetup:
    """The resets of a home, and its commands about sessions."""

    resets: ResetScheduler
    commands: SessionCommands


def build_sessions(
    settings: Settings,
    stores: Stores,
    sleeping: SleepSetup,
    sleep_lock: SleepLock,
    live: SessionHooks,
    clock: Clock,
) -> SessionSetup:
    kept, policies = session_stores(stores), build_reset_policies(settings)
    counter = token_counter_for(settings, settings.values.model.name)
    nights = SleepSchedule(settings.values.sleep.at, settings.zone)

    def night_is_due(now: datetime) -> bool:
        if sleep_lock.is_asleep:
            return True
        since = find_first_message_time(stores.conversation.list_sessions())
        return nights.find_due_night(stores.journal.last_sleep_at(), since, now) is not None

    def read_on(session: str) -> None:
        sleeping.scheduler.start("phase", [session], "extract")

    async def pressure(session: str) -> float:
        await sleeping.context_meter.load_model_limits()
        return sleeping.context_window.pressure(session) or 0.0

    around = ResetContext(
        extract=sleeping.cycle.extract_session,
        continue_extraction=read_on,
        hold_session=live.pause_session,
        block_sleep=sleep_lock.keep_awake,
        is_compacting=sleeping.compaction.is_compacting,
        is_sleep_due=night_is_due,
        pressure=pressure,
        count_tokens=counter.count_text,
        notify_next_turn=sleeping.compaction.add_pending_notice,
        show_progress=live.show,
        clock=clock,
        zone=settings.zone,
    )
    wanted = settings.values.reset
    learn_for = timedelta(seconds=wanted.learn_seconds)
    resetting = SessionResetter(kept, around, handover_tokens=wanted.handover_max_tokens, learn_for=learn_for)
    resets = ResetScheduler(resetting, kept, around, policies)
    looking = build_session_reader(settings, stores)
    return SessionSetup(resets, SessionCommands(resets, looking, stores.conversation, stores.places, live.terminal))


def build_session_reader(settings: Settings, stores: Stores) -> SessionReader:
    """For command lines, beside whoever serves the home."""
    return SessionReader(
        stores.conversation, stores.generations, stores.resets, stores.archive, build_reset_policies(settings)
    )


def reset_problems(settings: Settings, stores: Stores, now: datetime) -> Iterator[str]:
    """For `status`, from the stores alone."""
    return find_reset_problems(
        stores.conversation, stores.generations, stores.resets, build_reset_policies(settings), now
    )


def session_stores(stores: Stores) -> ResetStores:
    return ResetStores(
        stores.conversation,
        stores.generations,
        stores.resets,
        stores.archive,
        stores.requests,
        stores.todos,
        stores.delegations,
    )


def build_reset_policies(settings: Settings) -> ResetPolicies:
    wanted = settings.values.reset
    kinds: dict[SessionKind, SessionResetPolicy] = {
        "main": wanted.main,
        "thread": wanted.thread,
        "guest": wanted.guest,
        "room": wanted.room,
    }
    return ResetPolicies(kinds, wanted.at, timedelta(minutes=wanted.idle_minutes), settings.zone)
