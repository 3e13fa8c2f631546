"""A model judges and weighs what the journal learned, well or badly; and both phases in a whole sleep."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from assistant.core.memories import SleepReport
from assistant.store.script.index import UnreadMessages
from sleep.cycle.consolidate import ConsolidationPhase
from sleep.cycle.cycle import SleepCycle
from sleep.cycle.extract import Extractor
from sleep.cycle.judge import EntryJudge, ScoringPhase, count_scoring_calls
from sleep.cycle.phase import JsonLinesModel, PhaseResult
from sleep.rules.classifier import UNCERTAIN_BAND
from tests.support.consolidation_home import (
    JANUARY,
    JUNE,
    MARCH,
    NOW,
    ConsolidationHome,
    decisions_answer,
    open_consolidation_home,
    scores_answer,
    zero_cost,
)
from tests.support.scripted import ScriptedModel
from tests.support.sleep_home import JournalHome, learn_every_line, no_compaction_due, say_facts

OSLO, BERGEN = "I live in Oslo.", "I moved from Oslo to Bergen."


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[ConsolidationHome]:
    async with open_consolidation_home(tmp_path) as home:
        yield home


# ------------------------------------------------------------------------------------------------------------- a model


async def test_a_model_decides_on_what_it_was_shown(tmp_path: Path) -> None:
    async with open_consolidation_home(tmp_path, decisions_answer(("E1", "new", []))) as home:
        home.add_entries(("The blue one is ours.", JANUARY))
        await home.consolidate()
        home.model.script = [decisions_answer(("E1", "junk", []), ("E2", "same", ["M1"]), ("E3", "supersedes", ["M1"]))]
        home.add_entries(("We swapped with the neighbours.", JUNE), "The hedge grows.", ("Ours: the blue.", MARCH))
        outcome = await home.consolidate()
        assert await home.current_texts() == {"We swapped with the neighbours."}
        assert (outcome.details["superseded"], outcome.details["merged"], outcome.details["junk"]) == (1, 1, 1)
        assert outcome.rejected == ["the model found it not worth keeping"]
        assert outcome.calls == 1


async def test_the_calls_of_several_scopes_are_foreseen(tmp_path: Path) -> None:
    everything_new = decisions_answer(*((f"E{number}", "new", []) for number in range(1, 21)))
    async with open_consolidation_home(tmp_path, everything_new) as home:
        for number in range(24):
            home.add_entries(f"The box with the number {number} is in the attic.")
            home.add_entries(f"The jar with the number {number} is in the cellar.", scope="peer:x:1")
        pending = home.consolidations.pending_entries(limit=1000)
        foreseen = (await home.consolidation().forecast(pending)).calls
        assert foreseen == (await home.consolidate()).calls == len(home.model.requests) == 4


async def test_the_calls_that_weigh_are_foreseen(tmp_path: Path) -> None:
    async with open_consolidation_home(tmp_path, scores_answer(("E1", 0.5))) as home:
        home.add_entries("The hedge grows.", "The gate squeaks.")
        home.add_entries("The jar is full.", scope="peer:x:1")
        waiting = home.consolidations.unscored_entries(0, *UNCERTAIN_BAND, limit=1000)
        assert count_scoring_calls(waiting) == (await home.score()).calls == 2


async def test_a_model_is_shown_the_days_of_the_home(tmp_path: Path) -> None:
    async with open_consolidation_home(tmp_path, decisions_answer(("E1", "new", []))) as home:
        home.add_entries((OSLO, datetime(2026, 1, 5, 20, 0, tzinfo=UTC)))
        await home.consolidate()
        home.add_entries((BERGEN, datetime(2026, 3, 5, 20, 0, tzinfo=UTC)))
        asker = JsonLinesModel(lambda: home.model, "Decide. <decisions>", "decisions", "consolidation", zero_cost)
        judge = EntryJudge(asker, zone=ZoneInfo("Asia/Tokyo"))
        await ConsolidationPhase(home.consolidations, home.memories, judge).run(2, PhaseResult(), NOW)
        asked = home.model.requests[-1].messages[0].content
        assert f"E1 (2026-03-06): {BERGEN}" in asked and f"M1 (2026-01-06): {OSLO}" in asked


NONSENSE = {
    "prose": "I think E1 is new.",
    "no json": "<decisions>\nE1 new\n</decisions>",
    "labels it was not shown": decisions_answer(
        ("E1", "supersedes", ["M7"]), ("E2", "same", ["M7"]), ("E9", "junk", [])
    ),
    "two of which there is one": decisions_answer({"entry": "E1", "decision": "same", "of": ["M1", "M2"]}),
    "of no form": decisions_answer(
        {"entry": ["E1"], "decision": 3, "of": {"a": 1}}, {"entry": "E1", "decision": "same"}
    ),
    "deep": "<decisions>" + "[" * 100_000 + "</decisions>",
    "junk of weight": decisions_answer(("E1", "junk", []), ("E2", "junk", [])),
}


@pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE)
async def test_f28_where_a_model_answers_nonsense_the_rules_decide(tmp_path: Path, answer: str) -> None:
    async with open_consolidation_home(tmp_path, answer) as home:
        home.add_entries((OSLO, JANUARY), (BERGEN, JUNE))
        outcome = await home.consolidate()
        assert await home.current_texts() == {BERGEN}
        assert len(await home.memory_texts()) == 2
        assert (outcome.calls, bool(outcome.details["model"])) == (1, True)


async def test_f32_a_model_of_no_use_is_asked_once_in_a_sleep(tmp_path: Path) -> None:
    async with open_consolidation_home(tmp_path, "no") as home:
        home.entries_per_call = 5
        home.add_entries(*(f"Locker {number} belongs to team {number + 500}." for number in range(120)))
        outcome = await home.consolidate()
        assert (outcome.calls, outcome.read_count, len(home.model.requests)) == (1, 120, 1)


async def test_f33_a_model_is_shown_one_scope_and_can_name_no_other(tmp_path: Path) -> None:
    async with open_consolidation_home(tmp_path) as home:
        home.add_entries((OSLO, JANUARY))
        await home.consolidate()
        home.model.provider = "scripted"
        home.model.script = [decisions_answer(("E1", "supersedes", ["M1"]))]
        home.add_entries((BERGEN, JUNE), scope="peer:x:ann")
        await home.consolidate()
        assert "Oslo.\n" not in home.model.requests[0].messages[0].content
        assert (await home.current_texts("owner"), await home.current_texts("peer:x:ann")) == ({OSLO}, {BERGEN})


async def test_f29_what_is_said_twice_in_one_call_is_one_memory_whatever_a_model_says(tmp_path: Path) -> None:
    async with open_consolidation_home(tmp_path, decisions_answer(("E1", "new", []), ("E2", "new", []))) as home:
        home.add_entries("I play the cello.", "The user plays the cello.")
        await home.consolidate()
        assert len(await home.memory_texts()) == 1


async def test_what_is_put_right_twice_in_one_call_holds_as_it_was_said_last(tmp_path: Path) -> None:
    answer = decisions_answer(("E1", "supersedes", ["M1"]), ("E2", "supersedes", ["M1"]))
    async with open_consolidation_home(tmp_path) as home:
        home.add_entries(("I live in Oslo.", JANUARY))
        await home.consolidate()
        home.model.provider, home.model.script = "scripted", [answer]
        home.add_entries(("I live in Bergen.", JUNE), ("I live in Rome now.", JUNE + timedelta(minutes=1)))
        await home.consolidate()
        assert await home.current_texts() == {"I live in Rome now."}


# ------------------------------------------------------------------------------------------------------------ weighed


async def test_what_the_rules_are_unsure_of_is_weighed_by_a_model_once(tmp_path: Path) -> None:
    async with open_consolidation_home(
        tmp_path, scores_answer(("E1", 0.1), ("E2", 7), ("E3", True), ("E9", 0.9))
    ) as home:
        home.add_entries("The hedge grows.", "I sing in a choir.", "The boat is blue.", OSLO)
        home.add_entries("Someone weighed this.", importance=0.45)
        outcome = await home.score()
        weights = {entry.content: entry.importance for entry in home.journal.entries("owner")}
        assert weights["The hedge grows."] == 0.1
        assert (weights["I sing in a choir."], weights["The boat is blue."], weights[OSLO]) == (0.4, 0.4, 0.7)
        asked = home.model.requests[0].messages[0].content
        assert "Oslo" not in asked and "Someone weighed" not in asked
        assert (outcome.read_count, outcome.written_count, outcome.calls) == (3, 1, 1)
        await home.restart()
        assert (await home.score()).calls == 0


async def test_f28_with_nonsense_for_weights_those_of_the_rules_stay(tmp_path: Path) -> None:
    async with open_consolidation_home(tmp_path, "sorry") as home:
        home.add_entries("The hedge grows.")
        outcome = await home.score()
        assert home.journal.entries("owner")[0].importance == 0.4
        assert (outcome.errors, outcome.rejected) == ([], ["the model answered no list"])


async def test_offline_nobody_is_asked_for_weights(home: ConsolidationHome) -> None:
    home.add_entries("The hedge grows.")
    assert ((await home.score()).calls, home.model.requests) == (0, [])


# ------------------------------------------------------------------------------------------------------- in the cycle


async def test_in_a_sleep_it_follows_what_was_read_and_the_report_tells_of_it(tmp_path: Path) -> None:
    async with open_consolidation_home(tmp_path) as home:
        talk = JournalHome(tmp_path, model=ScriptedModel(learn_every_line)).open()
        say_facts(talk, "I live in Oslo.")
        report = await asleep(talk, home)
        assert list(report.phases) == ["settle", "extract", "score", "consolidate", "compact"]
        assert (report.state, report.phases["consolidate"]["learned"]) == ("done", 1)
        assert await home.current_texts() == {"Told: I live in Oslo."}
        talk.close()


async def test_f30_the_report_says_that_the_store_was_down_and_the_other_phases_went_on(tmp_path: Path) -> None:
    async with open_consolidation_home(tmp_path, cold=True) as home:
        talk = JournalHome(tmp_path, model=ScriptedModel(learn_every_line)).open()
        say_facts(talk, "I live in Oslo.")
        await home.stop_memory()
        report = await asleep(talk, home)
        told = report.phases["consolidate"]
        assert (report.state, told["state"], bool(told["error"])) == ("failed", "failed", True)
        assert (report.phases["extract"]["written"], report.phases["compact"]["state"]) == (1, "done")
        home.allow_memory()
        assert (await asleep(talk, home)).phases["consolidate"]["learned"] == 1
        talk.close()


async def asleep(talk: JournalHome, home: ConsolidationHome) -> SleepReport:
    scoring = ScoringPhase(
        talk.journal, home.consolidations, JsonLinesModel(lambda: home.model, "", "scores", "scoring", zero_cost)
    )
    cycle = SleepCycle(
        talk.conversation,
        UnreadMessages(talk.db, talk.log),
        talk.journal,
        talk.breakers,
        Extractor(lambda: talk.model, "Write down what to keep.", batch_tokens=8_000),
        no_compaction_due,
        failures=3,
        cool_down=timedelta(minutes=30),
        clock=lambda: NOW,
        extra_phases=(("score", scoring.run), ("consolidate", home.consolidation().run)),
    )
    return await cycle.run(NOW)
