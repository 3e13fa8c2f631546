"""Times at which what repeats is not to come: weekdays for good, the time that comes next, and nothing else."""

from __future__ import annotations

from datetime import datetime

import pytest

from assistant.models.offline.exceptions import find_exception, first_and_rule

NOW = datetime(2026, 3, 11, 9, 0)  # a Wednesday
NEVER_SUNDAY = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA"
WEEKDAYS = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"


@pytest.mark.parametrize(
    ("text", "rest", "when", "rule"),
    [
        ("pills every day at 8 except sundays", "pills every day at 8", "2026-03-12 08:00", NEVER_SUNDAY),
        ("jeden Tag außer Sonntag um 8 Tabletten", "jeden Tag um 8 Tabletten", "2026-03-12 08:00", NEVER_SUNDAY),
        (
            "cachets tous les jours à 8h sauf le dimanche",
            "cachets tous les jours à 8h",
            "2026-03-12 08:00",
            NEVER_SUNDAY,
        ),
        (
            "pastillas todos los días a las 8 menos los domingos",
            "pastillas todos los días a las 8",
            "2026-03-12 08:00",
            NEVER_SUNDAY,
        ),
        ("every day at 7 except at weekends", "every day at 7", "2026-03-12 07:00", WEEKDAYS),
        ("every day except saturday and sunday at 7", "every day at 7", "2026-03-12 07:00", WEEKDAYS),
        (
            "yoga every tuesday at 6 pm except next week",
            "yoga every tuesday at 6 pm",
            "2026-03-24 18:00",
            "FREQ=WEEKLY;BYDAY=TU",
        ),
        ("every day at 10 except today and tomorrow", "every day at 10", "2026-03-13 10:00", "FREQ=DAILY"),
    ],
)
def test_weekdays_and_the_next_time_are_left_out(text: str, rest: str, when: str, rule: str) -> None:
    excepted = find_exception(text)
    assert excepted is not None and excepted.rest == rest
    assert first_and_rule(rest, excepted, NOW) == {"when": when, "repeat": rule}


@pytest.mark.parametrize(
    "text",
    [
        "yoga every tuesday at 6 pm except on march 24",
        "every day at 8 except on christmas",
        "every month on the 1st except sundays",
        "every sunday at 9 except sundays",
    ],
)
def test_what_no_rule_can_say_is_not_set(text: str) -> None:
    excepted = find_exception(text)
    assert excepted is not None and first_and_rule(excepted.rest, excepted, NOW) is None


@pytest.mark.parametrize("text", ["every day at 8 eat everything except sugar", "cancel all except sunday", "call mum"])
def test_what_excepts_no_time_of_what_repeats_has_no_exception(text: str) -> None:
    assert find_exception(text) is None
