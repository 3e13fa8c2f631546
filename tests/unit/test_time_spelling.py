"""Times as people write them, with slips, short names and what two of them share, are read as those that are meant."""

from __future__ import annotations

from datetime import datetime

import pytest

from assistant.core.time_pieces import find_times
from assistant.core.time_resolve import day_range, resolve_times
from assistant.core.time_spelling import spell_times

NOW = datetime(2026, 3, 11, 9, 0)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("on mon, wed and fri", "on monday, wednesday and friday"),
        ("mo, mi und fr um 8", "montags, mittwochs und freitags um 8"),
        ("mo-fr", "montag-freitag"),
        ("so 14 uhr kaffee", "sonntag 14 uhr kaffee"),
        ("los martes y jeuves", "los martes y jueves"),
        ("am 3. und 10. Mai", "am 3. Mai und 10. Mai"),
        ("11 statt 10 Uhr", "11 Uhr statt 10 Uhr"),
        ("saturday 0730 hrs", "saturday 07:30"),
        ("à vingt-deux heures", "à 22 heures"),
    ],
)
def test_times_are_spelled_out(text: str, spelled: str) -> None:
    assert spell_times(text) == spelled


@pytest.mark.parametrize(
    "text", ["so, do you like it", "le mar, la mer", "montar la mesa", "llueve a mares", "so früh raus"]
)
def test_what_is_no_time_stays_as_it_is(text: str) -> None:
    assert spell_times(text) == text


@pytest.mark.parametrize(
    ("text", "at", "rule"),
    [
        ("at midnight tonight", datetime(2026, 3, 12, 0, 0), ""),
        ("2026-03-12 00:00", datetime(2026, 3, 12, 0, 0), ""),
        ("at quarter past four", datetime(2026, 3, 11, 16, 15), ""),
        ("at half seven", datetime(2026, 3, 12, 7, 30), ""),
        ("mercredi prochain à 17h30", datetime(2026, 3, 18, 17, 30), ""),
        ("le jeudi d'après", datetime(2026, 3, 19, 9, 0), ""),
        ("de martes a sábado a las 13:30", datetime(2026, 3, 11, 13, 30), "FREQ=WEEKLY;BYDAY=TU,WE,TH,FR,SA"),
        ("tous les premiers du mois à 9h", datetime(2026, 3, 12, 9, 0), "FREQ=MONTHLY;BYMONTHDAY=1"),
    ],
)
def test_a_time_is_the_one_that_is_meant(text: str, at: datetime, rule: str) -> None:
    resolved = resolve_times(find_times(text), NOW)
    assert resolved is not None
    assert (resolved.at, resolved.rule) == (at, rule)


def test_days_in_a_row_are_asked_for_from_the_next_first_one_to_the_last() -> None:
    assert day_range(find_times("mon-fri"), NOW) == (datetime(2026, 3, 16), datetime(2026, 3, 21))


def test_what_is_moved_from_a_day_to_another_is_no_range_of_days() -> None:
    assert find_times("move it from tuesday to thursday").rule == ""
