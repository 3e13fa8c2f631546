"""The prompt that a provider has in its cache is used again for a summary where that is cheaper; estimates."""

from __future__ import annotations

from typing import Any

import pytest

from assistant.core.messages import Message, Usage
from assistant.models.offline.model import OfflineModel
from sleep.compaction.values import CachedPrompt
from tests.scenario.summary_desk import (
    GOOD,
    LARGE,
    PRICES,
    SMALL,
    TOO_LONG,
    Desk,
    talk,
)
from tests.strict.asking import LOOK, ask, asked
from tests.strict.behaviour import Answer, Behaviour, Refusal, Status, ToolUse
from tests.strict.count import count_tokens
from tests.strict.validate import Bounds
from tests.summarising import START, long_talk, material

# ------------------------------------------------------------------------------------------------------- F23: the cache


LIVED = (*talk(pairs=60), Message("user", "And now?", id=199, ts=START))
LEAVING = material(LIVED[:100], budget=400)


async def lived(desk: Desk, rows: tuple[Message, ...]) -> CachedPrompt:
    """The session's last request, as its provider has it in the cache now."""
    request = asked(*rows, tools=(LOOK,), cache_edges=(len(rows) - 2,))
    heard = await ask(desk.large, request)
    return CachedPrompt(LARGE, request, heard.reply.usage.prompt)


async def test_f23_the_prompt_that_the_provider_has_is_used_again(desk: Desk) -> None:
    rows = LIVED
    desk.play(Answer("Well."), GOOD)
    live = await lived(desk, rows)
    wanted = material(rows[:100], budget=400, tasks=("find a hotel",))
    found = await desk.summarise(wanted, live=live)
    first, second = desk.server.bodies
    assert (found.tier, found.model, found.attempts, found.failures) == ("full", LARGE, 1, ())
    assert (second["model"], second["tools"], second["system"]) == (LARGE, first["tools"], first["system"])
    assert blocks(second)[: len(blocks(first))] == blocks(first)
    assert wanted.rows[-1].content[:60] in desk.asked[-1]
    assert "find a hotel" in desk.asked[-1]
    read = desk.server.cache.use(second)
    assert read["input_tokens"] < 0.5 * live.prompt_tokens
    assert found.cost_usd is not None
    assert found.cost_usd < PRICES[LARGE].billed(Usage(input=live.prompt_tokens, output=0))


def blocks(body: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["role"], block.get("text", "")) for one in body["messages"] for block in one["content"]]


@pytest.mark.parametrize(
    "bad", [Answer("", [ToolUse("look")]), Answer(""), TOO_LONG, Status(529, "overloaded_error", "full"), Refusal()]
)
async def test_f12_a_live_prompt_that_gives_no_summary_is_followed_by_chunks(desk: Desk, bad: Behaviour) -> None:
    rows = LIVED
    desk.play(Answer("Well."), bad, GOOD)
    found = await desk.summarise(LEAVING, live=await lived(desk, rows))
    assert (found.tier, found.model, found.attempts) == ("full", SMALL, 2)
    assert found.failures[0].startswith("over the live prompt: ")


async def test_f23_a_live_prompt_is_left_where_it_is_no_help(desk: Desk) -> None:
    rows = LIVED
    wanted = LEAVING
    live = CachedPrompt(LARGE, asked(*rows), 1000)
    dear = CachedPrompt(LARGE, asked(*rows), 60_000)
    lives = {
        "another model's": CachedPrompt("claude-old", live.request, 1000),
        "dearer": dear,
        "without what leaves": CachedPrompt(LARGE, asked(*rows[6:]), 1000),
    }
    for why, one in lives.items():
        desk.play(GOOD)
        assert (await desk.summarise(wanted, live=one)).model == SMALL, why
    desk.play(GOOD)
    assert (await desk.summarise(material(rows[:100], budget=400, depth=2), live=live)).model == SMALL
    desk.play(GOOD)
    assert (await desk.summarise(wanted, live=live, cost=lambda *_: None)).model == SMALL
    desk.play(GOOD)
    full = CachedPrompt(LARGE, live.request, 199_000)
    assert (await desk.summarise(wanted, live=full, cost=lambda _, name, use: float(name == SMALL))).model == SMALL
    desk.play(GOOD)
    assert (await desk.summarise(wanted, live=live)).model == LARGE


# ------------------------------------------------------------------------------------------------------------ estimates


async def test_an_estimate_tells_the_calls_and_what_they_cost_and_asks_nobody(desk: Desk) -> None:
    desk.play(bounds=Bounds(window=16_000))
    wanted = material(long_talk(100), budget=600)
    about = await desk.summariser().estimate(wanted)
    assert desk.server.requests == []
    desk.play(*[GOOD] * 20, bounds=Bounds(window=16_000))
    found = await desk.summarise(wanted)
    assert (about.model, about.calls) == (SMALL, found.attempts)
    assert about.output_tokens == 600 * about.calls
    assert about.usd is not None and found.cost_usd is not None
    assert 0.5 < about.usd / found.cost_usd < 3
    assert 0.5 < about.input_tokens / sum(map(count_tokens, desk.server.bodies)) < 2


async def test_an_estimate_knows_of_the_live_prompt_and_of_the_built_in_model(desk: Desk) -> None:
    rows = LIVED
    over = await desk.summariser().estimate(LEAVING, live=CachedPrompt(LARGE, asked(*rows), 1000))
    assert (over.model, over.calls) == (LARGE, 1)
    assert over.input_tokens > 1000
    free = await desk.summariser(writer=OfflineModel()).estimate(material(rows))
    assert (free.calls, free.usd) == (0, 0.0)
