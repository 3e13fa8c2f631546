"""Offline mode keeps what is told of a day, puts what has to be done by a day on the list, and says what is left of the
lists, in English, German, French and Spanish."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from assistant.models.offline.model import OfflineModel
from assistant.models.offline.told_days import REMINDER_OFFER
from tests.support.running_app import run_app
from tests.support.utterances import NOW, play


async def answers_to(home: Path, *said: str) -> list[str]:
    """What is answered to each sentence, said one after the other on Wednesday 11 March at nine."""
    async with run_app(home, model=OfflineModel(), ASSISTANT_HOME__TIMEZONE="Europe/Berlin") as it:  # type: ignore[arg-type]
        it.clock.now = NOW
        for text in said:
            await it.say(text)
            await it.wait_idle()
        return list(it.bridge.bodies)


NAMED = [
    ("dentist on Tuesday", "Tuesday 2026-03-17"),
    ("hairdresser tuesday at 3", "Tuesday 2026-03-17 15:00"),
    ("my driving test is on tuesday", "Tuesday 2026-03-17"),
    ("parents' evening on thursday at half six", "Thursday 2026-03-12 18:30"),
    ("exam in two weeks", "Wednesday 2026-03-25"),
    ("train to Leeds friday 7:45", "Friday 2026-03-13 07:45"),
    ("Am Dienstag um Viertel nach zehn hab ich einen Termin beim Zahnarzt", "Tuesday 2026-03-17 10:15"),
    ("el viernes a las cinco de la tarde tengo reunión con Marta", "Friday 2026-03-13 17:00"),
    ("TÜV am Dienstag", "Tuesday 2026-03-17"),
    ("Freitag Abendessen bei Lena", "Friday 2026-03-13"),
    ("Elternsprechtag am 20. um halb neun", "Friday 2026-03-20 08:30"),
    ("mañana podólogo", "Thursday 2026-03-12"),
    ("reunión el 20 a las seis y media", "Friday 2026-03-20 06:30"),
    ("ostéo mardi", "Tuesday 2026-03-17"),
    ("vendredi dîner chez Léa", "Friday 2026-03-13"),
]


async def test_what_is_told_of_a_day_is_noted_and_stands_in_the_agenda(tmp_path: Path) -> None:
    bodies = await answers_to(tmp_path, *(said for said, _ in NAMED))
    for (said, day), body in zip(NAMED, bodies, strict=True):
        assert body.startswith(f"Noted. It is in your agenda on {day}."), (said, body)
    # How to be reminded is offered once.
    assert [REMINDER_OFFER in body for body in bodies] == [True] + [False] * (len(NAMED) - 1)


async def test_the_offered_words_set_the_reminder(tmp_path: Path) -> None:
    offer = "remind me of the dentist on Tuesday at 9"
    noted, done = await answers_to(tmp_path, "dentist on Tuesday", offer)
    assert noted.partition("say when: ")[2].startswith("remind me of … on Tuesday at 9.")
    assert done.startswith('Reminder 1 is set: "dentist", Tuesday 2026-03-17 09:00')


async def test_what_names_a_reminder_that_waits_is_told_that_it_was_not_changed(tmp_path: Path) -> None:
    _, body = await answers_to(tmp_path, "remind me of the dentist on monday at 9", "my dentist is on tuesday")
    assert body.startswith("Noted. It is in your agenda on Tuesday 2026-03-17. No reminder or to-do was changed.")


DUTIES = [
    ("I have to pay the rent by the 5th", "pay the rent, due Sun 2026-04-05"),
    ("I still need to call the plumber tomorrow", "call the plumber, due Thu 2026-03-12"),
    ("I have to finish the report by the end of the week, or my boss is cross", "the report, due Sun 2026-03-15"),
    ("ich muss noch die Miete bis zum 5. bezahlen", "Miete bezahlen, due Sun 2026-04-05"),
    ("ich muss die Rechnung vor dem 5. überweisen", "Rechnung überweisen, due Sun 2026-04-05"),
    ("morgen Müll rausbringen", "Müll rausbringen, due Thu 2026-03-12"),
    ("il faut que je paie le loyer avant le 5", "paie le loyer, due Sun 2026-04-05"),
    ("il faut que j'appelle le notaire demain", "appelle le notaire, due Thu 2026-03-12"),
    ("je dois rendre le dossier pour lundi", "rendre le dossier, due Mon 2026-03-16"),
    ("acheter du pain demain", "acheter du pain, due Thu 2026-03-12"),
    ("tengo que pagar el alquiler antes del 5", "pagar el alquiler, due Sun 2026-04-05"),
    ("hay que pagar la luz antes del viernes", "pagar la luz, due Fri 2026-03-13"),
]


async def test_what_somebody_has_to_do_by_a_day_is_a_to_do_of_that_day(tmp_path: Path) -> None:
    bodies = await answers_to(tmp_path, *(said for said, _ in DUTIES))
    assert [body for body, (_, todo) in zip(bodies, DUTIES, strict=True) if todo not in body] == []


@pytest.mark.parametrize("said", ["I have to be in Bonn on Friday", "ich muss am Freitag zum Zahnarzt"])
async def test_where_somebody_has_to_be_is_nothing_to_tick_off(tmp_path: Path, said: str) -> None:
    (body,) = await answers_to(tmp_path, said)
    assert body.startswith("Noted. It is in your agenda on Friday 2026-03-13.")


LEFT = [
    (
        ["add milk to my shopping list", "add: renew passport", "I still need to call the bank"],
        "what do I still need to buy?",
    ),
    (
        ["setz Milch auf die Einkaufsliste", "Aufgabe: Pass erneuern", "ich will mir ein Rad kaufen"],
        "was muss ich noch kaufen?",
    ),
    (
        ["setz Milch auf die Einkaufsliste", "Aufgabe: Pass erneuern", "der Einkauf war teuer"],
        "was fehlt noch vom Einkauf",
    ),
    (
        ["ajoute milk à la liste de courses", "tâche : passeport", "je veux acheter un vélo"],
        "qu'est-ce qu'il me reste à acheter ?",
    ),
    (
        ["añade milk a la lista de la compra", "tarea: pasaporte", "quiero comprar una bici"],
        "¿qué me falta por comprar?",
    ),
    (["add milk to my shopping list", "add: renew passport", "I get a new bike"], "what do I have to get"),
]


@pytest.mark.parametrize(("given", "asked"), LEFT)
async def test_what_is_left_to_buy_is_answered_from_the_shopping_list(
    tmp_path: Path, given: Sequence[str], asked: str
) -> None:
    _, after = await play(tmp_path / "home", {"given": list(given), "say": asked})
    assert after.answer.startswith("Left to buy:\n\n- 1: "), after.answer
    assert after.answer.count("\n- ") == 1


async def test_what_is_left_to_do_is_answered_from_all_lists(tmp_path: Path) -> None:
    asked = ("what's left to do", "was muss ich noch erledigen", "il me reste quoi à faire", "qué me queda por hacer")
    given = ("add milk to my shopping list", "add: renew passport", "I still have a lot to do in the garden")
    bodies = await answers_to(tmp_path, *given, *asked)
    assert [body.startswith("You have 2 open to-dos:") for body in bodies[3:]] == [True] * 4, bodies[3:]


DONE = [
    ("todo: Steuererklärung", "die Steuererklärung ist erledigt"),
    ("todo: Steuererklärung machen", "hab die Steuererklärung gemacht"),
    ("todo: faire les impôts", "c'est fait, les impôts"),
    ("todo: hacer la declaración", "ya hice la declaración"),
    ("todo: limpiar los canalones", "lo de los canalones ya está"),
    ("todo: clear the gutters", "that's the gutters sorted"),
]


async def test_what_is_said_to_be_done_is_ticked_off_where_it_is_on_a_list(tmp_path: Path) -> None:
    bodies = await answers_to(tmp_path, *(said for pair in DONE for said in pair))
    assert [body.startswith("Completed: ") for body in bodies[1::2]] == [True] * len(DONE), bodies[1::2]


async def test_what_is_said_to_be_done_and_is_on_no_list_is_noted(tmp_path: Path) -> None:
    bodies = await answers_to(tmp_path, *(said for _, said in DONE), "the tax return is done")
    assert [body.startswith("Noted.") for body in bodies] == [True] * len(bodies), bodies
