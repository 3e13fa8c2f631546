"""What is peculiar to servers that speak Chat Completions: names, windows, and what they leave out. Real SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest

from assistant.core.model_api import ModelLimits
from assistant.models.limits import LimitsCache
from assistant.models.openai import DEFAULT_WINDOW, OpenAIModel
from assistant.models.prices import is_hosted_by_openai
from tests.strict.asking import InMemoryModelFacts, call_model, clock, make_request
from tests.strict.behaviour import ErrorEvent, ScriptedAnswer, ToolUse
from tests.strict.chat_api import model as listed
from tests.strict.server import StrictServer
from tests.support.scripted import SteppingClock


@pytest.fixture(scope="module")
def shared() -> Iterator[StrictServer]:
    with StrictServer() as server:
        yield server


@pytest.fixture
def server(shared: StrictServer) -> StrictServer:
    return shared.play()


@pytest.fixture
def facts() -> InMemoryModelFacts:
    return InMemoryModelFacts()


def local(server: StrictServer, name: str = "local-model", **changes: Any) -> OpenAIModel:
    return OpenAIModel(name, server.key, clock=clock, base_url=f"{server.url}/v1/", stall_seconds=5, **changes)


@pytest.fixture
async def model(server: StrictServer, facts: InMemoryModelFacts) -> AsyncIterator[OpenAIModel]:
    made = local(server, facts=facts)
    yield made
    await made.aclose()


async def window(server: StrictServer, *entries: dict[str, Any], name: str = "m", **changes: Any) -> ModelLimits:
    server.chat.models = list(entries)
    model = local(server, name, **changes)
    limits = await model.limits()
    await model.aclose()
    return limits


# ---------------------------------------------------------------------------------------------------------------- names


async def test_without_a_name_the_first_listed_model_answers(server: StrictServer) -> None:
    server.chat.models = [listed("first"), listed("second")]
    model = local(server, "")
    said = await call_model(model)
    assert server.bodies[0]["model"] == "first" == model.name == said.reply.message.model
    await model.aclose()


async def test_a_server_without_models_is_told_as_such(server: StrictServer) -> None:
    server.chat.models = []
    model = local(server, "")
    said = await call_model(model)
    assert said.kind == "network"
    assert "lists no models" in str(said.error)
    await model.aclose()


# -------------------------------------------------------------------------------------------------------------- windows


@pytest.mark.parametrize(
    "told",
    [
        {"max_model_len": 16_384},
        {"context_length": 16_384},
        {"context_window": 16_384},
        {"max_context_length": 16_384},
        {"meta": {"n_ctx": 16_384, "n_ctx_train": 131_072}},
        {"meta": {"n_ctx_train": 16_384}},
    ],
)
async def test_a_window_that_the_list_tells_is_taken(server: StrictServer, told: dict[str, Any]) -> None:
    limits = await window(server, listed("other"), listed("m", **told))
    assert limits.window == 16_384
    assert limits.source == "provider"
    assert limits.max_output == 4096


async def test_llama_cpp_s_running_window_counts_and_not_the_one_it_was_trained_with(server: StrictServer) -> None:
    server.other["/props"] = {"default_generation_settings": {"n_ctx": 8192}}
    entry = listed("m", owned_by="llamacpp", meta={"n_ctx_train": 131_072})
    assert (await window(server, entry)).window == 8192


def test_limits_are_asked_for_again_also_where_the_clock_was_set_back() -> None:
    shown = SteppingClock()
    cache = LimitsCache(None, shown)
    cache.record_failure()
    assert not cache.may_ask()
    shown.now -= timedelta(days=365)
    assert cache.may_ask()


async def test_ollama_s_window_is_that_of_the_loaded_model_and_asked_again_until_it_is_loaded(
    server: StrictServer, facts: InMemoryModelFacts
) -> None:
    server.chat.models = [listed("qwen3:8b", owned_by="library")]
    server.other["/api/ps"] = {"models": []}
    model = local(server, "qwen3:8b", facts=facts)
    assert (await model.limits()).source == "default"
    server.other["/api/ps"] = {"models": [{"name": "qwen3:8b", "context_length": 4096}]}
    await call_model(model)
    assert (await model.limits()).window == 4096
    looks = len(server.looks)
    await call_model(model)
    assert len(server.looks) == looks
    await model.aclose()


@pytest.mark.parametrize("told", [{}, {"max_model_len": 0}, {"max_model_len": "many"}, {"meta": None}])
async def test_without_a_window_told_it_is_taken_for_32768_and_said_so(
    server: StrictServer, told: dict[str, Any]
) -> None:
    limits = await window(server, listed("m", **told))
    assert (limits.window, limits.source) == (DEFAULT_WINDOW, "default") == (32_768, "default")


async def test_a_window_known_from_the_table_stands_in(server: StrictServer) -> None:
    limits = await window(server, listed("m"), known_window=922_000)
    assert (limits.window, limits.source) == (922_000, "table")


async def test_a_window_is_remembered_by_address(server: StrictServer, facts: InMemoryModelFacts) -> None:
    await window(server, listed("m", max_model_len=9000), facts=facts)
    assert [limits.window for limits in facts.kept.values()] == [9000]
    elsewhere = OpenAIModel("m", "k", clock=clock, base_url="http://127.0.0.1:9/v1", facts=facts)
    assert (await elsewhere.limits()).source == "default"
    await elsewhere.aclose()
    server.looks.clear()
    again = local(server, "m", facts=facts)
    assert (await again.limits()).window == 9000
    assert server.looks == []
    await again.aclose()


# ------------------------------------------------------------------------------------------------------------- streams


async def test_a_server_that_reports_no_usage_is_estimated(model: OpenAIModel, server: StrictServer) -> None:
    server.play(ScriptedAnswer("four words are here", silent_usage=True))
    reply = (await call_model(model, "word " * 400)).reply
    assert reply.estimated
    assert 400 <= reply.usage.input <= 1000
    assert 4 <= reply.usage.output <= 8


async def test_cached_tokens_are_billed_apart(model: OpenAIModel, server: StrictServer) -> None:
    server.chat.cached = 20
    usage = (await call_model(model, "word " * 100)).reply.usage
    assert usage.cache_read == 20
    assert usage.input > 0


async def test_tool_calls_without_index_are_told_apart(model: OpenAIModel, server: StrictServer) -> None:
    server.play(ScriptedAnswer("", [ToolUse("look", {"at": "a"}), ToolUse("look", {"at": "b"})]))
    server.chat.indexed = False
    calls = (await call_model(model)).reply.message.tool_calls
    assert [dict(one.arguments) for one in calls] == [{"at": "a"}, {"at": "b"}]


async def test_calls_that_share_an_id_are_told_apart(model: OpenAIModel, server: StrictServer) -> None:
    server.play(ScriptedAnswer("", [ToolUse("look", {"at": "a"}, "call_0"), ToolUse("look", {"at": "b"}, "call_0")]))
    calls = (await call_model(model)).reply.message.tool_calls
    assert [one.id for one in calls] == ["call_0", "call_0_2"]


async def test_an_error_object_in_mid_stream_is_read_by_its_code(model: OpenAIModel, server: StrictServer) -> None:
    server.play(ErrorEvent("BadRequestError", "This model's maximum context length is 100 tokens."))
    assert (await call_model(model)).kind == "overflow"


async def test_a_local_server_gets_the_old_name_of_the_cap_and_a_stream_with_usage(
    model: OpenAIModel, server: StrictServer
) -> None:
    await call_model(model, make_request("hi", max_output_tokens=300))
    assert server.bodies[0]["max_tokens"] == 300
    assert server.bodies[0]["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("address", "hosted"),
    [
        ("", True),
        ("https://api.openai.com/v1", True),
        ("https://eu.api.openai.com/v1", True),
        ("https://openai.com.example.org/v1", False),
        ("https://notopenai.com/v1", False),
        ("http://localhost:11434/v1", False),
    ],
)
def test_openai_s_own_addresses_are_known(address: str, hosted: bool) -> None:
    assert is_hosted_by_openai(address) is hosted


async def test_a_password_in_the_address_is_in_no_error() -> None:
    model = OpenAIModel("local-model", "", clock=clock, base_url="http://me:pass-7@127.0.0.1:9/v1")
    error = (await call_model(model)).error
    assert error is not None and "127.0.0.1:9 cannot be reached" in str(error) and "pass-7" not in str(error)
    await model.aclose()


async def test_without_a_key_a_local_server_is_asked_all_the_same(server: StrictServer) -> None:
    server.key = "none"
    model = OpenAIModel("local-model", "", clock=clock, base_url=f"{server.url}/v1")
    assert (await call_model(model)).error is None
    server.key = "test-key"
    await model.aclose()
