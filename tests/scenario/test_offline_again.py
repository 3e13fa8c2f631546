"""One more of what was just set, what is no longer wanted, another hour, and a day to leave out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.utterances import play

AGAIN = {
    "en": (["remind me to feed the cat tomorrow at 18:00"], "same again on Friday"),
    "de": (["erinnere mich morgen um 18 Uhr an die Katze"], "Am Freitag noch einmal das Gleiche"),
    "fr": (["rappelle-moi le chat demain à 18 h"], "La même chose vendredi"),
    "es": (["recuérdame el gato mañana a las 18:00"], "Lo mismo el viernes"),
}


@pytest.mark.parametrize("lang", AGAIN)
async def test_the_same_again_sets_another_and_moves_none(tmp_path: Path, lang: str) -> None:
    given, say = AGAIN[lang]
    before, after = await play(tmp_path / "home", {"given": given, "say": say})
    (first,) = before.reminders
    assert {job.due for job in before.reminders} < {job.due for job in after.reminders}, after.answer
    (other,) = [job for job in after.reminders if job.id != first.id]
    assert other.text == first.text and other.due is not None and other.due.key == "2026-03-13T18:00"


async def test_a_reminder_that_is_no_longer_wanted_is_the_one_that_is_named(tmp_path: Path) -> None:
    given = ["remind me to visit the vet on Friday at 16:00", "remind me to feed the cat tomorrow at 18:00"]
    _, after = await play(tmp_path / "a", {"given": given, "say": "the vet reminder is no longer wanted"})
    assert [job.text for job in after.reminders] == ["feed the cat"], after.answer
    _, after = await play(tmp_path / "b", {"given": given[1:], "say": "the vet reminder is no longer wanted"})
    assert [job.text for job in after.reminders] == ["feed the cat"], after.answer


@pytest.mark.parametrize(
    ("given", "say"),
    [
        ("recuérdame el taxi mañana a las 7:00", "cámbiame el taxi a las 8"),
        ("remind me about the taxi tomorrow at 7:00", "change the taxi to 8"),
    ],
)
async def test_another_hour_is_no_other_text(tmp_path: Path, given: str, say: str) -> None:
    _, after = await play(tmp_path / "home", {"given": [given], "say": say})
    (taxi,) = after.reminders
    assert "taxi" in taxi.text and taxi.due is not None and taxi.due.key == "2026-03-12T08:00", after.answer


async def test_to_skip_a_later_day_of_a_daily_reminder_drops_none_of_those_between(tmp_path: Path) -> None:
    given = ["remind me to take the pills every day at 8"]
    before, after = await play(tmp_path / "home", {"given": given, "say": "skip the pills on Saturday"})
    assert after.reminders == before.reminders and "only leave out the next two times" in after.answer
    _, after = await play(tmp_path / "next", {"given": given, "say": "skip the pills tomorrow"})
    assert [job.due.key for job in after.reminders if job.due] == ["2026-03-13T08:00"], after.answer
