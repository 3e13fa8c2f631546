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
        ("am siebzehnten um acht", "am 17. um acht"),
        ("le dix-sept à huit heures", "le 17 à huit heures"),
        ("el día diecisiete a las ocho", "el dia 17 a las ocho"),
        ("on the twentieth at nine", "on the 20th at nine"),
        ("fri 0830 dentist", "friday 08:30 dentist"),
        ("on mondays wednesdays and fridays", "on mondays, wednesdays and fridays"),
        ("vie 8:30 dentista", "viernes 8:30 dentista"),
    ],
)
def test_times_are_spelled_out(text: str, spelled: str) -> None:
    assert spell_times(text) == spelled


@pytest.mark.parametrize(
    "text",
    [
        *("so, do you like it", "le mar, la mer", "montar la mesa", "llueve a mares", "so früh raus"),
        *("am zweiten Tisch", "le sept de pique"),
    ],
)
def test_what_is_no_time_stays_as_it_is(text: str) -> None:
    assert spell_times(text) == text


@pytest.mark.parametrize(
    ("text", "at", "rule"),
    [
        ("at midnight tonight", datetime(2026, 3, 12, 0, 0), ""),
        ("every school day at 7", datetime(2026, 3, 12, 7, 0), "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
        ("every monday wednesday friday at 7", datetime(2026, 3, 12, 7, 0), "FREQ=WEEKLY;BYDAY=MO,WE,FR"),
        ("an jedem Ersten um 10 Uhr", datetime(2026, 3, 11, 10, 0), "FREQ=MONTHLY;BYMONTHDAY=1"),
        ("every 15th at 9", datetime(2026, 3, 12, 9, 0), "FREQ=MONTHLY;BYMONTHDAY=15"),
        ("cada día 5 a las 10", datetime(2026, 3, 11, 10, 0), "FREQ=MONTHLY;BYMONTHDAY=5"),
        ("2026-03-12 00:00", datetime(2026, 3, 12, 0, 0), ""),
        ("at quarter past four", datetime(2026, 3, 11, 16, 15), ""),
        ("at half seven", datetime(2026, 3, 11, 19, 30), ""),
        ("um drei am Donnerstag", datetime(2026, 3, 12, 15, 0), ""),
        ("at 3 am on Thursday", datetime(2026, 3, 12, 3, 0), ""),
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


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("at twelve thirty", "2026-03-11T12:30"),
        ("um zwölf dreißig", "2026-03-11T12:30"),
        ("17 Uhr dreißig", "2026-03-11T17:30"),
        ("seven thirty pm tomorrow", "2026-03-12T19:30"),
        ("at nine-thirty tomorrow", "2026-03-12T09:30"),
        ("am zweiten April um 10", "2026-04-02T10:00"),
        ("el dos de abril a las 10", "2026-04-02T10:00"),
        ("the third of May at noon", "2026-05-03T12:00"),
        ("in einer guten Stunde", "2026-03-11T10:00"),
        ("nächste Woche Freitag um 8", "2026-03-20T08:00"),
        ("next week on Friday at 8", "2026-03-20T08:00"),
        ("2moro at 5pm", "2026-03-12T17:00"),
        ("every other Tuesday at 7 pm", "2026-03-17T19:00"),
        ("un martes sí y otro no a las 19 h", "2026-03-17T19:00"),
    ],
)
def test_what_people_say_of_a_time_is_the_moment_that_they_mean(text: str, when: str) -> None:
    resolved = resolve_times(find_times(text), NOW)
    assert resolved is not None
    assert resolved.at.isoformat()[:16] == when


@pytest.mark.parametrize(
    "text", ["add ten twenty euro notes", "um acht zehn minuten laufen", "buy five ten liter bags"]
)
def test_two_numbers_in_words_are_no_hour_and_minutes(text: str) -> None:
    assert spell_times(text) == text
