"""Summaries by models, over the real SDK at a provider that is strict: what is asked, and what is made of an answer."""

from __future__ import annotations

import asyncio
import re

import pytest

from assistant.core.messages import Media, Message, ToolCall
from assistant.core.model_api import ModelRequest
from sleep.compaction.validate import RESTORED_HEADING
from tests.strict.behaviour import ScriptedAnswer
from tests.strict.count import count_tokens
from tests.strict.validate import RequestLimits
from tests.support.scripted import ScriptedModel
from tests.support.summaries import (
    COUNTER,
    FERRY_MESSAGE,
    GOOD_ANSWER,
    SMALL_MODEL,
    START,
    SUMMARY_TEXT,
    TEXT_BY_LANGUAGE,
    TOO_LONG_ERROR,
    SummariserSetup,
    alternating_messages,
    conversation_with,
    long_conversation,
    summary_answer,
    summary_material,
)

# -------------------------------------------------------------------------------------------------------- a good answer


async def test_an_answer_becomes_a_checked_summary(desk: SummariserSetup) -> None:
    memories, facts = ["Anna is allergic to nuts."], "decisions: take the ferry\nidentifiers: TK-4471-Q"
    desk.play(ScriptedAnswer(summary_answer(f"{SUMMARY_TEXT} The code is TK-4471-Q.", memories, facts)))
    wanted = summary_material(conversation_with(FERRY_MESSAGE), tasks=("find a hotel",))
    found = await desk.summarise(wanted)
    assert (found.tier, found.model, found.attempts, found.failures) == ("full", SMALL_MODEL, 1, ())
    assert found.text.startswith(SUMMARY_TEXT)
    assert found.memories == ("Anna is allergic to nuts.",)
    assert found.key_facts == {"decisions": ("take the ferry",), "identifiers": ("TK-4471-Q",)}
    assert "- open: find a hotel" in found.restored
    assert not any("TK-4471" in line for line in found.restored)
    assert found.cost_usd is not None
    assert 0 < found.cost_usd < 0.01
    assert desk.server.complaints == []


@pytest.mark.parametrize("by_model", [True, False])
async def test_a_summary_has_no_password_in_it_and_the_journal_gets_it(desk: SummariserSetup, by_model: bool) -> None:
    memories = ["The wifi password is Hunter2-blue."]
    desk.play(
        ScriptedAnswer(summary_answer(f"{SUMMARY_TEXT} Wifi: Hunter2-blue.", memories, "identifiers: Hunter2-blue"))
    )
    wanted = summary_material(conversation_with(f"{FERRY_MESSAGE} My wifi password is Hunter2-blue."))
    found = await desk.summariser().summarise(wanted, cached_prompt=None, without_model=not by_model)
    assert found.tier == ("full" if by_model else "extractive")
    assert "Hunter2" not in f"{found.text} {found.key_facts} {found.restored}"
    assert found.memories == (tuple(memories) if by_model else ())


async def test_a_request_shows_what_was_said_with_its_numbers_days_and_pictures(desk: SummariserSetup) -> None:
    desk.play(GOOD_ANSWER)
    boats = tuple(Media("image", "image/jpeg", f"boat{n}.jpg", data="aaaa") for n in (1, 2))
    rows = (
        *conversation_with(pairs=3),
        Message("user", "Which one?", id=90, ts=START, media=boats),
        Message("assistant", "I look.", id=91, ts=START, tool_calls=(ToolCall("c1", "look", {"at": "boats"}),)),
        Message("tool", f"first {'tide ' * 3000} last", id=92, ts=START, tool_call_id="c1", name="look"),
    )
    wanted = summary_material(
        rows, focus="the boats", known_facts=("Anna sails.",), earlier_summaries="They met in May.", tasks=("buy oars",)
    )
    await desk.summarise(wanted)
    (said,) = desk.request_texts
    assert "#90 2026-03-04 09:00 user: Which one? [2 pictures: boat1.jpg, boat2.jpg]" in said
    assert "#91 2026-03-04 09:00 assistant: I look. [calls look {'at': 'boats'}]" in said
    result = said[said.index("#92 ") :]
    assert result.startswith("#92 2026-03-04 09:00 result of look: first tide")
    assert "characters left out" in result
    assert COUNTER.count_text(result) < 420
    for words in ("the boats", "Anna sails.", "They met in May.", "buy oars"):
        assert words in said
    (body,) = desk.server.bodies
    instructions = body["system"][0]["text"]
    assert "at most 2000 tokens" in " ".join(instructions.split())
    assert "$" not in instructions
    assert not any(block["type"] == "image" for block in body["messages"][0]["content"])
    assert "tools" not in body


async def test_calls_stand_with_their_results_and_a_result_without_its_call_is_shown_too(desk: SummariserSetup) -> None:
    desk.play(*[GOOD_ANSWER] * 40, bounds=RequestLimits(window=16_000))
    calls = tuple(ToolCall(f"c{n}", "look", {"at": n}) for n in range(40))
    block = (
        Message("assistant", "I look at all of them.", id=501, tool_calls=calls),
        *(Message("tool", f"It was {'so wide ' * 400}", id=502 + n, tool_call_id=f"c{n}") for n in range(40)),
    )
    orphan = Message("tool", "what came of an earlier call", id=499, tool_call_id="c0")
    wanted = summary_material((orphan, *block, *conversation_with()), budget=400)
    assert (await desk.summarise(wanted)).tier == "full"
    assert "#499 result of a tool: what came of an earlier call" in desk.request_texts[0]
    held = [index for index, said in enumerate(desk.request_texts) if any(f"#{row.id} " in said for row in block)]
    assert len(held) == 1


async def test_records_are_merged_by_their_own_instructions(desk: SummariserSetup) -> None:
    desk.play(GOOD_ANSWER)
    records = [Message("assistant", f"{row.content} {row.content}", ts=START) for row in long_conversation(2)]
    found = await desk.summarise(summary_material(records, depth=2))
    assert found.depth == 2
    assert "You merge records" in desk.server.bodies[0]["system"][0]["text"]
    assert "Record: " in desk.request_texts[0]


async def test_what_is_long_is_told_in_chunks_side_by_side_whose_answers_stand_in_their_order(
    desk: SummariserSetup,
) -> None:
    """No call waits for another: none is answered before all were made."""

    def answer(request: ModelRequest) -> str:
        first = re.findall(r"#(\d+) ", request.messages[0].content)[0]
        return summary_answer(f"{SUMMARY_TEXT} From {first} on.", [f"fact {first} of it"])

    writer = ScriptedModel(answer, window=16_000)
    writer.gate = asyncio.Event()
    making = asyncio.create_task(
        desk.summariser(writer=writer).summarise(summary_material(long_conversation(100), budget=900))
    )
    while len(writer.requests) < 4:
        writer.called.clear()
        await writer.called.wait()
    writer.gate.set()
    found = await making
    firsts = re.findall(r"From (\d+) on", found.text)
    assert found.tier == "full" and found.attempts == len(firsts) >= 4
    assert firsts == sorted(firsts, key=int)
    assert found.memories == tuple(f"fact {first} of it" for first in firsts)
    assert not any("Your record so far" in request.messages[0].content for request in writer.requests)


async def test_where_parts_would_be_too_short_a_call_carries_on_the_record_of_the_one_before(
    desk: SummariserSetup,
) -> None:
    answers = [
        ScriptedAnswer(summary_answer(f"{SUMMARY_TEXT} Part {n}.", [f"fact {n} of it"], f"decisions: choice {n}"))
        for n in range(6)
    ]
    desk.play(*answers, bounds=RequestLimits(window=16_000))
    wanted = summary_material(long_conversation(100), budget=299)
    found = await desk.summarise(wanted)
    calls = len(desk.server.requests)
    assert calls > 1
    assert (found.tier, found.attempts) == ("full", calls)
    assert f"Part {calls - 1}." in found.text
    assert found.memories == tuple(f"fact {n} of it" for n in range(calls))
    assert found.key_facts["decisions"] == tuple(f"choice {n}" for n in range(calls))
    assert f"Part {calls - 2}." in desk.request_texts[-1]
    together = "\n".join(desk.request_texts)
    assert all(f"#{row.id} " in together for row in wanted.rows)
    assert desk.server.complaints == []


# -------------------------------------------------------------------------------------------------- F05: its own window


@pytest.mark.parametrize("window", [6_000, 12_000, 40_000])
async def test_f05_no_request_passes_the_window_however_much_is_told_beside(desk: SummariserSetup, window: int) -> None:
    desk.play(*[GOOD_ANSWER] * 400, bounds=RequestLimits(window=window))
    much = tuple(f"{n} {'of what is known or open ' * 12}" for n in range(60))
    rows = (*long_conversation(100), *alternating_messages("word " * 60_000, "说" * 30_000, first=500))
    wanted = summary_material(
        rows, budget=400, known_facts=much, tasks=much, earlier_summaries="told " * 40_000, focus="sea " * 9_000
    )
    found = await desk.summarise(wanted)
    assert desk.server.complaints == []
    assert found.tier in ("full", "partial")
    assert all(count_tokens(body) + body["max_tokens"] <= window for body in desk.server.bodies)


async def test_f05_a_request_that_cannot_fit_is_not_made(desk: SummariserSetup) -> None:
    desk.play(bounds=RequestLimits(window=1_000))
    found = await desk.summarise(summary_material(conversation_with(FERRY_MESSAGE)))
    assert desk.server.requests == []
    assert (found.tier, found.attempts) == ("extractive", 0)
    assert "would not fit" in found.failures[-1]


async def test_f05_what_the_provider_calls_too_long_is_halved_once_then_told_in_part(desk: SummariserSetup) -> None:
    desk.play(TOO_LONG_ERROR, TOO_LONG_ERROR, *[GOOD_ANSWER] * 20)
    huge = alternating_messages(f"It begins so. {'long words ' * 30_000}", "I see.", first=900)
    found = await desk.summarise(summary_material((*long_conversation(30), *huge)))
    assert (found.tier, len(found.failures)) == ("partial", 2)
    assert "long words […" not in desk.request_texts[-1]
    assert "tokens, not shown; it begins: It begins so." in "\n".join(desk.request_texts[2:])
    assert max(map(len, desk.request_texts[2:])) < max(map(len, desk.request_texts[:2]))


async def test_f05_half_a_chunk_may_do(desk: SummariserSetup) -> None:
    desk.play(TOO_LONG_ERROR, *[GOOD_ANSWER] * 20)
    found = await desk.summarise(summary_material(long_conversation(900)))
    assert (found.tier, len(found.failures)) == ("full", 1)
    assert len(desk.request_texts[-1]) < 0.6 * len(desk.request_texts[0])


async def test_f05_what_is_always_too_long_needs_no_model_in_the_end(desk: SummariserSetup) -> None:
    desk.play(*[TOO_LONG_ERROR] * 20)
    found = await desk.summarise(summary_material(conversation_with(FERRY_MESSAGE)))
    assert (found.tier, found.attempts, len(found.failures)) == ("extractive", 3, 3)
    assert "TK-4471-Q" in found.text


async def test_f05_planted_details_survive_a_summary_that_keeps_nothing(desk: SummariserSetup) -> None:
    desk.play(
        ScriptedAnswer(summary_answer("They talked about a trip and about some other things that were on their minds."))
    )
    texts = [row.content for row in long_conversation(30)]
    planted = [f"TK-{4471 + n * 7}-Q" for n in range(10)] + [f"{n}9,{n}50.75" for n in range(1, 6)]
    planted += ["/srv/boat/plan.md", "anna@example.org", "https://example.org/x?y=2", "Ragnhild Sæther"]
    for n, value in enumerate(planted):
        texts[2 * n] += f" and keep in mind {value}"
    assert len(texts) == 60
    found = await desk.summarise(summary_material(alternating_messages(*texts), tasks=("renew the passport",)))
    assert found.tier == "full"
    assert [value for value in (*planted, "renew the passport") if value not in found.text] == []


# ---------------------------------------------------------------------------------------------------- F24: the language


@pytest.mark.parametrize("language", ["no", "zh", "ru"])
async def test_f24_a_summary_in_another_language_is_asked_for_again_and_else_not_used(
    desk: SummariserSetup, language: str
) -> None:
    wanted = summary_material(alternating_messages(*[f"{TEXT_BY_LANGUAGE[language]} ({n})" for n in range(12)]))
    desk.play(GOOD_ANSWER, ScriptedAnswer(summary_answer(f"{TEXT_BY_LANGUAGE[language]} {TEXT_BY_LANGUAGE[language]}")))
    found = await desk.summarise(wanted)
    assert (found.tier, found.attempts) == ("full", 2)
    desk.play(GOOD_ANSWER, GOOD_ANSWER)
    found = await desk.summarise(wanted)
    assert (found.tier, found.failures) == (
        "extractive",
        ("the answer was in another language than the conversation",),
    )
    assert TEXT_BY_LANGUAGE[language][:12] in found.text


# ------------------------------------------------------------------------------------------------------ F25: its length


async def test_f25_a_summary_never_takes_more_than_its_budget_and_what_is_restored(desk: SummariserSetup) -> None:
    words = " ".join(row.content for row in long_conversation(1)).split()
    lines = "\n".join(f"- {n} it was said: {' '.join(words[n : n + 8])}" for n in range(40))
    desk.play(ScriptedAnswer(summary_answer(lines)))
    wanted = summary_material(conversation_with(*[f"the code is ZZ-{n:04}" for n in range(200)]), budget=500)
    found = await desk.summarise(wanted, restored=100)
    assert COUNTER.count_text(lines) > 500
    assert found.tier == "full"
    assert COUNTER.count_text(found.text.partition(RESTORED_HEADING)[0]) <= 500
    assert found.tokens <= 600
    assert found.restored


async def test_f25_an_answer_as_long_as_its_source_is_no_summary(desk: SummariserSetup) -> None:
    rows = alternating_messages("We met Anna at the sea and she told us of her boat.", "That was kind of her.")
    desk.play(
        *[ScriptedAnswer(summary_answer(f"{rows[0].content} And {rows[1].content} And so it was, and that was all."))]
        * 2
    )
    found = await desk.summarise(summary_material(rows))
    assert found.tier == "extractive"
    assert "no fewer than the messages it summarises" in found.failures[0]
