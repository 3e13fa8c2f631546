"""What is Anthropic's own: signed thinking, the prompt cache, the window asked once. Through the real SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from assistant.core.errors import StoreError
from assistant.core.messages import Message
from assistant.core.model_api import ModelLimits, ModelRequest, SystemBlock
from assistant.models.anthropic import DEFAULT_LIMITS, AnthropicModel
from tests.strict.asking import NOW, InMemoryModelFacts, call_model, make_request, result
from tests.strict.behaviour import ErrorStatus, ScriptedAnswer, ToolUse
from tests.strict.server import StrictServer
from tests.strict.validate import RequestLimits

LOOKING = [ToolUse("look", {"at": "x"})]


class SettableClock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def seconds(self) -> float:
        return self.now.timestamp()


@pytest.fixture(scope="module")
def shared() -> Iterator[StrictServer]:
    with StrictServer() as server:
        yield server


@pytest.fixture
def server(shared: StrictServer) -> StrictServer:
    return shared.play()


@pytest.fixture
def time() -> SettableClock:
    return SettableClock()


@pytest.fixture
def facts() -> InMemoryModelFacts:
    return InMemoryModelFacts()


def claude(server: StrictServer, time: SettableClock, **changes: Any) -> AnthropicModel:
    return AnthropicModel("claude-test", server.key, clock=time, base_url=server.url, stall_seconds=5, **changes)


@pytest.fixture
async def model(server: StrictServer, time: SettableClock, facts: InMemoryModelFacts) -> AsyncIterator[AnthropicModel]:
    made = claude(server, time, facts=facts)
    yield made
    await made.aclose()


async def tool_loop(model: AnthropicModel, text: str = "go") -> tuple[Message, Message]:
    """Ask for something that ends in a tool call; the call and its result."""
    message = (await call_model(model, text)).reply.message
    return message, result(message.tool_calls[0].id)


# -------------------------------------------------------------------------------------------------------------- signed


async def test_f09_signed_thinking_is_sent_back_verbatim_within_its_tool_loop(
    model: AnthropicModel, server: StrictServer
) -> None:
    server.play(ScriptedAnswer("I look.", LOOKING, thinking="Where is it?", redacted="secret", again="Left, perhaps."))
    first, seen = await tool_loop(model)
    assert (await call_model(model, make_request("go", first, seen))).error is None
    assert server.complaints == []
    assert len(server.requests) == 2
    content = server.bodies[1]["messages"][1]["content"]
    assert [block["type"] for block in content] == ["thinking", "redacted_thinking", "text", "thinking", "tool_use"]
    assert content[0]["thinking"] == "Where is it?"


async def test_f09_thinking_whose_text_is_withheld_goes_back_too(model: AnthropicModel, server: StrictServer) -> None:
    server.play(ScriptedAnswer("", LOOKING, thinking=""))
    first, seen = await tool_loop(model)
    assert (await call_model(model, make_request("go", first, seen))).error is None
    assert server.complaints == []


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"thinking": "Where? "}, "Invalid `signature`"),
        ({"signature": "forged"}, "Invalid `signature`"),
        (None, "cannot be modified"),
    ],
    ids=["text", "signature", "left out"],
)
async def test_f09_altered_thinking_is_refused_by_the_service(
    model: AnthropicModel, server: StrictServer, changes: dict[str, str] | None, complaint: str
) -> None:
    server.play(ScriptedAnswer("", LOOKING, thinking="Where?"))
    first, seen = await tool_loop(model)
    blocks = () if changes is None else ({**first.thinking[0], **changes},)
    assert (await call_model(model, make_request("go", replace(first, thinking=blocks), seen))).kind == "bad_request"
    assert complaint in server.complaints[0]


async def test_f09_thinking_that_no_longer_fits_its_prompt_is_dropped_whole_and_the_turn_goes_on(
    model: AnthropicModel, server: StrictServer
) -> None:
    """The view was shortened within the loop: the signed block is bound to a prompt that is gone."""
    earlier = ["a long story " * 40, Message("assistant", "I see.", model="claude-test")]
    server.play(ScriptedAnswer("", LOOKING, thinking="Where?"))
    first = (await call_model(model, make_request(*earlier, "go"))).reply.message
    said = await call_model(model, make_request("go", first, result(first.tool_calls[0].id)))
    assert said.error is None
    assert len(server.complaints) == 1
    assert "bound to a different conversation" in server.complaints[0]
    assert "thinking" not in str(server.bodies[-1]["messages"])


async def test_f09_a_closed_loop_sends_no_thinking(model: AnthropicModel, server: StrictServer) -> None:
    server.play(ScriptedAnswer("", LOOKING, thinking="Where?"), ScriptedAnswer("There.", thinking="Found it."))
    first, seen = await tool_loop(model)
    second = (await call_model(model, make_request("go", first, seen))).reply.message
    assert (await call_model(model, make_request("go", first, seen, second, "and the other?"))).error is None
    assert server.complaints == []
    assert "thinking" not in str(server.bodies[2]["messages"])


async def test_a_malformed_request_without_thinking_is_sent_once(model: AnthropicModel, server: StrictServer) -> None:
    server.play(ErrorStatus(400, "invalid_request_error", "thinking: whatever"), ScriptedAnswer("no"))
    assert (await call_model(model)).kind == "bad_request"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("wanted", "taken", "sent"),
    [
        ("off", ("adaptive", "disabled"), "disabled"),
        ("off", ("adaptive", "between_tools"), "between_tools"),
        ("off", ("adaptive",), None),
        ("adaptive", ("adaptive", "disabled"), "adaptive"),
        ("adaptive", ("disabled",), None),
    ],
)
async def test_only_a_thinking_type_that_the_model_takes_is_sent(
    server: StrictServer, time: SettableClock, wanted: Any, taken: tuple[str, ...], sent: str | None
) -> None:
    server.play(thinking_types=taken)
    model = claude(server, time, thinking=wanted)
    assert (await call_model(model)).error is None
    assert server.complaints == []
    assert server.bodies[0].get("thinking", {}).get("type") == sent
    await model.aclose()


# --------------------------------------------------------------------------------------------------------------- cache


def conversation(turns: int, *, volatile: str) -> ModelRequest:
    """A conversation whose cache edges are as the context builder sets them: history, and the newest message."""
    said: list[Message] = []
    for number in range(turns):
        said += [Message("user", f"question {number} " * 60), Message("assistant", f"answer {number} " * 60)]
    newest = Message("user", "and now?", metadata={"volatile": volatile})
    system = (SystemBlock("persona " * 300, True), SystemBlock("memory " * 300, True))
    return make_request(*said, newest, system=system, cache_boundaries=(len(said) - 1,) if said else ())


async def test_what_was_cached_is_read_and_billed_as_such(server: StrictServer, time: SettableClock) -> None:
    server.play(clock=time.seconds)
    model = claude(server, time)
    first = (await call_model(model, conversation(1, volatile="noon"))).reply.usage
    again = (await call_model(model, conversation(1, volatile="one past noon"))).reply.usage
    longer = (await call_model(model, conversation(2, volatile="two past noon"))).reply.usage
    assert server.complaints == []
    assert first.cache_read == 0 < first.cache_write
    assert (again.cache_read, again.cache_write) == (first.cache_write, 0)
    assert longer.cache_read == first.cache_write
    assert longer.cache_write > 0
    time.now += timedelta(minutes=6)
    cold = (await call_model(model, conversation(2, volatile="later"))).reply.usage
    assert (cold.cache_read, cold.cache_write) == (0, longer.cache_read + longer.cache_write)
    await model.aclose()


async def test_another_memory_block_keeps_the_persona_cached(server: StrictServer, time: SettableClock) -> None:
    server.play(clock=time.seconds)
    model = claude(server, time)
    base = conversation(1, volatile="noon")
    await call_model(model, base)
    changed = replace(base, system=(base.system[0], SystemBlock("other memory " * 200, True)))
    used = (await call_model(model, changed)).reply.usage
    assert 0 < used.cache_read < used.cache_write
    await model.aclose()


# -------------------------------------------------------------------------------------------------------------- limits


async def test_the_window_is_asked_once_and_remembered(
    model: AnthropicModel, server: StrictServer, facts: InMemoryModelFacts
) -> None:
    server.play(bounds=RequestLimits(window=1_000_000, max_output=64_000))
    limits = await model.limits()
    assert limits == ModelLimits(1_000_000, 64_000, 32_000_000, 600, "provider")
    await call_model(model)
    await model.limits()
    assert server.looks == ["/v1/models/claude-test"]
    assert facts.kept == {"claude-test": limits}


async def test_a_remembered_window_is_known_without_asking(
    model: AnthropicModel, server: StrictServer, facts: InMemoryModelFacts
) -> None:
    facts.kept["claude-test"] = ModelLimits(500_000, 9_000, 32_000_000, 600, "provider")
    assert (await model.limits()).window == 500_000
    assert server.looks == []


async def test_a_window_that_changed_is_learned_with_the_first_call(
    model: AnthropicModel, server: StrictServer, facts: InMemoryModelFacts
) -> None:
    facts.kept["claude-test"] = ModelLimits(500_000, 9_000, 32_000_000, 600, "provider")
    await call_model(model)
    assert facts.kept["claude-test"].window == 200_000
    assert (await model.limits()).window == 200_000


async def test_an_answer_is_never_asked_longer_than_the_model_gives(
    model: AnthropicModel, server: StrictServer
) -> None:
    server.play(bounds=RequestLimits(max_output=500))
    assert (await call_model(model, make_request("hi", max_output_tokens=8192))).error is None
    assert server.bodies[0]["max_tokens"] == 500


async def test_an_endpoint_that_cannot_be_asked_gives_a_careful_default_and_is_left_alone_for_a_while(
    model: AnthropicModel, server: StrictServer, time: SettableClock, facts: InMemoryModelFacts
) -> None:
    server.other["/v1/models/claude-test"] = {"id": "claude-test"}
    assert await model.limits() == DEFAULT_LIMITS
    assert facts.kept == {}
    gone = AnthropicModel("claude-test", "k", clock=time, base_url="http://127.0.0.1:9", facts=facts)
    for _ in range(3):
        assert (await gone.limits()).source == "default"
    await gone.aclose()


async def test_a_store_that_fails_does_not_stop_an_answer(server: StrictServer, time: SettableClock) -> None:
    class FullDisk(InMemoryModelFacts):
        def limits(self, model: str) -> ModelLimits | None:
            raise StoreError("no room")

        def set_limits(self, model: str, limits: ModelLimits, now: datetime) -> None:
            raise StoreError("no room")

    model = claude(server, time, facts=FullDisk())
    assert (await model.limits()).source == "provider"
    assert (await call_model(model)).error is None
    await model.aclose()


# ----------------------------------------------------------------------------------------------------------------- key


async def test_without_a_key_nothing_is_sent_and_the_person_is_told_what_to_set(
    server: StrictServer, time: SettableClock
) -> None:
    model = AnthropicModel("claude-sonnet-5-5", "", clock=time, base_url=server.url)
    said = await call_model(model)
    assert said.kind == "auth"
    assert "ANTHROPIC_API_KEY" in str(said.error)
    assert (await model.limits()).source == "default"
    assert server.requests == [] == server.looks
    await model.aclose()


async def test_a_wrong_key_is_told_as_such(server: StrictServer, time: SettableClock) -> None:
    model = AnthropicModel("claude-test", "wrong", clock=time, base_url=server.url)
    assert (await call_model(model)).kind == "auth"
    await model.aclose()
