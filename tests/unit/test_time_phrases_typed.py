"""Times as people type them in several languages: what they mean, to the hour, or a refusal; never another time."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from assistant.agenda.recurrence import next_due
from assistant.agenda.repeat_phrases import parse_schedule
from assistant.agenda.time_phrases import parse_moment
from assistant.core.calendar import format_moment
from assistant.core.errors import UsageError

BERLIN = ZoneInfo("Europe/Berlin")
# A Saturday, 16:00 in Berlin.
NOW = datetime(2026, 11, 21, 15, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("tomorrow at eight", "Sunday 2026-11-22 08:00"),
        ("morgen um acht", "Sunday 2026-11-22 08:00"),
        ("tomorrow half past eight", "Sunday 2026-11-22 08:30"),
        ("quarter to nine tomorrow", "Sunday 2026-11-22 08:45"),
        ("morgen um halb neun", "Sunday 2026-11-22 08:30"),
        ("um Viertel nach 8", "Saturday 2026-11-21 20:15"),
        ("zehn vor neun", "Saturday 2026-11-21 20:50"),
        ("tomorrow afternoon at 3", "Sunday 2026-11-22 15:00"),
        ("tonight at 8", "Saturday 2026-11-21 20:00"),
        ("this evening", "Saturday 2026-11-21 18:00"),
        ("heute Abend um 8", "Saturday 2026-11-21 20:00"),
        ("morgen früh um 7", "Sunday 2026-11-22 07:00"),
        ("Freitagabend", "Friday 2026-11-27 18:00"),
        ("um 9 Uhr abends", "Saturday 2026-11-21 21:00"),
        ("mañana por la mañana", "Sunday 2026-11-22 09:00"),
        ("pasado mañana a las 10", "Monday 2026-11-23 10:00"),
        ("ce soir à 20h", "Saturday 2026-11-21 20:00"),
        ("domani mattina", "Sunday 2026-11-22 09:00"),
        ("stasera alle 9", "Saturday 2026-11-21 21:00"),
        ("om 2 timmar", "Saturday 2026-11-21 18:00:30"),
        ("om 2 timer", "Saturday 2026-11-21 18:00:30"),
        ("in 1h30", "Saturday 2026-11-21 17:30:30"),
        ("in einer Viertelstunde", "Saturday 2026-11-21 16:15:30"),
        ("in anderthalb Stunden", "Saturday 2026-11-21 17:30:30"),
        ("tomorrow 18h", "Sunday 2026-11-22 18:00"),
        ("morgen 17.30", "Sunday 2026-11-22 17:30"),
        ("on the 3rd at 10", "Thursday 2026-12-03 10:00"),
        ("the 31st", "Thursday 2026-12-31 09:00"),
        ("at 1830", "Saturday 2026-11-21 18:30"),
        ("um 1945", "Saturday 2026-11-21 19:45"),
        ("in two and a half hours", "Saturday 2026-11-21 18:30:30"),
        ("in zweieinhalb Stunden", "Saturday 2026-11-21 18:30:30"),
        ("in 1.5 hours", "Saturday 2026-11-21 17:30:30"),
        ("in a couple of hours", "Saturday 2026-11-21 18:00:30"),
        ("en un par de horas", "Saturday 2026-11-21 18:00:30"),
        ("on christmas eve at 9", "Thursday 2026-12-24 09:00"),
        ("an Silvester um 20 Uhr", "Thursday 2026-12-31 20:00"),
        ("à Noël à 10h", "Friday 2026-12-25 10:00"),
        ("en Nochevieja a las 20", "Thursday 2026-12-31 20:00"),
    ],
)
def test_what_people_type_means_what_they_mean(text: str, when: str) -> None:
    assert format_moment(parse_moment(text, BERLIN, NOW).at, BERLIN) == when


@pytest.mark.parametrize("text", ["tomorrow 8 30", "tomorrow 8", "tomorrow at 8 or 9", "am Wochenende", "1 2 3 4 5 6"])
def test_a_number_that_would_be_passed_over_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a time that I understand"):
        parse_moment(text, BERLIN, NOW)


@pytest.mark.parametrize("text", ["December at 10", "in May at 10:00"])
def test_a_month_without_a_day_is_no_day_of_it(text: str) -> None:
    with pytest.raises(UsageError, match="or so"):
        parse_moment(text, BERLIN, NOW)


@pytest.mark.parametrize("text", ["at 2:30", "um 2:30", "2:30 am", "every day at 2:30"])
def test_an_hour_alone_is_the_next_one_on_the_last_evening_of_a_year_too(text: str) -> None:
    evening = datetime(2026, 12, 31, 22, 30, tzinfo=UTC)
    _, due = parse_schedule(text, "", BERLIN, evening)
    assert format_moment(due.at, BERLIN) == "Friday 2027-01-01 02:30"


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("every evening at 8", "Saturday 2026-11-21 20:00"),
        ("every night at 11", "Saturday 2026-11-21 23:00"),
        ("every afternoon", "Sunday 2026-11-22 15:00"),
        ("jeden Abend um 8", "Saturday 2026-11-21 20:00"),
        ("jeden Morgen um 7", "Sunday 2026-11-22 07:00"),
        ("Mon-Fri 8:30", "Monday 2026-11-23 08:30"),
    ],
)
def test_an_hour_that_repeats_is_one_of_its_part_of_the_day(text: str, when: str) -> None:
    _, due = parse_schedule(text, "", BERLIN, NOW)
    assert format_moment(due.at, BERLIN) == when


def test_what_repeats_from_a_time_that_spring_leaves_out_keeps_its_time_on_other_days() -> None:
    spec, due = parse_schedule("every day at 2:30", "", BERLIN, datetime(2026, 3, 28, 12, 0, tzinfo=UTC))
    following = next_due(spec, BERLIN, due)
    assert following is not None
    assert format_moment(due.at, BERLIN) == "Sunday 2026-03-29 03:00"
    assert format_moment(following.at, BERLIN) == "Monday 2026-03-30 02:30"


def test_a_rule_that_would_count_days_where_nothing_is_counted_is_refused() -> None:
    with pytest.raises(UsageError, match="BYDAY has numbers with MONTHLY and YEARLY only"):
        parse_schedule("", "FREQ=WEEKLY;BYDAY=1MO", BERLIN, NOW)
