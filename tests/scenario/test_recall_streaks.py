"""What recall feeds into five turns in a row becomes part of the summary, once the prompt is written anew anyway; then
it is recalled no more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.runtime.recall import HISTORY_MARK
from tests.support.compaction_app import LONG_MESSAGE, SMALL_CONTEXT, checkpoints_in, summary_writer
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import ScriptedModel

FACT = "The gate code of the Grimsby warehouse is heron-amber, and Torvald keeps the spare key."
QUESTION = "What was the gate code of the Grimsby warehouse again, and who keeps the spare key?"


@asynccontextmanager
async def compacted(home: Path) -> AsyncIterator[LiveApp]:
    """A conversation in which the assistant told a fact that left the view, and the summary does not tell it."""
    model = ScriptedModel(FACT, "A fine walk.", window=200_000)
    bare = {**SMALL_CONTEXT, "ASSISTANT_COMPACTION__RESTORED_MAX_TOKENS": "0"}
    async with run_app(home, model=model, writer=summary_writer(), **bare) as it:
        await it.say("Tell me of the warehouse.")
        await it.wait_idle()
        for number in range(30):
            await it.say(f"walk {number}: {LONG_MESSAGE}")
            await it.wait_idle()
        await it.app.commands.run("/compact", "main")
        assert checkpoints_in(it)
        yield it


async def ask(it: LiveApp) -> str:
    """Ask for the fact; what was recalled for it."""
    it.app.maintenance.run()
    await it.say(QUESTION)
    await it.wait_idle()
    return str(it.model.requests[-1].messages[-1].metadata.get("volatile", ""))


def summary_in(it: LiveApp) -> str:
    return "".join(row.content for row in it.app.stores.conversation.load_view("main").messages if row.is_summary)


@pytest.mark.parametrize("times", [4, 5])
async def test_what_was_recalled_in_five_turns_in_a_row_becomes_part_of_the_summary(tmp_path: Path, times: int) -> None:
    async with compacted(tmp_path) as it:
        assert "heron-amber" not in summary_in(it)
        for _ in range(times):
            recalled = await ask(it)
            assert HISTORY_MARK in recalled and "heron-amber" in recalled
        assert "heron-amber" not in summary_in(it), "while the prompt is cached it stays as it is"
        before = checkpoints_in(it)
        it.clock.now += timedelta(hours=2)
        await it.say("And on along the shore.")
        await it.wait_idle()
        if times < 5:
            assert "heron-amber" not in summary_in(it)
            return
        assert "heron-amber" in summary_in(it)
        assert "heron-amber" not in await ask(it), "what the summary tells is not recalled"
        # An undo takes both back, and the journal is told nothing twice.
        assert [one.from_message_id for one in checkpoints_in(it)] == [one.from_message_id for one in before]
        entries = [one for one in it.app.stores.journal.entries("owner") if one.source_type == "context_synthesis"]
        assert len(entries) == len(before)
        await it.app.commands.run("/compact --undo", "main")
        assert not checkpoints_in(it)


async def test_a_turn_without_it_ends_the_streak(tmp_path: Path) -> None:
    async with compacted(tmp_path) as it:
        for number in range(6):
            if number == 3:
                await it.say("And on along the shore.")
                await it.wait_idle()
            await ask(it)
        it.clock.now += timedelta(hours=2)
        await it.say("And back again.")
        await it.wait_idle()
        assert "heron-amber" not in summary_in(it)
