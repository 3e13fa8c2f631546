"""What every implementation of the model port does alike, the built-in one and the wrappers included."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import ClassVar

import pytest

from assistant.core.messages import Message
from assistant.core.ports import Model
from assistant.models.anthropic import AnthropicModel
from assistant.models.failover import FailoverModel, RetryPolicy
from assistant.models.metered import MeteredModel
from assistant.models.offline.model import OfflineModel
from assistant.models.openai import OpenAIModel
from assistant.models.prices import Prices
from tests.strict.asking import InMemoryLedger, call, call_model, clock, make_request, result
from tests.strict.behaviour import ScriptedAnswer
from tests.strict.server import StrictServer


def claude(server: StrictServer) -> Model:
    return AnthropicModel("claude-test", server.key, clock=clock, base_url=server.url)


def chat(server: StrictServer) -> Model:
    return OpenAIModel("", server.key, clock=clock, base_url=f"{server.url}/v1")


def offline(server: StrictServer) -> Model:
    return OfflineModel()


def metered(server: StrictServer) -> Model:
    model = claude(server)
    return MeteredModel(
        model.provider, model.name, lambda: (model, Prices()), InMemoryLedger(), lambda request, name: 10, clock
    )


def failover(server: StrictServer) -> Model:
    return FailoverModel([metered(server), chat(server), offline(server)], RetryPolicy())


@pytest.fixture(scope="module")
def shared() -> Iterator[StrictServer]:
    with StrictServer() as server:
        yield server


@pytest.fixture(params=[claude, chat, offline, metered, failover])
async def model(request: pytest.FixtureRequest, shared: StrictServer) -> AsyncIterator[Model]:
    make: Callable[[StrictServer], Model] = request.param
    made = make(shared.play(ScriptedAnswer("Good morning to you."), ScriptedAnswer("And a good day.")))
    yield made
    await made.aclose()


async def test_what_is_streamed_is_what_the_reply_holds_and_nothing_follows_it(model: Model) -> None:
    heard = await call_model(model, "good morning")
    assert heard.text == heard.reply.message.content != ""
    assert heard.reply.message.role == "assistant"
    assert heard.reply.message.model
    assert heard.reply.usage.prompt > 0
    assert heard.reply.usage.output > 0
    assert heard.reply.stop == "end"


class _WatchedMessages(tuple[Message, ...]):
    """Notes the threads that go through it."""

    threads: ClassVar[set[int]] = set()

    def __iter__(self) -> Iterator[Message]:
        self.threads.add(threading.get_ident())
        return super().__iter__()


@pytest.mark.parametrize("count", [10, 3_001])
@pytest.mark.parametrize("make", [claude, chat])
async def test_a_request_of_thousands_of_messages_is_written_beside_the_event_loop(
    shared: StrictServer, make: Callable[[StrictServer], Model], count: int
) -> None:
    model = make(shared.play(ScriptedAnswer("Good morning to you.")))
    await model.limits()
    said = [Message(("user", "assistant")[number % 2], f"It is {number}.") for number in range(count - count % 2 + 1)]
    _WatchedMessages.threads.clear()
    heard = await call_model(model, make_request(messages=_WatchedMessages(said)))
    await model.aclose()
    assert heard.reply.message.content == "Good morning to you."
    assert (threading.get_ident() in _WatchedMessages.threads) is (count == 10)


async def test_it_has_a_name_a_provider_and_limits(model: Model) -> None:
    await call_model(model, "good morning")
    limits = await model.limits()
    assert model.name
    assert model.provider in ("anthropic", "openai", "offline")
    assert 0 < limits.max_output < limits.window
    assert limits.max_bytes > 100_000
    assert limits.max_images > 0


async def test_a_tool_loop_with_results_is_answered(model: Model) -> None:
    heard = await call_model(model, make_request("good morning", call("c1", at="x"), result("c1")))
    assert heard.reply.message.content


async def test_leaving_early_leaves_it_usable(model: Model) -> None:
    async with aclosing(model.stream(make_request("good morning"))) as events:
        await anext(events)
    assert (await call_model(model, "good morning")).reply.message.content
