"""Notes of the days: there after each compaction, reset and nap, each thing once, and nothing secret in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.errors import StoreError
from assistant.models.offline.model import OfflineModel
from sleep.cycle.notes import NOTES_PHASE
from sleep.cycle.phase import PhaseResult
from tests.support.compaction_app import app_with_long_messages
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import ScriptedModel
from tests.support.sleep_home import FACTS, LEARNED_TEXTS, SleepHome, learn_every_line, say_facts
from tests.support.store_home import NOW, CrashingStore

TODAY = NOW.date()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SleepHome]:
    home = SleepHome(tmp_path).open()
    yield home
    home.close()


def noted(home: SleepHome) -> list[str]:
    return [line for line in home.files.read_daily_note("owner", TODAY).splitlines() if line.startswith("- ")]


def todays_notes(it: LiveApp) -> str:
    return it.app.stores.files.read_daily_note("owner", it.clock().date())


# ------------------------------------------------------------------------------------------------------------ when


async def test_a_compaction_notes_what_it_found_worth_keeping_and_the_next_prompt_has_it(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 25) as it:
        assert todays_notes(it) == ""
        assert "Compacted" in await it.app.commands.run("/compact", "main")
        assert "- The person walks along the shore." in todays_notes(it)
        await it.say("Where do I walk?")
        await it.wait_idle()
        assert "- The person walks along the shore." in "\n".join(block.text for block in it.model.requests[-1].system)


async def test_a_compaction_without_a_model_notes_what_the_rules_read(tmp_path: Path) -> None:
    environ = {"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "15000"}
    async with run_app(tmp_path, model=OfflineModel(), **environ) as it:  # type: ignore[arg-type]
        for text in ("My sister is called Hanna.", *("I went along the shore and back over the hill. " * 12,) * 25):
            await it.say(text)
            await it.wait_idle()
        assert "Compacted" in await it.app.commands.run("/compact", "main")
        assert "Hanna" in todays_notes(it)


async def test_a_reset_notes_what_was_learned(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Nice.", writer=ScriptedModel(learn_every_line, name="writer-1")) as it:
        await it.say("I live in Oslo.")
        await it.wait_idle()
        await it.app.commands.run("/reset", "main")
        assert "- Told: I live in Oslo." in todays_notes(it)


async def test_a_nap_notes_today_and_the_night_notes_nothing_twice(home: SleepHome) -> None:
    say_facts(home)
    report = await home.run_sleep(trigger="nap")
    assert noted(home) == [f"- {text}" for text in LEARNED_TEXTS]
    assert report.phases[NOTES_PHASE]["notes"] == 1
    text = home.files.read_daily_note("owner", TODAY)
    await home.run_sleep()
    assert home.files.read_daily_note("owner", TODAY) == text


async def test_what_was_said_on_earlier_days_is_noted_in_sleep_alone_which_rests_before_each_note(
    home: SleepHome,
) -> None:
    """A compaction within a turn once wrote the notes of 111 days, with 450 waits for the disk."""
    say_facts(home)
    await home.sleep()
    home.notes.write_or_log(NOW + timedelta(days=2))
    assert noted(home) == []
    rests: list[int] = []

    async def rest() -> None:
        rests.append(len(noted(home)))

    await replace(home.notes, rest=rest).run(1, PhaseResult(), NOW + timedelta(days=2))
    assert noted(home) == [f"- {text}" for text in LEARNED_TEXTS] and rests == [0]


# -------------------------------------------------------------------------------------------------------- each once


async def test_notes_that_a_crash_kept_from_being_counted_are_written_once(home: SleepHome) -> None:
    say_facts(home, *FACTS[:2])
    await home.sleep()
    crashing = replace(home.notes, journal=CrashingStore(home.journal, "add", error=StoreError("full")))
    with pytest.raises(StoreError):
        await crashing.run(1, PhaseResult(), NOW)
    assert len(noted(home)) == 2
    home.restart()
    say_facts(home, *FACTS[2:])
    await home.sleep()
    home.notes.write_or_log(NOW)
    assert noted(home) == [f"- {text}" for text in LEARNED_TEXTS]


async def test_what_a_note_says_already_is_not_noted_again(home: SleepHome) -> None:
    home.files.append_daily_note("owner", TODAY, "10:00", ["I live in Oslo, in a red house by the fjord."], "k")
    home.model.provider = "offline"
    say_facts(home, "I live in Oslo.", "My cat is called Mio.")
    await home.run_sleep(trigger="nap")
    assert noted(home) == ["- I live in Oslo, in a red house by the fjord.", "- My cat is called Mio."]


async def test_a_line_that_a_person_took_out_stays_out(home: SleepHome) -> None:
    home.model.provider = "offline"
    say_facts(home, "My cat is called Mio.")
    await home.run_sleep(trigger="nap")
    (home.path / "memory" / f"{TODAY}.md").write_text("mine\n")
    with home.character_db.write():
        home.character_db.execute("DELETE FROM readings WHERE phase = ?", (NOTES_PHASE,))
    await home.run_sleep()
    assert home.files.read_daily_note("owner", TODAY) == "mine\n"


# ---------------------------------------------------------------------------------------------------------- not noted


async def test_a_secret_is_in_no_note_and_not_in_memory_md_and_the_report_says_so(home: SleepHome) -> None:
    home.model.provider = "offline"
    say_facts(home, "My wifi password is Hunter2-blue.", "My cat is called Mio.")
    report = await home.run_sleep()
    files = "".join(path.read_text() for path in home.path.glob("**/*.md"))
    assert "Mio" in files and "Hunter2" not in files
    assert report.phases["curate"]["secrets"] == 1
    assert any("Hunter2-blue" in text for text in home.entry_texts()), "it is kept"


async def test_a_secret_is_in_no_profile(home: SleepHome) -> None:
    home.model.provider = "offline"
    say_facts(home, "My sister Anna's password is Hunter2-blue.", "My sister Marta lives in Bergen.")
    report = await home.run_sleep()
    assert [profile.name for profile in home.profiles.list_profiles("owner")] == ["Marta"]
    assert report.phases["curate"]["secrets"] == 1
    assert any("Hunter2-blue" in text for text in home.entry_texts()), "it is kept"


async def test_a_full_day_keeps_no_other_day_from_being_noted(home: SleepHome) -> None:
    home.model.provider = "offline"
    (home.path / "memory").mkdir()
    (home.path / "memory" / f"{TODAY}.md").write_text("x" * 70_000)
    say_facts(home, "My cat is called Mio.")
    report = await home.run_sleep(trigger="nap")
    assert "is full" in str(report.phases[NOTES_PHASE]["rejected"]) and report.state == "done"
    assert (await home.run_sleep(1, trigger="nap")).phases[NOTES_PHASE]["rejected"] == []
