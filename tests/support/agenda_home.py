"""A home with an agenda for tests: its stores, an alarm over them, and a clock that stands where a test puts it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from assistant.agenda.catch_up import LatenessPolicy, parse_quiet_hours
from assistant.agenda.scheduler import AgendaScheduler
from assistant.agenda.service import AgendaConfig, AgendaService
from assistant.core.jobs import CatchUpPolicy, DeliveryTarget, Job, JobKind, JobRequest
from assistant.core.records import OutboxItem
from assistant.store.script.jobs import Jobs
from tests.support.store_home import StoreHome, memory_backed_directory

BERLIN = ZoneInfo("Europe/Berlin")
MAIN = DeliveryTarget("main", "owner", "terminal", "main")
GUEST = DeliveryTarget("peer:kept:7", "peer:kept:7", "kept", "7")
NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)


@dataclass
class AgendaHome:
    """`now` is what the clock shows."""

    home: StoreHome
    quiet: str = ""
    catch_up: CatchUpPolicy = "once"
    most: int = 10_000
    now: datetime = NOW
    fired_count: int = 0
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        self.jobs = Jobs(self.home.db, self.home.conversation.appender)
        how = LatenessPolicy(timedelta(minutes=1), parse_quiet_hours(self.quiet, BERLIN))
        self.alarm = AgendaScheduler(self.jobs, how, BERLIN, self._fired, lambda: self.now, longest_wait=30)
        self.agenda = AgendaService(
            self.jobs, AgendaConfig(BERLIN, self.catch_up, self.most, how), self.alarm.check_due
        )

    def restart(self) -> None:
        self.home.restart()
        self.open()
        self.home.conversation.recover_after_crash(self.now)
        self.alarm.recover_after_crash(self.now)

    def _fired(self) -> None:
        self.fired_count += 1

    async def remind(
        self, text: str, when: str, *, repeat: str = "", place: DeliveryTarget = MAIN, key: str = ""
    ) -> Job:
        key = key or f"k{next(self.numbers)}"
        return await self.agenda.create_reminder(JobRequest(key, place, text, when, repeat), self.now)

    async def schedule(
        self, name: str, prompt: str, when: str, *, repeat: str = "", place: DeliveryTarget = MAIN
    ) -> Job:
        return await self.agenda.create_schedule(
            JobRequest(f"s{next(self.numbers)}", place, prompt, when, repeat, name), self.now
        )

    async def fire_at(self, when: datetime) -> int:
        """The clock shows this, and somebody looks."""
        self.now = when
        return await self.alarm.fire_due()

    async def fire_after(self, **by: float) -> int:
        return await self.fire_at(self.now + timedelta(**by))

    def pending_items(self, bridge: str = "terminal") -> list[OutboxItem]:
        return self.home.outbox.pending_items(bridge, limit=10_000)

    def pending_bodies(self, bridge: str = "terminal") -> list[str]:
        return [item.outgoing.body for item in self.pending_items(bridge)]

    def slot_states(self, scope: str = "owner", kind: JobKind | None = None) -> list[str]:
        """How slots ended, the oldest first."""
        return [slot.state for slot in self.jobs.ended_slots(scope, kind=kind, limit=100_000)[::-1]]


@contextmanager
def open_agenda_home(
    path: Path | None = None, *, quiet: str = "", catch_up: CatchUpPolicy = "once", most: int = 10_000
) -> Iterator[AgendaHome]:
    with memory_backed_directory() as folder:
        home = StoreHome(path or folder).open()
        try:
            yield AgendaHome(home, quiet, catch_up, most)
        finally:
            home.close()
