"""Whole nights: a phase alone, what a sleep may spend, idle nights, and what is seen while it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assistant.core.errors import StoreError
from assistant.core.model_api import ModelRequest
from assistant.core.ports import Model
from sleep.compaction.budget import BudgetedModel, SleepBudget
from sleep.cycle.cycle import PHASES
from tests.support.consolidation_home import decisions_answer
from tests.support.scripted import ScriptedModel
from tests.support.sleep_home import FACTS, SleepHome, learn_every_line, say_facts
from tests.support.store_home import NOW, CrashingStore, SimulatedCrash


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SleepHome]:
    home = SleepHome(tmp_path).open()
    yield home
    home.close()


def told_new(request: ModelRequest) -> str:
    """A model that takes every line for a fact, and every entry for something new."""
    words = request.messages[0].content
    if "The conversation:" in words:
        return learn_every_line(request)
    labels = [
        line.split(" ", 1)[0].rstrip(":") for line in words.splitlines() if line[:1] == "E" and line[1:2].isdigit()
    ]
    return decisions_answer(*((label, "new", []) for label in labels))


# ----------------------------------------------------------------------------------------------------------- one phase


@pytest.mark.parametrize("phase", PHASES)
async def test_a_phase_alone_does_its_work_alone(home: SleepHome, phase: str) -> None:
    home.model.provider = "offline"
    say_facts(home)
    report = await home.run_sleep(trigger="phase", phase=phase, compact=home.compact_session)
    # Nothing was imported.
    phases = {"extract": ["extract", "notes"], "imports": []}.get(phase, [phase])
    assert (list(report.phases), report.trigger, report.state) == (phases, "phase", "done")
    assert bool(home.entry_texts()) == (phase in ("extract", "compact"))
    assert home.memories.by_id == {}
    assert (len(home.conversation.checkpoints("main")) == 1) == (phase == "compact")


async def test_phases_one_after_another_come_to_the_same_as_a_night(home: SleepHome, tmp_path: Path) -> None:
    home.model.provider = "offline"
    say_facts(home)
    for phase in PHASES:
        await home.run_sleep(trigger="phase", phase=phase)
    (tmp_path / "other").mkdir()
    other = SleepHome(tmp_path / "other").open()
    other.model.provider = "offline"
    say_facts(other)
    await other.run_sleep()
    assert home.snapshot() == other.snapshot()
    other.close()


# -------------------------------------------------------------------------------------------------------- going on


async def test_what_a_sleep_is_at_can_be_seen_by_others(home: SleepHome) -> None:
    say_facts(home)
    home.batch_tokens = 60
    home.model.gate = asyncio.Event()
    asleep = asyncio.create_task(home.run_sleep())
    await home.model.called.wait()
    (seen,) = home.journal.list_cycles()
    assert (seen.state, list(seen.phases)) == ("running", ["settle", "extract"])
    assert seen.phases["extract"]["state"] == "running"
    home.model.called.clear()
    home.model.gate.set()
    await home.model.called.wait()
    assert home.journal.list_cycles()[0].phases["extract"]["read"] > 0
    report = await asleep
    assert all(phase["state"] == "done" for phase in report.phases.values())


async def test_where_nobody_can_be_told_what_goes_on_it_goes_on_all_the_same(home: SleepHome) -> None:
    say_facts(home)
    full = CrashingStore(home.journal, "save_cycle", error=StoreError("The disk is full."))
    home.journal = full  # type: ignore[assignment]
    with pytest.raises(StoreError):
        await home.run_sleep()
    home.restart()
    report = await home.run_sleep()
    assert report.state == "done" and len(home.entry_texts()) == len(FACTS)


async def test_f15_a_sleep_that_a_defect_ends_is_interrupted_and_limits_nothing_after_it(home: SleepHome) -> None:
    say_facts(home)
    purse = SleepBudget(1.0, lambda since: 99.0, lambda model, request: 1.0)

    async def broken(session: str, trigger: str) -> None:
        raise SimulatedCrash

    with pytest.raises(SimulatedCrash):
        await home.run_sleep(budget=purse, compact=broken)
    assert [(one.state, one.ended_at) for one in home.journal.list_cycles()] == [("interrupted", NOW)]
    assert not purse.is_exhausted and purse.allows_call(home.model, ModelRequest((), ()))


# ------------------------------------------------------------------------------------------------------------- spending


class Account:
    """A purse over what a scripted model was asked: each call costs `price`."""

    def __init__(self, model: ScriptedModel, most: float, price: float | None = 0.1) -> None:
        self._model, self._price, self._before = model, price, 0
        self.purse = SleepBudget(most, self._spent, lambda model, request: price)

    def _spent(self, since: object) -> float:
        return (len(self._model.requests) - self._before) * (self._price or 0.0)

    def another_night(self) -> None:
        self._before = len(self._model.requests)


async def test_f32_a_night_that_has_spent_what_it_may_goes_on_by_rules_and_says_so(home: SleepHome) -> None:
    say_facts(home)
    home.batch_tokens = 60
    home.model.script = [told_new]
    account = Account(home.model, 0.2)
    report = await home.run_sleep(budget=account.purse)
    assert len(home.model.requests) == 2
    assert report.state == "done"
    assert home.entry_texts() == [f"Told: {FACTS[0]}", f"Told: {FACTS[1]}", *FACTS[2:]]
    assert len(home.memories.by_id) == 4
    assert report.phases["extract"]["budget"] == "$0.20 a sleep (sleep.max_usd) were used up; the rules did the rest"
    assert home.breakers.get("extraction").failures == 0
    account.another_night()
    say_facts(home, "I own a boat.")
    again = await home.run_sleep(1, budget=account.purse)
    assert "budget" not in again.phases["extract"] and "Told: I own a boat." in home.entry_texts()


async def test_f32_what_is_used_up_by_reading_is_not_there_for_judging(home: SleepHome) -> None:
    say_facts(home)
    home.model.script = [told_new]
    report = await home.run_sleep(budget=Account(home.model, 0.1).purse)
    assert len(home.model.requests) == 1 and len(home.memories.by_id) == 4
    assert "budget" not in report.phases["extract"]
    assert "sleep.max_usd" in report.phases["consolidate"]["budget"]


@pytest.mark.parametrize(("most", "price"), [(0.0, 9.0), (0.1, None), (0.1, 0.0)])
async def test_without_a_limit_or_a_price_a_night_asks_as_it_likes(
    home: SleepHome, most: float, price: float | None
) -> None:
    say_facts(home)
    home.batch_tokens = 60
    home.model.script = [told_new]
    report = await home.run_sleep(budget=Account(home.model, most, price).purse)
    assert all("budget" not in phase for phase in report.phases.values())
    assert len(home.model.requests) > 4


async def test_by_day_nothing_is_limited() -> None:
    model: Model = ScriptedModel()
    purse = SleepBudget(0.01, lambda since: 99.0, lambda model, request: 1.0)
    assert purse.allows_call(model, ModelRequest((), ())) and BudgetedModel(model, purse).provider == "scripted"
    purse.start(NOW)
    assert not purse.allows_call(model, ModelRequest((), ())) and BudgetedModel(model, purse).provider == "offline"
    purse.start(NOW + timedelta(days=1))
    assert BudgetedModel(model, purse).provider == "scripted"


async def test_f32_thirty_idle_nights_make_no_call(home: SleepHome) -> None:
    say_facts(home)
    home.model.script = [told_new]
    await home.run_sleep()
    asked, before = len(home.model.requests), home.snapshot()
    reports: list[Any] = []
    for day in range(1, 31):
        reports.append(await home.run_sleep(day))
        home.restart()
    assert len(home.model.requests) == asked and home.snapshot() == before
    assert {report.state for report in reports} == {"done"}
    assert all(phase["calls"] == 0 for report in reports for phase in report.phases.values())
