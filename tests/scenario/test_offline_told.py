"""What offline mode says to something told: "Noted.", and that nothing was changed only where it may have been an
order; and that capitals change nothing in a question."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.models.offline.model import OfflineModel
from tests.support.running_app import LiveApp, run_app

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


async def test_a_dated_statement_is_told_that_no_reminder_was_set(tmp_path: Path) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as it:
        await answer(it, "hello")
        assert await answer(it, "My flight leaves at 9 on Friday") == f"Noted. {NOT_CHANGED}"


@pytest.mark.parametrize("asked", ["WHERE IS THE SPARE KEY", "WHERE IS THE SPARE KEY?", "Where Is The Spare Key?"])
async def test_a_question_in_capitals_finds_the_same(tmp_path: Path, asked: str) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as it:
        await answer(it, "Remember that Anna has the spare key")
        assert "> Remember that Anna has the spare key" in await answer(it, asked)
        assert (await answer(it, asked)).startswith("You told me")
