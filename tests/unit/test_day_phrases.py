"""Days as people name them, to look at and to have something done by."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from assistant.agenda.day_phrases import parse_days, parse_due
from assistant.core.errors import UsageError

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 25, 20, 30, tzinfo=UTC)  # a Wednesday, 21:30

DAYS = [
    ("", "2026-11-25", "2026-12-01"),
    ("today", "2026-11-25", "2026-11-25"),
    ("tonight", "2026-11-25", "2026-11-25"),
    ("heute", "2026-11-25", "2026-11-25"),
    ("aujourd'hui", "2026-11-25", "2026-11-25"),
    ("hoy", "2026-11-25", "2026-11-25"),
    ("Tomorrow?", "2026-11-26", "2026-11-26"),
    ("übermorgen", "2026-11-27", "2026-11-27"),
    ("on Tuesday", "2026-12-01", "2026-12-01"),
    ("next tuesday", "2026-12-01", "2026-12-01"),
    ("am Freitag", "2026-11-27", "2026-11-27"),
    ("el viernes", "2026-11-27", "2026-11-27"),
    ("vendredi", "2026-11-27", "2026-11-27"),
    ("this week", "2026-11-25", "2026-11-29"),
    ("the week", "2026-11-25", "2026-11-29"),
    ("diese Woche", "2026-11-25", "2026-11-29"),
    ("cette semaine", "2026-11-25", "2026-11-29"),
    ("next week", "2026-11-30", "2026-12-06"),
    ("nächste Woche", "2026-11-30", "2026-12-06"),
    ("in der nächsten Woche", "2026-11-30", "2026-12-06"),
    ("la semaine prochaine", "2026-11-30", "2026-12-06"),
    ("la próxima semana", "2026-11-30", "2026-12-06"),
    ("la semana que viene", "2026-11-30", "2026-12-06"),
    ("the weekend", "2026-11-28", "2026-11-29"),
    ("am Wochenende", "2026-11-28", "2026-11-29"),
    ("ce week-end", "2026-11-28", "2026-11-29"),
    ("next weekend", "2026-12-05", "2026-12-06"),
    ("this month", "2026-11-25", "2026-11-30"),
    ("nächsten Monat", "2026-12-01", "2026-12-31"),
    ("the next 3 days", "2026-11-25", "2026-11-27"),
    ("400 days", "2026-11-25", "2027-02-24"),  # as many as are shown at most
    ("die nächsten 400 Tage", "2026-11-25", "2027-02-24"),
    ("2026-12-24", "2026-12-24", "2026-12-24"),
    ("24 December", "2026-12-24", "2026-12-24"),
    ("December", "2026-12-01", "2026-12-31"),
    ("im November", "2026-11-25", "2026-11-30"),
    ("en marzo", "2027-03-01", "2027-03-31"),
    ("monday to friday", "2026-11-30", "2026-12-04"),
    ("von Montag bis Freitag", "2026-11-30", "2026-12-04"),
    ("du 3 au 7 décembre", "2026-12-03", "2026-12-07"),
    ("3. und 4. Dezember", "2026-12-03", "2026-12-04"),
]


@pytest.mark.parametrize(("text", "first", "last"), DAYS)
def test_days_are_read_as_people_name_them(text: str, first: str, last: str) -> None:
    days = parse_days(text, BERLIN, NOW)
    assert (days.first.isoformat(), days.last.isoformat()) == (first, last)


@pytest.mark.parametrize("text", ["whenever", "yesterday", "2020-01-01", "x" * 500, " " * 60_000 + "x"])
def test_what_is_no_day_to_come_is_refused_with_how_to_write_it(text: str) -> None:
    with pytest.raises(UsageError, match=r"is in the past, or not a day.*2026-12-24"):
        parse_days(text, BERLIN, NOW)


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("today", "2026-11-25"),
        ("friday", "2026-11-27"),
        ("by friday", "2026-11-27"),
        ("bis Freitag", "2026-11-27"),
        ("tomorrow at 5 pm", "2026-11-26T17:00"),
        ("2026-12-24T18:00", "2026-12-24T18:00"),
        ("in 2 hours", "2026-11-25T23:30"),
    ],
)
def test_what_is_due_has_a_time_only_where_one_was_named(text: str, due: str) -> None:
    assert parse_due(text, BERLIN, NOW) == due


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Kiritimati"])
@pytest.mark.parametrize("text", ["9999-12-31", "31 December 9999", "0001-01-01"])
def test_a_day_at_the_end_of_the_calendar_is_refused(zone: str, text: str) -> None:
    with pytest.raises(UsageError):
        parse_days(text, ZoneInfo(zone), NOW)


def test_a_time_of_today_that_is_past_is_refused() -> None:
    with pytest.raises(UsageError):
        parse_due("today at 8:00", BERLIN, NOW)


def test_days_of_a_clock_change_have_their_own_length() -> None:
    start, end = parse_days("2027-03-28", BERLIN, NOW).bounds(BERLIN)
    assert (end - start).total_seconds() == 23 * 3600
