"""What comes every other day, week or month, as French and Spanish of several countries say it, has the rule and the
first time that are meant."""

from __future__ import annotations

from datetime import datetime

import pytest

from assistant.core.time_alternation import spell_alternation
from assistant.core.time_pieces import find_times
from assistant.core.time_resolve import resolve_times

WEDNESDAY = datetime(2026, 3, 11, 9, 0)
EVERY_OTHER_DAY = "FREQ=DAILY;INTERVAL=2"
EVERY_OTHER_WEEK = "FREQ=WEEKLY;INTERVAL=2"
CASES = {
    "une semaine sur deux le jeudi à 18h": (EVERY_OTHER_WEEK, "03-12 18:00"),
    "jeudi à 18h une semaine sur deux": (EVERY_OTHER_WEEK, "03-12 18:00"),
    "tous les quinze jours à partir de samedi 10h": (EVERY_OTHER_WEEK, "03-14 10:00"),
    "tous les 15 jours à 10h": (EVERY_OTHER_WEEK, "03-11 10:00"),
    "tous les huit jours à 10h": ("FREQ=WEEKLY", "03-11 10:00"),
    "un jour sur trois à 20h": ("FREQ=DAILY;INTERVAL=3", "03-11 20:00"),
    "un soir sur deux": (EVERY_OTHER_DAY, "03-11 18:00"),
    "un lundi sur trois à 9h30": ("FREQ=WEEKLY;INTERVAL=3", "03-16 09:30"),
    "un mois sur deux le 5": ("FREQ=MONTHLY;INTERVAL=2", "04-05 09:00"),
    "un week-end sur deux à 10h": (EVERY_OTHER_WEEK, "03-14 10:00"),
    "un jour oui un jour non à 20h": (EVERY_OTHER_DAY, "03-11 20:00"),
    "cada quince días el sábado a las 10": (EVERY_OTHER_WEEK, "03-14 10:00"),
    "cada ocho días a las 10": ("FREQ=WEEKLY", "03-11 10:00"),
    "un día sí y otro no a las 20h": (EVERY_OTHER_DAY, "03-11 20:00"),
    "día sí, día no a las 20h": (EVERY_OTHER_DAY, "03-11 20:00"),
    "día por medio a las 20h": (EVERY_OTHER_DAY, "03-11 20:00"),
    "en días alternos a las 20h": (EVERY_OTHER_DAY, "03-11 20:00"),
    "cada tercer día a las 20h": (EVERY_OTHER_DAY, "03-11 20:00"),
    "una noche sí y otra no": (EVERY_OTHER_DAY, "03-11 20:00"),
    "una semana sí y otra no, el sábado a las 10": (EVERY_OTHER_WEEK, "03-14 10:00"),
    "semana por medio el jueves a las 18h": (EVERY_OTHER_WEEK, "03-12 18:00"),
    "jueves por medio a las 18h": (EVERY_OTHER_WEEK, "03-12 18:00"),
    "un mes sí y otro no el día 5": ("FREQ=MONTHLY;INTERVAL=2", "04-05 09:00"),
}


@pytest.mark.parametrize("said", CASES)
def test_what_alternates_has_its_rule_and_its_first_time(said: str) -> None:
    resolved = resolve_times(find_times(f"{said}, la clase"), WEDNESDAY)
    assert resolved is not None
    assert (resolved.rule, f"{resolved.at:%m-%d %H:%M}") == CASES[said]


@pytest.mark.parametrize("said", ["cada fin de mes", "chaque fin de mois"])
def test_each_end_of_a_month_is_its_last_day(said: str) -> None:
    assert find_times(said).rule == "FREQ=MONTHLY;BYMONTHDAY=-1"


@pytest.mark.parametrize("said", ["dans quinze jours", "la semana pasada", "un jour peut-être", "por medio de Ana"])
def test_what_does_not_alternate_stays_as_it_is(said: str) -> None:
    assert spell_alternation(said) == said
