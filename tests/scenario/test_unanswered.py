"""A message that ends without an answer turns `status` red, with since when, why and what to do, until its conversation
has an answer again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from assistant.core.errors import ModelError
from assistant.core.messages import ToolCall
from tests.support.running_app import ANN, BridgePeople, LiveApp, run_app
from tests.support.scripted import ScriptedModel, ScriptStep, owner_message

OVERFLOW = ModelError(
    "The conversation is too long for it. Your message is kept; use a larger window.", kind="overflow"
)
BROKEN = RuntimeError("a fault of ours")


def unanswered(it: LiveApp) -> list[str]:
    report = it.app.status()
    problems = [problem for problem in report["problems"] if "is not answered" in problem]
    assert report["ok"] == (report["problems"] == [])
    return problems


async def say(it: LiveApp, *texts: str) -> None:
    for text in texts:
        await it.say(text)
        await it.wait_idle()


def _refuse(_: object) -> ScriptStep:
    raise BROKEN


ENDS: dict[str, tuple[list[ScriptStep], dict[str, str], str]] = {
    "overflow": ([OVERFLOW] * 2, {"ASSISTANT_TURN__OVERFLOW_RETRIES": "1"}, "is too long for it."),
    "overflow without compaction": ([OVERFLOW], {"ASSISTANT_COMPACTION__AUTO": "false"}, "compaction.auto is off."),
    "a fault of ours": ([_refuse], {}, "Something in the assistant failed (RuntimeError: a fault of ours)."),
    "too many steps": ([ToolCall("c1", "get_time", {})], {"ASSISTANT_TURN__MAX_STEPS": "1"}, "I stopped after 1 step"),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_turn_without_an_answer_is_red_until_there_is_one(tmp_path: Path, end: str) -> None:
    script, settings, why = ENDS[end]
    async with run_app(tmp_path, model=ScriptedModel("Hello.", *script, "Here again."), **settings) as it:
        await say(it, "hello")
        assert it.app.status()["ok"]
        await say(it, "what is the bell made of?")
        (problem,) = unanswered(it)
        assert problem.startswith("The last message is not answered, since Sunday 2026-03-01 09:00")
        # What the person read says the same.
        assert why in problem and problem.partition(": ")[2] == it.bridge.bodies[-1]
        assert f"! {problem}" in await it.app.commands.run("/status", "main")
    # After a restart, too.
    async with run_app(tmp_path, "Here again.", **settings) as it:
        assert len(unanswered(it)) == 1
        await it.app.commands.run("/retry", "main")
        await it.wait_idle()
        assert it.view_contents()[-1] == ("assistant", "Here again.") and unanswered(it) == []


async def test_a_thread_without_an_answer_is_named_as_people_name_it(tmp_path: Path) -> None:
    async with run_app(tmp_path, model=ScriptedModel(_refuse)) as it:
        await it.app.runtime.accept(owner_message("hello", external_id="m1", session="thread:garden"))
        await it.wait_idle()
        assert unanswered(it)[0].startswith("The last message in garden is not answered, since ")


async def test_a_message_that_the_person_stopped_or_took_back_is_no_problem(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Hello.", _refuse, "Here again.") as it:
        await say(it, "hello", "what is the bell made of?")
        assert len(unanswered(it)) == 1
        await it.app.commands.run("/undo", "main")
        assert unanswered(it) == []
    async with run_app(tmp_path / "stopped", model=ScriptedModel(_refuse)) as it:
        await say(it, "hello")
        await it.app.commands.run("/reset", "main")
        assert unanswered(it) == []


async def test_a_message_that_a_stop_of_the_assistant_cut_off_is_told_at_the_next_start(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Hello.") as it:
        it.model.gate = asyncio.Event()
        await it.say("hello")
        await it.app.runtime.tick(it.clock())
        await it.model.called.wait()
        await it.app.stop(0)
    async with run_app(tmp_path, "Here again.") as it:
        (problem,) = unanswered(it)
        assert "The assistant was shut down before this was answered; ask again." in problem


async def test_the_owner_reads_why_a_guest_was_not_answered_for_a_day(tmp_path: Path) -> None:
    async with run_app(
        tmp_path, model=ScriptedModel(ModelError("nas.local does not take it", kind="bad_request"))
    ) as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write("hello", ANN)
        (problem,) = unanswered(it)
        assert problem.startswith("The last message in peer:kept:7 is not answered") and "nas.local" in problem
        it.clock.now = it.clock.now.replace(day=3)
        assert unanswered(it) == []
