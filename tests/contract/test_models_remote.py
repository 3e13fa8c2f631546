"""What every remote model keeps of the port, through the real SDKs against the strict server."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing

import pytest

from assistant.core.messages import Media, Message
from assistant.core.model_api import TextDelta
from assistant.models.anthropic import AnthropicModel
from assistant.models.connection import RequestBody
from assistant.models.errors import StreamBroken
from assistant.models.openai import OpenAIModel
from tests.strict.asking import ModelOutput, call, call_model, clock, make_request, result
from tests.strict.behaviour import (
    Behaviour,
    ConnectionCut,
    ErrorEvent,
    ErrorStatus,
    Garbage,
    Refusal,
    ScriptedAnswer,
    Stall,
    ToolUse,
)
from tests.strict.server import StrictServer
from tests.strict.validate import RequestLimits

# How long silence may last: short where that is tried, else longer than a busy machine is silent.
IMPATIENT_SECONDS, PATIENT_SECONDS = 0.3, 30.0
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

Remote = AnthropicModel | OpenAIModel
Make = Callable[[StrictServer, float], Remote]


def anthropic(server: StrictServer, stall_seconds: float) -> AnthropicModel:
    return AnthropicModel("claude-test", server.key, clock=clock, base_url=server.url, stall_seconds=stall_seconds)


def openai(server: StrictServer, stall_seconds: float) -> OpenAIModel:
    return OpenAIModel("local-model", server.key, clock=clock, base_url=f"{server.url}/v1", stall_seconds=stall_seconds)


@pytest.fixture(params=[anthropic, openai])
def make(request: pytest.FixtureRequest) -> Make:
    chosen: Make = request.param
    return chosen


@pytest.fixture(scope="module")
def shared() -> Iterator[StrictServer]:
    with StrictServer() as server:
        yield server


@pytest.fixture
def server(shared: StrictServer) -> StrictServer:
    return shared.play()


@pytest.fixture
async def model(server: StrictServer, make: Make) -> AsyncIterator[Remote]:
    made = make(server, PATIENT_SECONDS)
    yield made
    await made.aclose()


@pytest.fixture
async def impatient_model(server: StrictServer, make: Make) -> AsyncIterator[Remote]:
    made = make(server, IMPATIENT_SECONDS)
    yield made
    await made.aclose()


async def heard(model: Remote, server: StrictServer, behaviour: Behaviour) -> ModelOutput:
    server.play(behaviour)
    said = await call_model(model)
    assert server.complaints == []
    assert len(server.requests) == 1, "the SDK's own retries are on"
    return said


async def test_an_answer_comes_in_pieces_and_then_whole(model: Remote, server: StrictServer) -> None:
    said = await heard(model, server, ScriptedAnswer("good morning to you"))
    assert said.text == said.reply.message.content == "good morning to you"
    assert (said.reply.stop, said.reply.estimated) == ("end", False)
    assert said.reply.usage.prompt > 0
    assert said.reply.usage.output > 0
    assert said.reply.message.role == "assistant"


async def test_tool_calls_come_with_their_arguments(model: Remote, server: StrictServer) -> None:
    uses = [ToolUse("look", {"at": "the sky", "n": [1, {"deep": None}]}), ToolUse("look")]
    said = await heard(model, server, ScriptedAnswer("I look.", uses))
    assert said.reply.stop == "tool_calls"
    assert [dict(one.arguments) for one in said.reply.message.tool_calls] == [
        {"at": "the sky", "n": [1, {"deep": None}]},
        {},
    ]
    assert len({one.id for one in said.reply.message.tool_calls}) == 2


@pytest.mark.parametrize("written", ['{"at": "the s', "NaN", '{"n": Infinity}', "[1]", "look there", '"text"'])
async def test_arguments_that_are_no_object_are_kept_as_they_were_written(
    model: Remote, server: StrictServer, written: str
) -> None:
    said = await heard(model, server, ScriptedAnswer("", [ToolUse("look", written)]))
    assert dict(said.reply.message.tool_calls[0].arguments) == {"__invalid_json__": written}


async def test_a_cut_answer_says_so(model: Remote, server: StrictServer) -> None:
    stop = "max_tokens" if model.provider == "anthropic" else "length"
    said = await heard(model, server, ScriptedAnswer("and then", stop=stop))
    assert (said.reply.stop, said.reply.message.content) == ("max_tokens", "and then")


async def test_a_refusal_is_a_reply_without_words(model: Remote, server: StrictServer) -> None:
    said = await heard(model, server, Refusal("It could do harm."))
    assert said.reply.stop == "refusal"
    assert said.reply.message.content == ""
    assert said.reply.message.metadata["refusal"] == "It could do harm."


async def test_a_window_that_fills_up_in_mid_answer_is_an_overflow(model: Remote, server: StrictServer) -> None:
    said = await heard(model, server, ScriptedAnswer("and so", stop="model_context_window_exceeded"))
    assert said.reply.stop == "overflow"


STATUSES: dict[str, tuple[ErrorStatus, str]] = {
    "rate limit": (ErrorStatus(429, "rate_limit_error", "Slow down.", {"retry-after": "7"}), "rate_limit"),
    "overloaded": (ErrorStatus(529, "overloaded_error", "Overloaded"), "overload"),
    "server error": (ErrorStatus(500, "api_error", "Internal server error"), "overload"),
    "unavailable": (ErrorStatus(503, "service_unavailable", "Loading model"), "overload"),
    "gateway": (ErrorStatus(502, "bad_gateway", "Bad gateway"), "network"),
    "gateway timeout": (ErrorStatus(504, "timeout_error", "Timed out"), "network"),
    "key": (ErrorStatus(401, "authentication_error", "invalid x-api-key"), "auth"),
    "permission": (ErrorStatus(403, "permission_error", "Not allowed"), "auth"),
    "billing": (ErrorStatus(402, "billing_error", "Payment is due"), "no_credit"),
    "credit": (
        ErrorStatus(400, "invalid_request_error", "Your credit balance is too low to access the API."),
        "no_credit",
    ),
    "quota": (
        ErrorStatus(429, "insufficient_quota", "You exceeded your current quota", code="insufficient_quota"),
        "no_credit",
    ),
    "no such model": (ErrorStatus(404, "not_found_error", "model: claude-none"), "unknown_model"),
    "malformed": (ErrorStatus(400, "invalid_request_error", "messages: Field required"), "bad_request"),
    "too many bytes": (ErrorStatus(413, "request_too_large", "Request exceeds the maximum size"), "overflow"),
}


@pytest.mark.parametrize(("status", "kind"), STATUSES.values(), ids=STATUSES.keys())
async def test_an_error_reply_has_its_kind_and_one_line(
    model: Remote, server: StrictServer, status: ErrorStatus, kind: str
) -> None:
    said = await heard(model, server, status)
    assert said.kind == kind
    assert not isinstance(said.error, StreamBroken), "nothing was billed"
    assert "\n" not in str(said.error)
    assert status.message in str(said.error)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Fri, 20 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Fri, 20 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
async def test_the_wait_that_is_asked_for_is_passed_on(
    model: Remote, server: StrictServer, headers: dict[str, str], seconds: float | None
) -> None:
    said = await heard(model, server, ErrorStatus(429, "rate_limit_error", "Slow down.", headers))
    assert said.error is not None
    assert said.error.retry_after == seconds


async def test_an_error_in_mid_stream_is_told_by_its_type_though_the_status_is_200(
    model: Remote,
    server: StrictServer,
) -> None:
    said = await heard(model, server, ErrorEvent("overloaded_error", "Overloaded", "half an ans"))
    assert said.kind == "overload"
    assert isinstance(said.error, StreamBroken)
    assert said.error.partial == said.text == "half an ans"
    assert said.error.usage.prompt > 0
    assert said.error.usage.output > 0


BROKEN: dict[str, Behaviour] = {
    "connection closed": ConnectionCut("half an ans"),
    "silence": Stall("half an ans"),
    "silence after signs of life": Stall("half an ans", pings=2),
    "no JSON": Garbage(b"event: message_delta\ndata: {broken\n\n", "half an ans"),
    "no shape": Garbage(
        b'event: content_block_delta\ndata: {"type":"content_block_delta","choices":7}\n\n', "half an ans"
    ),
    "a number": Garbage(b"event: message_delta\ndata: 3\n\n", "half an ans"),
    "a list": Garbage(b"event: message_delta\ndata: [1]\n\n", "half an ans"),
    "an empty object": Garbage(b"event: message_delta\ndata: {}\n\n", "half an ans"),
    "null": Garbage(b"event: message_delta\ndata: null\n\n", "half an ans"),
    "no UTF-8": Garbage(b"event: content_block_delta\ndata: \xff\xfe\n\n", "half an ans"),
    "an end before the end": Garbage(b"", "half an ans"),
}


@pytest.mark.parametrize("behaviour", BROKEN.values(), ids=BROKEN.keys())
async def test_a_stream_that_breaks_is_a_network_fault_with_what_was_heard(
    model: Remote, impatient_model: Remote, server: StrictServer, behaviour: Behaviour
) -> None:
    said = await heard(impatient_model if isinstance(behaviour, Stall) else model, server, behaviour)
    assert said.kind == "network"
    assert isinstance(said.error, StreamBroken)
    assert said.error.partial == said.text == "half an ans"
    assert said.error.usage.prompt > 0
    assert "chunked" not in str(said.error)


async def test_silence_before_the_first_byte_ends_the_call(impatient_model: Remote, server: StrictServer) -> None:
    said = await heard(impatient_model, server, Stall(before_headers=True))
    assert said.kind == "network"
    assert "nothing came for 0.3 seconds" in str(said.error)
    assert not isinstance(said.error, StreamBroken)


async def test_a_page_in_place_of_a_stream_is_a_network_fault(model: Remote, server: StrictServer) -> None:
    server.play(ErrorStatus(200, "page", "<html>Sign in to the network</html>"))
    said = await call_model(model)
    assert said.kind == "network"


async def test_nobody_there_is_a_network_fault_and_limits_are_careful(make: Make) -> None:
    with StrictServer() as gone:
        model = make(gone, PATIENT_SECONDS)
    said = await call_model(model)
    assert said.kind == "network"
    assert str(said.error).endswith("cannot be reached: nothing answers there (connection refused)")
    limits = await model.limits()
    assert limits.source == "default"
    assert 0 < limits.max_output < limits.window
    await model.aclose()


async def test_closing_the_stream_aborts_the_call(model: Remote, server: StrictServer) -> None:
    server.play(Stall("thinking about"))
    async with aclosing(model.stream(make_request("hi"))) as events:
        first = await anext(events)
    assert isinstance(first, TextDelta)
    async with asyncio.timeout(PATIENT_SECONDS / 2):
        assert (await call_model(model)).reply.message.content == "ok"


async def test_cancelling_the_reader_aborts_the_call(model: Remote, server: StrictServer) -> None:
    server.play(Stall("thinking about"))
    begun = asyncio.Event()

    async def read() -> None:
        async for _ in model.stream(make_request("hi")):
            begun.set()

    task = asyncio.create_task(read())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await call_model(model)).reply.message.content == "ok"


async def test_a_whole_tool_loop_is_accepted(model: Remote, server: StrictServer) -> None:
    server.play(ScriptedAnswer("", [ToolUse("look", {"at": "x"}), ToolUse("look")]), ScriptedAnswer("done"))
    first = (await call_model(model, "go")).reply.message
    results = [result(one.id) for one in first.tool_calls]
    last = await call_model(model, make_request("go", first, *results))
    assert server.complaints == []
    assert last.reply.message.content == "done"


# ---------------------------------------------------------------------------------------------------------- failures


async def test_f08_the_provider_s_refusal_of_a_lonely_call_is_no_overflow(
    model: Remote,
    server: StrictServer,
) -> None:
    server.play()
    said = await call_model(model, make_request("go", call("c1"), "and then?"))
    assert len(server.complaints) == 1
    assert said.kind == "bad_request"


async def test_f10_a_request_without_a_user_is_refused(model: Remote, server: StrictServer) -> None:
    server.play()
    said = await call_model(model, make_request(Message("assistant", "hello"), "x", Message("assistant", "bye")))
    assert len(server.complaints) == 1
    assert said.kind == "bad_request"


async def test_f17_a_prompt_beyond_the_window_is_an_overflow(model: Remote, server: StrictServer) -> None:
    server.play(bounds=RequestLimits(window=1000))
    said = await call_model(model, "word " * 2000)
    assert len(server.complaints) == 1
    assert said.kind == "overflow"


async def test_f17_too_many_bytes_are_an_overflow(model: Remote, server: StrictServer) -> None:
    server.play(bounds=RequestLimits(max_bytes=10_000))
    said = await call_model(model, "word " * 3000)
    assert server.complaints == ["Request exceeds the maximum size"]
    assert said.kind == "overflow"


async def test_f17_too_many_images_are_an_overflow(model: Remote, server: StrictServer) -> None:
    pictures = tuple(Media("image", "image/png", data=PIXEL) for _ in range(3))
    server.play(bounds=RequestLimits(max_images=2))
    said = await call_model(model, make_request(Message("user", "compare", media=pictures)))
    assert len(server.complaints) == 1
    assert said.kind == "overflow"


async def test_odd_text_arrives_whole(model: Remote, server: StrictServer) -> None:
    odd = "nul \x00, tab \t, \u202eright to left, 漢字, \U0001f9d1\u200d\U0001f680, lone \ud800 surrogate"
    server.play()
    said = await call_model(model, make_request(odd))
    assert server.complaints == []
    assert "漢字" in str(server.bodies[0]["messages"])
    assert said.error is None


async def test_a_request_is_let_go_of_before_cycles_are_collected(model: Remote, server: StrictServer) -> None:
    """The SDK's answers are parts of cycles, which keep what was sent: all messages in view, with each call."""
    server.play(ScriptedAnswer("Good morning."), ScriptedAnswer("And a good day."))
    gc.disable()
    try:
        said = [(await call_model(model)).text for _ in range(2)]
        kept = [len(body) for body in gc.get_objects() if isinstance(body, RequestBody)]
    finally:
        gc.enable()
    assert said == ["Good morning.", "And a good day."] and not any(kept)
