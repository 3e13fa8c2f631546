"""What a sleep may spend, and what a refusal of the app's budget means for the rest of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from assistant.core.errors import BudgetExceeded, ModelError, RepeatedRequestBlocked
from assistant.core.model_api import ModelRequest
from sleep.compaction.answer import SummaryUnusable
from sleep.compaction.budget import BudgetedModel, SleepBudget
from sleep.compaction.summarise import SummaryAttempts, request_summary
from tests.support.scripted import ScriptedModel

NOW = datetime(2026, 11, 20, 3, 30, tzinfo=UTC)
ASKED = ModelRequest((), ())
SPENT = BudgetExceeded("The daily budget is used up: $5.00 of $5.00. Your message is kept; raise it.")


def purse(most: float = 0.0) -> SleepBudget:
    return SleepBudget(most, lambda since: 0.0, lambda model, request: 1.0)


async def stream(model: BudgetedModel) -> None:
    async for _ in model.stream(ASKED, "scoring"):
        pass


async def test_f43_after_one_refusal_nobody_is_asked_in_the_rest_of_that_sleep() -> None:
    sleep_budget, model = purse(), ScriptedModel(SPENT, "here")
    thrifty = BudgetedModel(model, sleep_budget)
    sleep_budget.start(NOW)
    for _ in range(3):
        with pytest.raises(BudgetExceeded):
            await stream(thrifty)
    assert len(model.requests) == 1 and thrifty.provider == "offline"
    assert sleep_budget.exhausted_reason == "The daily budget is used up: $5.00 of $5.00. The rules did the rest"
    sleep_budget.stop()
    sleep_budget.start(NOW)
    await stream(thrifty)
    assert len(model.requests) == 2 and thrifty.provider == "scripted"


async def test_a_summary_that_is_refused_ends_the_asking_too() -> None:
    sleep_budget = purse()
    sleep_budget.start(NOW)
    with pytest.raises(SummaryUnusable):
        await request_summary(ScriptedModel(SPENT), ASKED, "main", lambda *about: None, SummaryAttempts(), sleep_budget)
    assert sleep_budget.is_exhausted


@pytest.mark.parametrize("error", [RepeatedRequestBlocked(), ModelError("down", kind="network")])
async def test_what_says_nothing_of_other_requests_leaves_the_model_to_them(error: ModelError) -> None:
    sleep_budget = purse()
    sleep_budget.start(NOW)
    with pytest.raises(ModelError):
        await stream(BudgetedModel(ScriptedModel(error), sleep_budget))
    assert not sleep_budget.is_exhausted


async def test_between_sleeps_a_refusal_is_no_more_than_that() -> None:
    sleep_budget = purse()
    with pytest.raises(BudgetExceeded):
        await stream(BudgetedModel(ScriptedModel(SPENT), sleep_budget))
    assert not sleep_budget.is_exhausted


async def test_its_own_limit_is_told_as_its_own() -> None:
    sleep_budget = purse(0.5)
    sleep_budget.start(NOW)
    with pytest.raises(BudgetExceeded, match=r"^\$0\.50 a sleep"):
        await stream(BudgetedModel(ScriptedModel("here"), sleep_budget))
