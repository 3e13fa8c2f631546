"""Every call is reserved at its worst case and settled by what is known, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from assistant.core.errors import ModelError
from assistant.core.messages import Message, Usage
from assistant.core.model_api import (
    CallPurpose,
    HiddenProgress,
    ModelEvent,
    ModelLimits,
    ModelNotice,
    ModelReply,
    ModelRequest,
    TextDelta,
)
from assistant.models.errors import StreamBroken
from assistant.models.metered import MeteredModel
from assistant.models.prices import Price, Prices
from tests.strict.asking import InMemoryLedger, call_model, clock, make_request

PROMPT = 1000
PRICES = Prices({"m": Price(input=1.0, output=10.0, cache_read=0.1, cache_write=2.0)})
WORST = (PROMPT * 2.0 + 300 * 10.0) / 1e6


class UsageModel:
    """A model that does what it was told: yields events, then perhaps raises."""

    provider = "house"

    def __init__(self, *events: ModelEvent, error: Exception | None = None, name: str = "m") -> None:
        self.name = name
        self.events = events
        self.error = error
        self.called = 0
        self.waiting = asyncio.Event()

    async def limits(self) -> ModelLimits:
        return ModelLimits(10_000, 300, 1_000_000, 10)

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent, None]:
        self.called += 1
        for event in self.events:
            yield event
        if self.error is not None:
            raise self.error
        if not self.events or not isinstance(self.events[-1], ModelReply):
            self.waiting.set()
            await asyncio.Event().wait()

    async def aclose(self) -> None:
        return None


def metered(model: UsageModel, ledger: InMemoryLedger, prices: Prices = PRICES) -> MeteredModel:
    return MeteredModel(
        model.provider, model.name, lambda: (model, prices), ledger, lambda request, name: PROMPT, clock
    )


def reply(usage: Usage, *, estimated: bool = False) -> ModelReply:
    return ModelReply(Message("assistant", "done"), usage, "end", estimated)


@pytest.fixture
def ledger() -> InMemoryLedger:
    return InMemoryLedger()


async def test_the_worst_case_is_reserved_before_the_call(ledger: InMemoryLedger) -> None:
    model = UsageModel(error=ModelError("no", kind="network"))
    await call_model(metered(model, ledger), make_request("hi", max_output_tokens=8192))
    (call,) = ledger.calls
    assert (call.provider, call.model, call.session, call.turn) == ("house", "m", "main", "t1")
    assert (call.input_tokens, call.max_output) == (PROMPT, 300)
    assert call.usd == pytest.approx(WORST)


async def test_over_budget_nothing_is_called_and_nothing_is_left_open(ledger: InMemoryLedger) -> None:
    ledger.cap = WORST * 0.99
    model = UsageModel(reply(Usage(1, 1)))
    assert (await call_model(metered(model, ledger))).kind == "budget"
    assert model.called == 0
    assert not ledger.open


async def test_an_answer_settles_what_was_billed_and_says_what_it_cost(ledger: InMemoryLedger) -> None:
    usage = Usage(input=100, output=10, cache_read=800, cache_write=50)
    said = await call_model(metered(UsageModel(TextDelta("done"), reply(usage)), ledger))
    cost = (100 * 1 + 10 * 10 + 800 * 0.1 + 50 * 2) / 1e6
    assert said.reply.usage.cost_usd == pytest.approx(cost)
    assert ledger.settled == [said.reply.usage]
    assert not ledger.open


async def test_a_provider_that_reports_no_usage_is_settled_by_our_own_estimate(ledger: InMemoryLedger) -> None:
    await call_model(metered(UsageModel(reply(Usage(input=3, output=10), estimated=True)), ledger))
    assert (ledger.settled[0].input, ledger.settled[0].output) == (PROMPT, 10)


@pytest.mark.parametrize("kind", ["rate_limit", "auth", "network", "overflow", "bad_request"])
async def test_a_call_that_failed_before_anything_was_billed_settles_zero(ledger: InMemoryLedger, kind: str) -> None:
    await call_model(metered(UsageModel(error=ModelError("no", kind=kind)), ledger))
    assert ledger.settled == [Usage(cost_usd=0.0)]


def broken(usage: Usage) -> StreamBroken:
    return StreamBroken("cut", kind="network", provider="house", partial="", usage=usage)


async def test_a_stream_that_broke_settles_what_the_provider_had_told(ledger: InMemoryLedger) -> None:
    await call_model(
        metered(UsageModel(TextDelta("half"), error=broken(Usage(input=70, output=5, cache_read=900))), ledger)
    )
    assert ledger.settled[0].prompt == 970
    assert ledger.settled[0].cost_usd == pytest.approx((70 * 1 + 5 * 10 + 900 * 0.1) / 1e6)


async def test_a_stream_that_broke_before_usage_was_told_settles_the_estimated_prompt(ledger: InMemoryLedger) -> None:
    await call_model(metered(UsageModel(error=broken(Usage(output=5))), ledger))
    assert (ledger.settled[0].input, ledger.settled[0].output) == (PROMPT, 5)


async def test_an_aborted_call_settles_the_prompt_and_what_was_streamed(ledger: InMemoryLedger) -> None:
    model = metered(UsageModel(TextDelta("eight ch"), TextDelta("more")), ledger)
    async with aclosing(model.stream(make_request("hi"))) as events:
        await anext(events)
        await anext(events)
    assert (ledger.settled[0].input, ledger.settled[0].output) == (PROMPT, 3)
    assert not ledger.open


async def test_a_cancelled_call_settles_too(ledger: InMemoryLedger) -> None:
    told = UsageModel()
    task = asyncio.create_task(call_model(metered(told, ledger)))
    await told.waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ledger.settled[0].input == PROMPT
    assert not ledger.open


async def test_a_model_without_a_price_is_counted_in_tokens_and_says_so_once(ledger: InMemoryLedger) -> None:
    model = metered(UsageModel(reply(Usage(5, 5)), name="unheard-of"), ledger)
    first, second = await call_model(model), await call_model(model)
    assert ledger.calls[0].usd is None
    assert first.reply.usage.cost_usd is None
    assert [notice.text for notice in first.notices] == [
        "No price is known for unheard-of: its use is counted in tokens only."
    ]
    assert second.notices == []


async def test_leaving_at_the_notice_leaves_no_reservation_open(ledger: InMemoryLedger) -> None:
    async with aclosing(metered(UsageModel(name="unheard-of"), ledger).stream(make_request("hi"))) as events:
        assert isinstance(await anext(events), ModelNotice)
    assert not ledger.open


async def test_what_nobody_is_shown_of_an_aborted_answer_is_billed(ledger: InMemoryLedger) -> None:
    model = UsageModel(HiddenProgress(4_000))
    asking = asyncio.create_task(call_model(metered(model, ledger)))
    await model.waiting.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert [bill.output for bill in ledger.settled] == [1_000]


async def test_an_answer_that_never_ends_is_given_up_and_billed(
    ledger: InMemoryLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assistant.models.metered._LONGEST_CALL_SECONDS", 0)
    model = UsageModel(TextDelta("still"))
    error = await call_model(metered(model, ledger))
    assert error.kind == "network" and "did not end" in str(error)
    assert [bill.prompt for bill in ledger.settled] == [PROMPT] and not ledger.open
