"""A provider that fails, seen from the app: real SDK, strict server over HTTP. What was said is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.settings.settings import load_settings
from assistant.wire.app import App, build_app
from tests.strict.behaviour import (
    Behaviour,
    ConnectionCut,
    ErrorEvent,
    ErrorStatus,
    Garbage,
    ScriptedAnswer,
    Stall,
    ToolUse,
)
from tests.strict.server import StrictServer
from tests.support.scripted import RecordingBridge, SteppingClock, owner_message


@pytest.fixture(scope="module")
def shared() -> Iterator[StrictServer]:
    with StrictServer() as server:
        yield server


@pytest.fixture
def server(shared: StrictServer) -> StrictServer:
    return shared.play()


@asynccontextmanager
async def app(
    home: Path, server: StrictServer, provider: str, clock: SteppingClock, **more: str
) -> AsyncIterator[tuple[App, RecordingBridge]]:
    address = {
        "anthropic": {"ANTHROPIC_API_KEY": server.key, "ANTHROPIC_BASE_URL": server.url},
        "openai": {
            "OPENAI_API_KEY": server.key,
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "ASSISTANT_MODEL__NAME": "local-1",
        },
    }[provider]
    environ = {
        "ASSISTANT_HOME": str(home),
        "ASSISTANT_MODEL__PROVIDER": provider,
        "ASSISTANT_MODEL__RETRIES": "0",
        "ASSISTANT_MODEL__STALL_SECONDS": "1.0",
        **address,
        **more,
    }
    bridge = RecordingBridge()
    built = build_app(load_settings(None, environ), clock, bridges={"kept": bridge})
    try:
        await built.start()
        yield built, bridge
        assert built.stores.verifier.verify().ok
    finally:
        await built.stop(5)
        await built.models.aclose()
        built.close()


async def say(built: App, text: str, number: int) -> int:
    accepted = await built.runtime.accept(owner_message(text, external_id=f"m{number}"))
    await built.runtime.wait_until_idle()
    await built.dispatcher.flush()
    return accepted.inbox_id


FAULTS = [
    Stall("half an ans"),
    Garbage(b"data: {this is no JSON\n\n"),
    ErrorStatus(429, "rate_limit_error", "slow down"),
    ErrorStatus(529, "overloaded_error", "too much"),
    ErrorStatus(500, "api_error", "oops"),
    ErrorStatus(400, "invalid_request_error", "no such thing"),
    ErrorStatus(401, "authentication_error", "who are you"),
    ConnectionCut("half an ans"),
]


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{type(fault).__name__}{getattr(fault, 'status', '')}")
async def test_a_note_is_taken_by_the_offline_model_when_the_provider_fails(
    tmp_path: Path, server: StrictServer, provider: str, fault: Behaviour
) -> None:
    server.play(fault)
    async with app(tmp_path, server, provider, SteppingClock()) as (built, bridge):
        inbox_id = await say(built, "remember that the cabin key is under the blue pot", 1)
        item = built.stores.conversation.inbox_item(inbox_id)
        assert item is not None and item.state == "answered"
        told, answer = bridge.bodies
        assert "Noted" in answer
        assert "does not answer: " in told and "Offline mode (no language model) answers meanwhile" in told
        assert "\n" not in told


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{type(fault).__name__}{getattr(fault, 'status', '')}")
async def test_without_a_fallback_one_line_tells_what_happened_and_the_message_is_kept(
    tmp_path: Path, server: StrictServer, provider: str, fault: Behaviour
) -> None:
    server.play(fault, ScriptedAnswer("here I am"))
    async with app(tmp_path, server, provider, SteppingClock(), ASSISTANT_MODEL__FALLBACK="[]") as (built, bridge):
        inbox_id = await say(built, "are you there?", 1)
        item = built.stores.conversation.inbox_item(inbox_id)
        assert item is not None
        result = built.runtime.result(item)
        assert (result["state"], result["exit_code"]) == ("failed", 3)
        assert "kept" in result["error"] and "\n" not in result["error"]
        await say(built, "and now?", 2)
        error, back, answer = bridge.bodies
        assert (error, answer) == (result["error"], "here I am") and back.startswith("The model answers again.")
        contents = [m.content for m in built.stores.conversation.load_view("main").messages]
        assert contents[0] == "are you there?"


async def test_an_error_in_mid_stream_is_taken_by_its_type_though_it_came_with_code_200(
    tmp_path: Path, server: StrictServer
) -> None:
    server.play(ErrorEvent("overloaded_error", "too much", text="half"), ScriptedAnswer("whole"))
    clock = SteppingClock()
    async with app(tmp_path, server, "anthropic", clock, ASSISTANT_MODEL__FALLBACK='["anthropic:other"]') as (
        built,
        bridge,
    ):
        await say(built, "hello", 1)
        assert bridge.bodies[-1] == "whole" and "other answers meanwhile" in bridge.bodies[0]
        assert "discard" in [event.kind for event in bridge.events]


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_turns_with_tools_are_well_formed_for_a_strict_service(
    tmp_path: Path, server: StrictServer, provider: str
) -> None:
    add = ToolUse("manage_todo_list", {"action": "add", "items": ["milk"]})
    server.play(
        ScriptedAnswer("Let me see.", calls=(add,)),
        ScriptedAnswer("It is on your list."),
        ScriptedAnswer("You are welcome."),
    )
    async with app(tmp_path, server, provider, SteppingClock()) as (built, bridge):
        await say(built, "milk, please", 1)
        await say(built, "thanks", 2)
        answers = [item.outgoing.body for item in bridge.sent if item.outgoing.kind == "reply"]
        assert answers == ["It is on your list.", "You are welcome."]
        assert server.complaints == []
        assert [todo.text for todo in built.stores.todos.list_todos("owner")] == ["milk"]


async def test_a_clock_that_is_set_back_loses_and_reorders_nothing(tmp_path: Path, server: StrictServer) -> None:
    server.play(*(ScriptedAnswer(f"answer {n}") for n in range(4)))
    clock = SteppingClock()
    async with app(tmp_path, server, "anthropic", clock) as (built, bridge):
        for number in range(4):
            await say(built, f"question {number}", number)
            clock.now -= timedelta(days=400 if number == 1 else 0)
        assert bridge.bodies == [f"answer {n}" for n in range(4)]
        said_in_order = [record.content for record in built.stores.history.recent("owner")]
        assert said_in_order == [text for n in range(4) for text in (f"question {n}", f"answer {n}")]
