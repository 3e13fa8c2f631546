"""In every time zone, at every change of its clocks from 2020 to 2040: what repeats at a time of day comes once for
each date, at that time by the clock or, where the clocks pass it over, right after; whenever it is asked what is next.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import cache
from itertools import islice, pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.agenda.recurrence import due_in_zone, first_due, next_due, next_due_after, parse_cron, parse_rrule
from assistant.agenda.time_phrases import parse_moment
from assistant.core.calendar import SleepSchedule, local_to_utc, next_time_of_day, utc_to_local
from assistant.core.jobs import CronSpec, DueSlot, RRuleSpec

_BEGIN, _END, _STEP = datetime(2020, 1, 1, tzinfo=UTC), datetime(2040, 12, 31, tzinfo=UTC), timedelta(days=7)
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)


@cache
def _zones() -> dict[ZoneInfo, list[datetime]]:
    """One zone of those whose clocks are the same all the time, with the moments from which they are changed."""
    samples = [_BEGIN + number * _STEP for number in range((_END - _BEGIN) // _STEP)]
    alike: dict[tuple[object, ...], ZoneInfo] = {}
    for name in sorted(available_timezones() - {"localtime"}):
        zone = ZoneInfo(name)
        alike.setdefault(tuple(zone.utcoffset(at.replace(tzinfo=None)) for at in samples), zone)
    return {zone: _changes_of(zone) for zone in alike.values()}


def _changes_of(zone: ZoneInfo) -> list[datetime]:
    samples = (_BEGIN + number * _STEP for number in range((_END - _BEGIN) // _STEP))
    return [_change(zone, at) for at in samples if _offset(zone, at) != _offset(zone, at + _STEP)]


def _offset(zone: tzinfo, at: datetime) -> timedelta | None:
    return at.astimezone(zone).utcoffset()


def _change(zone: tzinfo, before: datetime) -> datetime:
    after = before + _STEP
    while after - before > _MINUTE:
        middle = before + (after - before) // (2 * _MINUTE) * _MINUTE
        before, after = (middle, after) if _offset(zone, middle) == _offset(zone, before) else (before, middle)
    return after


@st.composite
def changes(draw: st.DrawFn) -> tuple[ZoneInfo, datetime]:
    """A zone, and a moment at which its clocks are changed; any moment where they never are."""
    zone, moments = draw(st.sampled_from(sorted(_zones().items(), key=lambda item: item[0].key)))
    return zone, draw(st.sampled_from(moments or [_BEGIN + timedelta(days=500)]))


MINUTES = st.integers(-200, 200)


def _spec(local: datetime, *, by_cron: bool) -> RRuleSpec | CronSpec:
    if by_cron:
        return parse_cron(f"{local.minute} {local.hour} * * *")
    return parse_rrule("FREQ=DAILY", local - 10 * _DAY)


@settings(max_examples=50, deadline=None)
@given(changes(), MINUTES, st.booleans(), st.lists(st.integers(0, 5 * 24 * 60), min_size=1, max_size=6))
def test_a_time_of_day_comes_once_for_each_date_at_its_time_whenever_it_is_asked_for(
    changed: tuple[ZoneInfo, datetime], minutes: int, by_cron: bool, asked: list[int]
) -> None:
    zone, at = changed
    wall = utc_to_local(at, zone) + minutes * _MINUTE
    spec, begin = _spec(wall, by_cron=by_cron), at - 3 * _DAY
    slots = [slot] if (slot := first_due(spec, zone, begin)) else []
    while len(slots) < 7 and (slot := next_due(spec, zone, slots[-1])) is not None:
        slots.append(slot)

    dates = [datetime.fromisoformat(slot.key).date() for slot in slots]
    assert dates == [dates[0] + number * _DAY for number in range(7)]
    for slot in slots:
        named, shown = datetime.fromisoformat(slot.key), utc_to_local(slot.at, zone)
        # Skipped in spring: the first moment after it, within the hours that any zone has skipped.
        assert (named.hour, named.minute) == (wall.hour, wall.minute)
        assert shown == named or (named < shown <= named + timedelta(hours=3) and _is_skipped(named, zone))
    assert all(first.at < second.at for first, second in pairwise(slots))
    for number in asked:
        moment = begin + number * _MINUTE
        coming = next((slot for slot in slots if slot.at > moment), None)
        if coming is not None:
            assert first_due(spec, zone, moment) == coming == next_due_after(spec, zone, slots[0], moment)


def _is_skipped(local: datetime, zone: ZoneInfo) -> bool:
    return local.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local


@settings(max_examples=20, deadline=None)
@given(changes(), MINUTES)
def test_there_is_one_night_and_one_brief_for_each_date_by_the_clock(
    changed: tuple[ZoneInfo, datetime], minutes: int
) -> None:
    zone, at = changed
    wall = utc_to_local(at, zone) + minutes * _MINUTE
    nights = SleepSchedule(f"{wall:%H:%M}", zone)
    slept: list[datetime] = []
    now, begin = at - 2 * _DAY, at - 4 * _DAY
    while now < at + 3 * _DAY:
        due = nights.find_due_night(slept[-1] if slept else None, begin, now)
        if due is not None:
            slept.append(now)
        coming = next_time_of_day(f"{wall:%H:%M}", zone, now)
        assert now < coming <= now + timedelta(hours=28)
        now += timedelta(minutes=20)
    gaps = [second - first for first, second in pairwise(slept[1:])]
    assert gaps and all(timedelta(hours=20) < gap < timedelta(hours=28) for gap in gaps)


@settings(max_examples=20, deadline=None)
@given(changes(), changes(), st.integers(0, 23), st.integers(0, 72), st.integers(0, 72))
def test_a_journey_from_any_zone_to_any_other_and_back_repeats_and_misses_no_date(
    left: tuple[ZoneInfo, datetime], arrived: tuple[ZoneInfo, datetime], hour: int, after: int, stays: int
) -> None:
    zone, at = left
    there = arrived[0]
    spec = parse_cron(f"30 {hour} * * *")
    due = first_due(spec, zone, at - 2 * _DAY)
    assert due is not None
    came: list[DueSlot] = []
    now = at - 2 * _DAY
    for place, until in ((zone, after), (there, after + stays), (zone, 200)):
        due = due_in_zone(due, place)
        while due.at <= at - 2 * _DAY + timedelta(hours=until):
            now = max(now, due.at)
            came.append(due)
            due = next_due(spec, place, due)
            assert due is not None
        now = at - 2 * _DAY + timedelta(hours=until)
    keys = [datetime.fromisoformat(slot.key) for slot in came]
    assert keys == list(islice((keys[0] + number * _DAY for number in range(99)), len(keys)))


@pytest.mark.parametrize("name", ["Europe/Oslo", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"])
def test_in_24_hours_is_a_moment_and_tomorrow_is_a_time_by_the_clock(name: str) -> None:
    """Said at noon of the days before both changes of a year."""
    zone = ZoneInfo(name)
    for at in _changes_of(zone)[-2:]:
        noon = datetime.combine(utc_to_local(at, zone).date() - _DAY, time(12, 0))
        said_at = local_to_utc(noon, zone)
        assert parse_moment("in 24 hours", zone, said_at).at == said_at + _DAY
        assert parse_moment("tomorrow at 12:00", zone, said_at).at == local_to_utc(noon + _DAY, zone)
