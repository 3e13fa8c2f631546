"""One more of what was just set, and what is no longer wanted, said without naming much."""

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
