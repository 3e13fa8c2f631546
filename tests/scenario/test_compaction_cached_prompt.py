"""Whose prompt a summary is asked over, and in whose words: through the whole app."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assistant.core.messages import ToolCall
from assistant.core.model_api import ModelEvent, ModelRequest
from sleep.compaction.values import CachedPrompt
from tests.support.compaction_app import (
    SMALL_CONTEXT,
    SUMMARY_ANSWER,
    app_with_long_messages,
    checkpoints_in,
    summary_writer,
)
from tests.support.running_app import LiveApp, use_model
from tests.support.scripted import ScriptedModel

LARGE, LITTLE = "claude-sonnet-5-5", "claude-sonnet-4-5"


@asynccontextmanager
async def priced(home: Path, **environ: str) -> AsyncIterator[tuple[LiveApp, ScriptedModel, ScriptedModel]]:
    """A conversation with a model whose cached prompt is cheaper than the writer; both summarise when they are asked
    to."""
    by = summary_writer()
    async with app_with_long_messages(home, 0, by=by, **environ) as it:
        answers = ScriptedModel(answer, window=200_000, name=LARGE)
        use_model(it.app, answers)
        answers.provider = by.provider = "anthropic"
        by.name = LITTLE
        for number in range(28):
            # What the next turn needs is ready before it.
            await it.app.background_compaction.wait_until_idle()
            await it.say(f"walk {number}: I went along the shore and back over the hill. " * 12)
            await it.wait_idle()
        yield it, answers, by


def answer(request: ModelRequest) -> str:
    return SUMMARY_ANSWER if "<summary>" in request.messages[-1].content else "A fine walk."


def live(it: LiveApp) -> CachedPrompt | None:
    return it.app.contexts.window.cached_request("main", it.clock())


async def test_f23_the_last_request_is_live_while_its_provider_keeps_it(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 2) as it:
        found = live(it)
        assert found is not None and found.model == "scripted-1" and found.request is it.model.requests[-1]
        assert found.prompt_tokens == pytest.approx(it.app.contexts.meter.pressure_ratio("main") * 15_000, rel=0.5)
        now = it.clock.now
        assert it.app.contexts.window.cached_request("main", now + timedelta(minutes=4)) is not None
        assert it.app.contexts.window.cached_request("main", now + timedelta(minutes=5)) is None
        # A clock that was set back tells nothing.
        assert it.app.contexts.window.cached_request("main", now - timedelta(minutes=1)) is None
        assert it.app.contexts.window.cached_request("another", now) is None


async def test_f23_a_request_is_live_while_the_view_begins_with_it(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 28) as it:
        assert live(it) is not None
        await it.app.commands.run("/undo", "main")
        assert live(it) is None
        await it.say("and now?")
        await it.wait_idle()
        assert live(it) is not None
        await it.app.commands.run("/compact", "main")
        assert live(it) is None


async def test_f23_compact_asks_over_the_prompt_that_the_provider_has(tmp_path: Path) -> None:
    async with priced(tmp_path) as (it, answers, by):
        last = answers.requests[-1]
        assert f"of {LARGE}" in await it.app.commands.run("/compact --dry-run", "main")
        assert answers.requests[-1] is last
        await it.app.commands.run("/compact the harbour fees", "main")
        asked = answers.requests[-1]
        assert by.requests == [] and checkpoints_in(it)[0].model == LARGE
        assert (asked.system, asked.tools) == (last.system, last.tools)
        assert asked.messages[:-1] == last.messages and "the harbour fees" in asked.messages[-1].content


async def test_f23_a_prompt_that_is_cold_or_anothers_is_not_asked_over(tmp_path: Path) -> None:
    async with priced(tmp_path) as (it, answers, by):
        asked = len(answers.requests)
        it.clock.now += timedelta(minutes=6)
        await it.app.commands.run("/compact", "main")
        assert len(answers.requests) == asked and len(by.requests) >= 1

    async with priced(tmp_path / "other") as (it, answers, by):
        other = ScriptedModel(answer, window=200_000, name="claude-opus-5-5")
        other.provider = "anthropic"
        use_model(it.app, other)
        await it.app.commands.run("/compact", "main")
        assert other.requests == [] and len(by.requests) >= 1


async def test_f23_before_a_call_the_prompt_of_the_last_one_is_asked_over(tmp_path: Path) -> None:
    async with priced(tmp_path, ASSISTANT_CONTEXT__EMERGENCY_THRESHOLD="0.6") as (it, answers, by):
        (first, *_) = checkpoints_in(it)
        assert first.trigger == "emergency" and first.model == LARGE and by.requests == []
        # What leaves stood in the prompt, with one message more: the instructions.
        at = next(n for n, one in enumerate(answers.requests) if "<summary>" in one.messages[-1].content)
        assert answers.requests[at].messages[:-1] == answers.requests[at - 1].messages


async def test_the_words_of_the_home_stand_before_ours(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "summary.md").write_text(
        "Tell it in $budget tokens in a <summary>, as a sailor would.", "utf-8"
    )
    by = summary_writer()
    async with app_with_long_messages(tmp_path, 28, by=by, **SMALL_CONTEXT) as it:
        await it.app.commands.run("/compact", "main")
        words = by.requests[0].system[0].text
        assert (
            words.startswith("Tell it in ")
            and words.endswith(" tokens in a <summary>, as a sailor would.")
            and "$" not in words
        )


class Interrupted(ScriptedModel):
    """Delegates one task; whoever carries it out waits, before it answers, until it is let go on."""

    def __init__(self) -> None:
        super().__init__(self.step, window=200_000)
        self.at_work, self.go_on = asyncio.Event(), asyncio.Event()

    def step(self, request: ModelRequest) -> str | ToolCall:
        last = request.messages[-1]
        if "Your task:\n" in last.content:
            return ToolCall("h1", "current_time")
        return ToolCall("c1", "delegate", {"tasks": ["find the fare"]}) if "the trip" in last.content else "A walk."

    async def stream(self, request: ModelRequest, *given: Any, **named: Any) -> AsyncGenerator[ModelEvent]:
        if any("Your task:\n" in one.content for one in request.messages) and request.messages[-1].role == "tool":
            self.at_work.set()
            await self.go_on.wait()
        async for event in super().stream(request, *given, **named):
            yield event


async def test_f22_a_helper_goes_on_from_its_own_snapshot_whatever_is_compacted_meanwhile(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 28) as it:
        model = Interrupted()
        use_model(it.app, model)
        await it.say("Plan the trip")
        await it.app.runtime.tick(it.clock())
        await model.at_work.wait()
        assert "saved" in await it.app.commands.run("/compact", "main")
        model.go_on.set()
        await it.wait_idle()
        asked, first, second, answered = model.requests
        assert all(one.messages[: len(asked.messages)] == asked.messages for one in (first, second))
        assert all((one.system, one.tools) == (asked.system, asked.tools) for one in (first, second))
        assert len(answered.messages) < len(asked.messages)
        assert any("[CONTEXT SUMMARY]" in block.text for block in answered.system)
        assert answered.messages[-1].role == "tool" and "A walk." in answered.messages[-1].content
        assert it.bridge.bodies[-1] == "A walk." and len(checkpoints_in(it)) == 1
