"""Offline mode and the agenda take days that do not follow each other, and days in a row, as they are said."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from assistant.agenda.dated_phrases import find_day
from assistant.agenda.day_phrases import parse_days
from assistant.models.offline.model import OfflineModel
from tests.support.running_app import run_app
from tests.support.utterances import BERLIN, NOW, play


@pytest.mark.parametrize("text", ["mon-fri", "mo-fr", "lun-ven", "monday to friday"])
def test_the_agenda_takes_days_in_a_row_by_their_short_names(text: str) -> None:
    days = parse_days(text, ZoneInfo("Europe/Berlin"), NOW)
    assert (days.first, days.last) == (date(2026, 3, 16), date(2026, 3, 20))


def test_days_that_do_not_follow_each_other_are_those_two_alone() -> None:
    told = find_day("Der Markt ist am 3. und 10. Mai", date(2026, 3, 11))
    assert [day for day in range(1, 32) if told.is_on(date(2026, 5, day), date(2026, 3, 11))] == [3, 10]


async def test_a_reminder_is_set_for_each_of_two_days(tmp_path: Path) -> None:
    said = {"say": "Erinnere mich am 3. und 10. Mai um 8 Uhr an die Tonne"}
    _, after = await play(tmp_path / "home", said)
    dues = [f"{job.due.at.astimezone(BERLIN):%m-%d %H:%M}" for job in after.reminders if job.due]
    assert dues == ["05-03 08:00", "05-10 08:00"]


@pytest.mark.parametrize("text", ["I like tea", "J'aime le thé", "The sky is blue."])
async def test_a_plain_statement_asks_no_tool(tmp_path: Path, text: str) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as it:  # type: ignore[arg-type]
        await it.say(text)
        await it.wait_idle()
        (log,) = (tmp_path / "home").rglob("conversation.jsonl")
        assert len(log.read_text(encoding="utf-8").splitlines()) == 2


async def test_questions_in_other_languages_find_lists_and_reminders(tmp_path: Path) -> None:
    given = ["add milk to the shopping list", "remind me tomorrow at 9 to call Bob"]
    _, after = await play(tmp_path / "one", {"given": given, "say": "was steht auf meiner Einkaufsliste?"})
    assert "milk" in after.answer
    _, after = await play(tmp_path / "two", {"given": given, "say": "quels sont mes rappels ?"})
    assert "call Bob" in after.answer


async def test_what_a_sentence_keeps_is_not_what_is_cancelled(tmp_path: Path) -> None:
    given = ["Erinnere mich am Freitag um 9 Uhr, Anna anzurufen", "Erinnere mich am Freitag um 16 Uhr, Anna anzurufen"]
    say = "die spätere von den beiden mit Anna kann weg, die um neun bleibt"
    _, after = await play(tmp_path / "home", {"given": given, "say": say})
    assert [job.due.at.astimezone(BERLIN).hour for job in after.reminders if job.due] == [9]


async def test_a_list_that_nobody_has_empties_no_other_one(tmp_path: Path) -> None:
    given = ["add milk to the shopping list", "add: call the bank"]
    before, after = await play(tmp_path / "home", {"given": given, "say": "clear the camping list"})
    assert before.todos == after.todos


async def test_a_list_whose_name_is_mistyped_is_the_one_that_is_meant(tmp_path: Path) -> None:
    given = ["add milk to the shopping list", "add: call the bank"]
    _, after = await play(tmp_path / "home", {"given": given, "say": "clear teh shoping list"})
    assert [todo.text for todo in after.todos if not todo.done] == ["call the bank"]
