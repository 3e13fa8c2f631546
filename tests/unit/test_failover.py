"""Who is asked when a model cannot answer, and what the person is told of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import pytest

from assistant.core.errors import BudgetExceeded, ModelError, ModelErrorKind
from assistant.core.messages import Message, Usage
from assistant.core.model_api import CallPurpose, ModelEvent, ModelLimits, ModelReply, ModelRequest, TextDelta
from assistant.models.failover import FailoverModel, RetryPolicy
from tests.strict.asking import ModelOutput, call, call_model, make_request, result


def error(kind: ModelErrorKind, text: str = "", **more: float) -> ModelError:
    return ModelError(text or f"a {kind} failure", kind=kind, retry_after=more.get("retry_after"))


def answer(text: str = "yes") -> tuple[ModelEvent, ...]:
    return TextDelta(text), ModelReply(Message("assistant", text), Usage(1, 1), "end")


def refusal(text: str = "") -> tuple[ModelEvent, ...]:
    said = ModelReply(Message("assistant", metadata={"refusal": "no"}), Usage(1, 0), "refusal")
    return (TextDelta(text), said) if text else (said,)


Step = ModelError | tuple[ModelEvent | ModelError, ...]


@dataclass
class Scripted:
    """Each call takes the next step; the last one repeats."""

    name: str
    script: list[Step]
    provider: str = "house"
    requests: list[ModelRequest] = field(default_factory=list)
    closed: bool = False

    async def limits(self) -> ModelLimits:
        return ModelLimits(len(self.name), 10, 10, 10)

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        for event in (step,) if isinstance(step, ModelError) else step:
            if isinstance(event, ModelError):
                raise event
            yield event

    async def aclose(self) -> None:
        self.closed = True


class FailoverSetup:
    """A failover whose waiting is written down instead of done."""

    def __init__(self, *models: Scripted, retries: int = 2, most: float = 30.0) -> None:
        self.waits: list[float] = []
        self.models = models
        self.failover = FailoverModel(models, RetryPolicy(retries, most), sleep=self._wait, jitter=lambda: 1.0)

    async def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def ask(self, request: ModelRequest | str = "hi") -> ModelOutput:
        return await call_model(self.failover, request)

    @property
    def asked(self) -> list[int]:
        return [len(model.requests) for model in self.models]


def offline(*script: Step) -> Scripted:
    return Scripted("offline", list(script) or [answer("noted")], provider="offline")


def lines(heard: ModelOutput) -> list[str]:
    return [notice.text for notice in heard.notices]


async def test_the_first_model_s_answer_is_passed_on_without_a_word() -> None:
    heard = await FailoverSetup(Scripted("a", [answer()]), offline()).ask()
    assert (heard.text, heard.notices) == ("yes", [])


@pytest.mark.parametrize("kind", ["rate_limit", "overload", "network"])
async def test_what_may_pass_is_tried_again_on_the_same_model(kind: ModelErrorKind) -> None:
    chain = FailoverSetup(Scripted("a", [error(kind), error(kind), answer()]), offline())
    heard = await chain.ask()
    assert heard.text == "yes"
    assert chain.asked == [3, 0]
    assert lines(heard) == [f"a {kind} failure. Trying again in {n} s." for n in (1, 2)]


async def test_after_the_last_retry_the_next_model_is_asked() -> None:
    chain = FailoverSetup(Scripted("a", [error("overload")]), Scripted("b", [answer()]), retries=1)
    heard = await chain.ask()
    assert (heard.text, chain.asked) == ("yes", [2, 1])
    assert lines(heard)[-1] == "a overload failure. Asking b instead."


@pytest.mark.parametrize("kind", ["auth", "bad_request", "budget"])
async def test_what_cannot_pass_is_not_tried_again(kind: ModelErrorKind) -> None:
    chain = FailoverSetup(Scripted("a", [error(kind)]), offline())
    heard = await chain.ask()
    assert (heard.text, chain.asked, chain.waits) == ("noted", [1, 1], [])
    assert lines(heard) == [f"a {kind} failure. Offline mode (no language model) answers instead."]


async def test_waits_grow_and_are_capped() -> None:
    chain = FailoverSetup(Scripted("a", [error("network")]), retries=5, most=9.0)
    await chain.ask()
    assert chain.waits == [1.0, 2.0, 4.0, 8.0, 9.0]


async def test_the_wait_that_the_provider_asks_for_is_honoured_up_to_the_cap() -> None:
    chain = FailoverSetup(
        Scripted("a", [error("rate_limit", retry_after=7), error("rate_limit", retry_after=900), answer()])
    )
    await chain.ask()
    assert chain.waits == [7.0, 30.0]


async def test_jitter_takes_up_to_half_of_our_own_wait() -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    model = Scripted("a", [error("network"), error("rate_limit", retry_after=0.0), answer()])
    await call_model(FailoverModel([model], RetryPolicy(), sleep=wait, jitter=lambda: 0.0))
    assert waits == [0.5, 1.0]


async def test_text_that_was_streamed_before_a_failure_is_withdrawn() -> None:
    chain = FailoverSetup(Scripted("a", [(TextDelta("half an"), error("network")), answer("whole")]))
    heard = await chain.ask()
    assert [notice.restarted for notice in heard.notices] == [True]
    assert heard.text == "whole"


async def test_text_of_a_model_that_is_given_up_is_withdrawn() -> None:
    chain = FailoverSetup(Scripted("a", [(TextDelta("half an"), error("auth"))]), Scripted("b", [answer("whole")]))
    heard = await chain.ask()
    assert [notice.restarted for notice in heard.notices] == [True]
    assert heard.text == "whole"


async def test_a_failure_without_text_withdraws_nothing() -> None:
    heard = await FailoverSetup(Scripted("a", [error("network"), answer()])).ask()
    assert [notice.restarted for notice in heard.notices] == [False]


async def test_a_stream_without_an_answer_is_tried_again() -> None:
    heard = await FailoverSetup(Scripted("a", [(TextDelta("half"),), answer()])).ask()
    assert heard.text == "yes"


# ------------------------------------------------------------------------------------------------------------ overflow


async def test_the_first_model_s_overflow_is_raised_at_once_for_the_runtime_to_shorten() -> None:
    chain = FailoverSetup(Scripted("a", [error("overflow")]), offline())
    heard = await chain.ask()
    assert (heard.kind, chain.asked, heard.notices) == ("overflow", [1, 0], [])


async def test_a_reply_that_stopped_because_the_window_is_full_is_passed_on() -> None:
    full = ModelReply(Message("assistant", "and so"), Usage(1, 1), "overflow")
    assert (await FailoverSetup(Scripted("a", [(full,)]), offline()).ask()).reply is full


async def test_a_fallback_with_a_smaller_window_is_shown_the_running_turn_alone() -> None:
    small = offline(error("overflow"), answer("noted"))
    chain = FailoverSetup(Scripted("a", [error("auth")]), small)
    told = make_request(
        "old", Message("assistant", "older"), "note this", call("c1"), result("c1"), cache_boundaries=(1,)
    )
    heard = await chain.ask(told)
    assert heard.text == "noted"
    assert [message.content for message in small.requests[1].messages] == ["note this", "", "seen"]
    assert small.requests[1].cache_boundaries == ()
    assert small.requests[1].tools == told.tools
    assert "sees only the newest message" in lines(heard)[-1]


async def test_a_fallback_for_which_even_the_newest_message_is_too_long_is_given_up() -> None:
    chain = FailoverSetup(Scripted("a", [error("auth")]), offline(error("overflow")))
    heard = await chain.ask()
    assert (heard.kind, chain.asked) == ("auth", [1, 2])


# ------------------------------------------------------------------------------------------------------------- refusal


async def test_what_one_model_declines_another_is_asked_but_never_the_built_in_one() -> None:
    chain = FailoverSetup(Scripted("a", [refusal("I")]), offline(), Scripted("b", [answer()]))
    heard = await chain.ask()
    assert (heard.text, chain.asked) == ("yes", [1, 0, 1])
    assert [(notice.text, notice.restarted) for notice in heard.notices] == [
        ("a declined to answer. Asking b instead.", True)
    ]


async def test_when_all_decline_the_refusal_is_the_answer() -> None:
    chain = FailoverSetup(Scripted("a", [refusal()]), offline())
    heard = await chain.ask()
    assert heard.reply.stop == "refusal"
    assert chain.asked == [1, 0]


async def test_a_refusal_outlasts_a_failure_of_the_next() -> None:
    heard = await FailoverSetup(Scripted("a", [refusal()]), Scripted("b", [error("auth")])).ask()
    assert heard.reply.stop == "refusal"


# --------------------------------------------------------------------------------------------------------- all failed


async def test_when_all_fail_one_line_says_what_happened_what_was_kept_and_what_to_do() -> None:
    chain = FailoverSetup(
        Scripted("a", [error("overload", "A is overloaded.\nIt is. Your message is kept.")]),
        Scripted("b", [error("auth", "B refuses the key or the account: no such key")]),
        retries=0,
    )
    heard = await chain.ask()
    assert heard.kind == "auth"
    assert str(heard.error) == (
        "B refuses the key or the account: no such key (1 more model failed too). Your message is kept; check the key "
        "and the account, then type `/retry`."
    )


async def test_the_reason_of_a_failure_promises_nothing_about_a_message() -> None:
    heard = await FailoverSetup(Scripted("a", [error("overload", "A is overloaded.")]), retries=0).ask()
    assert isinstance(heard.error, ModelError)
    assert heard.error.reason == "A is overloaded"


@pytest.mark.parametrize("kind", ["rate_limit", "overload", "network", "auth", "bad_request", "overflow", "refusal"])
async def test_every_kind_ends_with_what_was_kept_and_what_to_do(kind: ModelErrorKind) -> None:
    heard = await FailoverSetup(Scripted("a", [error(kind)]), retries=0).ask()
    assert heard.kind == kind
    assert " Your message is kept; " in str(heard.error)
    assert "\n" not in str(heard.error)


async def test_a_used_up_budget_without_a_built_in_model_says_so() -> None:
    heard = await FailoverSetup(Scripted("a", [BudgetExceeded()])).ask()
    assert isinstance(heard.error, BudgetExceeded)
    assert heard.error.exit_code == 4


async def test_a_used_up_budget_falls_back_to_the_built_in_model() -> None:
    heard = await FailoverSetup(Scripted("a", [BudgetExceeded()]), offline()).ask()
    assert heard.text == "noted"
    assert lines(heard) == ["The budget is used up. Offline mode (no language model) answers instead."]
    assert [notice.over_budget for notice in heard.notices] == ["The budget is used up."]


async def test_other_failures_are_none_of_the_budget() -> None:
    heard = await FailoverSetup(Scripted("first", [error("auth")]), Scripted("second", [answer()])).ask()
    assert [notice.over_budget for notice in heard.notices] == [""]


# ------------------------------------------------------------------------------------------------------------ the port


async def test_the_first_model_speaks_for_the_chain_and_all_are_closed() -> None:
    chain = FailoverSetup(Scripted("first", [answer()]), offline())
    assert (chain.failover.name, chain.failover.provider) == ("first", "house")
    assert (await chain.failover.limits()).window == len("first")
    await chain.failover.aclose()
    assert all(model.closed for model in chain.models)
