"""The prompt that a provider has in its cache is used again for a summary where that is cheaper; estimates."""

from __future__ import annotations

from typing import Any

import pytest

from assistant.core.messages import Message, Usage
from assistant.models.offline.model import OfflineModel
from sleep.compaction.values import CachedPrompt
from tests.strict.asking import LOOK_TOOL, call_model, make_request
from tests.strict.behaviour import Behaviour, ErrorStatus, Refusal, ScriptedAnswer, ToolUse
from tests.strict.count import count_tokens
from tests.strict.validate import RequestLimits
from tests.support.summaries import (
    GOOD_ANSWER,
    LARGE_MODEL,
    PRICES,
    SMALL_MODEL,
    START,
    TOO_LONG_ERROR,
    SummariserSetup,
    conversation_with,
    long_conversation,
    summary_material,
)

# ------------------------------------------------------------------------------------------------------- F23: the cache


LIVED = (*conversation_with(pairs=60), Message("user", "And now?", id=199, ts=START))
LEAVING = summary_material(LIVED[:100], budget=400)


async def lived(desk: SummariserSetup, rows: tuple[Message, ...]) -> CachedPrompt:
    """The session's last request, as its provider has it in the cache now."""
    request = make_request(*rows, tools=(LOOK_TOOL,), cache_boundaries=(len(rows) - 2,))
    heard = await call_model(desk.large, request)
    return CachedPrompt(LARGE_MODEL, request, heard.reply.usage.prompt)


async def test_f23_the_prompt_that_the_provider_has_is_used_again(desk: SummariserSetup) -> None:
    rows = LIVED
    desk.play(ScriptedAnswer("Well."), GOOD_ANSWER)
    live = await lived(desk, rows)
    wanted = summary_material(rows[:100], budget=400, tasks=("find a hotel",))
    found = await desk.summarise(wanted, live=live)
    first, second = desk.server.bodies
    assert (found.tier, found.model, found.attempts, found.failures) == ("full", LARGE_MODEL, 1, ())
    assert (second["model"], second["tools"], second["system"]) == (LARGE_MODEL, first["tools"], first["system"])
    assert blocks(second)[: len(blocks(first))] == blocks(first)
    assert wanted.rows[-1].content[:60] in desk.request_texts[-1]
    assert "find a hotel" in desk.request_texts[-1]
    read = desk.server.cache.use(second)
    assert read["input_tokens"] < 0.5 * live.prompt_tokens
    assert found.cost_usd is not None
    assert found.cost_usd < PRICES[LARGE_MODEL].cost_of_call(Usage(input=live.prompt_tokens, output=0))


def blocks(body: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["role"], block.get("text", "")) for one in body["messages"] for block in one["content"]]


@pytest.mark.parametrize(
    "bad",
    [
        ScriptedAnswer("", [ToolUse("look")]),
        ScriptedAnswer(""),
        TOO_LONG_ERROR,
        ErrorStatus(529, "overloaded_error", "full"),
        Refusal(),
    ],
)
async def test_f12_a_live_prompt_that_gives_no_summary_is_followed_by_chunks(
    desk: SummariserSetup, bad: Behaviour
) -> None:
    rows = LIVED
    desk.play(ScriptedAnswer("Well."), bad, GOOD_ANSWER)
    found = await desk.summarise(LEAVING, live=await lived(desk, rows))
    assert (found.tier, found.model, found.attempts) == ("full", SMALL_MODEL, 2)
    assert found.failures[0].startswith("over the live prompt: ")


async def test_f23_a_live_prompt_is_left_where_it_is_no_help(desk: SummariserSetup) -> None:
    rows = LIVED
    wanted = LEAVING
    live = CachedPrompt(LARGE_MODEL, make_request(*rows), 1000)
    dear = CachedPrompt(LARGE_MODEL, make_request(*rows), 60_000)
    lives = {
        "another model's": CachedPrompt("claude-old", live.request, 1000),
        "dearer": dear,
        "without what leaves": CachedPrompt(LARGE_MODEL, make_request(*rows[6:]), 1000),
    }
    for why, one in lives.items():
        desk.play(GOOD_ANSWER)
        assert (await desk.summarise(wanted, live=one)).model == SMALL_MODEL, why
    desk.play(GOOD_ANSWER)
    assert (await desk.summarise(summary_material(rows[:100], budget=400, depth=2), live=live)).model == SMALL_MODEL
    desk.play(GOOD_ANSWER)
    assert (await desk.summarise(wanted, live=live, cost=lambda *_: None)).model == SMALL_MODEL
    desk.play(GOOD_ANSWER)
    full = CachedPrompt(LARGE_MODEL, live.request, 199_000)
    assert (
        await desk.summarise(wanted, live=full, cost=lambda _, name, use: float(name == SMALL_MODEL))
    ).model == SMALL_MODEL
    desk.play(GOOD_ANSWER)
    assert (await desk.summarise(wanted, live=live)).model == LARGE_MODEL


# ------------------------------------------------------------------------------------------------------------ estimates


async def test_an_estimate_tells_the_calls_and_what_they_cost_and_asks_nobody(desk: SummariserSetup) -> None:
    desk.play(bounds=RequestLimits(window=16_000))
    wanted = summary_material(long_conversation(100), budget=600)
    about = await desk.summariser().estimate(wanted)
    assert desk.server.requests == []
    desk.play(*[GOOD_ANSWER] * 20, bounds=RequestLimits(window=16_000))
    found = await desk.summarise(wanted)
    assert (about.model, about.calls) == (SMALL_MODEL, found.attempts)
    assert about.output_tokens == 600 * about.calls
    assert about.usd is not None and found.cost_usd is not None
    assert 0.5 < about.usd / found.cost_usd < 3
    assert 0.5 < about.input_tokens / sum(map(count_tokens, desk.server.bodies)) < 2


async def test_an_estimate_knows_of_the_live_prompt_and_of_the_built_in_model(desk: SummariserSetup) -> None:
    rows = LIVED
    over = await desk.summariser().estimate(LEAVING, cached_prompt=CachedPrompt(LARGE_MODEL, make_request(*rows), 1000))
    assert (over.model, over.calls) == (LARGE_MODEL, 1)
    assert over.input_tokens > 1000
    free = await desk.summariser(writer=OfflineModel()).estimate(summary_material(rows))
    assert (free.calls, free.usd) == (0, 0.0)
