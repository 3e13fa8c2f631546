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


OPEN = [
    "die Praxis macht um 8 auf",
    "der Laden macht um 20 Uhr zu",
    "Omas Zug kommt am Freitag um 15:10",
    "vino el técnico y cambió el termostato",
]


async def test_when_something_opens_is_no_order(tmp_path: Path) -> None:
    bodies = await answers_to(tmp_path, *OPEN)
    assert [body for body in bodies if not body.startswith("Noted.")] == []


async def test_what_is_to_be_moved_in_the_house_is_refused_plainly(tmp_path: Path) -> None:
    said = ("die Rollläden hochfahren", "das Garagentor zumachen", "die Heizung runterdrehen")
    bodies = await answers_to(tmp_path, *said)
    assert [body for body in bodies if not body.startswith("I can't do that")] == []


async def test_what_is_told_of_a_day_right_after_a_cancelled_timer_is_noted(tmp_path: Path) -> None:
    timer = ("set a timer for 10 minutes", "cancel the timer")
    for number, told in enumerate(("the dentist is on Tuesday at 3", "dentist on Tuesday at 3")):
        *_, body = await answers_to(tmp_path / str(number), *timer, told)
        assert body.startswith("Noted. It is in your agenda on Tuesday 2026-03-17 15:00."), body


CORRECTED = [
    ("das Auto steht in der Garage Nord", "Korrektur: das Auto steht in der Garage Süd", "wo steht das Auto?"),
    ("the spare key is in the shed", "Correction: the spare key is in the attic", "where is the spare key?"),
    ("le vélo est à la cave", "correction : le vélo est au garage", "où est le vélo ?"),
    ("la moto está en el patio", "corrección: la moto está en el garaje", "¿dónde está la moto?"),
]


async def test_what_is_headed_as_a_correction_replaces_what_was_told(tmp_path: Path) -> None:
    for number, (told, put_right, asked) in enumerate(CORRECTED):
        _, corrected, answer = await answers_to(tmp_path / str(number), told, put_right, asked)
        assert corrected.startswith("Noted. It replaces what you told me") and told in corrected, corrected
        assert put_right in answer, answer
        assert told not in answer.replace(put_right, ""), answer


async def test_a_correction_of_an_hour_moves_the_reminder(tmp_path: Path) -> None:
    _, body = await answers_to(tmp_path, "remind me of the train at 15:10 tomorrow", "Korrektur: um 16:10")
    assert body.startswith('Reminder 1 is changed: "train", Thursday 2026-03-12 16:10'), body


OFF = [
    "the dentist is cancelled on Tuesday",
    "der Zahnarzt am Dienstag fällt aus",
    "le dîner de vendredi est annulé",
    "la cena del viernes está cancelada",
]


async def test_what_does_not_take_place_and_was_never_set_is_answered_in_one_line(tmp_path: Path) -> None:
    bodies = await answers_to(tmp_path, *OFF)
    assert [body.partition("\n")[0] for body in bodies] == ["Noted. No reminder or to-do was changed."] * len(OFF)


async def test_what_does_not_take_place_is_taken_out_of_the_agenda(tmp_path: Path) -> None:
    *_, told = await answers_to(tmp_path / "told", "dentist on Tuesday at 3", OFF[0], "what is on tuesday")
    assert told.startswith("Nothing is planned for Tuesday 2026-03-17."), told
    _, cancelled = await answers_to(tmp_path / "set", "remind me of the dentist on tuesday at 9", OFF[0])
    assert cancelled.startswith('Reminder 1 is cancelled: "dentist"'), cancelled


DAYS = [
    ("we're in Rome from 3 to 10 April", "what is on on 5 April"),
    ("wir sind vom 3. bis 10. April in Rom", "was ist am 5. April"),
    ("on est à Rome du 3 au 10 avril", "qu'est-ce que j'ai le 5 avril"),
    ("estamos en Roma del 3 al 10 de abril", "qué tengo el 5 de abril"),
]


async def test_what_lasts_some_days_stands_in_the_agenda_on_each_without_an_hour(tmp_path: Path) -> None:
    for number, (told, asked) in enumerate(DAYS):
        _, day = await answers_to(tmp_path / str(number), told, asked)
        assert day.startswith(f'Sunday 2026-04-05:\n- "{told}"'), day


OTHERWISE = [
    (["remind me tomorrow at 3pm to call the vet"], "make the vet one 4:30 instead", "2026-03-12 16:30"),
    (["remind me tomorrow at 3pm to call the vet"], "i meant 5, not 3", "2026-03-12 17:00"),
    (["erinnere mich morgen um 15 Uhr an den Tierarzt"], "ich meinte 5, nicht 3", "2026-03-12 17:00"),
    (["rappelle-moi demain à 15h d'appeler le garage"], "je voulais dire 17, pas 15", "2026-03-12 17:00"),
    (["recuérdame mañana a las 15:00 llamar al taller"], "quería decir a las 17, no a las 15", "2026-03-12 17:00"),
    (["recuérdame a las 20:00 dar de comer al gato"], "perdón, a las 20:30 no a las 20", "2026-03-11 20:30"),
    (["remind me on friday at 10 to sign the lease"], "push the lease to next week", "2026-03-20 10:00"),
    (["weck mich morgen um 6"], "weck mich eine halbe stunde später", "2026-03-12 06:30"),
    (["despiértame mañana a las 6"], "media hora más tarde", "2026-03-12 06:30"),
    (["réveille-moi demain à 6h"], "une demi-heure plus tard", "2026-03-12 06:30"),
    ([], "erinner mich übernächsten Montag an Omas Karte", "2026-03-23 09:00"),
    ([], "every weekday at twenty to eight: pack lunchboxes. remind me", "2026-03-12 07:40"),
]


async def test_hours_lengths_and_weeks_alone_say_when_it_is_to_be_instead(tmp_path: Path) -> None:
    for number, (given, said, due) in enumerate(OTHERWISE):
        *_, body = await answers_to(tmp_path / str(number), *given, said)
        assert due in body, (said, body)


ANOTHER_LIST = [
    ("add pickles to the shopping list", "pickles go on the party list instead", "party"),
    ("ajoute des cornichons à la liste de courses", "mets plutôt les cornichons sur la liste fête", "fête"),
    ("añade pepinillos a la lista de la compra", "los pepinillos mejor en la lista de la fiesta", "fiesta"),
]


async def test_what_belongs_on_another_list_keeps_its_words(tmp_path: Path) -> None:
    for number, (given, said, name) in enumerate(ANOTHER_LIST):
        before, moved = await answers_to(tmp_path / str(number), given, said)
        thing = before.partition("- 1: ")[2].partition(" (")[0]
        assert f"- 1: {thing} ({name})" in moved, moved


GOT = [
    ("add ham to the shopping list", "add pickles to the shopping list", "didnt find pickles but got ham"),
    (
        "setze Schinken auf die Einkaufsliste",
        "setze Gurken auf die Einkaufsliste",
        "Gurken gabs nicht aber Schinken hab ich",
    ),
    (
        "añade jamón a la lista de la compra",
        "añade pepinillos a la lista de la compra",
        "no había pepinillos pero tengo el jamón",
    ),
]


async def test_of_what_was_not_to_be_had_and_what_was_the_second_is_done(tmp_path: Path) -> None:
    for number, said in enumerate(GOT):
        *_, body = await answers_to(tmp_path / str(number), *said)
        assert body.startswith("Completed: 1."), body


UNDONE = [
    ("add tea to the shopping list", "got the tea", "didn't get the tea after all"),
    ("setze Tee auf die Einkaufsliste", "Tee gekauft", "den Tee hab ich doch nicht bekommen"),
    ("ajoute du thé à la liste de courses", "j'ai acheté le thé", "finalement j'ai pas pris le thé"),
    ("añade té a la lista de la compra", "ya compré el té", "al final no compré el té"),
]


async def test_what_was_not_done_after_all_is_open_again(tmp_path: Path) -> None:
    for number, said in enumerate(UNDONE):
        _, done, undone = await answers_to(tmp_path / str(number), *said)
        assert done.startswith("Completed: 1") and undone.startswith("Reopened: 1"), (done, undone)
