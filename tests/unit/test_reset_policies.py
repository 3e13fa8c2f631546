"""When conversations end by themselves, over a year of two zones with both changes of the clocks."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from assistant.core.sessions import GenerationActivity, SessionKind
from assistant.sessions.scheduler import DueReset, ResetPolicies, SessionResetPolicy, waits_for_sleep

ZONES = ("Europe/Oslo", "America/New_York")
KINDS: tuple[SessionKind, ...] = ("main", "thread", "guest", "room")
QUIET = timedelta(hours=4)


def policies(zone: str = "Europe/Oslo", at: str = "04:00", **of: SessionResetPolicy) -> ResetPolicies:
    return ResetPolicies({kind: of.get(kind, "manual") for kind in KINDS}, at, QUIET, ZoneInfo(zone))


class YearOfMessages:
    """A session that is looked at every half minute or so, and reset whenever that is due."""

    def __init__(self, home: ResetPolicies, begun: datetime) -> None:
        self.home = home
        self.spoken = GenerationActivity("main", 1, None, None)
        self.now = begun
        self.ended: list[DueReset] = []

    def say(self) -> None:
        self.spoken = GenerationActivity("main", self.spoken.generation, self.spoken.first_at or self.now, self.now)

    def look(self) -> None:
        due = self.home.due_reset(self.spoken, self.now)
        if due is not None:
            self.ended.append(due)
            self.spoken = GenerationActivity("main", self.spoken.generation + 1, None, None)

    def until(self, end: datetime, step: timedelta) -> None:
        while self.now < end:
            self.now = min(end, self.now + step)
            self.look()


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("at", ["04:00", "02:30", "01:30", "00:00"])
def test_a_year_of_daily_resets_has_one_for_each_date(zone: str, at: str) -> None:
    home = policies(zone, at, main="daily")
    year = YearOfMessages(home, datetime(2026, 1, 1, 12, tzinfo=ZoneInfo(zone)).astimezone(UTC))
    for _ in range(365):
        year.say()
        year.until(year.now + timedelta(hours=24), timedelta(minutes=10))
    dates = [due.slot.astimezone(home.zone).date() for due in year.ended]
    assert dates == [date(2026, 1, 2) + timedelta(days=days) for days in range(365)]
    moved = [due for due in year.ended if f"{due.slot.astimezone(home.zone):%H:%M}" != at]
    assert len(moved) == (1 if at == "02:30" else 0)
    assert not any(due.late for due in year.ended)


@pytest.mark.parametrize("zone", ZONES)
def test_a_year_of_idle_resets_has_one_for_each_silence(zone: str) -> None:
    home = policies(zone, main="idle")
    year = YearOfMessages(home, datetime(2026, 1, 1, 12, tzinfo=UTC))
    for _ in range(365):
        for _ in range(3):
            year.say()
            year.until(year.now + timedelta(hours=3), timedelta(minutes=30))
        year.until(year.now + timedelta(hours=15), timedelta(minutes=30))
    assert len(year.ended) == 365
    assert all(due.slot.hour == 22 and due.reason == "idle" for due in year.ended)


def test_a_doubled_hour_resets_once_and_a_missing_one_right_after() -> None:
    home = policies(at="02:30", main="daily")
    autumn = YearOfMessages(home, datetime(2026, 10, 24, 12, tzinfo=UTC))
    autumn.say()
    autumn.until(datetime(2026, 10, 25, 0, 45, tzinfo=UTC), timedelta(minutes=5))
    autumn.say()
    autumn.until(datetime(2026, 10, 25, 12, tzinfo=UTC), timedelta(minutes=5))
    assert [due.slot for due in autumn.ended] == [datetime(2026, 10, 25, 0, 30, tzinfo=UTC)]
    spring = YearOfMessages(home, datetime(2026, 3, 28, 12, tzinfo=UTC))
    spring.say()
    spring.until(datetime(2026, 3, 29, 12, tzinfo=UTC), timedelta(minutes=5))
    assert [due.slot for due in spring.ended] == [datetime(2026, 3, 29, 1, 30, tzinfo=UTC)]


def test_a_machine_that_was_off_for_a_week_resets_late_and_once() -> None:
    year = YearOfMessages(policies(main="daily"), datetime(2026, 6, 1, 12, tzinfo=UTC))
    year.say()
    year.now = datetime(2026, 6, 8, 7, tzinfo=UTC)
    year.until(datetime(2026, 6, 8, 23, tzinfo=UTC), timedelta(minutes=10))
    assert [(due.slot, due.late) for due in year.ended] == [(datetime(2026, 6, 8, 2, tzinfo=UTC), True)]


def test_what_is_first_said_after_the_hour_waits_for_the_next_one() -> None:
    year = YearOfMessages(policies(main="daily"), datetime(2026, 6, 1, 12, tzinfo=UTC))
    year.until(datetime(2026, 6, 3, 8, tzinfo=UTC), timedelta(hours=1))
    year.say()
    year.until(datetime(2026, 6, 3, 23, tzinfo=UTC), timedelta(minutes=10))
    assert year.ended == []


def test_a_clock_that_is_set_back_ends_nothing_twice() -> None:
    year = YearOfMessages(policies(main="daily"), datetime(2026, 6, 1, 12, tzinfo=UTC))
    year.say()
    year.until(datetime(2026, 6, 2, 3, tzinfo=UTC), timedelta(minutes=10))
    year.now = datetime(2026, 6, 2, 1, tzinfo=UTC)
    year.until(datetime(2026, 6, 2, 4, tzinfo=UTC), timedelta(minutes=10))
    assert len(year.ended) == 1
    idle = policies(main="idle")
    said = datetime(2026, 6, 1, 12, tzinfo=UTC)
    assert idle.due_reset(GenerationActivity("main", 1, said, said), said - timedelta(hours=5)) is None


def test_each_kind_of_session_has_a_policy_of_its_own() -> None:
    home = policies(main="daily", thread="idle", guest="idle")
    assert [home.policy_of_session(key) for key in ("main", "thread:trip", "branch:3", "peer:x:ann", "room:x:1")] == [
        "daily",
        "idle",
        "idle",
        "idle",
        "manual",
    ]
    assert home.has_automatic and not policies().has_automatic


def test_a_daily_reset_waits_for_the_sleep_of_its_night_but_not_all_day() -> None:
    slot = datetime(2026, 6, 2, 2, tzinfo=UTC)
    due = DueReset("main", 1, "daily", slot, False)
    assert waits_for_sleep(due, True, slot, slot + timedelta(minutes=119))
    assert not waits_for_sleep(due, True, slot, slot + timedelta(hours=2))
    assert not waits_for_sleep(due, False, slot, slot)
    assert not waits_for_sleep(DueReset("main", 1, "idle", slot, False), True, slot, slot)


def test_f31_a_daily_reset_that_did_not_happen_is_overdue() -> None:
    said, home = datetime(2026, 6, 1, 12, tzinfo=UTC), policies(main="daily")
    spoken = GenerationActivity("main", 1, said, said)
    assert home.overdue_reset(spoken, datetime(2026, 6, 2, 4, tzinfo=UTC)) is None
    assert home.overdue_reset(spoken, datetime(2026, 6, 2, 6, tzinfo=UTC)) is not None
    idle = policies(main="idle")
    assert idle.overdue_reset(spoken, datetime(2026, 6, 9, 6, tzinfo=UTC)) is None
