"""What compaction by economy has to survive: a clock that jumps, and a model switched in between."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.compaction_app import app_with_long_history, checkpoints_in, settle_background, summary_writer
from tests.support.running_app import use_model
from tests.support.scripted import ScriptedModel

WALKS = 170


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
            await it.wait_idle()
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
        await it.wait_idle()
        by.gate.set()
        assert it.bridge.bodies[-1] == "The other one."
        assert [one.trigger for one in checkpoints_in(it)] == ["economy"]
