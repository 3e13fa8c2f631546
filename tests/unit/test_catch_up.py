"""What becomes of slots that are due (F37): pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from assistant.agenda.catch_up import (
    MAX_SEPARATE_REMINDERS,
    NOTE_CAUGHT_UP,
    NOTE_FOLDED,
    NOTE_HELD,
    NOTE_SKIPPED,
    LatenessPolicy,
    build_firing,
    end_due_slots,
    parse_quiet_hours,
)
from assistant.agenda.recurrence import first_due, parse_cron, parse_rrule
from assistant.core.jobs import CatchUpPolicy, DeliveryTarget, Job, OneTimeSpec, ScheduleSpec
from assistant.core.text import strip_control_characters

BERLIN = ZoneInfo("Europe/Berlin")
PLACE = DeliveryTarget("main", "owner", "terminal", "main")
LATE = timedelta(minutes=1)
ALWAYS = LatenessPolicy(LATE)
NIGHTS = LatenessPolicy(LATE, parse_quiet_hours("22:00-07:00", BERLIN))
MADE = datetime(2026, 11, 16, 5, tzinfo=UTC)


def job(spec: ScheduleSpec, catch_up: CatchUpPolicy = "once", number: int = 1) -> Job:
    due = first_due(spec, BERLIN, MADE)
    return Job(number, "reminder", "", PLACE, "stretch", spec, "Europe/Berlin", catch_up, "active", due, MADE)


def berlin(day: int, clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-{day:02}T{clock}").replace(tzinfo=BERLIN).astimezone(UTC)


DAILY = parse_cron("0 8 * * *")
HOURLY = parse_cron("0 * * * *")


def ended(of: Job, now: datetime, how: LatenessPolicy = ALWAYS) -> list[tuple[str, str, bool]]:
    return [(one.due.key[8:], one.state, one.notifies) for one in end_due_slots(of, now, how, 1000)[0]]


def test_within_a_minute_it_ran_and_after_that_it_is_late() -> None:
    once = job(OneTimeSpec(berlin(20, "09:00")))
    assert ended(once, berlin(20, "08:59:59")) == []
    assert ended(once, berlin(20, "09:00")) == [("20T09:00", "ran", True)]
    assert ended(once, berlin(20, "09:01")) == [("20T09:00", "ran", True)]
    (late,) = end_due_slots(once, berlin(20, "12:00"), ALWAYS, 9)[0]
    assert (late.state, late.note) == ("late", "3 hours late")


@pytest.mark.parametrize(
    ("catch_up", "wanted"),
    [
        ("once", [("16T08:00", "missed", False), ("17T08:00", "missed", False), ("18T08:00", "late", True)]),
        ("all", [("16T08:00", "late", True), ("17T08:00", "late", True), ("18T08:00", "late", True)]),
        ("skip", [("16T08:00", "missed", False), ("17T08:00", "missed", False), ("18T08:00", "missed", False)]),
    ],
)
def test_f37_what_passed_while_nobody_was_there_follows_the_policy(
    catch_up: CatchUpPolicy, wanted: list[tuple[str, str, bool]]
) -> None:
    of = job(DAILY, catch_up)
    assert ended(of, berlin(18, "12:00")) == wanted
    slots, following = end_due_slots(of, berlin(18, "12:00"), ALWAYS, 1000)
    assert following is not None
    assert following.key == "2026-11-19T08:00"
    assert {one.note for one in slots if one.state == "missed"} <= {NOTE_CAUGHT_UP, NOTE_SKIPPED}


def test_f37_what_is_on_time_runs_whatever_was_missed_before() -> None:
    assert ended(job(DAILY, "skip"), berlin(18, "08:00:30"))[-1] == ("18T08:00", "ran", True)


def test_slots_end_the_same_in_small_batches() -> None:
    whole, last = end_due_slots(job(HOURLY), berlin(18, "12:30"), ALWAYS, 1000)
    of, parts = job(HOURLY), []
    while batch := end_due_slots(of, berlin(18, "12:30"), ALWAYS, 3):
        slots, due = batch
        if not slots:
            break
        parts += slots
        of = replace(of, due=due)
    assert (parts, of.due) == (whole, last)


YEAR = timedelta(days=365)


@pytest.mark.parametrize(
    ("spec", "last"),
    [
        (parse_rrule("FREQ=MINUTELY", MADE.replace(tzinfo=None)), "2027-11-16T06:00"),
        (parse_rrule("FREQ=MINUTELY;UNTIL=20270101T120000", MADE.replace(tzinfo=None)), "2027-01-01T12:00"),
        (parse_cron("* * * * *"), "2027-11-16T06:00"),
        (parse_cron("*/5 9 * * *"), "2027-11-15T09:55"),
    ],
)
@pytest.mark.parametrize("catch_up", ["once", "all", "skip"])
def test_after_a_year_of_missed_minutes_the_first_stands_for_all_but_the_last(
    spec: ScheduleSpec, last: str, catch_up: CatchUpPolicy
) -> None:
    of = job(spec, catch_up)
    slots, following = end_due_slots(of, MADE + YEAR, ALWAYS, 500)
    assert following is None or following.at > MADE + YEAR
    first, second, newest = slots[0], slots[1], slots[-1]
    assert (first.due, first.state, first.notifies) == (of.due, "missed", False)
    assert second.due.key in first.note and 10 < len(slots) < 450
    assert newest.due.key == last and newest.notifies is (catch_up != "skip" or newest.state == "ran")


def test_days_of_years_end_one_by_one() -> None:
    assert len(end_due_slots(job(DAILY), MADE + 3 * YEAR, ALWAYS, 9_999)[0]) == 3 * 365


def test_f37_what_falls_into_quiet_hours_waits_until_they_are_over_and_is_late_not_missed() -> None:
    night = job(OneTimeSpec(berlin(20, "23:15")))
    assert ended(night, berlin(21, "06:59"), NIGHTS) == []
    (told,) = end_due_slots(night, berlin(21, "07:00"), NIGHTS, 9)[0]
    assert (told.state, told.note, told.notifies) == ("late", NOTE_HELD, True)
    assert ended(job(OneTimeSpec(berlin(20, "22:00"))), berlin(20, "22:00"), NIGHTS) == []
    assert ended(job(OneTimeSpec(berlin(20, "21:59"))), berlin(20, "22:00"), NIGHTS) == [("20T21:59", "ran", True)]


def test_a_job_that_repeats_in_quiet_hours_is_told_once_after_them() -> None:
    of = replace(job(HOURLY), due=first_due(HOURLY, BERLIN, berlin(20, "21:30")))
    slots = end_due_slots(of, berlin(21, "07:00:10"), NIGHTS, 1000)[0]
    assert [one.state for one in slots] == ["late"] * 9 + ["ran"]
    assert [one.notifies for one in slots] == [False] * 9 + [True]
    assert {one.note for one in slots[:-1]} == {NOTE_FOLDED}
    every = end_due_slots(replace(of, catch_up="all"), berlin(21, "07:00:10"), NIGHTS, 1000)[0]
    assert all(one.notifies for one in every)


def test_in_quiet_hours_only_what_was_due_right_before_them_is_looked_at() -> None:
    after, until = NIGHTS.due_window(berlin(20, "22:00:10"))
    assert after == berlin(20, "21:59:10")
    assert until < berlin(20, "22:00")
    assert NIGHTS.due_window(berlin(20, "12:00")) == (None, berlin(20, "12:00"))
    assert NIGHTS.wake_at(berlin(20, "23:00"), berlin(20, "12:00")) == berlin(21, "07:00")
    assert NIGHTS.wake_at(berlin(20, "20:00"), berlin(20, "23:00")) == berlin(21, "07:00")


@pytest.mark.parametrize(
    ("hours", "at", "quiet"),
    [
        ("22:00-07:00", "06:59", True),
        ("22:00-07:00", "07:00", False),
        ("22:00-07:00", "21:59", False),
        ("13:00-14:00", "13:30", True),
        ("13:00-14:00", "14:00", False),
        ("13:00-13:00", "13:00", False),
    ],
)
def test_quiet_hours_begin_with_their_first_and_end_before_their_last_moment(hours: str, at: str, quiet: bool) -> None:
    made = parse_quiet_hours(hours, BERLIN)
    assert made is not None
    assert (made.window(berlin(20, at)) is not None) is quiet


def test_more_than_a_handful_for_one_place_are_one_message() -> None:
    now = berlin(20, "12:00")
    for count in (MAX_SEPARATE_REMINDERS, MAX_SEPARATE_REMINDERS + 1, 300):
        jobs = [job(OneTimeSpec(berlin(19, "09:00")), number=number) for number in range(1, count + 1)]
        made = build_firing([(one, *end_due_slots(one, now, ALWAYS, 9)) for one in jobs], BERLIN, now)
        assert len(made.messages) == (count if count <= MAX_SEPARATE_REMINDERS else 1)
        told = [key for one in made.jobs for _, key in one.outcomes]
        assert set(told) == {one.key for one in made.messages}
        assert len(told) == count
    assert "and 280 more" in made.messages[0].body
    assert len(made.messages[0].body) < 2500


def test_late_and_punctual_ones_and_places_are_not_mixed() -> None:
    now = berlin(20, "12:00")
    late = [job(OneTimeSpec(berlin(19, "09:00")), number=number) for number in range(1, 9)]
    punctual = job(OneTimeSpec(now), number=20)
    elsewhere = replace(late[0], id=21, place=replace(PLACE, target="other"))
    made = build_firing(
        [(one, *end_due_slots(one, now, ALWAYS, 9)) for one in (*late, punctual, elsewhere)], BERLIN, now
    )
    assert sorted(one.body.partition("\n")[0] for one in made.messages) == [
        "8 reminders came due while they could not be sent:",
        "Reminder: stretch",
        "Reminder: stretch",
    ]


def test_what_controls_a_terminal_or_turns_words_around_is_taken_out() -> None:
    assert strip_control_characters("call\x1b[2J\n mum\u202e now") == "call [2J mum now"
    assert strip_control_characters("one\n two\x00 ", keep_newlines=True) == "one\n two"
