"""What offline mode says to something told: "Noted.", and that nothing was changed only where it may have been an
order; and that capitals change nothing in a question."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.models.offline.model import OfflineModel
from tests.support.running_app import LiveApp, run_app
from tests.support.utterances import play

TOLD = [
    "My sister moved to Bergen",
    "My sister Ines moved to Bergen in March.",
    "MY SISTER MOVED TO BERGEN",
    "The dentist said I have no cavities",
    "He called me yesterday",
    "Lars quit smoking",
    "Meine Schwester ist nach Bergen gezogen",
    "Anna hat eine Nussallergie",
    "Der Code für die Heizung ist 4711",
    "Die Nachbarn haben einen neuen Hund",
    "Anna est allergique aux noix",
    "Les voisins ont un nouveau chien",
    "Ana es alérgica a los frutos secos",
    "Los vecinos tienen un perro nuevo",
]
NOT_CHANGED = "No reminder or to-do was changed."


async def answer(it: LiveApp, text: str) -> str:
    await it.say(text)
    await it.wait_idle()
    return it.bridge.bodies[-1]


async def test_what_only_tells_something_is_noted_without_another_word(tmp_path: Path) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as it:
        await answer(it, "hello")
        assert {text: await answer(it, text) for text in TOLD} == dict.fromkeys(TOLD, "Noted.")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("remind me to see the dentist tomorrow at 9", "The dentist moved to Bergen"),
        ("add potatoes to my list", "My sister loves potatoes now"),
    ],
)
async def test_what_names_something_that_waits_is_told_that_nothing_was_changed(
    tmp_path: Path, given: str, told: str
) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as it:
        await answer(it, given)
        await answer(it, "I like tea")
        assert "was changed" in await answer(it, told)


@pytest.mark.parametrize("asked", ["WHERE IS THE SPARE KEY", "WHERE IS THE SPARE KEY?", "Where Is The Spare Key?"])
async def test_a_question_in_capitals_finds_the_same(tmp_path: Path, asked: str) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as it:
        await answer(it, "Remember that Anna has the spare key")
        assert "> Remember that Anna has the spare key" in await answer(it, asked)
        assert (await answer(it, asked)).startswith("You told me")


@pytest.mark.parametrize(
    "say",
    [
        "remember the milk",
        "don't forget the bread and the eggs",
        "vergiss die Milch nicht",
        "n'oublie pas le lait",
        "no olvides la leche",
    ],
)
async def test_what_is_only_to_be_thought_of_is_noted_with_how_to_put_it_on_a_list(tmp_path: Path, say: str) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as it:
        assert (await answer(it, say)).startswith(f"Noted. {NOT_CHANGED} To put it on your to-do list, say: add")


@pytest.mark.parametrize(
    ("told", "meant", "asked"),
    [
        ("my dentist appointment is on Thursday at 3pm", "no, I meant the dentist", "when is my dentist appointment?"),
        ("mein Zahnarzttermin ist am Donnerstag", "nein, ich meinte den Zahnarzt", "wann ist mein Zahnarzttermin?"),
        ("mon dentiste est le docteur Blum", "non, je voulais dire le dentiste", "qui est mon dentiste ?"),
        ("mi dentista es la doctora Ruiz", "no, me refería al dentista", "¿quién es mi dentista?"),
    ],
)
async def test_a_correction_that_gives_no_other_value_replaces_nothing(
    tmp_path: Path, told: str, meant: str, asked: str
) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as it:
        await answer(it, told)
        assert "nothing was replaced" in await answer(it, meant)
        said = await answer(it, asked)
        assert f"> {told}" in said
        assert "replaces" not in said


@pytest.mark.parametrize(
    "asked",
    [
        "what did we talk about today",
        "what have I told you today?",
        "worüber haben wir heute gesprochen",
        "de quoi avons-nous parlé aujourd'hui ?",
        "de qué hablamos hoy",
    ],
)
async def test_what_was_talked_about_is_what_was_told(tmp_path: Path, asked: str) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as it:
        await answer(it, "my sister Ines moved to Bergen")
        assert "> my sister Ines moved to Bergen" in await answer(it, asked)


@pytest.mark.parametrize(
    "asked", ["what is the launch date?", "was ist der Starttermin?", "quelle est la date de lancement ?"]
)
async def test_a_question_about_a_date_that_nobody_told_is_not_answered_with_the_agenda(
    tmp_path: Path, asked: str
) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as it:
        assert (await answer(it, asked)).startswith("I found nothing in what you told me")


@pytest.mark.parametrize(
    "asked",
    ["qu'est-ce que j'ai demain", "j'ai quoi demain", "qué tengo mañana", "was hab ich morgen"],
)
async def test_a_question_without_a_mark_is_nothing_that_was_told_of_a_day(tmp_path: Path, asked: str) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as it:
        await answer(it, asked)
        assert (await answer(it, "what do I have tomorrow?")).startswith("Nothing is planned")


@pytest.mark.parametrize(
    ("asked", "days"),
    [
        ("how many days until June 4th", "85 days until Thursday 2026-06-04"),
        ("how many days until christmas", "289 days until Friday 2026-12-25"),
        ("wie viele tage noch bis weihnachten?", "289 days until Friday 2026-12-25"),
        ("combien de jours jusqu'à noël", "289 days until Friday 2026-12-25"),
        ("cuántos días faltan para navidad", "289 days until Friday 2026-12-25"),
    ],
)
async def test_days_until_a_day_are_counted(tmp_path: Path, asked: str, days: str) -> None:
    _, after = await play(tmp_path / "home", {"kind": "question", "say": asked})
    assert days in after.answer


@pytest.mark.parametrize(
    "asked",
    [
        "how long until Grandma's birthday?",
        "how many days until Grandma's birthday?",
        "wie lange noch bis Grandma's birthday?",
        "combien de temps avant Grandma's birthday ?",
        "¿cuánto falta para Grandma's birthday?",
    ],
)
async def test_days_until_what_is_planned_are_counted(tmp_path: Path, asked: str) -> None:
    given = ["Don't let me forget Grandma's birthday on March 30th"]
    _, after = await play(tmp_path / "home", {"kind": "question", "given": given, "say": asked})
    assert "19 days until Monday 2026-03-30." in after.answer


@pytest.mark.parametrize(
    ("say", "text"),
    [
        ("could you nudge me every other Thursday at 7pm to put the bins out", "put the bins out"),
        ("could you alert me at 7pm about the oven", "oven"),
        ("remind me on Friday at 5 that I have a meeting with Marta", "meeting with Marta"),
    ],
)
async def test_a_reminder_is_of_what_is_to_be_done_without_the_words_of_the_order(
    tmp_path: Path, say: str, text: str
) -> None:
    _, after = await play(tmp_path / "home", {"kind": "reminder_set", "say": say})
    assert [one.text for one in after.reminders] == [text]


@pytest.mark.parametrize("asked", ["how many days until the wedding"])
async def test_what_cannot_be_reckoned_is_said(tmp_path: Path, asked: str) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as it:
        assert (await answer(it, asked)).startswith("I can't do that")
