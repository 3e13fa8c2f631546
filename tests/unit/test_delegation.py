"""Helpers: one context for all, nothing changed by them, each within its limits, each noted, none left running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from assistant.core.errors import ModelError, StoreError, ToolError
from assistant.core.messages import Message, ToolCall, Usage
from assistant.core.model_api import CallPurpose, ModelEvent, ModelReply, ModelRequest, SystemBlock, TextDelta
from assistant.core.ports import ToolContext
from assistant.core.quoting import NOTE_TAG
from assistant.runtime.delegation import (
    FAILED_PREFIX,
    LAST_STEP_NOTE,
    TRUNCATED_ANSWER_NOTE,
    TURN_STOPPED,
    DelegationRunner,
)
from assistant.runtime.tool_registry import ToolRegistry
from assistant.settings.sections import DelegationSettings
from assistant.settings.settings import shipped_config_dir
from tests.support.in_memory import InMemoryDelegations
from tests.support.scripted import ScriptedModel, ScriptStep
from tools.declaration import tool

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CONTEXT = ToolContext("main", "owner", "t7", "t7:c1", NOW)
PROMPT = "You are a helper."
PRICED = Usage(100, 10, cost_usd=0.5)
ALL = DelegationSettings(max_helpers=4, max_steps=8, max_tokens=200_000, max_seconds=60.0)


@tool()
async def look(context: ToolContext, at: str = "") -> str:
    """Looks at something."""
    return f"seen {at} under {context.key}"


@tool(effects="keyed")
async def change(context: ToolContext) -> str:
    """Changes something."""
    raise AssertionError("a helper changed something")


@tool(effects="once")
async def delegate(context: ToolContext) -> str:
    """Starts helpers."""
    raise AssertionError("a helper started a helper")


def snapshot(*messages: Message) -> ModelRequest:
    said = messages or (Message("user", "plan the trip", id=1, metadata={"volatile": "Now: noon"}),)
    specs = tuple(one.spec for one in (look, change, delegate))
    return ModelRequest((SystemBlock("Be kind.", True),), said, specs, (0,), 4096)


class CountingModel(ScriptedModel):
    """Keeps what each call was made for."""

    def __init__(self, *script: ScriptStep, **how: int) -> None:
        super().__init__(*script, **how)  # type: ignore[arg-type]
        self.made_for: list[tuple[CallPurpose, str | None, str | None]] = []

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent]:
        self.made_for.append((purpose, session, turn))
        async for event in super().stream(request, purpose, session=session, turn=turn):
            yield event


@dataclass
class DelegationSetup:
    """Helpers over a scripted model. `steps` maps a task to its script, where helpers differ."""

    model: ScriptedModel
    kept: InMemoryDelegations = field(default_factory=InMemoryDelegations)
    request: ModelRequest | None = field(default_factory=snapshot)
    settings: DelegationSettings = ALL
    tokens_of: Callable[[ModelRequest, str], int] = lambda request, model: 1000

    async def run(self, *tasks: str, context: ToolContext = CONTEXT) -> list[str]:
        registry = ToolRegistry((look, change, delegate), timeout_seconds=30)
        helpers = DelegationRunner(
            registry,
            lambda turn: (self.model, self.request) if turn == "t7" and self.request else None,
            self.kept,
            self.settings,
            lambda: NOW,
            prompt=PROMPT,
            count_request_tokens=self.tokens_of,
        )
        return await helpers.run(tasks, context)

    @property
    def states(self) -> list[tuple[str, str]]:
        return [(one.task, one.state) for one in self.kept.rows]


def task_of(request: ModelRequest) -> str:
    """The task of the helper that a request was made by."""
    first = next(m for m in request.messages if m.role == "user" and m.content.startswith(PROMPT))
    return first.content.rpartition("Your task:\n")[2]


def by_task(**scripts: ScriptStep) -> Callable[[ModelRequest], ScriptStep]:
    return lambda request: scripts[task_of(request)]


def answered(text: str = "", *, stop: str = "end", usage: Usage = PRICED) -> ModelReply:
    return ModelReply(Message("assistant", text, model="scripted-1"), usage, stop)  # type: ignore[arg-type]


def test_the_prompt_of_a_helper_is_a_file_that_is_not_empty() -> None:
    assert "helper" in (shipped_config_dir() / "prompts" / "delegate.md").read_text(encoding="utf-8")


# ---------------------------------------------------------------------------------------------------------- one context


async def test_every_helper_sees_the_same_request_and_its_own_task_last() -> None:
    app = DelegationSetup(ScriptedModel(by_task(one="first", two="second")))
    given = app.request
    assert await app.run("one", "two") == ["first", "second"]
    assert given is not None
    for request in app.model.requests:
        assert request.messages[: len(given.messages)] == given.messages
        assert all(mine is theirs for mine, theirs in zip(request.messages, given.messages, strict=False))
        assert (request.system, request.tools) == (given.system, given.tools)
        assert len(request.messages) == len(given.messages) + 1
    assert [task_of(request) for request in app.model.requests] == ["one", "two"]
    assert "Tools that run for you: look." in app.model.requests[0].messages[-1].content


async def test_a_context_that_holds_runtime_notes_is_passed_on_byte_for_byte() -> None:
    """A note folded into a user message would be defused, were the snapshot normalised again."""
    noted = Message("user", f"<{NOTE_TAG}>\nThe sender edited #3.\n</{NOTE_TAG}>\n\nand now?", id=4)
    app = DelegationSetup(ScriptedModel("yes"), request=snapshot(noted))
    await app.run("one")
    assert app.model.requests[0].messages[0] is noted


async def test_helpers_work_at_the_same_time_and_answers_keep_the_order_of_the_tasks() -> None:
    """Nobody is answered before all three have asked, and then the last one first."""
    asked: list[str] = []
    turn_of = {task: asyncio.Event() for task in ("one", "two", "three")}

    class InReverse(ScriptedModel):
        async def stream(
            self, request: ModelRequest, *given: CallPurpose, **names: str | None
        ) -> AsyncGenerator[ModelEvent]:
            asked.append(task_of(request))
            if len(asked) == 3:
                turn_of["three"].set()
            await turn_of[task_of(request)].wait()
            async for event in super().stream(request, *given, **names):
                yield event
            answered_now = list(turn_of)[::-1]
            later = answered_now[answered_now.index(task_of(request)) + 1 :]
            if later:
                turn_of[later[0]].set()

    app = DelegationSetup(InReverse(by_task(one="first", two="second", three="third")))
    assert await app.run("one", "two", "three") == ["first", "second", "third"]
    assert [task_of(request) for request in app.model.requests] == ["three", "two", "one"]


async def test_without_a_context_none_is_started() -> None:
    app = DelegationSetup(ScriptedModel("yes"))
    with pytest.raises(ToolError, match="None was started"):
        await app.run("one", context=replace(CONTEXT, turn="another"))
    assert (app.kept.rows, app.model.requests) == ([], [])


async def test_the_cache_of_the_conversation_is_read_and_extended() -> None:
    """Where the snapshot had an edge in its tool loop, the helper's prompt is worth caching up to there."""
    call = Message("assistant", tool_calls=(ToolCall("a", "look"),))
    loop = replace(
        snapshot(Message("user", "go"), call, Message("tool", "x", tool_call_id="a")), cache_boundaries=(0, 2)
    )
    app = DelegationSetup(ScriptedModel(ToolCall("b", "look"), "done"), request=loop)
    await app.run("one")
    assert [request.cache_boundaries for request in app.model.requests] == [(2, 3), (2, 5)]


# ------------------------------------------------------------------------------------------------------------ no effect


async def test_only_tools_without_effects_run_for_a_helper() -> None:
    calls = [ToolCall("c1", "look", {"at": "map"}), ToolCall("c2", "change"), ToolCall("c3", "delegate")]
    app = DelegationSetup(ScriptedModel([*calls, ToolCall("c4", "unheard")], "done"))
    assert await app.run("one") == ["done"]
    results = {m.tool_call_id: m for m in app.model.requests[1].messages if m.role == "tool"}
    assert results["c1"].content.startswith("seen map")
    for refused in ("c2", "c3", "c4"):
        assert "does not run for helpers. Tools that do: look." in results[refused].content
        assert results[refused].metadata["is_error"]


async def test_each_tool_run_of_each_helper_has_its_own_key() -> None:
    """Scripted models give the same call id again and again; keys and ids are unique all the same."""
    first = ToolCall("c1", "look", {"at": "it"})
    app = DelegationSetup(ScriptedModel(lambda request: "done" if len(request.messages) > 5 else first))
    await app.run("one", "two")
    last = [request for request in app.model.requests if len(request.messages) > 5]
    results = [m for request in last for m in request.messages if m.role == "tool"]
    assert len({m.content for m in results}) == len(results) == 4
    for request in last:
        ids = [call.id for m in request.messages for call in m.tool_calls]
        assert len(set(ids)) == len(ids) == 2


async def test_a_result_too_long_for_a_helper_keeps_both_its_ends() -> None:
    app = DelegationSetup(ScriptedModel(ToolCall("c1", "look", {"at": "x" * 50_000}), "done"))
    await app.run("one")
    result = app.model.requests[1].messages[-1].content
    assert len(result) < 21_000
    assert result.startswith("seen xxx")
    assert "characters left out" in result
    assert result.endswith("under t7:c1:1:c1")


# --------------------------------------------------------------------------------------------------------------- limits


async def test_a_helper_that_goes_in_circles_is_told_its_last_step_and_then_stopped() -> None:
    app = DelegationSetup(ScriptedModel(ToolCall("c", "look")), settings=ALL.changed(max_steps=3))
    [text] = await app.run("one")
    assert text == f"{FAILED_PREFIX}The helper stopped after 3 model calls (delegation.max_steps)."
    told = [any(LAST_STEP_NOTE in m.content for m in request.messages) for request in app.model.requests]
    assert told == [False, False, True]
    assert f"<{NOTE_TAG}>" in app.model.requests[-1].messages[-1].content
    assert app.states == [("one", "failed")]


async def test_a_helper_never_uses_more_tokens_than_it_may() -> None:
    """Prompts of 1,000 tokens, answers of 10: after two calls a third would pass 3,000."""
    replies = [
        replace(answered("so far"), message=Message("assistant", "so far", tool_calls=(ToolCall(n, "look"),)))
        for n in "abc"
    ]
    spent = [replace(reply, usage=Usage(990, 10)) for reply in replies]
    app = DelegationSetup(ScriptedModel(*spent), settings=ALL.changed(max_tokens=3_000))
    [text] = await app.run("one")
    assert text == f"{FAILED_PREFIX}The helper stopped at 3000 tokens (delegation.max_tokens). It last said:\nso far"
    assert [request.max_output_tokens for request in app.model.requests] == [2_000, 1_000]


async def test_a_helper_whose_reading_fills_the_window_is_stopped_before_the_provider_refuses() -> None:
    sizes = iter((1_000, 9_900))
    model = ScriptedModel(ToolCall("c", "look"), window=10_000)
    app = DelegationSetup(model, tokens_of=lambda request, model: next(sizes))
    [text] = await app.run("one")
    assert "no longer fits into the model's window" in text
    assert len(model.requests) == 1


async def test_a_helper_that_takes_too_long_leaves_the_answers_of_the_others() -> None:
    class Stalling(ScriptedModel):
        async def stream(
            self, request: ModelRequest, *given: CallPurpose, **names: str | None
        ) -> AsyncGenerator[ModelEvent]:
            if task_of(request) == "slow":
                await asyncio.Event().wait()
            async for event in super().stream(request, *given, **names):
                yield event

    app = DelegationSetup(Stalling(by_task(fast="here")), settings=ALL.changed(max_seconds=0.05))
    assert await app.run("slow", "fast") == [f"{FAILED_PREFIX}The helper had no answer after 0.05 seconds.", "here"]
    assert app.states == [("slow", "failed"), ("fast", "done")]


async def test_a_model_that_fails_one_helper_leaves_the_others() -> None:
    trouble = ModelError("Over budget.", kind="budget")
    app = DelegationSetup(ScriptedModel(by_task(one=trouble, two="fine")))
    assert await app.run("one", "two") == [f"{FAILED_PREFIX}Over budget.", "fine"]
    assert app.states == [("one", "failed"), ("two", "done")]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (answered("half a", stop="max_tokens"), f"half a{TRUNCATED_ANSWER_NOTE}"),
        (answered(stop="refusal"), f"{FAILED_PREFIX}The model declined to do this."),
        (answered("  "), f"{FAILED_PREFIX}The helper answered nothing."),
        (answered(stop="overflow"), f"{FAILED_PREFIX}The model's context window is full."),
        (
            replace(answered("hm"), message=Message("assistant", "hm", model="offline")),
            "hm\n(Answered by offline, since scripted-1 could not.)",
        ),
    ],
)
async def test_an_answer_that_is_none_is_not_passed_off_as_one(reply: ModelReply, text: str) -> None:
    assert await DelegationSetup(ScriptedModel(reply)).run("one") == [text]


# ---------------------------------------------------------------------------------------------------- noted and metered


async def test_f22_tasks_are_noted_before_a_helper_starts_and_when_it_ends() -> None:
    kept = InMemoryDelegations()
    seen: list[list[str]] = []

    def look_at_notes(request: ModelRequest) -> ScriptStep:
        seen.append([one.state for one in kept.rows])
        return f"did {task_of(request)}"

    await DelegationSetup(ScriptedModel(look_at_notes), kept).run("one", "two")
    assert seen[0] == ["running", "running"]
    rows = [(one.key, one.turn, one.session, one.scope, one.task, one.state, one.result) for one in kept.rows]
    assert rows == [
        ("t7:c1", "t7", "main", "owner", "one", "done", "did one"),
        ("t7:c1", "t7", "main", "owner", "two", "done", "did two"),
    ]


async def test_every_call_is_metered_and_its_cost_noted() -> None:
    priced = answered("ok", usage=Usage(10, 5, cost_usd=0.25))
    first = replace(priced, message=Message("assistant", tool_calls=(ToolCall("c", "look"),)))
    model = CountingModel(first, priced)
    app = DelegationSetup(model)
    await app.run("one")
    assert model.made_for == [("chat", "main", "t7")] * 2
    assert [one.cost_usd for one in app.kept.rows] == [0.5]


async def test_helpers_are_called_for_what_their_turn_is_called_for() -> None:
    model = CountingModel(answered("ok"))
    await DelegationSetup(model).run("one", context=replace(CONTEXT, purpose="schedule"))
    assert model.made_for == [("schedule", "main", "t7")]


async def test_a_call_without_a_price_has_no_known_cost() -> None:
    app = DelegationSetup(ScriptedModel(answered("ok", usage=Usage(10, 5))))
    await app.run("one")
    assert [one.cost_usd for one in app.kept.rows] == [None]


async def test_f22_a_turn_that_is_stopped_ends_all_its_helpers() -> None:
    model = ScriptedModel("never")
    model.gate = asyncio.Event()
    app = DelegationSetup(model)
    running = asyncio.create_task(app.run("one", "two"))
    await model.called.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [(one.state, one.result) for one in app.kept.rows] == [("failed", f"{FAILED_PREFIX}{TURN_STOPPED}")] * 2
    assert len(asyncio.all_tasks()) == 1


async def test_a_bug_in_one_helper_leaves_none_noted_as_running() -> None:
    class Buggy(ScriptedModel):
        async def stream(
            self, request: ModelRequest, *given: CallPurpose, **names: str | None
        ) -> AsyncGenerator[ModelEvent]:
            if task_of(request) == "one":
                raise RuntimeError("a bug")
            await asyncio.Event().wait()
            yield TextDelta("never")

    app = DelegationSetup(Buggy())
    with pytest.raises(ExceptionGroup):
        await app.run("one", "two")
    assert app.states == [("one", "failed"), ("two", "failed")]
    assert [one.cost_usd for one in app.kept.rows] == [0.0, 0.0]


async def test_an_answer_stands_although_the_disk_refuses_the_note_of_it() -> None:
    kept = InMemoryDelegations(fail_end=StoreError("disk full"))
    assert await DelegationSetup(ScriptedModel("an answer"), kept).run("one") == ["an answer"]


async def test_nothing_starts_that_could_not_be_noted() -> None:
    app = DelegationSetup(ScriptedModel("an answer"), InMemoryDelegations(fail_begin=StoreError("disk full")))
    with pytest.raises(StoreError):
        await app.run("one")
    assert app.model.requests == []


async def test_f22_a_call_made_again_under_its_key_pays_for_no_answer_twice() -> None:
    kept = InMemoryDelegations()
    first = kept.begin("t7:c1", "t7", "main", "owner", ["one", "two"], NOW)[0]
    kept.end(first.id, "done", "an answer", 0.5, NOW)
    kept.interrupt_running(NOW)
    app = DelegationSetup(ScriptedModel("another"), kept)
    assert await app.run("one", "two") == ["an answer", "another"]
    assert [task_of(request) for request in app.model.requests] == ["two"]
