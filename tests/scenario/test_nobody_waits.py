"""Nobody waits for a summary: a turn that needs room takes what is ready, or what needs no model; the model's summary
follows, and takes its place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.checkpoints import Checkpoint
from assistant.core.erasure import ErasureRequest
from sleep.compaction import extractive, key_facts, validate
from sleep.compaction.message_cache import FOUND_IN_MESSAGES
from tests.support.compaction_app import (
    LARGE_CONTEXT,
    LONG_MESSAGE,
    SUMMARY_ANSWER,
    app_with_long_messages,
    checkpoints_in,
    context_pressure,
    summary_writer,
)
from tests.support.running_app import LiveApp
from tests.support.scripted import ScriptedModel

# So much at once that nothing can have been prepared for it.
PASTED = "The minutes of the meeting: " + " ".join(f"Item {n}: the pier gets board number {n}." for n in range(600))
SMALL = {"ASSISTANT_COMPACTION__ECONOMY": "off"}


@asynccontextmanager
async def pasted_into(home: Path, by: ScriptedModel) -> AsyncIterator[LiveApp]:
    """A conversation into which somebody pastes more than there is room for, while `by` answers nobody."""
    async with app_with_long_messages(home, 12, by=by, **SMALL) as it:
        await settle(it)
        assert not checkpoints_in(it)
        by.gate = asyncio.Event()
        await it.say(PASTED)
        await it.wait_answered()
        await it.say("And now?")
        await it.wait_answered()
        yield it
        by.gate.set()


async def settle(it: LiveApp) -> None:
    await it.app.background_compaction.wait_until_idle()


def roomy(it: LiveApp) -> None:
    """From now on there is room for everything again."""
    meter = it.app.contexts.meter
    meter.context_settings = meter.context_settings.changed(max_context_tokens=0)


async def only_checkpoint(it: LiveApp) -> Checkpoint:
    (made,) = checkpoints_in(it)
    return made


async def test_the_answer_of_a_turn_that_needed_room_is_delivered_while_the_summary_is_still_pending(
    tmp_path: Path,
) -> None:
    by = summary_writer()
    async with pasted_into(tmp_path, by) as it:
        assert it.bridge.bodies.count("A fine walk.") == 14
        made = checkpoints_in(it)
        assert made and {one.tier for one in made} == {"extractive"} and {one.trigger for one in made} == {"emergency"}
        await by.called.wait()
        assert checkpoints_in(it) == made


async def test_the_summary_of_the_model_takes_the_place_of_the_one_that_needed_none(tmp_path: Path) -> None:
    by = summary_writer()
    async with pasted_into(tmp_path, by) as it:
        before = checkpoints_in(it)
        by.gate.set()
        await settle(it)
        after = checkpoints_in(it)
        assert [(one.from_message_id, one.to_message_id) for one in after] == [
            (one.from_message_id, one.to_message_id) for one in before
        ]
        assert {(one.tier, one.trigger) for one in after} == {("full", "emergency")}
        assert not any(one.key_facts.get("awaits_summary") for one in after)
        (summary,) = [row for row in it.app.stores.conversation.load_view("main").messages if row.is_summary]
        assert "along the shore and over the hill, day after day" in summary.content
        # What it was made of is what was said, not what was made of it without a model.
        assert "walk 0: I went along the shore" in by.requests[0].messages[0].content
        # The journal learns of it as of any other.
        assert "The person walks along the shore." in [one.content for one in it.app.stores.journal.entries("owner")]


async def test_undo_brings_back_what_left_whether_or_not_the_summary_followed(tmp_path: Path) -> None:
    by = summary_writer()
    async with pasted_into(tmp_path, by) as it:
        by.gate.set()
        await settle(it)
        number = checkpoints_in(it)[0].id
        roomy(it)
        await it.app.commands.run(f"/compact --undo {number}", "main")
        assert not checkpoints_in(it)
        assert sum(row.role == "user" for row in it.app.stores.conversation.load_view("main").messages) == 14


async def test_what_can_still_be_sent_is_sent_while_its_summary_is_being_made(tmp_path: Path) -> None:
    by = summary_writer()
    async with app_with_long_messages(tmp_path, 12, by=by, **SMALL) as it:
        await settle(it)
        by.gate = asyncio.Event()
        by.called.clear()
        settling: list[asyncio.Task[object]] = []
        while context_pressure(it) < it.app.contexts.meter.context_settings.emergency_threshold:
            await it.say(LONG_MESSAGE)
            await it.wait_answered()
            settling += [asyncio.create_task(settle(it)), asyncio.create_task(by.called.wait())]
            await asyncio.wait(settling[-2:], return_when=asyncio.FIRST_COMPLETED)
        assert by.called.is_set() and not checkpoints_in(it)
        await it.say("And now?")
        await it.wait_answered()
        assert not checkpoints_in(it)
        by.gate.set()
        await asyncio.gather(*settling)
        await it.say("And then?")
        await it.wait_answered()
        assert {(one.tier, one.trigger) for one in checkpoints_in(it)} == {("full", "emergency")}


@pytest.mark.parametrize("overtaken_by", ["an undo", "a forget"])
async def test_a_summary_that_was_overtaken_replaces_nothing(tmp_path: Path, overtaken_by: str) -> None:
    by = summary_writer(SUMMARY_ANSWER.replace("over the hill", "over the moor"), SUMMARY_ANSWER)
    async with pasted_into(tmp_path, by) as it:
        await by.called.wait()
        roomy(it)
        if overtaken_by == "an undo":
            await it.app.commands.run("/compact --undo", "main")
        else:
            await it.app.erasure.erase(ErasureRequest("owner", messages=(1,)), it.clock())
        by.gate.set()
        await settle(it)
        # What was under way is dropped; what stands then is summarised anew.
        everything = it.app.stores.conversation.checkpoints("main")
        assert not any("over the moor" in one.summary for one in everything)
        assert not any("over the moor" in row.content for row in it.app.stores.conversation.load_view("main").messages)


async def test_what_no_model_can_summarise_is_asked_for_once_and_stays_as_it_is(tmp_path: Path) -> None:
    by = summary_writer("")
    async with pasted_into(tmp_path, by) as it:
        by.gate.set()
        await settle(it)
        asked = len(by.requests)
        assert asked and {one.tier for one in checkpoints_in(it)} == {"extractive"}
        for number in range(3):
            await it.say(f"and then {number}")
            await it.wait_answered()
            await settle(it)
        assert len(by.requests) == asked


async def test_a_context_that_is_nearly_full_has_its_summary_ready_and_the_turn_commits_it(tmp_path: Path) -> None:
    by = summary_writer()
    async with app_with_long_messages(tmp_path, 20, by=by, **SMALL) as it:
        await settle(it)
        number = 20
        while not by.requests:
            await it.say(f"walk {number}: {LONG_MESSAGE}")
            await it.wait_answered()
            await settle(it)
            number += 1
        # With economy off it is kept for then, also where the provider has forgotten the prompt.
        it.clock.now += timedelta(hours=2)
        await it.say("hello again")
        await it.wait_answered()
        assert not checkpoints_in(it)
        by.gate = asyncio.Event()  # whoever asks now waits for ever
        while not checkpoints_in(it):
            await it.say(f"walk {number}: {LONG_MESSAGE}")
            await it.wait_answered()
            number += 1
        made = await only_checkpoint(it)
        assert (made.trigger, made.tier, made.model) == ("emergency", "full", "writer-1")
        assert SUMMARY_ANSWER.splitlines()[1] in made.summary
        by.gate.set()


async def test_what_follows_the_turns_of_a_burst_is_done_once_and_after_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the next turn it would have the interpreter, which each statement of a turn has to wait for."""

    def runs() -> list[asyncio.Task[None]]:
        return [task for task in asyncio.all_tasks() if task.get_name() == "economy of main"]

    async with app_with_long_messages(tmp_path, 1) as it:
        await settle(it)
        loop = asyncio.get_running_loop()
        now = loop.time()
        with monkeypatch.context() as patch:
            # However slow the machine is, all is said within the same moment.
            patch.setattr(loop, "time", lambda: now)
            for text in ("and then", "and after that", "and last"):
                await it.say(text)
                await it.wait_answered()
            (run,) = runs()
        await settle(it)
        assert run.done() and not runs()


async def test_a_burst_is_answered_with_what_can_be_sent_until_its_summary_has_been_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by = summary_writer()
    async with app_with_long_messages(tmp_path, 12, by=by, **SMALL) as it:
        await settle(it)
        loop = asyncio.get_running_loop()
        now = loop.time()
        with monkeypatch.context() as patch:
            # What follows a turn waits for a pause, which does not come.
            patch.setattr(loop, "time", lambda: now)
            while context_pressure(it) < it.app.contexts.meter.context_settings.emergency_threshold:
                await it.say(LONG_MESSAGE)
                await it.wait_answered()
            await it.say("And now?")
            await it.wait_answered()
            assert not checkpoints_in(it) and not by.requests
        await settle(it)
        await it.say("And then?")
        await it.wait_answered()
        assert {(one.tier, one.trigger) for one in checkpoints_in(it)} == {("full", "emergency")}


async def test_what_a_summary_asks_about_a_message_is_found_out_after_it_was_answered(tmp_path: Path) -> None:
    FOUND_IN_MESSAGES.clear()
    async with app_with_long_messages(tmp_path, 0, **LARGE_CONTEXT) as it:
        await it.say(PASTED)
        await it.wait_answered()
        await settle(it)
        assert key_facts._stated_in.is_known(PASTED[: key_facts._LOOKED_AT])
        assert validate._values_to_keep.is_known(PASTED, True)
        assert extractive._sentences_of_text.is_known(PASTED[: extractive._LOOKED_AT], "user")
