"""The ledger of the context: what was read, written and paid in full, by part of the prompt, as the provider reported
it; and what a compaction was expected to save, and then saved."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from assistant.cli.aihistory.saving import find_saving
from assistant.core.messages import Message, Usage
from assistant.core.model_api import ModelReply, ModelRequest
from assistant.models.failover import FailoverModel, RetryPolicy
from assistant.models.metered import MeteredModel
from assistant.models.prices import Price, Prices
from tests.support.compaction_app import checkpoints_in, summary_writer
from tests.support.running_app import LiveApp, run_app, use_model
from tests.support.scripted import ScriptedModel

PRICE = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)


def billed(request: ModelRequest) -> ModelReply:
    """Of each prompt all but the last thousand tokens are read, and of those all but a hundred written."""
    prompt = 3_000 + sum(len(message.content) for message in request.messages) // 4
    usage = Usage(100, 10, prompt - 1_000, 900)
    return ModelReply(Message("assistant", "A fine walk.", model="scripted-1"), usage, "end")


def meter(it: LiveApp) -> None:
    """The model's calls are metered, with a price."""
    metered = MeteredModel(
        "scripted",
        "scripted-1",
        lambda: (it.model, Prices({"scripted-1": PRICE})),
        it.app.stores.ledger,
        it.app.estimates.request_tokens,
        it.clock,
    )
    use_model(it.app, FailoverModel([metered], RetryPolicy()))
    it.app.contexts.economy._prices = {"scripted": Prices({"scripted-1": PRICE, "writer-1": PRICE})}


async def test_the_parts_of_all_calls_add_up_to_what_the_provider_reported_and_to_what_was_billed(
    tmp_path: Path,
) -> None:
    async with run_app(tmp_path, model=ScriptedModel(billed, window=200_000), writer=summary_writer()) as it:
        meter(it)
        for number in range(4):
            await it.say(f"walk {number}: along the shore and back over the hill")
            await it.wait_idle()
        since = it.clock() - timedelta(days=1)
        parts = dict(it.app.stores.ledger.spent_by("part", since))
        ((_, whole),) = it.app.stores.ledger.spent_by("model", since)
        for kind in ("input", "output", "cache_read", "cache_write"):
            assert sum(getattr(part.usage, kind) for part in parts.values()) == getattr(whole.usage, kind)
        assert abs(sum(part.usd for part in parts.values()) - whole.usd) < 1e-6
        assert parts["tools"].usage.cache_read > 0 and parts["recalled"].usage.input > 0
        assert parts["answer"].usage.output == 40 and parts["tools"].calls == 4
        shown = await it.app.commands.run("/usage part", "main")
        assert re.search(r"^tools +0\.", shown, re.MULTILINE)
        assert "read from the provider's cache" in await it.app.commands.run("/status", "main")


async def test_a_compaction_says_what_it_is_expected_to_save_and_later_what_it_saved(tmp_path: Path) -> None:
    small = {"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "15000", "ASSISTANT_COMPACTION__ECONOMY": "off"}
    model = ScriptedModel(billed, window=200_000)
    async with run_app(tmp_path, model=model, writer=summary_writer(), **small) as it:
        meter(it)
        number = 0
        while not checkpoints_in(it):
            await it.say(f"walk {number}: " + "along the shore and back over the hill today. " * 12)
            await it.wait_idle()
            await it.app.background_compaction.wait_until_idle()
            number += 1
        (made,) = checkpoints_in(it)
        ledger = it.app.stores.ledger
        before = find_saving(ledger, made, it.clock())
        assert before is not None and before.removed > 1_000 and before.expected > 0
        # The call that it was made for; then three more. Each read nearly all of its history from the cache.
        for later in range(3):
            it.clock.now += timedelta(minutes=1)
            await it.say(f"and again {later}")
            await it.wait_idle()
        after = find_saving(ledger, made, it.clock())
        assert after is not None and after.calls == before.calls + 3
        a_token = PRICE.cache_read / 1e6
        assert 3 * a_token * made.key_facts["economy"]["removed"] < after.actual - before.actual < 12 * a_token * 10_000
        assert not after.is_over and find_saving(ledger, made, it.clock() + timedelta(days=2)).is_over  # type: ignore[union-attr]
