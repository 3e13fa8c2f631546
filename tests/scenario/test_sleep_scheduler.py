"""Who sleeps when: nights on time and late, one sleep at a time, nobody while a sleep is taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assistant.core.calendar import SleepSchedule
from assistant.core.errors import StoreError, UsageError
from assistant.core.memories import SleepReport
from assistant.runtime.sleep_scheduler import NapTrigger, NightTrigger, SleepLock, SleepRequest, SleepScheduler
from tests.support.sleep_home import JournalHome, say_facts
from tests.support.store_home import NOW

AT = "03:30"
NIGHT = datetime(2026, 11, 21, 3, 30, tzinfo=UTC)


@dataclass
class SleeperSetup:
    """A sleeper over a home, with the time it is and what it slept. `gate`, when set, holds each sleep up; `fails` is
    raised by the next."""

    home: JournalHome
    now: datetime = NOW
    gate: asyncio.Event | None = None
    fails: Exception | None = None
    slept: list[SleepRequest] = field(default_factory=list)
    full: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """As a process that begins has it."""
        nights = SleepSchedule(AT, UTC)
        self.bedtime = NightTrigger(nights, self.home.conversation, self.home.journal)
        self.lock = SleepLock()
        naps = NapTrigger(self.home.conversation, 15, lambda session: self.full, lambda session: False)
        self.sleeper = SleepScheduler(self._tick, naps, self.bedtime, lambda: self.now, self.lock)

    async def look(self) -> list[str]:
        """The triggers of what begins now, slept to the end."""
        before = len(self.slept)
        self.ended.clear()
        self.sleeper.check_due()
        await self.woke_up()
        return [one.trigger for one in self.slept[before:]]

    async def woke_up(self) -> None:
        if self.sleeper.is_asleep():
            await self.ended.wait()
            await asyncio.sleep(0)

    async def _tick(self, wanted: SleepRequest, now: datetime) -> SleepReport:
        self.slept.append(wanted)
        self.ended.clear()
        try:
            if self.fails is not None:
                raise self.fails
            if self.gate is not None:
                await self.gate.wait()
            return await self.home.cycle().run(now, trigger=wanted.trigger, phase=wanted.phase)
        finally:
            self.ended.set()


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[SleeperSetup]:
    home = JournalHome(tmp_path).open()
    yield SleeperSetup(home)
    home.close()


# --------------------------------------------------------------------------------------------------------------- nights


async def test_a_night_is_slept_once_at_its_time(bed: SleeperSetup) -> None:
    say_facts(bed.home)
    assert await bed.look() == []
    bed.now = NIGHT - timedelta(seconds=1)
    assert await bed.look() == []
    bed.now = NIGHT + timedelta(seconds=20)
    assert await bed.look() == ["sleep"]
    bed.now = NIGHT + timedelta(hours=20)
    assert await bed.look() == []
    bed.now = NIGHT + timedelta(days=1, seconds=1)
    assert await bed.look() == ["sleep"]


async def test_a_night_that_was_missed_is_slept_late_and_once(bed: SleeperSetup) -> None:
    say_facts(bed.home)
    bed.now = NIGHT + timedelta(days=2, hours=6)
    assert await bed.look() == ["late"]
    bed.restart()
    bed.now += timedelta(hours=3)
    assert await bed.look() == []
    assert [cycle.trigger for cycle in bed.home.journal.list_cycles()] == ["late"]


async def test_a_nap_is_foreseen_while_a_conversation_that_is_full_is_not_quiet_for_long_enough(
    bed: SleeperSetup,
) -> None:
    say_facts(bed.home)
    last_at = max(info.last_at for info in bed.home.conversation.list_sessions() if info.last_at is not None)
    assert bed.sleeper.find_next_nap(last_at) is None
    bed.full = True
    assert bed.sleeper.find_next_nap(last_at) == last_at + timedelta(minutes=15)
    assert bed.sleeper.find_next_nap(last_at + timedelta(minutes=15)) is None


async def test_a_home_where_nothing_was_ever_said_does_not_sleep(bed: SleeperSetup) -> None:
    bed.now = NIGHT + timedelta(hours=6)
    assert await bed.look() == []


async def test_a_night_that_was_cut_off_counts_as_not_slept(bed: SleeperSetup) -> None:
    say_facts(bed.home)
    bed.home.journal.begin_cycle("sleep", NIGHT)
    bed.home.restart()
    bed.restart()
    bed.now = NIGHT + timedelta(hours=6)
    assert await bed.look() == ["late"]


async def test_naps_and_single_phases_are_no_nights_but_a_whole_sleep_by_hand_is(bed: SleeperSetup) -> None:
    say_facts(bed.home)
    bed.now = NIGHT + timedelta(hours=6)
    await bed.sleeper.start("nap")
    await bed.sleeper.start("phase", phase="extract")
    assert await bed.look() == ["late"]
    bed.now = NIGHT + timedelta(days=1, hours=6)
    await bed.sleeper.start("manual")
    assert await bed.look() == []


async def test_f32_a_night_that_fails_again_and_again_is_not_tried_all_day(bed: SleeperSetup) -> None:
    say_facts(bed.home)
    bed.fails = StoreError("The disk is full.")
    begun = []
    for _ in range(10):
        bed.now = bed.now.replace(day=21, hour=9) + timedelta(minutes=1)
        begun += await bed.look()
    assert begun == ["late"] * 3
    bed.fails = None
    bed.now = NIGHT + timedelta(days=1)
    assert await bed.look() == ["sleep"]


async def test_a_nap_that_runs_when_the_night_comes_does_not_replace_it(bed: SleeperSetup) -> None:
    say_facts(bed.home)
    bed.full, bed.gate, bed.now = True, asyncio.Event(), NIGHT - timedelta(minutes=1)
    bed.sleeper.check_due()
    await asyncio.sleep(0)
    bed.now = NIGHT
    bed.sleeper.check_due()
    bed.gate.set()
    await bed.woke_up()
    assert [one.trigger for one in bed.slept] == ["nap"]
    assert await bed.look() == ["sleep"]


# ----------------------------------------------------------------------------------------------------- one at a time


async def test_whoever_wants_a_whole_sleep_while_one_runs_gets_that_one(bed: SleeperSetup) -> None:
    say_facts(bed.home)
    bed.gate = asyncio.Event()
    night = bed.sleeper.start("sleep")
    assert bed.sleeper.start("manual") is night
    bed.gate.set()
    assert await night is not None and len(bed.slept) == 1


async def test_a_sleep_that_is_wanted_during_a_nap_or_a_phase_comes_after_it(bed: SleeperSetup) -> None:
    say_facts(bed.home)
    bed.gate = asyncio.Event()
    nap, phase, whole = (
        bed.sleeper.start("nap"),
        bed.sleeper.start("phase", phase="compact"),
        bed.sleeper.start("manual"),
    )
    await asyncio.sleep(0)
    assert [one.trigger for one in bed.slept] == ["nap"]
    bed.gate.set()
    reports = [await task for task in (nap, phase, whole)]
    assert [report.trigger for report in reports if report is not None] == ["nap", "phase", "manual"]
    assert [list(report.phases) for report in reports if report is not None] == [
        ["settle", "extract", "compact"],
        ["compact"],
        ["settle", "extract", "compact"],
    ]


async def test_what_leaves_the_view_while_its_session_is_read_is_read_behind_that_and_once(bed: SleeperSetup) -> None:
    say_facts(bed.home)
    bed.gate = asyncio.Event()
    running = bed.sleeper.start_extraction("main")
    await asyncio.sleep(0)
    behind = bed.sleeper.start_extraction("main")
    assert bed.sleeper.start_extraction("main") is behind is not running
    bed.gate.set()
    await behind
    assert [one.phase for one in bed.slept] == ["extract", "extract"] and running.done()


async def test_nobody_falls_asleep_while_a_sleep_is_taken_back_and_none_is_while_somebody_sleeps(
    bed: SleeperSetup,
) -> None:
    say_facts(bed.home)
    bed.now = NIGHT
    async with bed.lock.keep_awake():
        bed.sleeper.check_due()
        waiting = bed.sleeper.start("manual")
        await asyncio.sleep(0)
        assert bed.slept == []
    bed.gate = asyncio.Event()
    with pytest.raises(UsageError, match="under way"):
        async with bed.lock.keep_awake():
            raise AssertionError("awake beside a sleep")
    bed.gate.set()
    assert (await waiting) is not None


async def test_to_stop_ends_what_runs_and_what_waits(bed: SleeperSetup) -> None:
    say_facts(bed.home)
    bed.gate = asyncio.Event()
    tasks = [bed.sleeper.start("nap"), bed.sleeper.start("manual")]
    await asyncio.sleep(0)
    await bed.sleeper.stop()
    assert all(task.cancelled() for task in tasks) and not bed.sleeper.is_asleep()
