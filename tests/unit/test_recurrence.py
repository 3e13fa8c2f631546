"""When jobs are due, over a year with both changes of the clocks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.agenda.recurrence import (
    _move_towards,
    describe_recurrence,
    first_due,
    next_due,
    next_due_after,
    parse_cron,
    parse_rrule,
)
from assistant.core.calendar import local_to_utc, utc_to_local
from assistant.core.errors import UsageError
from assistant.core.jobs import DueSlot, OneTimeSpec, ScheduleSpec

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata")
BERLIN = ZoneInfo("Europe/Berlin")
NEW_YEAR = datetime(2025, 12, 31, 12, tzinfo=UTC)


def dues(spec: ScheduleSpec, zone: ZoneInfo, after: datetime, until: datetime) -> Iterator[DueSlot]:
    due = first_due(spec, zone, after)
    while due is not None and due.at < until:
        yield due
        due = next_due(spec, zone, due)


def local(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("hour", ["02:30", "03:00", "08:00", "00:00"])
def test_f37_every_day_of_a_year_has_one_slot_whatever_the_clocks_do(zone: str, hour: str) -> None:
    home = ZoneInfo(zone)
    start = datetime.combine(date(2026, 1, 1), time.fromisoformat(hour))
    for spec in (parse_rrule("FREQ=DAILY", start), parse_cron(f"{start.minute} {start.hour} * * *")):
        before, until = local("2025-12-31T23:59"), local("2027-01-01T00:00")
        slots = list(dues(spec, home, local_to_utc(before, home), local_to_utc(until, home)))
        assert [slot.key for slot in slots] == [
            (start + timedelta(days=day)).isoformat(timespec="minutes") for day in range(365)
        ]
        assert all(one.at < other.at for one, other in pairwise(slots))
        shown = {utc_to_local(slot.at, home).isoformat(timespec="minutes") for slot in slots}
        missing = {slot.key for slot in slots} - shown
        assert missing <= {f"2026-03-29T{hour}", f"2026-03-08T{hour}"}


def test_f37_a_time_that_spring_leaves_out_comes_right_after_the_gap() -> None:
    daily = parse_rrule("FREQ=DAILY", local("2026-03-28T02:30"))
    slots = list(dues(daily, BERLIN, NEW_YEAR, datetime(2026, 3, 31, tzinfo=UTC)))
    assert [slot.at for slot in slots[:2]] == [
        datetime(2026, 3, 28, 1, 30, tzinfo=UTC),
        datetime(2026, 3, 29, 1, 0, tzinfo=UTC),
    ]
    assert slots[1].key == "2026-03-29T02:30"


def test_f37_the_doubled_autumn_hour_has_its_slots_once() -> None:
    for spec in (parse_rrule("FREQ=MINUTELY;INTERVAL=30", local("2026-10-25T00:00")), parse_cron("*/30 * * * *")):
        slots = list(dues(spec, BERLIN, datetime(2026, 10, 24, 22, tzinfo=UTC), datetime(2026, 10, 25, 3, tzinfo=UTC)))
        keys = [slot.key[11:] for slot in slots]
        assert len(set(keys)) == len(keys)
        assert keys[-3:] == ["02:30", "03:00", "03:30"]
        assert next(slot.at for slot in slots if slot.key[11:] == "02:30") == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


def test_two_local_times_that_are_one_moment_are_one_slot() -> None:
    hourly = parse_rrule("FREQ=HOURLY", local("2026-03-29T00:00"))
    slots = list(dues(hourly, BERLIN, NEW_YEAR, datetime(2026, 3, 29, 4, tzinfo=UTC)))
    assert [slot.key[11:] for slot in slots] == ["00:00", "01:00", "02:00", "04:00", "05:00"]


_RULES = [
    "FREQ=DAILY",
    "FREQ=WEEKLY;BYDAY=MO,TH",
    "FREQ=WEEKLY;INTERVAL=3",
    "FREQ=MONTHLY;BYMONTHDAY=-1",
    "FREQ=MONTHLY",
    "FREQ=HOURLY;INTERVAL=5",
    "FREQ=DAILY;BYHOUR=8,20;BYMINUTE=0",
    "FREQ=YEARLY",
    "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
]


@given(
    rule=st.sampled_from(_RULES),
    zone=st.sampled_from(ZONES),
    start=st.datetimes(datetime.fromisoformat("2026-01-01"), datetime.fromisoformat("2026-12-31")),
)
def test_a_rule_goes_on_from_any_of_its_times_as_from_its_first(rule: str, zone: str, start: datetime) -> None:
    home, spec = ZoneInfo(zone), parse_rrule(rule, start)
    first = first_due(spec, home, local_to_utc(spec.start, home) - timedelta(days=1))
    assert first is not None
    slots = [first]
    for _ in range(12):
        due = next_due(spec, home, slots[-1])
        assert due is not None
        assert due.at > slots[-1].at
        slots.append(due)
    for slot, following in pairwise(slots):
        assert first_due(spec, home, slot.at) == following
        assert next_due_after(spec, home, first, slot.at) == following


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=MINUTELY;INTERVAL=7",
        "FREQ=HOURLY;INTERVAL=5;BYDAY=MO,SA",
        "FREQ=DAILY;INTERVAL=3;BYHOUR=8,20",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,WE",
        "FREQ=WEEKLY;INTERVAL=3;WKST=SU;BYDAY=SU,SA",
        "FREQ=MONTHLY;BYDAY=2TU",
    ],
)
def test_a_rule_that_nothing_has_run_for_long_goes_on_as_if_it_had(rule: str) -> None:
    """Found without going through every time in between, of which a year has half a million."""
    spec = parse_rrule(rule, local("2025-12-27T10:15"))
    after = NEW_YEAR + timedelta(days=60)
    slots = [*dues(spec, BERLIN, NEW_YEAR, after + timedelta(days=40))]
    assert next_due_after(spec, BERLIN, slots[0], after) == next(slot for slot in slots if slot.at > after)
    anchor = _move_towards(local("2026-12-27T10:15"), rule, local("2025-12-27T10:15"))
    assert rule.startswith("FREQ=MONTHLY") or anchor > local("2026-12-01T00:00")


def test_a_rule_that_counts_ends_after_so_many() -> None:
    spec = parse_rrule("FREQ=WEEKLY;COUNT=3", local("2026-11-23T09:00"))
    assert "COUNT" not in spec.rrule
    assert len(list(dues(spec, BERLIN, NEW_YEAR, datetime(2030, 1, 1, tzinfo=UTC)))) == 3


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("FREQ=DAILY", "every day"),
        ("FREQ=HOURLY;INTERVAL=2", "every 2 hours"),
        ("FREQ=WEEKLY;BYDAY=MO", "every Monday"),
        ("FREQ=WEEKLY;BYDAY=MO,TU,TH", "every Monday, Tuesday and Thursday"),
        ("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "every weekday"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", "every 2 weeks on Tuesday"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,15,22", "every month on the 1st, the 15th and the 22nd"),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", "every month on the last day"),
        ("FREQ=MONTHLY;BYDAY=1MO", "every month on the first Monday"),
        ("FREQ=YEARLY", "every year on 3 May"),
        ("FREQ=WEEKLY;COUNT=3", "every week until 2026-05-17"),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"),
        ("FREQ=MONTHLY;BYDAY=MO", "FREQ=MONTHLY;BYDAY=MO"),
        ("FREQ=MONTHLY;BYMONTHDAY=-3", "FREQ=MONTHLY;BYMONTHDAY=-3"),
        ("FREQ=DAILY;BYHOUR=8,20;BYMINUTE=0", "FREQ=DAILY;BYHOUR=8,20;BYMINUTE=0"),
    ],
)
def test_how_often_it_repeats_is_said_in_words(rule: str, words: str) -> None:
    assert describe_recurrence(parse_rrule(rule, local("2026-05-03T09:00"))) == words


def test_once_is_due_once() -> None:
    at = datetime(2026, 11, 21, 9, tzinfo=UTC)
    due = first_due(OneTimeSpec(at), BERLIN, NEW_YEAR)
    assert due == DueSlot(at, "2026-11-21T10:00")
    assert next_due(OneTimeSpec(at), BERLIN, due) is None
    assert first_due(OneTimeSpec(at), BERLIN, at) is None


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=SECONDLY",
        "FREQ=DAILY;BYSECOND=5",
        "DTSTART=20260101",
        "FREQ=DAILY;FREQ=WEEKLY",
        "",
        "hello",
        "FREQ=DAILY;COUNT=100000",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MINUTELY;BYMONTH=2",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;INTERVAL=7;BYDAY=TU",
        "FREQ=WEEKLY;BYDAY=XX",
        "FREQ=DAILY;BYMONTH=13",
        "FREQ=DAILY;UNTIL=x",
    ],
)
def test_a_rule_that_never_comes_or_has_no_meaning_is_refused(rule: str) -> None:
    with pytest.raises(UsageError, match="Nothing was set"):
        parse_rrule(rule, local("2026-11-23T09:00"))


@pytest.mark.parametrize("line", ["* * * *", "60 * * * *", "0 0 30 2 *", "* * * * * *", "a b c d e", ""])
def test_a_line_that_cron_would_not_take_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match="Nothing was set"):
        parse_cron(line)
