"""How much one call is given to summarise: never so much that its model's prices rise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from assistant.core.ports import ModelPair
from assistant.models.prices import find_price_rise
from sleep.compaction.summarise import Summariser
from tests.study.measure import list_prices
from tests.support.compaction_app import COUNTER, PROMPTS
from tests.support.scripted import ScriptedModel


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
