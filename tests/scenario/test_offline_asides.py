"""Sentences in which an order stands beside why it is given, beside what stays as it is, or is put right while it is
said: the rules of offline mode read the order alone, each class by a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.utterances import after, listed, waiting

DENTIST_AND_VET = ("add ring the dentist to my to-do list by friday", "add ring the vet to my to-do list by friday")


@pytest.mark.parametrize(
    "say",
    [
        "Since the shop closes early on Saturdays I want a reminder at 11 on Saturday to buy paint",
        "remind me on saturday at 11 to buy paint, cos the shop closes at 1",
    ],
)
async def test_the_time_in_a_reason_is_not_that_of_the_reminder(tmp_path: Path, say: str) -> None:
    assert waiting(await after(tmp_path, say)) == [("buy paint", "2026-03-14T11:00")]


async def test_the_hour_in_a_reason_is_not_the_new_one(tmp_path: Path) -> None:
    given = "remind me to pick up the cello on thursday at 4 pm"
    outcome = await after(tmp_path, given, "the shop shuts at 3 on thursdays so I'd better get the cello at 2")
    assert waiting(outcome) == [("pick up the cello", "2026-03-12T14:00")]


async def test_what_is_said_to_stay_keeps_its_day(tmp_path: Path) -> None:
    outcome = await after(tmp_path, *DENTIST_AND_VET, "dentist can wait until monday, vet stays friday")
    assert listed(outcome) == [("ring the dentist", "", "2026-03-16", False), ("ring the vet", "", "2026-03-13", False)]


async def test_what_is_for_another_day_is_not_ticked_off(tmp_path: Path) -> None:
    given = ("add fix the gate to my to-do list", "add oil the hinges to my to-do list")
    outcome = await after(tmp_path, *given, "gate's fixed, thank goodness, hinges are for another day")
    assert listed(outcome) == [("fix the gate", "", "", True), ("oil the hinges", "", "", False)]


@pytest.mark.parametrize(
    ("say", "things"),
    [
        ("shopping list: eggs, no wait we have eggs, just flour and yeast", ["flour", "yeast"]),
        ("liste de courses : des œufs, ah non on en a, juste de la farine et de la levure", ["farine", "levure"]),
        ("plus de lessive et presque plus de javel, mets les deux sur la liste de courses", ["javel", "lessive"]),
    ],
)
async def test_what_was_taken_back_or_is_there_is_not_put_on_a_list(
    tmp_path: Path, say: str, things: list[str]
) -> None:
    assert sorted(todo.text.removeprefix("de la ") for todo in (await after(tmp_path, say)).todos) == things


async def test_of_two_rhythms_the_new_one_counts(tmp_path: Path) -> None:
    given = "remind me every monday at 8 am to weigh myself"
    say = "weighing myself every week is depressing, make that once a month"
    [job] = (await after(tmp_path, given, say)).reminders
    assert "FREQ=MONTHLY" in str(job.spec)


async def test_a_new_rhythm_instead_of_the_old_one_goes_on_repeating(tmp_path: Path) -> None:
    given = "recuérdame beber agua cada hora"
    [job] = (await after(tmp_path, given, "lo de beber agua que sea cada tres horas y no cada hora")).reminders
    assert "INTERVAL=3" in str(job.spec)


@pytest.mark.parametrize(
    ("say", "left"),
    [
        ("the florist emailed back so no need for that one now", [("ring the caterer", "2026-03-12T11:00")]),
        (
            "it's rude to ring the florist that early, do it at 2",
            [("ring the caterer", "2026-03-12T11:00"), ("ring the florist", "2026-03-12T14:00")],
        ),
    ],
)
async def test_a_pronoun_means_what_another_part_names(tmp_path: Path, say: str, left: list[tuple[str, str]]) -> None:
    given = ("remind me to ring the florist tomorrow at 10 am", "remind me to ring the caterer tomorrow at 11 am")
    assert waiting(await after(tmp_path, *given, say)) == left


async def test_two_things_behind_one_verb_both_go(tmp_path: Path) -> None:
    given = tuple(f"ajoute {thing} à ma liste de courses" for thing in ("du thé", "du café", "des biscuits"))
    outcome = await after(tmp_path, *given, "laisse tomber le thé et le café, mais garde les biscuits")
    assert [todo.text for todo in outcome.todos] == ["biscuits"]


async def test_what_is_put_on_a_list_in_the_next_sentence_is_what_was_named(tmp_path: Path) -> None:
    say = "Choir jobs: photocopy the anthem, ring the organist. Put them on a list called choir"
    assert [todo.list for todo in (await after(tmp_path, say)).todos] == ["choir", "choir"]


async def test_who_does_not_eat_something_is_found(tmp_path: Path) -> None:
    outcome = await after(tmp_path, "omar ne mange pas de gluten", "QUI NE MANGE PAS DE GLUTEN")
    assert "omar" in outcome.answer


@pytest.mark.parametrize(
    ("given", "say"),
    [
        ("remind me to ring the bank on friday at 4 pm", "the bank closed at four on fridays when I was little"),
        ("remind me about choir on thursday at 7 pm", "choir used to start at half past six back in the old church"),
        ("rappelle-moi le dentiste lundi à 10h", "mon dentiste a déménagé à Nantes il y a deux ans"),
    ],
)
async def test_what_was_once_so_changes_nothing(tmp_path: Path, given: str, say: str) -> None:
    before = waiting(await after(tmp_path / "before", given))
    outcome = await after(tmp_path / "after", given, say)
    assert waiting(outcome) == before
    assert "noted" in outcome.answer.casefold()
