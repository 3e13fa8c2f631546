"""Another model is chosen while a turn is under way: the turn keeps the one that it was budgeted for, to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from assistant.core.errors import UsageError
from assistant.core.messages import ToolCall
from assistant.core.model_api import ModelLimits, ModelRequest
from assistant.core.ports import Model, ModelPair
from assistant.models.offline.model import OfflineModel
from assistant.runtime.current_models import CurrentModels
from tests.support.compaction_app import (
    SUMMARY_ANSWER,
    app_with_long_messages,
    checkpoints_in,
    context_pressure,
    summary_writer,
)
from tests.support.faulty_disk import file_size_limit
from tests.support.running_app import LiveApp, run_app, use_model
from tests.support.scripted import ScriptedModel, ScriptStep, owner_message

LOOK = ToolCall("c1", "current_time")
DELEGATE = ToolCall("c1", "delegate", {"tasks": ["find the fare"]})


class ClosableModel(ScriptedModel):
    """Counts how often it was closed; `limits_gate`, when set, holds up whoever asks for its limits."""

    def __init__(self, *script: ScriptStep, window: int = 200_000, name: str = "first-1") -> None:
        super().__init__(*script, window=window, name=name)
        self.closed = 0
        self.limits_gate: asyncio.Event | None = None
        self.asked_limits = asyncio.Event()

    async def limits(self) -> ModelLimits:
        if self.limits_gate is not None:
            self.asked_limits.set()
            await self.limits_gate.wait()
        return await super().limits()

    async def aclose(self) -> None:
        self.closed += 1


def other_model(*script: ScriptStep) -> ClosableModel:
    return ClosableModel(*(script or ("the other one",)), window=8_000, name="other-1")


def choosing(it: Callable[[], LiveApp], model: Model, step: ScriptStep) -> Callable[[ModelRequest], ScriptStep]:
    """Another model is chosen while the first one answers."""

    def answer(_: ModelRequest) -> ScriptStep:
        use_model(it().app, model)
        return step

    return answer


async def next_turn_is_answered_by(it: LiveApp, model: ScriptedModel) -> None:
    before = len(model.requests)
    await it.say("and now?")
    await it.wait_idle()
    assert len(model.requests) == before + 1
    assert it.bridge.bodies[-1] == "the other one"


async def test_a_model_chosen_while_the_limits_are_asked_for_answers_the_next_turn(tmp_path: Path) -> None:
    first, other = ClosableModel("the first one"), other_model()
    async with run_app(tmp_path, model=first) as it:
        first.limits_gate = asyncio.Event()
        await it.say("hello")
        waiting = asyncio.create_task(it.wait_idle())
        await first.asked_limits.wait()
        # Nobody knows yet how large the context is, and that is what is said of it.
        assert it.app.contexts.window.pressure("main") is None
        assert [row["pressure"] for row in it.app.status()["sessions"]] == [None]
        use_model(it.app, other)
        first.limits_gate.set()
        await waiting
        assert it.bridge.bodies == ["the first one"] and other.requests == []
        # What the first one said of itself is no measure of a session at rest any more.
        assert not it.app.contexts.meter.knows_model or it.app.contexts.meter.effective_window() == 8_000
        await it.app.contexts.meter.load_model_limits()
        assert it.app.contexts.meter.effective_window() == 8_000
        await next_turn_is_answered_by(it, other)


async def test_limits_that_arrive_after_the_choice_are_asked_for_again(tmp_path: Path) -> None:
    first, other = ClosableModel("the first one"), other_model()
    async with run_app(tmp_path, model=first) as it:
        first.limits_gate = asyncio.Event()
        meter = it.app.contexts.meter
        loading = asyncio.create_task(meter.load_model_limits())
        await first.asked_limits.wait()
        use_model(it.app, other)
        first.limits_gate.set()
        await loading
        assert meter.effective_window() == 8_000


async def test_a_model_chosen_while_a_summary_is_made_answers_the_next_turn(tmp_path: Path) -> None:
    """The summary is finished by the model that began it."""
    running: list[LiveApp] = []
    writer, other = summary_writer(), other_model()
    async with app_with_long_messages(tmp_path, 28, by=writer) as it:
        running.append(it)
        writer.script = [choosing(lambda: running[0], other, SUMMARY_ANSWER), SUMMARY_ANSWER]
        await it.app.commands.run("/compact", "main")
        (made,) = checkpoints_in(it)
        assert (made.tier, made.model) == ("full", "writer-1") and other.requests == []
        await next_turn_is_answered_by(it, other)


async def test_a_model_chosen_between_two_tool_steps_answers_the_next_turn(tmp_path: Path) -> None:
    running: list[LiveApp] = []
    other = other_model()
    first = ClosableModel(choosing(lambda: running[0], other, LOOK), LOOK, "the first one")
    async with run_app(tmp_path, model=first) as it:
        running.append(it)
        await it.say("what time is it?")
        await it.wait_idle()
        assert len(first.requests) == 3 and other.requests == []
        assert it.bridge.bodies == ["the first one"] and checkpoints_in(it) == []
        await next_turn_is_answered_by(it, other)


async def test_helpers_of_a_turn_are_answered_by_the_model_of_the_turn(tmp_path: Path) -> None:
    running: list[LiveApp] = []
    other = other_model()
    first = ClosableModel(choosing(lambda: running[0], other, DELEGATE), "90 euros", "the first one")
    async with run_app(tmp_path, model=first) as it:
        running.append(it)
        await it.say("plan the trip")
        await it.wait_idle()
        assert len(first.requests) == 3 and other.requests == []
        assert first.requests[1].messages[: len(first.requests[0].messages)] == first.requests[0].messages
        await next_turn_is_answered_by(it, other)


async def test_a_turn_that_waits_for_the_disk_keeps_its_model(tmp_path: Path) -> None:
    other = other_model()
    with file_size_limit(tmp_path / "disk") as disk:

        def fills(_: ModelRequest) -> ScriptStep:
            disk.fill()
            return LOOK

        first = ClosableModel(fills, "the first one")
        async with run_app(disk.place / "home", model=first) as it:
            await it.say("hello")
            await it.app.runtime.tick(it.clock())
            for _ in range(50):
                await asyncio.sleep(0)
            assert list(it.app.runtime.status()["blocked"]) == ["main"]
            use_model(it.app, other)
            await asyncio.sleep(0)
            assert first.closed == 0
            disk.free()
            it.clock.now = it.clock.now.replace(hour=it.clock.now.hour + 1)
            await it.app.runtime.tick(it.clock())
            await it.wait_idle()
            assert (it.bridge.bodies, len(first.requests), other.requests) == (["the first one"], 2, [])
            await next_turn_is_answered_by(it, other)
            assert first.closed == 1


async def test_a_replaced_model_is_closed_once_and_after_the_turn(tmp_path: Path) -> None:
    first, other = ClosableModel("the first one"), other_model()
    async with run_app(tmp_path, model=first) as it:
        first.gate = asyncio.Event()
        await it.say("hello")
        await it.app.runtime.tick(it.clock())
        await first.called.wait()
        answer = await it.app.commands.run("/model offline", "main")
        assert answer.startswith("From the next message on: ")
        use_model(it.app, other)
        await asyncio.sleep(0)
        assert first.closed == 0
        first.gate.set()
        await it.wait_idle()
        assert it.bridge.bodies == ["the first one"] and first.closed == 1
        await next_turn_is_answered_by(it, other)
        await it.app.models.aclose()
        assert (first.closed, other.closed) == (1, 1)


async def test_two_sessions_at_once_are_each_measured_by_their_own_model(tmp_path: Path) -> None:
    """The older turn goes on with a large window, the newer one begins with a small one; neither is compacted by the
    measure of the other."""
    async with app_with_long_messages(tmp_path, 12, ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS="0") as it:
        large, small = ClosableModel(LOOK, "the first one", window=200_000), other_model()
        use_model(it.app, large)
        large.gate = asyncio.Event()
        await it.say("what time is it?")
        await it.app.runtime.tick(it.clock())
        await large.called.wait()
        use_model(it.app, small)
        await it.app.runtime.accept(owner_message("hello", external_id="t1", session="thread"))
        await it.app.runtime.tick(it.clock())
        await small.called.wait()
        large.gate.set()
        await it.wait_idle()
        assert sorted(it.bridge.bodies[-2:]) == ["the first one", "the other one"]
        assert len(large.requests) == 2 and checkpoints_in(it) == []
        # At rest both are measured by the model of now, by which the long one is fuller.
        meter = it.app.contexts.meter
        assert meter.pressure_ratio("main") > meter.pressure_ratio("thread")
        assert context_pressure(it) > 0.5


async def test_models_are_closed_when_nothing_uses_them_any_more() -> None:
    first, second, third, writer = (ClosableModel(name=name) for name in ("a", "b", "c", "w"))
    models = CurrentModels(ModelPair(first, writer))
    with models.use() as pair:
        models.replace(ModelPair(second, writer))
        models.replace(ModelPair(third, writer))
        await asyncio.sleep(0)
        assert (pair.answering, models.answering) == (first, third)
        assert (first.closed, second.closed) == (0, 0)
    await asyncio.sleep(0)
    assert (first.closed, second.closed, third.closed, writer.closed) == (1, 1, 0, 0)
    with models.use():
        models.replace(ModelPair(OfflineModel(), OfflineModel()))
    await models.aclose()
    assert (first.closed, second.closed, third.closed, writer.closed) == (1, 1, 1, 1)


async def test_auto_is_what_the_settings_say_and_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        run = it.app.commands.run
        assert await run("/model auto", "main") == "From now on: offline"
        with pytest.raises(UsageError, match="Choose auto, offline, anthropic or openai"):
            await run("/model gpt", "main")
        with pytest.raises(UsageError, match="no address and no key for openai"):
            await run("/model openai:llama3", "main")
