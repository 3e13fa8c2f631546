"""Caps by a wall clock that jumps: no second budget, and none that is used up for years."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.agenda.clock_changes import ClockChanges
from assistant.core.errors import BudgetExceeded
from assistant.core.messages import Usage
from assistant.core.model_api import CallPurpose, ModelCall
from assistant.core.notices import Notice
from assistant.core.permissions import Permissions, RoleGrant
from assistant.core.records import IncomingMessage
from assistant.service.clock import HOLD, SteadyClock
from assistant.settings.sections import BudgetSettings
from assistant.spending.notices import render_notice
from assistant.store.script.clock_steps import ClockSteps
from assistant.store.script.ledger import Ledger
from assistant.store.script.spending_periods import SpendingCarrier
from tests.support.machine_clock import MachineClock
from tests.support.store_home import StoreHome, memory_backed_directory

OSLO = ZoneInfo("Europe/Oslo")
START = datetime(2026, 3, 11, 8, 30, tzinfo=UTC)
DAY, YEARS = timedelta(days=1), timedelta(days=3 * 365)
GUEST = "guest:telegram:7"


class Spender:
    """Spends a dollar a call, on a machine whose clock can be set."""

    def __init__(self, home: StoreHome, machine: MachineClock, daily: float = 0, monthly: float = 0) -> None:
        self.machine = machine
        self._home, self._db = home, home.db
        budget = BudgetSettings(
            daily_usd=daily,
            monthly_usd=monthly,
            daily_tokens=0,
            monthly_tokens=0,
            background_share=0.5,
            runaway_calls=5,
        )
        permissions = Permissions({"guest": RoleGrant(frozenset(), frozenset(), False, 0.5)})
        self.ledger = Ledger(home.db, budget, OSLO, render_notice, permissions)
        self.notices: list[Notice] = []
        self.start()

    def start(self) -> None:
        """The process starts, perhaps again."""
        self.clock = SteadyClock(self.machine.wall, self.machine.elapsed)
        spending = SpendingCarrier(self._db, OSLO)
        self._changes = ClockChanges(self.clock, ClockSteps(self._db), spending, OSLO, self.notices.append)
        self._changes.recover_after_crash(self.clock())

    def set_clock(self, by: timedelta) -> None:
        """It stays there until it is believed."""
        self.machine.set_clock(by)
        self._changes.check()
        self.machine.run(HOLD)
        self._changes.check()

    def hear(self) -> None:
        """Something is stored, by which a start knows how late it was."""
        message = IncomingMessage(
            "terminal", str(self.machine.elapsed()), "main", "owner", "me", "owner", "hello", target="tty"
        )
        self._home.conversation.accept(message, self.clock())
        self.machine.run(timedelta(seconds=1))

    def spend(self, purpose: CallPurpose = "chat", session: str = "main") -> bool:
        now = self.clock()
        call = ModelCall(purpose, "anthropic", "m", 100, 0, 1.0, session=session)
        try:
            reserved = self.ledger.reserve(call, now)
        except BudgetExceeded:
            return False
        self.ledger.settle_reservation(reserved, Usage(90, 10, cost_usd=1.0), now)
        return True

    def spend_all(self) -> int:
        """Spend until a call is refused, and return how many were not."""
        return next(count for count in range(100) if not self.spend())


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path).open()
    yield home
    home.close()


@pytest.mark.parametrize("away", [YEARS, DAY, -DAY, -40 * DAY])
@pytest.mark.parametrize("cap", ["daily", "monthly"])
def test_a_clock_that_is_set_and_set_right_again_opens_no_second_budget(
    home: StoreHome, away: timedelta, cap: str
) -> None:
    spender = Spender(home, MachineClock(START), **{cap: 5.0})
    assert [spender.spend(), spender.spend()] == [True, True]
    spender.set_clock(away)
    assert spender.spend()
    spender.set_clock(-away)
    assert spender.spend_all() == 2
    for _ in range(2):
        spender.set_clock(away)
        assert not spender.spend()
        spender.set_clock(-away)
        assert not spender.spend()


@pytest.mark.parametrize("away", [YEARS, DAY, -DAY])
def test_a_budget_used_up_by_a_wrong_clock_is_whole_again_two_days_later(home: StoreHome, away: timedelta) -> None:
    spender = Spender(home, MachineClock(START), daily=3.0)
    spender.set_clock(away)
    assert spender.spend_all() == 3
    spender.machine.run(2 * DAY)
    assert spender.spend_all() == 3
    spender.set_clock(-away)
    assert not spender.spend()
    # One that was ahead by a day has spent in the next one.
    spender.machine.run(2 * DAY)
    assert spender.spend_all() == 3


def test_a_clock_that_was_ahead_since_before_a_start_gives_back_what_it_had_spent(home: StoreHome) -> None:
    spender = Spender(home, MachineClock(START), daily=3.0, monthly=4.0)
    spender.hear()
    assert spender.spend()
    spender.machine.set_clock(YEARS)
    spender.start()
    spender.hear()
    assert spender.spend()
    spender.machine.set_clock(-YEARS)
    spender.start()
    assert spender.ledger.budget_status(spender.clock()).day.usd == 2
    spender.start()
    assert (spender.spend_all(), [notice.kind.name for notice in spender.notices]) == (1, ["CLOCK_BACK"])


def test_days_in_which_nothing_ran_carry_nothing(home: StoreHome) -> None:
    spender = Spender(home, MachineClock(START), daily=3.0)
    spender.hear()
    assert spender.spend_all() == 3
    spender.machine.run(5 * DAY)
    spender.start()
    assert spender.spend_all() == 3


def test_parts_of_a_budget_stay_used_when_the_clock_is_set(home: StoreHome) -> None:
    spender = Spender(home, MachineClock(START), daily=4.0)
    assert [spender.spend("extraction") for _ in range(3)] == [True, True, False]
    assert spender.spend(session=GUEST)
    spender.set_clock(YEARS)
    assert not spender.spend("extraction")
    spender.set_clock(-YEARS)
    assert not spender.spend("extraction")
    assert (spender.spend(session=GUEST), spender.spend()) == (True, False)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.one_of(st.integers(-400, 400).map(timedelta), st.none()), min_size=1, max_size=20))
def test_i9_no_jumps_of_the_clock_within_a_day_let_more_be_spent_than_the_cap(steps: list[timedelta | None]) -> None:
    with memory_backed_directory() as directory:
        home = StoreHome(directory).open()
        spender = Spender(home, MachineClock(START), daily=3.0, monthly=5.0)
        spent = 0
        for step in steps:
            if step is None:
                spent += spender.spend()
            else:
                spender.set_clock(step)
        home.close()
    assert spent <= 3
