"""Orders that offline mode once misread, each as a person gives it in a conversation, and what is there afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.utterances import Outcome, after, as_local, find_faults, play

STATEMENTS = (
    "I moved to Bergen last year.",
    "My sister takes the train every day.",
    "Ich habe gestern den Wecker nicht gehört.",
    "Mon frère change de travail en avril.",
    "Mi hermana cambia de trabajo en abril.",
    "We stopped eating meat.",
)


def set_for(outcome: Outcome) -> list[tuple[str, str]]:
    return [(job.text, as_local(job)) for job in outcome.reminders]


def on_lists(outcome: Outcome) -> list[tuple[str, str]]:
    return sorted((todo.text, todo.list) for todo in outcome.todos if not todo.done)


@pytest.mark.parametrize(
    ("told", "correction"),
    [
        ("My sister's birthday is May 3rd.", "no wait, it's June 13th"),
        ("Meine Schwester hat am 3. Mai Geburtstag.", "nein, am 13. Juni"),
        ("L'anniversaire de ma soeur est le 3 mai.", "non, c'est le 13 juin"),
        ("El cumpleaños de mi hermana es el 3 de mayo.", "no, es el 13 de junio"),
    ],
)
async def test_a_correction_of_what_was_told_moves_no_reminder(tmp_path: Path, told: str, correction: str) -> None:
    outcome = await after(tmp_path, "remind me to call Bob tomorrow at 9", told, correction)
    assert set_for(outcome) == [("call Bob", "2026-03-12T09:00")]
    assert "replaces what you told me" in outcome.answer


async def test_a_correction_moves_the_reminder_that_was_just_set(tmp_path: Path) -> None:
    outcome = await after(tmp_path, "remind me to call Bob tomorrow at 9", "no wait, at 11")
    assert set_for(outcome) == [("call Bob", "2026-03-12T11:00")]


async def test_to_snooze_a_timer_that_is_not_there_sets_nothing(tmp_path: Path) -> None:
    outcome = await after(tmp_path, "snooze the timer by 5 minutes")
    assert not outcome.reminders
    assert not outcome.todos
    assert not outcome.answer.startswith("Noted")


async def test_a_misspelt_question_is_answered(tmp_path: Path) -> None:
    outcome = await after(tmp_path, "My dentist appointment is on May 4 at 10.", "wehn is my dentits apointment")
    assert "> My dentist appointment is on May 4 at 10." in outcome.answer


@pytest.mark.parametrize("others", [(), ("remind me to call Bob tomorrow at 9",)])
@pytest.mark.parametrize("alarm", ["set an alarm for 7 tomorrow", "wake me at 6:30"])
async def test_the_only_alarm_is_cancelled_without_a_question(
    tmp_path: Path, alarm: str, others: tuple[str, ...]
) -> None:
    outcome = await after(tmp_path, alarm, *others, "cancel the alarm")
    assert [job.text for job in outcome.reminders] == ["call Bob"] * len(others)


async def test_an_alarm_for_a_bare_hour_of_a_day_rings_then(tmp_path: Path) -> None:
    outcome = await after(tmp_path, "set an alarm for 5 tomorrow")
    assert set_for(outcome) == [("Alarm", "2026-03-12T05:00")]


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_a_statement_with_a_word_of_orders_writes_its_message_and_an_answer_alone(
    tmp_path: Path, statement: str
) -> None:
    outcome = await after(tmp_path, statement)
    assert outcome.answer.startswith("Noted.")
    assert outcome.messages == 2


@pytest.mark.parametrize(
    "question",
    [
        "did i put teabags down already",
        "hab ich die teabags schon aufgeschrieben",
        "est-ce que j'ai déjà noté teabags",
        "¿he apuntado ya teabags?",
    ],
)
async def test_to_ask_whether_something_is_on_a_list_ticks_nothing_off(tmp_path: Path, question: str) -> None:
    outcome = await after(tmp_path, "add teabags to the shopping list", question)
    assert on_lists(outcome) == [("teabags", "shopping")]
    assert "teabags" in outcome.answer


@pytest.mark.parametrize(
    ("order", "text", "due"),
    [
        ("Könnten Sie mich morgen um acht wecken?", "Wecker", "2026-03-12T08:00"),
        ("Erinnern Sie mich bitte am Donnerstag um 9 an die Besprechung", "Besprechung", "2026-03-12T09:00"),
        ("Rappelez-moi vendredi à 10 h d'appeler le notaire", "appeler le notaire", "2026-03-13T10:00"),
        ("Pourriez-vous me réveiller demain à 6h30 ?", "Réveil", "2026-03-12T06:30"),
        ("Recuérdeme el viernes a las 10 llamar al notario", "llamar al notario", "2026-03-13T10:00"),
        ("¿Me podría despertar mañana a las 6 y media?", "Despertador", "2026-03-12T06:30"),
        ("vergiss nicht, mich heute Abend an die Spülmaschine zu erinnern", "Spülmaschine", "2026-03-11T18:00"),
        ("erinenr mich morgen um 12 an den Rückruf", "Rückruf", "2026-03-12T12:00"),
    ],
)
async def test_formal_and_misspelt_orders_are_carried_out(tmp_path: Path, order: str, text: str, due: str) -> None:
    assert set_for(await after(tmp_path, order)) == [(text, due)]


@pytest.mark.parametrize(
    ("order", "lists"),
    [
        ("put eggs on the shopping list and glue on the DIY list", [("eggs", "shopping"), ("glue", "diy")]),
        ("auf die einkaufsliste eier, auf die baumarktliste leim", [("eier", "einkauf"), ("leim", "baumarkt")]),
        (
            "du pain sur la liste de courses et des clous sur la liste bricolage",
            [("clous", "bricolage"), ("pain", "courses")],
        ),
        (
            "pon pan en la lista de la compra y cola en la lista de ferretería",
            [("cola", "ferretería"), ("pan", "compra")],
        ),
        ("new list christmas presents: scarf for mum", [("scarf for mum", "christmas presents")]),
        ("erstell eine liste namens roadtrip mit chips und trauben", [("chips", "roadtrip"), ("trauben", "roadtrip")]),
        ("auf die packliste: zahnbürste, kabel", [("kabel", "pack"), ("zahnbürste", "pack")]),
    ],
)
async def test_things_go_on_the_list_that_is_named_for_them(
    tmp_path: Path, order: str, lists: list[tuple[str, str]]
) -> None:
    assert on_lists(await after(tmp_path, order)) == lists


async def test_a_list_that_is_there_is_named_without_the_word(tmp_path: Path) -> None:
    outcome = await after(tmp_path, "add rope to the boat trip list", "add sails to boat trip")
    assert on_lists(outcome) == [("rope", "boat trip"), ("sails", "boat trip")]


@pytest.mark.parametrize(
    ("given", "order", "left"),
    [
        ("add milk to the shopping list", "take milk off and put oat milk instead", "oat milk"),
        ("add milk to the shopping list", "not milk but oat milk", "oat milk"),
        ("setz milch auf die einkaufsliste", "nimm die milch runter und schreib hafermilch drauf", "hafermilch"),
        ("mets du lait sur la liste de courses", "pas du lait, du lait d'avoine", "lait d'avoine"),
        ("pon leche en la lista de la compra", "quita la leche y pon leche de avena", "leche de avena"),
    ],
)
async def test_one_thing_takes_the_place_of_another_on_its_list(
    tmp_path: Path, given: str, order: str, left: str
) -> None:
    outcome = await after(tmp_path, given, order)
    assert [text for text, name in on_lists(outcome) if name] == [left]


@pytest.mark.parametrize(
    "order",
    [
        "frobnicate the quux for me please",
        "please defrost the sparrows",
        "bitte entgrate die Spatzen",
        "dégivre-moi les moineaux",
        "descongélame los gorriones",
        "put the sparrows somewhere",
    ],
)
async def test_an_order_that_nobody_understands_is_never_answered_as_noted(tmp_path: Path, order: str) -> None:
    assert not (await after(tmp_path, order)).answer.startswith("Noted")


@pytest.mark.parametrize(
    "said",
    ["2 after stop", "stop after 2", "2 before we remove it", "Schluss nach 2, lösch", "2 avant de supprimer"],
)
async def test_a_number_that_a_sentence_relates_to_something_names_no_item(tmp_path: Path, said: str) -> None:
    outcome = await after(tmp_path, "remind me to call Bob tomorrow at 9", "add milk and bread to my list", said)
    assert [text for text, _ in set_for(outcome)] == ["call Bob"]
    assert on_lists(outcome) == [("bread", ""), ("milk", "")]


@pytest.mark.parametrize(
    "asked", ["still here?", "Are you still there?", "Bist du noch da?", "tu es là ?", "¿Sigues ahí?"]
)
async def test_who_asks_whether_it_is_there_is_told_so(tmp_path: Path, asked: str) -> None:
    outcome = await after(tmp_path, "add milk to my list", asked)
    assert outcome.answer.startswith("Yes, I am here.")


async def test_another_timer_is_set_beside_the_one_that_runs(tmp_path: Path) -> None:
    timers = [{"text": [], "due": f"2026-03-11T09:{minute}", "repeat": None} for minute in ("05", "10")]
    row = {
        "kind": "reminder_set",
        "given": ["timer 10 min"],
        "say": "stell einen Timer auf 5 Minuten",
        "then": {"reminders": timers},
    }
    before, after = await play(tmp_path / "home", row)
    assert find_faults(row, before, after) == [], after.answer


@pytest.mark.parametrize("say", ["we need eggs", "I need a haircut", "il nous faut des oeufs", "necesitamos huevos"])
async def test_what_is_needed_is_noted_with_how_to_put_it_on_a_list(tmp_path: Path, say: str) -> None:
    row = {"kind": "statement", "given": ["we need paper"], "say": say, "then": {"kept": True}}
    _, after = await play(tmp_path / "home", row)
    assert after.answer == (
        "Noted. No reminder or to-do was changed. To put it on your to-do list, say: add … to my list."
    )
