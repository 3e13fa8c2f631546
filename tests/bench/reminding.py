"""Reminders over ten thousand that wait: how long after its time one stands in the outbox, and what a look costs that
finds nothing, one, or a thousand that are due."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from assistant.agenda.catch_up import LatenessPolicy
from assistant.agenda.scheduler import AgendaScheduler
from assistant.core.calendar import local_slot_key, utc_to_local
from assistant.core.jobs import DeliveryTarget, DueSlot, NewJob, OneTimeSpec
from assistant.store.script.jobs import Jobs
from tests.bench.figures import Row
from tests.support.store_home import StoreHome

PENDING, TIMED, LOOKS = 10_000, 10, 50
MOST_SECONDS, MOST_LOOK = 1.0, 0.05
_ZONE = ZoneInfo("Europe/Berlin")
_PLACE = DeliveryTarget("main", "owner", "terminal", "main")
_APART = timedelta(milliseconds=300)
_YEAR = timedelta(days=365)


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory:
        home = StoreHome(Path(directory)).open()
        jobs = Jobs(home.db, home.conversation.appender)
        try:
            began = datetime.now(UTC)
            for number in range(PENDING):
                _remind(jobs, number, began + _YEAR + timedelta(seconds=number))
            yield from _punctuality(jobs)
            yield from _looks(jobs)
        finally:
            home.close()


def _remind(jobs: Jobs, number: int, at: datetime) -> None:
    due = DueSlot(at, local_slot_key(utc_to_local(at, _ZONE)))
    new = NewJob(f"n{number}", "reminder", _PLACE, f"thing {number}", OneTimeSpec(at), _ZONE.key, "once", due)
    jobs.add(new, 2 * PENDING, at - _YEAR)


def _alarm(jobs: Jobs, clock: Callable[[], datetime], fired: Callable[[], None] = lambda: None) -> AgendaScheduler:
    return AgendaScheduler(jobs, LatenessPolicy(timedelta(minutes=1)), _ZONE, fired, clock, longest_wait=30)


def _punctuality(jobs: Jobs) -> Iterator[Row]:
    delays = asyncio.run(_delays(jobs))
    yield Row(
        "reminders",
        PENDING,
        "from due time to the outbox, median / max",
        f"{1000 * statistics.median(delays):.0f} / {1000 * max(delays):.0f} ms",
        f"<= {MOST_SECONDS:.0f} s",
        max(delays) <= MOST_SECONDS,
    )


async def _delays(jobs: Jobs) -> list[float]:
    """Of reminders that come one after another, by the clock of this machine, from their time until they stand in the
    outbox."""
    now = datetime.now(UTC)
    due = [now + timedelta(milliseconds=500) + number * _APART for number in range(TIMED)]
    for number, at in enumerate(due):
        _remind(jobs, PENDING + number, at)
    told: list[datetime] = []
    done = asyncio.Event()

    def fired() -> None:
        told.append(datetime.now(UTC))
        if len(told) == TIMED:
            done.set()

    alarm = _alarm(jobs, lambda: datetime.now(UTC), fired)
    alarm.start()
    try:
        await done.wait()
    finally:
        await alarm.stop()
    return [(at - wanted).total_seconds() for wanted, at in zip(due, told, strict=True)]


def _looks(jobs: Jobs) -> Iterator[Row]:
    first = jobs.next_due_at()
    assert first is not None
    for many, what, target in ((0, "nothing is", MOST_LOOK), (1, "one is", MOST_LOOK), (1000, "a thousand are", None)):
        times = []
        for _ in range(LOOKS if many < 1000 else 3):
            first = first if not many else (jobs.next_due_at() or first)
            now = first + timedelta(seconds=many - 1)
            alarm = _alarm(jobs, lambda at=now: at)  # type: ignore[misc]
            began = time.perf_counter()
            ended = asyncio.run(alarm.fire_due())
            times.append(time.perf_counter() - began)
            assert ended == many
        yield Row(
            "reminders",
            PENDING,
            f"a look when {what} due, median / max",
            f"{1000 * statistics.median(times):.1f} / {1000 * max(times):.1f} ms",
            f"median <= {1000 * target:.0f} ms" if target else "",
            statistics.median(times) <= target if target else None,
        )
