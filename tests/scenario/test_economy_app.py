"""Compaction by economy in a running app: made while nobody waits, committed once the cache is cold, and overtaken."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from tests.economy.bursts import bursts
from tests.economy.strict_run import paid_twice, warm_share
from tests.study.life import run_study
from tests.support.compaction_app import (
    app_with_long_history,
    checkpoints_in,
    go_cold,
    settle_background,
    summary_writer,
)

# Without known prices a summary pays from some 14,000 tokens on.
WALKS = 170


async def test_a_view_is_compacted_once_its_prompt_is_forgotten_and_not_while_it_is_cached(tmp_path: Path) -> None:
    async with app_with_long_history(tmp_path, WALKS) as it:
        await settle_background(it)
        whole = it.app.stores.conversation.load_view("main").tokens
        assert not checkpoints_in(it)
        await go_cold(it)
        (made,) = checkpoints_in(it)
        assert (made.trigger, made.tier) == ("economy", "full")
        assert made.key_facts["economy"]["removed"] > 0
        assert it.app.stores.conversation.load_view("main").tokens < whole / 2


async def test_a_message_that_finds_the_cache_cold_gets_the_summary_that_was_prepared_and_waits_for_none(
    tmp_path: Path,
) -> None:
    by = summary_writer()
    async with app_with_long_history(tmp_path, WALKS, by=by) as it:
        await settle_background(it)
        asked = len(by.requests)
        assert asked
        assert it.app.stores.message_index.index_next_batch() == 0, "what is to leave can be searched for already"
        by.gate = asyncio.Event()  # whoever asks for a summary now waits for ever
        it.clock.now += timedelta(hours=2)
        await it.say("are you there?")
        await it.wait_answered()
        assert it.bridge.bodies[-1] == "A fine walk."
        assert [one.trigger for one in checkpoints_in(it)] == ["economy"]
        assert any(message.content == "are you there?" for message in it.model.requests[-1].messages)
        by.gate.set()


@pytest.mark.parametrize("overtaken_by", ["/compact", "/reset"])
async def test_what_was_prepared_is_dropped_where_the_view_became_another_one(
    tmp_path: Path, overtaken_by: str
) -> None:
    async with app_with_long_history(tmp_path, WALKS) as it:
        await settle_background(it)
        await it.app.commands.run(overtaken_by, "main")
        before = [(one.id, one.state) for one in it.app.stores.conversation.checkpoints("main")]
        view = it.app.stores.conversation.load_view("main")
        assert not await it.app.contexts.compaction.commit_prepared("main", "economy")
        assert [(one.id, one.state) for one in it.app.stores.conversation.checkpoints("main")] == before
        assert it.app.stores.conversation.load_view("main").messages == view.messages


async def test_off_leaves_the_view_to_the_thresholds(tmp_path: Path) -> None:
    async with app_with_long_history(tmp_path, WALKS, ASSISTANT_COMPACTION__ECONOMY="off") as it:
        await go_cold(it)
        assert not checkpoints_in(it)


async def test_while_warm_what_was_sent_is_read_again_and_no_token_is_paid_for_whole_twice(tmp_path: Path) -> None:
    held = await run_study(bursts(60, 6), tmp_path, window=200_000, keep=3)
    assert not held.refused and not held.failed and not held.outcomes.missed
    assert warm_share(held) >= 0.97
    chat = [one.usage for one in held.seen if one.purpose == "chat"]
    # What is neither read nor written is the volatile block, which is not sent again.
    assert paid_twice(held) == 0
    assert max(usage.input for usage in chat) < 1_200
    assert any(one.trigger == "economy" for one in held.checkpoints)


async def test_a_wake_up_loads_no_view_of_a_conversation_in_which_nothing_was_said(tmp_path: Path) -> None:
    async with app_with_long_history(tmp_path, 4) as it:
        await it.app.background_compaction.wait_until_idle()
        queries: list[str] = []
        it.app.stores.conversation._db.connection.set_trace_callback(queries.append)
        for minutes in (6, 4, 4):
            it.clock.now += timedelta(minutes=minutes)
            it.app.background_compaction.check_due()
        assert not [query for query in queries if "FROM conversation_history" in query]
        assert queries, "it looked for what is due"
