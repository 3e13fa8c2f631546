"""How much one call is given to summarise: never so much that its model's prices rise. How much is put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest

from assistant.core.ports import ModelPair
from assistant.models.prices import find_price_rise
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
