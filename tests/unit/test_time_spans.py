"""A span of hours is when something begins: "from 2 to 4pm", "von 19 bis 21 Uhr"; in a move they are the old hour and
the new one."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from assistant.agenda.dated_phrases import find_day
from assistant.core.time_pieces import find_times
from assistant.core.time_resolve import resolve_times

NOW = datetime.fromisoformat("2026-03-11T08:00")


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("yoga on friday from 6 to 7:30pm", "18:00"),
        ("brunch on sunday from 11 to 1pm", "11:00"),
        ("I work nights from monday, always from 10pm to 6am", "22:00"),
        ("the shop opens on saturday between 9am and noon", "09:00"),
        ("elternabend am donnerstag von 19 bis 21 uhr", "19:00"),
        ("ich hab ab montag nachtschicht, immer von 22 bis 6", "22:00"),
        ("Probe am Freitag zwischen 19.30 und 22 Uhr", "19:30"),
        ("jeudi formation de 9h à 17h", "09:00"),
        ("mercredi j'ai formation de 9 à 17h", "09:00"),
        ("vendredi entre 8h30 et 10h", "08:30"),
        ("el viernes tengo guardia de 8 a 15", "08:00"),
        ("el lunes entre las 16 y las 18 h", "16:00"),
    ],
)
def test_what_takes_a_span_of_hours_begins_with_the_first(text: str, begins: str) -> None:
    resolved = resolve_times(find_times(text), NOW)
    assert resolved is not None and f"{resolved.at:%H:%M}" == begins
    assert find_day(text, date(2026, 3, 11)).time == begins


@pytest.mark.parametrize("text", ["i work 9 to 5 on saturday", "between 9 and 10 euros", "von 5 bis 6 Jahren"])
def test_numbers_that_are_no_hours_name_none(text: str) -> None:
    assert not find_times(text).of_kind("clock")


@pytest.mark.parametrize("text", ["at ten to five", "at 10 to 5", "at 3 minutes to 5", "at quarter to 5"])
def test_minutes_before_an_hour_are_no_span(text: str) -> None:
    (clock,) = find_times(text).of_kind("clock")
    assert 4 * 60 + 44 < clock.minutes < 5 * 60


def test_in_a_move_the_second_hour_is_the_new_one() -> None:
    (clock,) = find_times("décale la formation de 9h à 10h").of_kind("clock")
    assert clock.minutes == 600
