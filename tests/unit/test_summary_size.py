"""How much one call is given to summarise: never so much that its model's prices rise. How much is put back. And that
judging it rests where somebody may wait."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from assistant.core.ports import ModelPair
from assistant.models.offline.model import OfflineModel
from assistant.models.prices import find_price_rise
from assistant.runtime.running_turns import RunningTurn
from assistant.settings.settings import load_settings
from assistant.wire.app import build_app
from sleep.compaction.budget import SleepBudget
from sleep.compaction.message_cache import FOUND_IN_MESSAGES
from sleep.compaction.summarise import Summariser
from tests.study.measure import list_prices
from tests.support.compaction_app import COUNTER, PROMPTS, SUMMARY_ANSWER
from tests.support.scripted import ScriptedModel
from tests.support.summaries import alternating_messages, summary_material


@pytest.mark.parametrize(("name", "most"), [("claude-haiku-5-5", 50_000), ("claude-haiku-4-5", 250_000)])
async def test_a_summary_call_stays_below_the_size_at_which_its_models_price_rises(name: str, most: int) -> None:
    prices = list_prices()

    @contextmanager
    def models() -> Iterator[ModelPair]:
        yield ModelPair(ScriptedModel(window=1_000_000), ScriptedModel(window=1_000_000, name=name))

    summariser = Summariser(
        models,
        PROMPTS,
        lambda model: COUNTER,
        lambda *_: 0.0,
        restored_max_tokens=200,
        timeout_seconds=30,
        price_rise=lambda provider, model: find_price_rise(prices, "anthropic", model),
    )
    assert await summariser.max_chunk_tokens() == most


async def test_wishes_of_a_whole_life_survive_where_little_is_put_back() -> None:
    """As in the small contexts of `thrifty`, with the wishes of many summaries in one."""
    foods = ["liver", "eel", "tripe", "swede", "oysters", "brawn", "kale", "okra", "quince", "squid", "tofu", "celery"]
    wishes = [f"Never suggest {food} to me again, I have had enough of that." for food in foods]
    talk = [text for wish in wishes for text in (f"{wish} The train was late. " * 3, "Fine, the next one then. " * 9)]
    material = replace(summary_material(alternating_messages(*talk)), budget=600, restored_max_tokens=80)
    models = ModelPair(ScriptedModel(), ScriptedModel(SUMMARY_ANSWER, window=32_000))
    summariser = Summariser(
        lambda: nullcontext(models),
        PROMPTS,
        lambda model: COUNTER,
        lambda *_: 0.0,
        restored_max_tokens=800,
        timeout_seconds=30,
    )
    summary = await summariser.summarise(material)
    assert summary.tier == "full" and [wish for wish in wishes if wish not in summary.text] == []
    assert summary.tokens < sum(COUNTER.count_message(row) for row in material.rows)


# 200 for the facts of the person; without a model as well for those 115 of which a line may still be chosen.
@pytest.mark.parametrize(("background", "writer", "rested"), [(True, "model", 200), (True, "", 315), (False, "", 0)])
async def test_background_work_rests_before_each_of_the_first_messages_that_it_judges(
    background: bool, writer: str, rested: int
) -> None:
    FOUND_IN_MESSAGES.clear()
    rests: list[str] = []
    by_model = ScriptedModel(SUMMARY_ANSWER, window=200_000)
    models = ModelPair(ScriptedModel(), by_model if writer else OfflineModel())
    summariser = Summariser(
        lambda: nullcontext(models),
        PROMPTS,
        lambda model: COUNTER,
        lambda *_: 0.0,
        restored_max_tokens=200,
        timeout_seconds=30,
        rest=lambda: rests.append(threading.current_thread().name),
    )
    material = summary_material(alternating_messages(*(f"Walk {n} went over the hill." for n in range(230))))
    budget = SleepBudget(0.0, lambda since: 0.0, lambda model, request: 0.0) if background else None
    await summariser.summarise(material, sleep_budget=budget)
    assert len(rests) == rested
    assert threading.main_thread().name not in rests


def test_a_step_of_background_work_is_held_up_for_a_moment_by_a_turn_or_a_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = build_app(load_settings(None, {"ASSISTANT_HOME": str(tmp_path)}), lambda: datetime.now(UTC))
    try:
        running = app.running_turns
        running.by_session["main"] = cast(RunningTurn, None)
        running.let_turns_pass()
        assert running.any_running
        running.by_session.clear()
        looked: list[bool] = []
        monkeypatch.setattr(time, "sleep", lambda seconds: looked.append(running.any_running))
        with running.beginning():
            running.let_turns_pass()
        assert looked and not any(looked)
        looked.clear()

        async def work_in_the_loop() -> None:
            with running.beginning():
                running.let_turns_pass()

        asyncio.run(work_in_the_loop())
        assert not looked  # no turn could pass
        running.is_answering = lambda: True
        running.let_turns_pass()
        assert looked
        running.is_answering = lambda: False
        looked.clear()
        running.end("main")
        running.let_turns_pass()  # the next turn of a burst begins where one ended
        assert looked
    finally:
        app.close()


def test_background_work_has_a_fifth_of_a_burst_that_does_not_end_and_less_where_nobody_needs_it_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = build_app(load_settings(None, {"ASSISTANT_HOME": str(tmp_path)}), lambda: datetime.now(UTC))
    try:
        running, now = app.running_turns, 1_000.0

        def pass_time(seconds: float) -> None:
            nonlocal now
            # A turn ends every tenth of a second, and the next one begins at once.
            turns, now = int(now * 10), now + seconds
            if int(now * 10) > turns:
                running.end("main")
                running.by_session["main"] = cast(RunningTurn, None)

        def work(seconds: float, *, is_urgent: bool) -> float:
            """The share of the time that background work gets."""
            began, worked = now, 0.0
            while now - began < seconds:
                running.let_turns_pass(is_urgent=is_urgent)
                pass_time(0.01)
                worked += 0.01
            return worked / (now - began)

        monkeypatch.setattr(time, "monotonic", lambda: now)
        monkeypatch.setattr(time, "sleep", pass_time)
        running.by_session["main"] = cast(RunningTurn, None)
        pass_time(0.1)
        assert not running.is_long_burst() and work(2, is_urgent=True) < 0.05
        pass_time(1)
        assert not running.is_long_burst(), "there was a pause"
        work(4, is_urgent=True)
        assert running.is_long_burst()
        assert 0.1 < work(10, is_urgent=True) < 0.25
        assert work(10, is_urgent=False) < 0.05
        running.by_session.clear()
        before = now
        running.let_turns_pass()
        assert now == before, "between two turns there is nobody to wait for"
    finally:
        app.close()
