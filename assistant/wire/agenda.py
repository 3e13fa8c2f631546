"""Reminders and schedules of a home, put together: one part of the composition root (`assistant.wire.app`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from assistant.agenda.catch_up import LatenessPolicy, parse_quiet_hours
from assistant.agenda.scheduler import AgendaScheduler
from assistant.agenda.service import AgendaConfig, AgendaService, find_agenda_problems
from assistant.commands.agenda import AgendaCommands
from assistant.settings.settings import Settings
from assistant.wire.stores import Stores


@dataclass(frozen=True, slots=True)
class AgendaSetup:
    """Who minds the agenda of a home, what makes it go off, and its commands."""

    agenda: AgendaService
    alarm: AgendaScheduler
    commands: AgendaCommands


def build_agenda(
    settings: Settings, stores: Stores, fired: Callable[[], None], clock: Callable[[], datetime]
) -> AgendaSetup:
    """`fired` is called when there is something to deliver or to answer."""
    wanted, zone = settings.values.agenda, settings.zone
    punctuality = build_punctuality(settings)
    longest_wait = settings.values.daemon.watch_seconds
    alarm = AgendaScheduler(stores.jobs, punctuality, zone, fired, clock, longest_wait=longest_wait)
    agenda = AgendaService(
        stores.jobs, AgendaConfig(zone, wanted.catch_up, wanted.max_pending, punctuality), alarm.check_due
    )
    return AgendaSetup(agenda, alarm, AgendaCommands(agenda, fired))


def build_punctuality(settings: Settings) -> LatenessPolicy:
    wanted = settings.values.agenda
    return LatenessPolicy(timedelta(seconds=wanted.late_seconds), parse_quiet_hours(wanted.quiet, settings.zone))


def agenda_problems(settings: Settings, stores: Stores, now: datetime) -> Iterator[str]:
    """For `status`, from the stores alone."""
    return find_agenda_problems(stores.jobs, build_punctuality(settings), settings.values.daemon.watch_seconds, now)
