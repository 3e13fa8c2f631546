"""Which night is due and which was missed, by the clocks of the home's zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from assistant.core.calendar import SleepSchedule, is_late_start

OSLO = ZoneInfo("Europe/Oslo")
NIGHTS = SleepSchedule("03:30", OSLO)
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def at(month: int, day: int, hour: int, minute: int = 0, *, fold: int = 0) -> datetime:
    """A moment as the clocks of Oslo show it."""
    return datetime(2026, month, day, hour, minute, tzinfo=OSLO, fold=fold).astimezone(UTC)


@pytest.mark.parametrize(
    ("slept", "now", "due"),
    [
        (at(6, 10, 3, 30), at(6, 10, 23), None),
        (at(6, 10, 3, 30), at(6, 11, 3, 29), None),
        (at(6, 10, 3, 30), at(6, 11, 3, 30), at(6, 11, 3, 30)),
        (at(6, 10, 3, 31), at(6, 14, 3, 29), at(6, 13, 3, 30)),
        (at(6, 11, 3, 30), at(6, 11, 3, 30), None),
        # By hand shortly before: the night is slept all the same.
        (at(6, 11, 3), at(6, 11, 3, 30), at(6, 11, 3, 30)),
    ],
)
def test_a_night_is_due_from_its_time_on_until_it_was_slept(
    slept: datetime, now: datetime, due: datetime | None
) -> None:
    assert NIGHTS.find_due_night(slept, BEGUN, now) == due


def test_a_home_that_was_never_talked_in_has_no_nights_and_a_new_one_none_before_it_was_begun() -> None:
    assert NIGHTS.find_due_night(None, None, at(6, 11, 12)) is None
    assert NIGHTS.find_due_night(None, at(6, 11, 9), at(6, 11, 12)) is None
    assert NIGHTS.find_due_night(None, at(6, 11, 2), at(6, 11, 12)) == at(6, 11, 3, 30)
    assert NIGHTS.find_missed_night(None, None, at(6, 11, 12)) is None
    assert SleepSchedule("", OSLO).find_due_night(BEGUN, BEGUN, at(6, 11, 12)) is None


@pytest.mark.parametrize(
    ("slept", "now", "next_at"),
    [
        (at(6, 10, 3, 30), at(6, 10, 23), at(6, 11, 3, 30)),
        (at(6, 11, 3, 30), at(6, 11, 3, 30), at(6, 12, 3, 30)),
        # It is due, and starts when the daemon does.
        (at(6, 9, 3, 30), at(6, 11, 12), at(6, 11, 3, 30)),
        (None, at(6, 11, 12), at(6, 11, 3, 30)),
    ],
)
def test_the_next_night_is_the_one_that_is_due_or_else_the_one_that_comes(
    slept: datetime | None, now: datetime, next_at: datetime
) -> None:
    assert NIGHTS.find_next_night(slept, BEGUN, now) == next_at
    assert NIGHTS.find_next_night(None, None, now) == min(n for n in (at(6, 11, 3, 30), at(6, 12, 3, 30)) if n > now)
    assert SleepSchedule("", OSLO).find_next_night(slept, BEGUN, now) is None


def test_an_hour_that_comes_twice_has_one_night() -> None:
    """On 25 October 2026 the clocks of Oslo show the time from two to three twice."""
    nights = SleepSchedule("02:30", OSLO)
    first, second = at(10, 25, 2, 30), at(10, 25, 2, 30, fold=1)
    assert second - first == timedelta(hours=1)
    assert nights.find_due_night(at(10, 24, 2, 30), BEGUN, first) == first
    assert nights.find_due_night(first, BEGUN, second) is None
    assert nights.find_due_night(first, BEGUN, at(10, 26, 2, 30)) == at(10, 26, 2, 30)


def test_an_hour_that_is_left_out_has_its_night_too() -> None:
    """On 29 March 2026 they show no time from two to three."""
    nights = SleepSchedule("02:30", OSLO)
    slept, due = at(3, 28, 2, 30), at(3, 29, 3, 30)
    assert nights.find_due_night(slept, BEGUN, due - timedelta(minutes=1)) is None
    assert nights.find_due_night(slept, BEGUN, due) == due == slept + timedelta(days=1)
    assert nights.find_due_night(due, BEGUN, at(3, 30, 2, 29)) is None


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Kathmandu", "UTC"])
def test_every_zone_has_one_night_a_day(zone: str) -> None:
    nights, now, slept = SleepSchedule("23:59", ZoneInfo(zone)), datetime(2026, 3, 1, tzinfo=UTC), BEGUN
    due = set()
    for _ in range(10 * 24):
        now += timedelta(hours=1)
        found = nights.find_due_night(slept, BEGUN, now)
        if found is not None:
            due.add(found)
            slept = now
    # The first is the one that was missed since the year began.
    assert len(due) == 11
    assert all(found.astimezone(ZoneInfo(zone)).strftime("%H:%M") == "23:59" for found in due)


def test_a_night_is_late_after_a_while_and_missed_after_a_day() -> None:
    slot = at(6, 11, 3, 30)
    assert not is_late_start(slot, slot + timedelta(minutes=10))
    assert is_late_start(slot, slot + timedelta(minutes=11))
    slept = at(6, 10, 3, 30)
    assert NIGHTS.find_missed_night(slept, BEGUN, slot + timedelta(hours=24)) is None
    assert NIGHTS.find_missed_night(slept, BEGUN, slot + timedelta(hours=25)) == slot
    assert NIGHTS.find_missed_night(slept, BEGUN, slot + timedelta(days=9)) == slot
    assert NIGHTS.find_missed_night(slot, BEGUN, slot + timedelta(hours=25)) is None


def test_what_a_wrong_clock_dated_in_the_future_keeps_no_night_from_coming() -> None:
    slot = at(6, 11, 3, 30)
    wrong, now = slot + timedelta(days=900), slot + timedelta(hours=2)
    assert NIGHTS.find_due_night(wrong, BEGUN, now) == slot == NIGHTS.find_due_night(None, wrong, now)
    assert NIGHTS.find_due_night(now, wrong, now + timedelta(hours=1)) is None
    assert NIGHTS.find_missed_night(wrong, BEGUN, now) == NIGHTS.find_missed_night(None, BEGUN, now) is not None
    # A clock that was put back by an hour brings no second night.
    assert NIGHTS.find_due_night(slot + timedelta(hours=1), BEGUN, slot + timedelta(minutes=1)) is None
