"""Orders that offline mode misread for a single word or form, each with its siblings in English and German."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.utterances import after, find_faults, play, waiting

JOKES = ("another joke", "one more joke please", "noch einen Witz bitte", "otro chiste")


@pytest.mark.parametrize(
    ("order", "due"),
    [
        ("remind me at 2:15pm to call Bob", "14:15"),
        ("remind me at 6:20 pm to call Bob", "18:20"),
        ("at 4:13pm remind me to call Bob", "16:13"),
    ],
)
async def test_minutes_before_pm_are_no_hour(tmp_path: Path, order: str, due: str) -> None:
    assert waiting(await after(tmp_path, order)) == [("call Bob", f"2026-03-11T{due}")]


@pytest.mark.parametrize(
    ("order", "start"),
    [
        ("remind me fortnightly on tuesdays at 7 am of the bins", "2026-03-17T07:00"),
        ("every fortnight on Tuesday at 7 am remind me of the bins", "2026-03-17T07:00"),
        ("every 14 days on Tuesdays at 7 am the bins, remind me", "2026-03-17T07:00"),
        ("erinnere mich alle 14 Tage dienstags um 7 Uhr an die bins", "2026-03-17T07:00"),
        ("vierzehntägig dienstags um 7 Uhr an die bins erinnern", "2026-03-17T07:00"),
        ("erinnere mich zweiwöchentlich am Dienstag um 7 Uhr an die bins", "2026-03-17T07:00"),
    ],
)
async def test_what_comes_every_fortnight_comes_every_two_weeks(tmp_path: Path, order: str, start: str) -> None:
    row = {
        "kind": "reminder_set",
        "say": order,
        "then": {"reminders": [{"text": ["bins"], "due": start, "repeat": "every 2 weeks"}]},
    }
    before, outcome = await play(tmp_path / "home", row)
    assert find_faults(row, before, outcome) == [], outcome.answer


@pytest.mark.parametrize("said", JOKES)
async def test_another_joke_is_no_to_do(tmp_path: Path, said: str) -> None:
    outcome = await after(tmp_path, "add paint to my list", said)
    assert [todo.text for todo in outcome.todos] == ["paint"]


@pytest.mark.parametrize(
    "said", ["gibts ne Erinnerung für Lia?", "gibts ne erinnerung für lia", "hab ich ne Erinnerung für Lia"]
)
async def test_to_ask_for_a_reminder_in_german_slang_cancels_none(tmp_path: Path, said: str) -> None:
    outcome = await after(tmp_path, "erinnere mich morgen um 16 Uhr an Lia", said)
    assert waiting(outcome) == [("Lia", "2026-03-12T16:00")]
    assert "Lia" in outcome.answer


@pytest.mark.parametrize("said", ["forget it", "vergiss es", "never mind", "lass gut sein"])
async def test_what_was_just_ordered_is_taken_back_and_nothing_older(tmp_path: Path, said: str) -> None:
    assert not (await after(tmp_path / "one", "remind me to call Bob tomorrow at 9", said)).reminders
    later = await after(tmp_path / "two", "remind me to call Bob tomorrow at 9", "I like tea", said)
    assert waiting(later) == [("call Bob", "2026-03-12T09:00")]
    assert later.answer == "All right."


@pytest.mark.parametrize(
    ("order", "reminders"),
    [
        (
            "remind me that the bins go out tonight at 9 and that I need to phone Dave tomorrow at noon",
            [("bins", "2026-03-11T21:00"), ("Dave", "2026-03-12T12:00")],
        ),
        (
            "erinner mich heute um 21 Uhr an die Tonne und morgen Mittag an den Anruf bei Dirk",
            [("Tonne", "2026-03-11T21:00"), ("Dirk", "2026-03-12T12:00")],
        ),
        (
            "remind me at midday and at 6 to feed the puppy",
            [("puppy", "2026-03-11T12:00"), ("puppy", "2026-03-11T18:00")],
        ),
    ],
)
async def test_each_moment_of_an_order_is_set(tmp_path: Path, order: str, reminders: list[tuple[str, str]]) -> None:
    row = {
        "kind": "reminder_set",
        "say": order,
        "then": {"reminders": [{"text": [word], "due": due, "repeat": None} for word, due in reminders]},
    }
    before, outcome = await play(tmp_path / "home", row)
    assert find_faults(row, before, outcome) == [], outcome.answer


@pytest.mark.parametrize(
    "said",
    ["samstag 5 uhr früh wecken, die fähre geht um sieben", "wake me at 5 am on saturday, the ferry leaves at 7"],
)
async def test_why_an_alarm_is_wanted_sets_no_other(tmp_path: Path, said: str) -> None:
    assert [due for _, due in waiting(await after(tmp_path, said))] == ["2026-03-14T05:00"]


@pytest.mark.parametrize("said", ["I'm skipping the gym today", "giving the gym a miss tonight"])
async def test_what_comes_once_and_is_skipped_does_not_come(tmp_path: Path, said: str) -> None:
    assert not (await after(tmp_path, "remind me of the gym today at 6 pm", said)).reminders


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("remind me of the hairdresser on friday at 10", "I don't want the garage reminder any more"),
        ("erinnere mich am Freitag um 10 an den Friseur", "ich will die Erinnerung an die Werkstatt nicht mehr"),
        ("rappelle-moi le coiffeur vendredi à 10h", "je ne veux plus du rappel du garage"),
        ("recuérdame la peluquería el viernes a las 10:00", "ya no quiero el aviso del taller"),
    ],
)
async def test_not_to_want_a_reminder_that_there_is_not_takes_no_other_away(
    tmp_path: Path, order: str, said: str
) -> None:
    assert [due for _, due in waiting(await after(tmp_path, order, said))] == ["2026-03-13T10:00"]


@pytest.mark.parametrize(
    ("order", "due"),
    [
        ("set a timer for an hour and a half", "10:30"),
        ("timer two hours and a half", "11:30"),
        ("remind me in a minute and a half to call Tom", "09:01"),
    ],
)
async def test_an_hour_and_a_half_is_one_length(tmp_path: Path, order: str, due: str) -> None:
    assert [at[: len("2026-03-11T10:30")] for _, at in waiting(await after(tmp_path, order))] == [f"2026-03-11T{due}"]
