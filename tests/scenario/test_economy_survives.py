"""What compaction by economy has to survive: a clock that jumps, a model switched in between, a cache that does what
nobody documented, and being overtaken while its summary is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.erasure import ErasureRequest
from assistant.core.messages import Message, Usage
from assistant.core.model_api import ModelReply, ModelRequest
from assistant.models.failover import FailoverModel, RetryPolicy
from assistant.models.metered import MeteredModel
from assistant.models.prices import Prices
from tests.support.compaction_app import (
    SUMMARY_ANSWER,
    app_with_long_history,
    checkpoints_in,
    go_cold,
    settle_background,
    summary_writer,
)
from tests.support.running_app import LiveApp, use_model
from tests.support.scripted import ScriptedModel

WALKS = 170
# From the middle of what leaves: both its ends stay where they are.
FORGOTTEN_WALK = 20


@pytest.mark.parametrize("jump", [timedelta(days=-400), timedelta(days=400)], ids=["back", "forward"])
async def test_a_clock_that_jumps_keeps_nobody_from_being_answered_and_nothing_is_compacted_twice(
    tmp_path: Path, jump: timedelta
) -> None:
    async with app_with_long_history(tmp_path, WALKS) as it:
        await settle_background(it)
        it.clock.now += jump
        for number in range(3):
            await settle_background(it)
            await it.say(f"and now {number}?")
            await it.wait_answered()
        assert it.bridge.bodies.count("A fine walk.") == 1 + 3
        assert len(checkpoints_in(it)) <= 1


async def test_a_model_that_is_switched_between_preparing_and_committing_gets_the_summary_all_the_same(
    tmp_path: Path,
) -> None:
    by = summary_writer()
    async with app_with_long_history(tmp_path, WALKS, by=by) as it:
        await settle_background(it)
        assert by.requests
        use_model(it.app, ScriptedModel("The other one.", window=200_000, name="other-1"))
        it.clock.now += timedelta(hours=2)
        by.gate = asyncio.Event()
        await it.say("who is there?")
        await it.wait_answered()
        by.gate.set()
        assert it.bridge.bodies[-1] == "The other one."
        assert [one.trigger for one in checkpoints_in(it)] == ["economy"]


# What is reported for a prompt of so many tokens.
_CACHES = {
    "keeps nothing": lambda prompt: Usage(input=prompt, output=5),
    "writes everything each time": lambda prompt: Usage(output=5, cache_write=prompt),
    "reads what was never written": lambda prompt: Usage(output=5, cache_read=prompt),
    "reports more than was sent": lambda prompt: Usage(input=3 * prompt, output=5, cache_read=9 * prompt),
    "reports nothing": lambda prompt: Usage(),
}


@pytest.mark.parametrize("cache", _CACHES)
async def test_a_cache_that_answers_otherwise_than_documented_changes_neither_answers_nor_what_is_kept(
    tmp_path: Path, cache: str
) -> None:
    def answer(request: ModelRequest) -> ModelReply:
        prompt = sum(len(message.content) for message in request.messages) // 4 + 2_000
        return ModelReply(Message("assistant", "A fine walk.", model="scripted-1"), _CACHES[cache](prompt), "end")

    async with app_with_long_history(tmp_path, WALKS) as it:
        model, stores, count = ScriptedModel(answer, window=200_000), it.app.stores, it.app.estimates.request_tokens
        metered = MeteredModel(model.provider, model.name, lambda: (model, Prices()), stores.ledger, count, it.clock)
        use_model(it.app, FailoverModel([metered], RetryPolicy()))
        began = it.clock()
        for number in range(4):
            await it.say(f"and now {number}?")
            await it.wait_answered()
            await settle_background(it)
        await go_cold(it)
        await it.say("are you there?")
        await it.wait_answered()
        assert it.bridge.bodies.count("A fine walk.") == 1 + 5
        assert len(checkpoints_in(it)) <= 1
        by_part, by_day = (
            sum(spent.tokens for _, spent in stores.ledger.spent_by(key, began)) for key in ("part", "day")
        )
        assert by_part == by_day


async def _send(it: LiveApp) -> None:
    await it.say("are you there?")
    await it.wait_answered()
    assert it.bridge.bodies[-1] == "A fine walk."


async def _take_back(it: LiveApp) -> None:
    await it.app.commands.run("/undo", "main")


async def _forget(it: LiveApp) -> None:
    await it.app.erasure.erase(ErasureRequest("owner", messages=(2 * FORGOTTEN_WALK + 1,)), it.clock())


_OVERTAKEN = {"a turn": _send, "an undo": _take_back, "a forget": _forget}


@pytest.mark.parametrize("overtaken_by", _OVERTAKEN)
async def test_a_summary_that_was_overtaken_while_it_was_written_brings_nothing_back_and_loses_nothing(
    tmp_path: Path, overtaken_by: str
) -> None:
    overtake: Callable[[LiveApp], Awaitable[None]] = _OVERTAKEN[overtaken_by]
    asked_before: list[ModelRequest] = []

    def summarise(request: ModelRequest) -> str:
        is_old = any(request is one for one in asked_before)
        return SUMMARY_ANSWER.replace("over the hill", "over the moor") if is_old else SUMMARY_ANSWER

    by = summary_writer()
    by.script = [summarise]
    by.gate = asyncio.Event()
    async with app_with_long_history(tmp_path, WALKS, by=by) as it:
        it.app.background_compaction.check_due()
        it.clock.now += timedelta(hours=2)
        it.app.background_compaction.check_due()
        await by.called.wait()
        asked_before += by.requests
        records = it.app.stores.conversation
        before = {row.id for row in records.load_view("main").messages}
        await overtake(it)
        by.gate.set()
        await settle_background(it)
        # What was prepared is committed when the cache is cold.
        await go_cold(it)
        await it.say("and now?")
        await it.wait_answered()
        view, made = records.load_view("main"), checkpoints_in(it)
        texts = [row.content for row in view.messages] + [one.summary for one in made]
        assert made and texts[len(view.messages) - 2 : len(view.messages)] == ["and now?", "A fine walk."]
        if overtaken_by == "a turn":
            assert "are you there?" in texts and any("over the moor" in text for text in texts)
        else:
            gone = f"walk {WALKS - 1}:" if overtaken_by == "an undo" else f"walk {FORGOTTEN_WALK}:"
            assert not any(gone in text or "over the moor" in text for text in texts)
        # Each message stands in the view or under a checkpoint, and in one of them only.
        shown = {row.id for row in view.messages if row.id is not None}
        covered = {number for one in made for number in range(one.from_message_id, one.to_message_id + 1)}
        assert not covered & shown
        assert before - covered - shown == (set(sorted(before)[-2:]) if overtaken_by == "an undo" else set())
