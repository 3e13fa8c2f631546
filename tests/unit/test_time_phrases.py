"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from assistant.agenda.repeat_phrases import parse_schedule
from assistant.agenda.time_phrases import parse_moment
from assistant.context.question import find_past_period
from assistant.core.calendar import format_moment, utc_to_local
from assistant.core.errors import UsageError
from assistant.core.jobs import CronSpec, OneTimeSpec, RRuleSpec
from assistant.core.time_pieces import find_times
from assistant.core.time_resolve import day_range, resolve_times

BERLIN = ZoneInfo("Europe/Berlin")
# A Saturday, 16:00 in Berlin.
NOW = datetime(2026, 11, 21, 15, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("in 20 minutes", "Saturday 2026-11-21 16:20:30"),
        ("in half an hour", "Saturday 2026-11-21 16:30:30"),
        ("tomorrow at 9", "Sunday 2026-11-22 09:00"),
        ("tomorrow", "Sunday 2026-11-22 09:00"),
        ("tomorrow at 8 in the evening", "Sunday 2026-11-22 20:00"),
        ("next Friday", "Friday 2026-11-27 09:00"),
        ("Friday at 8", "Friday 2026-11-27 08:00"),
        ("9am", "Sunday 2026-11-22 09:00"),
        ("at 17:30", "Saturday 2026-11-21 17:30"),
        ("8", "Sunday 2026-11-22 08:00"),
        ("tonight", "Saturday 2026-11-21 20:00"),
        ("noon tomorrow", "Sunday 2026-11-22 12:00"),
        ("24.12. 18:00", "Thursday 2026-12-24 18:00"),
        ("24/12/2026 18:00", "Thursday 2026-12-24 18:00"),
        ("3.4. um 9", "Saturday 2027-04-03 09:00"),
        ("2026-12-24", "Thursday 2026-12-24 09:00"),
        ("2026-12-24T18:00", "Thursday 2026-12-24 18:00"),
        ("2026-12-24T18:00+05:30", "Thursday 2026-12-24 13:30"),
        ("morgen um 9 Uhr", "Sunday 2026-11-22 09:00"),
        ("nächsten Freitag um 18 Uhr", "Friday 2026-11-27 18:00"),
        ("mañana a las 9", "Sunday 2026-11-22 09:00"),
        ("demain à 9h", "Sunday 2026-11-22 09:00"),
        ("i morgen kl 9", "Sunday 2026-11-22 09:00"),
    ],
)
def test_a_time_in_words_means_a_moment_to_come(text: str, when: str) -> None:
    assert format_moment(parse_moment(text, BERLIN, NOW).at, BERLIN) == when


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("yesterday at 9", "understood as Friday 2026-11-20 09:00, which is past"),
        ("today at 09:00", "understood as Saturday 2026-11-21 09:00, which is past"),
        ("2020-01-01 10:00", "which is past"),
        ("03/04 10:00", "may be 3 April or 4 March"),
        ("next month", "understood as December 2026"),
        ("tomorrow 25:00", "Nothing was set"),
        ("when pigs fly", "not a time that I understand"),
        ("", "not a time that I understand"),
        ("x" * 500, "not a time that I understand"),
        ("9999-12-31 23:59", "a hundred years"),
    ],
)
def test_what_is_past_or_can_be_read_two_ways_is_refused_and_says_how_it_was_understood(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as told_of:
        parse_moment(text, BERLIN, NOW)
    assert "Nothing was set" in str(told_of.value)


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Kiritimati", "UTC"])
@pytest.mark.parametrize(
    ("when", "repeat"),
    [
        ("9999-12-31 23:59", ""),
        ("on 31 December 9999 at 23:30", ""),
        ("in 99999999 days", ""),
        ("in 999999999999 minutes", ""),
        ("every 99999999999 minutes", ""),
        ("", "every 99999999999 hours"),
        ("9999-12-31 23:59", "every day"),
    ],
)
def test_what_lies_beyond_the_calendar_is_refused(zone: str, when: str, repeat: str) -> None:
    with pytest.raises(UsageError, match="Nothing was set"):
        parse_schedule(when, repeat, ZoneInfo(zone), NOW)


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Kiritimati"])
@pytest.mark.parametrize("day", ["9999-12-31", "31 December 9999", "January 1, 0001"])
def test_a_question_about_a_day_at_the_end_of_the_calendar_is_one_like_any_other(zone: str, day: str) -> None:
    here = utc_to_local(NOW, ZoneInfo(zone))
    period = find_past_period(f"What did I say on {day}?", NOW, ZoneInfo(zone))
    assert period is None or period.after.year in (NOW.year - 1, NOW.year)
    assert day_range(find_times(f"what is on {day}"), here) is None


def test_so_many_hours_from_now_are_as_many_in_a_night_in_which_the_clocks_change() -> None:
    before = datetime(2026, 10, 24, 23, 30, tzinfo=UTC)
    assert parse_moment("in 3 hours", BERLIN, before).at == datetime(2026, 10, 25, 2, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "key", "rule"),
    [
        ("every day at 8", "2026-11-22T08:00", "FREQ=DAILY"),
        ("daily at 7", "2026-11-22T07:00", "FREQ=DAILY"),
        ("every weekday at 8:30", "2026-11-23T08:30", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
        ("every Monday", "2026-11-23T09:00", "FREQ=WEEKLY;BYDAY=MO"),
        ("every Monday and Thursday at 18:00", "2026-11-23T18:00", "FREQ=WEEKLY;BYDAY=MO,TH"),
        ("every other Tuesday at 8", "2026-11-24T08:00", "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU"),
        ("every 2 hours", "2026-11-21T18:00", "FREQ=HOURLY;INTERVAL=2"),
        ("on the 1st of each month", "2026-12-01T09:00", "FREQ=MONTHLY;BYMONTHDAY=1"),
        ("on the 1st and 15th of every month at 10", "2026-12-01T10:00", "FREQ=MONTHLY;BYMONTHDAY=1,15"),
        ("the last day of every month", "2026-11-30T09:00", "FREQ=MONTHLY;BYMONTHDAY=-1"),
        ("first Monday of every month at 10", "2026-12-07T10:00", "FREQ=MONTHLY;BYDAY=1MO"),
        ("every year on 3 May", "2027-05-03T09:00", "FREQ=YEARLY"),
        ("every morning at 7", "2026-11-22T07:00", "FREQ=DAILY"),
        ("every evening", "2026-11-21T18:00", "FREQ=DAILY"),
        ("weekdays at 9", "2026-11-23T09:00", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
        ("every day from next Monday at 8", "2026-11-23T08:00", "FREQ=DAILY"),
        ("jeden Montag um 9 Uhr", "2026-11-23T09:00", "FREQ=WEEKLY;BYDAY=MO"),
        ("alle 2 Stunden", "2026-11-21T18:00", "FREQ=HOURLY;INTERVAL=2"),
        ("werktags um 8:30", "2026-11-23T08:30", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
        ("cada lunes a las 9", "2026-11-23T09:00", "FREQ=WEEKLY;BYDAY=MO"),
        ("every day at 8 until Friday", "2026-11-22T08:00", "FREQ=DAILY;UNTIL=20261127T235959"),
        ("every day at 8 for two weeks", "2026-11-22T08:00", "FREQ=DAILY;UNTIL=20261205T235959"),
        ("every hour until 19:00", "2026-11-21T17:00", "FREQ=HOURLY;UNTIL=20261121T190000"),
        ("jeden Tag um 8 bis zum 30.", "2026-11-22T08:00", "FREQ=DAILY;UNTIL=20261130T235959"),
        ("chaque jour à 8h jusqu’au dimanche 29 novembre", "2026-11-22T08:00", "FREQ=DAILY;UNTIL=20261129T235959"),
        ("cada noche a las 9 hasta fin de mes", "2026-11-21T21:00", "FREQ=DAILY;UNTIL=20261130T235959"),
        ("from Monday every weekday at 7:30", "2026-11-23T07:30", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
    ],
)
def test_words_for_how_often_are_a_rule(text: str, key: str, rule: str) -> None:
    for when, repeat in ((text, ""), ("", text)):
        spec, due = parse_schedule(when, repeat, BERLIN, NOW)
        assert isinstance(spec, RRuleSpec)
        assert (due.key, spec.rrule) == (key, rule)


def test_what_would_end_before_it_comes_is_refused_with_the_day() -> None:
    with pytest.raises(UsageError, match=r"It would end on 2026-11-21, before it comes"):
        parse_schedule("every day at 8 until today", "", BERLIN, NOW)


def test_when_and_how_often_may_come_apart() -> None:
    spec, due = parse_schedule("8:30", "every weekday", BERLIN, NOW)
    assert isinstance(spec, RRuleSpec)
    assert due.key == "2026-11-23T08:30"
    assert parse_schedule("", "30 8 * * 1-5", BERLIN, NOW)[0] == CronSpec("30 8 * * 1-5")
    assert parse_schedule("friday at 8", "FREQ=DAILY;INTERVAL=3", BERLIN, NOW)[1].key == "2026-11-27T08:00"
    assert isinstance(parse_schedule("tomorrow at 9", "", BERLIN, NOW)[0], OneTimeSpec)


@pytest.mark.parametrize(
    ("when", "repeat"),
    [("tomorrow", "yes"), ("every day at 8 and 20", ""), ("9:00", "every day at 8"), ("every 40 seconds", "")],
)
def test_words_that_are_left_over_are_never_passed_over(when: str, repeat: str) -> None:
    with pytest.raises(UsageError, match="Nothing was set"):
        parse_schedule(when, repeat, BERLIN, NOW)


@pytest.mark.parametrize(
    ("text", "at_four", "at_nine"),
    [
        ("at 6", "2026-11-21T18:00", "2026-11-22T06:00"),
        ("at 6:30", "2026-11-21T18:30", "2026-11-22T06:30"),
        ("today at 8", "2026-11-21T20:00", ""),
        ("at half past six", "2026-11-21T18:30", "2026-11-22T06:30"),
        ("at 11", "2026-11-21T23:00", "2026-11-21T23:00"),
        ("at 12", "2026-11-22T12:00", "2026-11-22T12:00"),
        ("at 3", "2026-11-22T15:00", "2026-11-22T15:00"),
        ("um 6", "2026-11-21T18:00", "2026-11-22T06:00"),
        ("um halb sieben", "2026-11-21T18:30", "2026-11-22T06:30"),
        ("a las seis", "2026-11-21T18:00", "2026-11-22T06:00"),
        # These are of 24 hours, say which half of the day, or name another day.
        ("um 6 Uhr", "2026-11-22T06:00", "2026-11-22T06:00"),
        ("um 6:30", "2026-11-22T06:30", "2026-11-22T06:30"),
        ("at 06:30", "2026-11-22T06:30", "2026-11-22T06:30"),
        ("à 6h", "2026-11-22T06:00", "2026-11-22T06:00"),
        ("à six heures", "2026-11-22T06:00", "2026-11-22T06:00"),
        ("at 6 am", "2026-11-22T06:00", "2026-11-22T06:00"),
        ("tomorrow at 6", "2026-11-22T06:00", "2026-11-22T06:00"),
    ],
)
def test_an_hour_of_twelve_without_a_day_is_its_next_occurrence(text: str, at_four: str, at_nine: str) -> None:
    for now, when in ((NOW.replace(hour=15), at_four), (NOW.replace(hour=20), at_nine)):
        if when:
            assert f"{parse_moment(text, BERLIN, now).local:%Y-%m-%dT%H:%M}" == when


def test_an_alarm_to_get_up_and_what_repeats_are_no_later_because_it_is_afternoon() -> None:
    for text, rule in (("wake me at 6", ""), ("every day at 6", "FREQ=DAILY")):
        resolved = resolve_times(find_times(text), datetime(2026, 11, 21, 16, 0))
        assert resolved is not None and (resolved.at.hour, resolved.rule) == (6, rule)


@pytest.mark.parametrize(("text", "hour"), [("at 8", 20), ("a las seis", 18), ("um 8 Uhr", 8), ("at 8 am", 8)])
def test_what_is_moved_stays_in_its_half_of_the_day(text: str, hour: int) -> None:
    resolved = resolve_times(find_times(text), NOW.replace(tzinfo=None), datetime(2026, 11, 25, 18, 30))
    assert resolved is not None and resolved.at.hour == hour
