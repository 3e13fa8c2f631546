"""The clock of the daemon does not believe a wall clock that jumps, until it has stayed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from assistant.core.calendar import UNSET_CLOCK, since_boot
from assistant.service.clock import HOLD, ClockStep, SteadyClock
from tests.support.machine_clock import MachineClock

YEARS = timedelta(days=1096)
START = datetime(2026, 3, 11, 8, 0, tzinfo=UTC)


@pytest.fixture
def machine() -> MachineClock:
    return MachineClock(START)


@pytest.fixture
def clock(machine: MachineClock) -> SteadyClock:
    return SteadyClock(machine.wall, machine.elapsed)


@pytest.mark.parametrize("jump", [YEARS, -YEARS, timedelta(minutes=3), timedelta(hours=-1)])
def test_a_jump_that_comes_back_has_no_effect_and_is_told_once(
    machine: MachineClock, clock: SteadyClock, jump: timedelta
) -> None:
    machine.set_clock(jump)
    machine.run(timedelta(minutes=1))
    assert clock() == START + timedelta(minutes=1)
    now = START + timedelta(minutes=1)
    assert clock.held_step() == ClockStep("held", now, now + jump)
    machine.set_clock(-jump)
    assert clock() == now and clock.held_step() is None
    assert clock.take_ended() == [ClockStep("returned", now, now + jump)] and clock.take_ended() == []


@pytest.mark.parametrize("jump", [YEARS, -YEARS])
def test_a_jump_that_stays_is_believed_after_a_while(
    machine: MachineClock, clock: SteadyClock, jump: timedelta
) -> None:
    machine.set_clock(jump)
    assert clock() == START
    machine.run(HOLD)
    assert clock() == START + HOLD + jump
    assert clock.take_ended() == [ClockStep("accepted", START + HOLD, START + HOLD + jump)]


@pytest.mark.parametrize("end", [datetime.min, datetime.max])
def test_a_year_at_an_end_of_the_calendar_is_never_believed(
    machine: MachineClock, clock: SteadyClock, end: datetime
) -> None:
    machine.set_to(end.replace(tzinfo=UTC))
    for minutes in range(1, 9):
        machine.run(timedelta(minutes=1))
        assert clock() == START + timedelta(minutes=minutes)
    step = clock.held_step()
    assert step is not None and step.kind == "refused" and clock.take_ended() == []
    begun = SteadyClock(machine.wall, machine.elapsed)
    first = begun()
    machine.run(HOLD)
    assert begun() == first + HOLD and first == UNSET_CLOCK
    machine.set_to(START)
    begun()
    machine.run(HOLD)
    assert begun() == START + HOLD


def test_another_jump_is_held_anew(machine: MachineClock, clock: SteadyClock) -> None:
    machine.set_clock(YEARS)
    clock()
    machine.run(HOLD - timedelta(seconds=1))
    machine.set_clock(YEARS)
    machine.run(timedelta(seconds=2))
    assert clock() == START + HOLD + timedelta(seconds=1) and clock.take_ended() == []


def test_small_corrections_are_followed_at_once_and_add_up(machine: MachineClock, clock: SteadyClock) -> None:
    for _ in range(10):
        machine.set_clock(timedelta(seconds=100))
        assert clock() == machine.wall()
    assert clock.take_ended() == []


def test_a_laptop_that_slept_is_no_jump(machine: MachineClock, clock: SteadyClock) -> None:
    machine.run(timedelta(hours=9))
    assert clock() == START + timedelta(hours=9) and clock.take_ended() == []


def test_the_time_since_boot_goes_on() -> None:
    first = since_boot()
    assert timedelta(0) < first <= since_boot()
