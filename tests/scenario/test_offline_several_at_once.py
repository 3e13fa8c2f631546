"""Sentences about several things at once: a day whose appointments all move, twice as much of one thing and none of
another; and names that another language has as a small word before a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.utterances import find_faults, play

APPOINTMENTS = {
    "en": ["remind me of the dentist on Thursday at 10 am", "remind me of the physio on Thursday at 4 pm"],
    "de": ["erinnere mich am Donnerstag um 10 an den Zahnarzt", "erinnere mich am Donnerstag um 16 Uhr an die Physio"],
    "fr": ["rappelle-moi le dentiste jeudi à 10h", "rappelle-moi le kiné jeudi à 16h"],
    "es": ["recuérdame el dentista el jueves a las 10", "recuérdame el fisio el jueves a las 16:00"],
}
TITLES = {
    "en": ("dentist", "physio"),
    "de": ("Zahnarzt", "Physio"),
    "fr": ("dentiste", "kiné"),
    "es": ("dentista", "fisio"),
}
GROCERIES = {
    "en": ["add tomatoes to the shopping list", "add basil to the shopping list"],
    "de": ["setz Tomaten auf die Einkaufsliste", "setz Basilikum auf die Einkaufsliste"],
    "fr": ["ajoute des tomates à la liste de courses", "ajoute du basilic à la liste de courses"],
    "es": ["añade tomates a la lista de la compra", "añade albahaca a la lista de la compra"],
}
LISTS = {"en": "shopping", "de": "einkauf", "fr": "courses", "es": "compra"}
DOUBLED = {"en": "2x tomatoes", "de": "2x Tomaten", "fr": "2x tomates", "es": "2x tomates"}


async def check(home: Path, kind: str, given: list[str], say: str, then: dict[str, Any]) -> None:
    row = {"kind": kind, "given": given, "say": say, "then": then}
    before, after = await play(home, row)
    assert find_faults(row, before, after) == [], after.answer


def due(text: str, at: str, repeat: str | None = None) -> dict[str, Any]:
    return {"text": [text], "due": at, "repeat": repeat}


@pytest.mark.parametrize(
    ("lang", "say"),
    [
        ("en", "both of Thursday's appointments are moving to Friday"),
        ("en", "both appointments on Thursday have been moved to Friday"),
        ("en", "everything on Thursday moves to Friday"),
        ("de", "beide Termine vom Donnerstag wandern auf Freitag"),
        ("fr", "les deux rendez-vous de jeudi passent à vendredi"),
        ("es", "las dos citas del jueves pasan al viernes"),
    ],
)
async def test_all_that_is_on_a_day_moves_to_another_each_at_its_own_hour(tmp_path: Path, lang: str, say: str) -> None:
    first, second = TITLES[lang]
    reminders = [due(first, "2026-03-13T10:00"), due(second, "2026-03-13T16:00")]
    await check(tmp_path / "home", "reminder_change", APPOINTMENTS[lang], say, {"reminders": reminders})


async def test_both_of_three_is_asked_for(tmp_path: Path) -> None:
    given = [*APPOINTMENTS["en"], "remind me of golf on Thursday at 6 pm"]
    say = "both of Thursday's appointments are moving to Friday"
    hours = (("dentist", "10"), ("physio", "16"), ("golf", "18"))
    reminders = [due(text, f"2026-03-12T{hour}:00") for text, hour in hours]
    then = {"reminders": reminders, "answer_has": ["nothing is changed"]}
    await check(tmp_path / "home", "reminder_change", given, say, then)


async def test_appointments_that_are_no_reminders_are_told(tmp_path: Path) -> None:
    then = {"kept": True}
    await check(tmp_path / "home", "statement", [], "both of Thursday's appointments are moving to Friday", then)


@pytest.mark.parametrize(
    ("lang", "say"),
    [
        ("en", "double up on the tomatoes and lose the basil"),
        ("en", "lose the basil and double the tomatoes"),
        ("de", "doppelt so viele Tomaten und das Basilikum kann weg"),
        ("fr", "double les tomates et enlève le basilic"),
        ("es", "dobla los tomates y quita la albahaca"),
    ],
)
async def test_twice_as_much_of_one_thing_stays_while_another_goes(tmp_path: Path, lang: str, say: str) -> None:
    then = {"todos": [{"text": [DOUBLED[lang]], "list": LISTS[lang], "due": None}]}
    await check(tmp_path / "home", "todo", GROCERIES[lang], say, then)


async def test_a_number_is_doubled(tmp_path: Path) -> None:
    given = ["add 3 tomatoes to the shopping list"]
    then = {"todos": [{"text": ["6 tomatoes"], "list": "shopping", "due": None}]}
    await check(tmp_path / "home", "todo", given, "double the tomatoes", then)


@pytest.mark.parametrize(
    ("say", "name"),
    [
        ("remind me to ring Uncle Des on Sunday at 5 pm", "ring Uncle Des"),
        ("remind me to ring uncle des on sunday at 5pm", "uncle des"),
        ("erinnere mich am Sonntag um 17 Uhr, Al anzurufen", "Al anzurufen"),
        ("recuérdame llamar a Al el domingo a las 17:00", "llamar a Al"),
        ("rappelle-moi d'appeler Des dimanche à 17h", "appeler Des"),
    ],
)
async def test_a_name_before_a_time_stays(tmp_path: Path, say: str, name: str) -> None:
    await check(tmp_path / "home", "reminder_set", [], say, {"reminders": [due(name, "2026-03-15T17:00")]})


async def test_a_name_before_a_day_stays_in_a_to_do(tmp_path: Path) -> None:
    then = {"todos": [{"text": ["ring Uncle Des"], "list": None, "due": "2026-03-15"}]}
    await check(tmp_path / "home", "todo", [], "todo: ring Uncle Des on Sunday", then)


@pytest.mark.parametrize(
    ("lang", "say"),
    [
        ("en", "cancel the dentist, actually no, leave it"),
        ("en", "move the dentist to 5, no wait, keep it as it is"),
        ("de", "streich den Zahnarzt, ach nee, lass ihn doch drin"),
        ("fr", "annule le dentiste, euh non, garde-le"),
        ("es", "cancela el dentista, no, mejor déjalo"),
    ],
)
async def test_an_order_that_its_own_sentence_takes_back_changes_nothing(tmp_path: Path, lang: str, say: str) -> None:
    then = {"reminders": [due(TITLES[lang][0], "2026-03-12T10:00")], "answer_has": ["nothing is changed"]}
    await check(tmp_path / "home", "reminder_change", APPOINTMENTS[lang][:1], say, then)


@pytest.mark.parametrize(
    ("lang", "say", "new"),
    [
        ("en", "no basil needed, but do get butter", "butter"),
        ("de", "Basilikum brauchen wir nicht, dafür Butter", "Butter"),
        ("fr", "laisse tomber le basilic et prends plutôt du beurre", "beurre"),
        ("es", "albahaca no hace falta, pero compra mantequilla", "mantequilla"),
    ],
)
async def test_what_is_to_be_got_in_place_of_what_goes_is_on_its_list(
    tmp_path: Path, lang: str, say: str, new: str
) -> None:
    kept = DOUBLED[lang].removeprefix("2x ")
    todos = [{"text": [text], "list": LISTS[lang], "due": None} for text in (kept, new)]
    await check(tmp_path / "home", "todo", GROCERIES[lang], say, {"todos": todos})
