"""What a compacted conversation still knows and says: floors told once, open tasks, pictures, key facts, and others
answered meanwhile."""

from __future__ import annotations

import asyncio
import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from assistant.core.errors import ModelError
from assistant.core.messages import Media, Message
from assistant.core.ports import ModelPair
from assistant.models.offline.model import OfflineModel
from assistant.runtime.turn_context import OPEN_TASKS_HEADING
from sleep.compaction.deps import SUMMARY_BREAKER
from sleep.compaction.summarise import Summariser
from tests.support.compaction_app import (
    LONG_MESSAGE,
    PROMPTS,
    SMALL_CONTEXT,
    app_with_long_messages,
    checkpoints_in,
    context_pressure,
    notices,
    summary_writer,
)
from tests.support.imports import import_messages
from tests.support.running_app import LiveApp, run_app, use_model
from tests.support.scripted import ScriptedModel, owner_message
from tests.support.summaries import COUNTER, summary_material

STUCK = "nothing more can be left out"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


async def walk_on(it: LiveApp, walks: int, words: str = LONG_MESSAGE) -> None:
    for number in range(walks):
        await it.say(f"another walk {number}: {words}")
        await it.wait_idle()
        await it.app.background_compaction.wait_until_idle()


# --------------------------------------------------------------------------------------------------------------- floors


async def test_f02_a_context_at_its_floor_is_never_paid_for_and_told_once(tmp_path: Path) -> None:
    by = summary_writer()
    async with app_with_long_messages(tmp_path, 30, by=by, ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS="0") as it:
        large, small = it.app.models.answering, ScriptedModel("Yes.", window=2_200, name="small-1")
        use_model(it.app, small)
        await walk_on(it, 8, LONG_MESSAGE * 3)
        await it.app.contexts.compaction.compact_in_sleep("main", "nap")
        assert (
            context_pressure(it) > 0.80
            and len(checkpoints_in(it)) > 3
            and {one.tier for one in checkpoints_in(it)} == {"floor"}
        )
        assert by.requests == [] and it.bridge.bodies[-1] == "Yes."
        assert len(notices(it)) == 1 and STUCK in notices(it)[0]

        use_model(it.app, large)
        await walk_on(it, 1)
        use_model(it.app, small)
        await walk_on(it, 2)
        assert len([line for line in notices(it) if STUCK in line]) == 2 and by.requests == []


# ------------------------------------------------------------------------------------------------------------- requests


async def test_f18_a_task_that_left_the_view_is_told_as_open_until_it_is_closed(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 1) as it:
        await it.say("Which ferry leaves Bergen first?")
        await it.wait_idle()
        await it.say("Please book the ferry to Bergen for the tenth of March")
        await it.wait_idle()
        (task,) = it.app.stores.requests.list_open("main")
        await walk_on(it, 45)
        assert checkpoints_in(it) and task.message_id not in {
            row.id for row in it.app.stores.conversation.load_view("main").messages
        }
        assert f"{OPEN_TASKS_HEADING}\n- #{task.message_id}: Please book the ferry to Bergen for the tenth" in beside(
            it
        )
        assert "Which ferry" not in beside(it).partition(OPEN_TASKS_HEADING)[2].partition("</")[0]

        await it.app.commands.run(f"/done {task.message_id}", "main")
        await walk_on(it, 1)
        assert OPEN_TASKS_HEADING not in beside(it)


async def test_f18_a_question_nobody_answered_is_never_told_as_a_task(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 1) as it:
        it.model.script = [ModelError("the network is down", kind="network"), "A fine walk."]
        await it.say("Which ferry leaves Bergen first?")
        await it.wait_idle()
        assert [one.task for one in it.app.stores.requests.list_open("main")] == [False]
        await walk_on(it, 1)
        assert OPEN_TASKS_HEADING not in beside(it)


def beside(it: LiveApp) -> str:
    """What stood beside the newest message."""
    return str(it.model.requests[-1].messages[-1].metadata["volatile"])


# ----------------------------------------------------------------------------------------------- pictures and key facts


@pytest.mark.parametrize("by", ["the built-in model", "a model that forgets them"])
async def test_f17_pictures_that_leave_are_counted_and_named_in_the_summary(tmp_path: Path, by: str) -> None:
    forgets = summary_writer() if by == "a model that forgets them" else None
    async with run_app(
        tmp_path, model=ScriptedModel("A fine walk.", window=200_000), writer=forgets, **SMALL_CONTEXT
    ) as it:
        pictures = tuple(Media("image", "image/png", name, 68, data=PIXEL) for name in ("harbour.png", "cabin.png"))
        await it.app.runtime.accept(replace(owner_message("this is where we stay", external_id="p"), media=pictures))
        await it.wait_idle()
        await walk_on(it, 45)
        (first, *_) = checkpoints_in(it)
        assert first.tier == ("full" if forgets else "extractive")
        assert "2 pictures" in first.summary and "harbour.png" in first.summary and "cabin.png" in first.summary
        assert first.summary in "\n".join(block.text for block in it.model.requests[-1].system)


async def test_without_a_model_a_checkpoint_keeps_what_was_decided_liked_and_named(tmp_path: Path) -> None:
    async with run_app(tmp_path, model=ScriptedModel("A fine walk.", window=200_000), **SMALL_CONTEXT) as it:
        for text in (
            "We decided to take the night train with Marta Lindqvist.",
            "I prefer window seats, and Marta Lindqvist does too.",
            "The booking code is TK-4471-Q.",
        ):
            await it.say(text)
            await it.wait_idle()
        await walk_on(it, 45)
        facts = checkpoints_in(it)[0].key_facts
        assert facts["decisions"] == ["We decided to take the night train with Marta Lindqvist."]
        assert facts["preferences"] == ["I prefer window seats, and Marta Lindqvist does too."]
        assert "Marta Lindqvist" in facts["entities"] and facts["identifiers"] == ["TK-4471-Q"]


# --------------------------------------------------------------------------------------------------------- at any time


async def test_too_many_light_messages_are_compacted_at_night_once(tmp_path: Path) -> None:
    many = {"ASSISTANT_COMPACTION__MAX_MESSAGES": "40", "ASSISTANT_CONTEXT__PRESERVE_MESSAGES": "6"}
    by = summary_writer()
    async with run_app(tmp_path, model=ScriptedModel("ok", window=200_000), writer=by, **many) as it:
        await walk_on(it, 20, "along the shore and over the hill")
        assert checkpoints_in(it) == [] and context_pressure(it) < 0.50
        await it.app.sleep.scheduler.run_now("sleep")
        view = it.app.stores.conversation.load_view("main")
        assert [one.trigger for one in checkpoints_in(it)] == ["messages"] and len(view.messages) < 20
        # What the compaction learned is news to the next night, and to none after it.
        await it.app.sleep.scheduler.run_now("sleep")
        asked = len(by.requests)
        await it.app.sleep.scheduler.run_now("sleep")
        assert it.app.stores.conversation.load_view("main").messages == view.messages and len(by.requests) == asked
        assert it.app.stores.breakers.get(SUMMARY_BREAKER).failures == 0


@pytest.mark.parametrize("most", ["20", "40"])
async def test_f01_a_limit_below_what_a_compaction_leaves_makes_no_endless_ones(tmp_path: Path, most: str) -> None:
    """Twenty untouched and twenty kept word for word are more than the person allowed."""
    by = summary_writer()
    few = {"ASSISTANT_COMPACTION__MAX_MESSAGES": most, "ASSISTANT_CONTEXT__PRESERVE_MESSAGES": "20"}
    async with run_app(tmp_path, model=ScriptedModel("ok", window=200_000), writer=by, **few) as it:
        await walk_on(it, 40, "along the shore and over the hill")
        assert [one.trigger for one in checkpoints_in(it)] == ["messages"] * 2 and len(by.requests) == 2
        assert await it.app.contexts.compaction.compact_in_sleep("main", "nap") is None
        assert it.app.stores.breakers.get(SUMMARY_BREAKER).failures == 0


async def test_others_go_on_while_thousands_of_messages_are_summarised_without_a_model(tmp_path: Path) -> None:
    async with run_app(tmp_path, model=ScriptedModel("ok", window=200_000)) as it:
        await walk_on(it, 1)
        rows = [
            Message("user" if n % 2 else "assistant", f"day {n}: {LONG_MESSAGE[: 200 + n % 90]}") for n in range(2_000)
        ]
        import_messages(it.app.stores.conversation, "main", "owner", rows, it.clock())
        compacting = asyncio.create_task(it.app.contexts.compaction.compact_in_sleep("main", "nap"))
        others = 0
        while not compacting.done():
            await asyncio.sleep(0)
            others += 1
        outcome = await compacting
        assert outcome is not None and [one.tier for one in outcome.checkpoints] == ["extractive"]
        # Where it is done between two steps of the others, they have had a handful.
        assert others > 30


async def test_an_extractive_summary_waits_for_nobody_and_nobody_waits_for_it() -> None:
    counter = BlockingCounter()
    summariser = Summariser(
        lambda: nullcontext(ModelPair(OfflineModel(), OfflineModel())),
        PROMPTS,
        lambda name: counter,
        lambda *_: 0.0,
        restored_max_tokens=200,
        timeout_seconds=30,
    )
    rows = tuple(Message("user", f"On day {n} we met in room {n}.", id=n + 1) for n in range(2_000))
    summarising = asyncio.create_task(summariser.summarise(summary_material(rows)))
    for _ in range(5):
        await asyncio.sleep(0)
    counter.others.set()
    assert (await summarising).tier == "extractive" and counter.patience == {True}


class BlockingCounter:
    """Counts no text before the others were let go on; `patience` tells whether they were."""

    def __init__(self) -> None:
        self.others = threading.Event()
        self.patience: set[bool] = set()
        self.count_message, self.count_thinking = COUNTER.count_message, COUNTER.count_thinking
        self.corrected = COUNTER.corrected

    def count_text(self, text: str) -> int:
        if not self.patience:
            self.patience.add(self.others.wait(5))
        return COUNTER.count_text(text)
