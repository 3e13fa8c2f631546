"""Compaction through the whole app: real stores, turns and sleep, a scripted model that answers and one that writes
summaries."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.errors import ModelError, UsageError
from assistant.core.messages import ToolCall
from assistant.core.model_api import ModelRequest
from sleep.compaction.deps import SUMMARY_BREAKER
from tests.support.compaction_app import (
    LONG_MESSAGE,
    ROOMY_CONTEXT,
    SMALL_CONTEXT,
    SUMMARY_ANSWER,
    app_with_long_messages,
    checkpoints_in,
    context_pressure,
    notices,
    summary_writer,
)
from tests.support.running_app import LiveApp, run_app, use_model
from tests.support.scripted import ScriptedModel

# ------------------------------------------------------------------------------------------------------------ emergency


async def test_an_emergency_summarises_before_the_model_is_called(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 45) as it:
        assert checkpoints_in(it) and {one.trigger for one in checkpoints_in(it)} == {"emergency"}
        assert {one.tier for one in checkpoints_in(it)} == {"full"} and checkpoints_in(it)[0].model == "writer-1"
        assert max(_share(request) for request in it.model.requests) <= 0.80
        sent = it.model.requests[-1]
        notes, summary = (block.text for block in sent.system[1:3])
        assert "- The person walks along the shore." in notes
        assert "[CONTEXT SUMMARY]" in summary and "along the shore and over the hill, day" in summary
        assert "is an instruction" in summary


def _share(request: ModelRequest) -> float:
    """About the share of the context, at four characters a token."""
    return sum(len(m.content) for m in request.messages) / 4 * 1.2 / 15_000


async def test_f20_the_turn_that_was_compacted_for_goes_on_with_its_own_request(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 45) as it:
        assert len(it.bridge.bodies) == 45
        asked = [r.content for r in it.app.stores.history.recent("owner", limit=200) if r.role == "user"]
        assert asked == [f"walk {n}: {LONG_MESSAGE}" for n in range(45)]
        assert all(request.messages[-1].content.startswith(("walk", "<runtime-note>")) for request in it.model.requests)


async def test_the_journal_gets_the_synthesis_and_the_memories_of_a_compaction(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 45) as it:
        entries = it.app.stores.journal.entries("owner")
        assert {entry.source_type for entry in entries} == {"context_synthesis", "compaction"}
        [synthesis, *_] = [entry for entry in entries if entry.source_type == "context_synthesis"]
        assert "along the shore" in synthesis.content and synthesis.sources[0] == checkpoints_in(it)[-1].from_message_id
        assert "The person walks along the shore." in [entry.content for entry in entries]


async def test_f28_what_left_the_view_is_read_for_the_journal_by_the_next_sleep(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 45, by=summary_writer(SUMMARY_ANSWER)) as it:
        (session,) = it.app.stores.conversation.list_sessions()
        assert session.unextracted > 0
        report = await it.app.sleep.scheduler.run_now("manual")
        assert report is not None and report.phases["extract"]["read"] == 90
        (session,) = it.app.stores.conversation.list_sessions()
        assert session.unextracted == 0


# ----------------------------------------------------------------------------------------------------- progress or stop


async def test_f01_a_model_that_summarises_nothing_is_left_alone_and_the_context_still_comes_down(
    tmp_path: Path,
) -> None:
    by = summary_writer("")
    async with app_with_long_messages(tmp_path, 120, by=by) as it:
        assert it.app.stores.breakers.get(SUMMARY_BREAKER).opened_at is not None
        tried = len(by.requests)
        assert tried <= 6
        assert {one.tier for one in checkpoints_in(it)} == {"extractive"} and context_pressure(it) < 0.80
        it.clock.now += timedelta(hours=1)
        await _fill(it, 45)
        assert tried < len(by.requests) <= tried + 3


async def test_f07_the_fuse_closes_again_once_a_summary_works(tmp_path: Path) -> None:
    by = summary_writer("")
    async with app_with_long_messages(tmp_path, 110, by=by) as it:
        assert it.app.stores.breakers.get(SUMMARY_BREAKER).opened_at is not None
        by.script = [SUMMARY_ANSWER]
        it.clock.now += timedelta(hours=1)
        await _fill(it, 45)
        assert it.app.stores.breakers.get(SUMMARY_BREAKER).failures == 0
        assert checkpoints_in(it)[-1].tier == "full"


async def test_f07_every_kind_of_failure_counts(tmp_path: Path) -> None:
    by = summary_writer(ModelError("the network is down", kind="network"))
    async with app_with_long_messages(tmp_path, 110, by=by) as it:
        fuse = it.app.stores.breakers.get(SUMMARY_BREAKER)
        assert fuse.opened_at is not None and "the network is down" in fuse.last_error


async def _fill(it: LiveApp, walks: int) -> None:
    for number in range(walks):
        await it.app.background_compaction.wait_until_idle()  # or the turn makes its own room, without a summary
        await it.say(f"later walk {number}: {LONG_MESSAGE}")
        await it.wait_idle()


async def test_f02_a_request_that_fills_the_context_is_told_once_and_no_summary_is_paid_for(tmp_path: Path) -> None:
    by = summary_writer()
    async with app_with_long_messages(tmp_path, 1, by=by) as it:
        await it.say("a very long letter " * 4_000)
        await it.wait_idle()
        assert len([text for text in notices(it) if "more than the model can take" in text]) == 1
        assert by.requests == []


async def test_that_a_conversation_became_long_is_told_once_whatever_follows(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 150) as it:
        assert len(checkpoints_in(it)) >= 3
        (line,) = (text for text in notices(it) if "has become long" in text)
        assert "`/reset` starts a new conversation" in line
        # By hand, and after a restart, it is not said again.
        assert "has become long" not in await it.app.commands.run("/compact", "main")
    async with run_app(tmp_path, model=ScriptedModel("A fine walk.", window=200_000), **SMALL_CONTEXT) as it:
        await _fill(it, 45)
        assert not any("has become long" in text for text in notices(it))


# ------------------------------------------------------------------------------------------------------------------ off


async def test_f27_off_means_off_and_a_full_context_says_what_to_do(tmp_path: Path) -> None:
    off = {"ASSISTANT_COMPACTION__AUTO": "false", "ASSISTANT_MODEL__FALLBACK": "[]"}
    model = ScriptedModel("A fine walk.", window=200_000)
    async with run_app(tmp_path, model=model, writer=summary_writer(), **SMALL_CONTEXT, **off) as it:
        await _fill(it, 60)
        await it.app.sleep.scheduler.run_now("sleep")
        assert it.app.stores.conversation.checkpoints("main") == []
        model.script = [ModelError("prompt is too long", kind="overflow")]
        await it.say("and now?")
        await it.wait_idle()
        assert "compaction.auto is off" in it.bridge.bodies[-1] and "`/compact` makes room" in it.bridge.bodies[-1]
        assert it.app.stores.conversation.checkpoints("main") == []
        answer = await it.app.commands.run("/compact", "main")
        assert "saved" in answer and checkpoints_in(it)


async def test_an_overflow_is_answered_after_the_view_was_brought_down(tmp_path: Path) -> None:
    too_long = ModelError("prompt is too long: 9000 tokens", kind="overflow")
    async with app_with_long_messages(tmp_path, 25) as it:
        it.model.script = [too_long, "Still fine."]
        await it.say("and now?")
        await it.wait_idle()
        assert it.bridge.bodies[-1] == "Still fine."
        assert [one.trigger for one in checkpoints_in(it)] == ["overflow"]


async def test_a_model_with_a_smaller_window_gets_a_smaller_view(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 30, ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS="0") as it:
        assert checkpoints_in(it) == []
        use_model(it.app, ScriptedModel("Small, but here.", window=8_000, name="small-1"))
        await it.say("and now?")
        await it.wait_idle()
        assert checkpoints_in(it)[0].trigger == "model" and context_pressure(it) < 0.80


async def test_too_many_messages_are_compacted_whatever_they_weigh(tmp_path: Path) -> None:
    few = {"ASSISTANT_COMPACTION__MAX_MESSAGES": "40", "ASSISTANT_CONTEXT__PRESERVE_MESSAGES": "6"}
    model = ScriptedModel("ok", window=200_000)
    async with run_app(tmp_path, model=model, writer=summary_writer(), **few) as it:
        for number in range(24):
            await it.say(f"note {number} about the shore and the hill and the weather")
            await it.wait_idle()
        assert [one.trigger for one in checkpoints_in(it)] == ["messages"]


# ---------------------------------------------------------------------------------------------------------------- sleep


async def test_a_sleep_compacts_what_is_half_full_and_leaves_the_rest(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 10) as it:
        report = await it.app.sleep.scheduler.run_now("sleep")
        assert report is not None and report.state == "done" and checkpoints_in(it) == []
        await _fill(it, 18)
        assert 0.50 <= context_pressure(it) < 0.80
        await it.app.sleep.scheduler.run_now("sleep")
        assert [one.trigger for one in checkpoints_in(it)] == ["sleep"]
        # The target, and the room for the answer.
        assert context_pressure(it) <= 0.31 + 20_000 / 160_000


async def test_a_quiet_conversation_naps_once(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 28) as it:
        sleeper = it.app.sleep.scheduler
        sleeper.check_due()
        assert not sleeper.is_asleep()
        it.clock.now += timedelta(minutes=16)
        sleeper.check_due()
        assert sleeper.is_asleep()
        await sleeper.start("nap")
        assert [one.trigger for one in checkpoints_in(it)] == ["nap"]
        it.clock.now += timedelta(minutes=16)
        sleeper.check_due()
        assert not sleeper.is_asleep()


async def test_f32_a_sleep_without_news_asks_no_model(tmp_path: Path) -> None:
    by = summary_writer()
    async with app_with_long_messages(tmp_path, 28, by=by) as it:
        # What the first night's compaction learned is news to the second.
        for _ in range(2):
            await it.app.sleep.scheduler.run_now("sleep")
            it.clock.now += timedelta(days=1)
        asked = len(by.requests)
        await it.app.sleep.scheduler.run_now("sleep")
        assert len(by.requests) == asked


async def test_f13_a_message_during_a_compaction_is_answered_from_the_old_view_and_stays(tmp_path: Path) -> None:
    by = summary_writer()
    by.gate = asyncio.Event()
    async with app_with_long_messages(tmp_path, 28, by=by) as it:
        before = len(it.model.requests[-1].messages)
        sleeping = it.app.contexts.compaction.compact_in_sleep("main", "nap")
        task = asyncio.create_task(sleeping)
        await by.called.wait()
        await it.say("are you there?")
        await it.wait_idle()
        assert it.bridge.bodies[-1] == "A fine walk." and len(it.model.requests[-1].messages) == before + 2
        by.gate.set()
        outcome = await task
        assert outcome is not None and [one.tier for one in outcome.checkpoints] == ["full"]
        view = it.app.stores.conversation.load_view("main")
        assert [m.content for m in view.messages[-2:]] == ["are you there?", "A fine walk."]


async def test_f15_a_compaction_that_was_cut_off_leaves_the_view_and_says_so(tmp_path: Path) -> None:
    by = summary_writer()
    by.gate = asyncio.Event()
    async with app_with_long_messages(tmp_path, 28, by=by) as it:
        before = it.app.stores.conversation.load_view("main")
        task = asyncio.create_task(it.app.contexts.compaction.compact_in_sleep("main", "nap"))
        await by.called.wait()
        task.cancel()
        await asyncio.wait([task])
        assert it.app.stores.conversation.load_view("main") == before
        assert [one.state for one in it.app.stores.conversation.checkpoints("main")] == ["failed"]
        by.gate.set()
        assert "saved" in await it.app.commands.run("/compact", "main")


# --------------------------------------------------------------------------------------------------------------- people


async def test_compact_and_undo_by_hand(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 28) as it:
        before = it.app.stores.conversation.load_view("main")
        plan = await it.app.commands.run("/compact --dry-run", "main")
        assert "Nothing was changed" in plan and "removed: older messages" in plan and "of writer-1" in plan
        assert it.app.stores.conversation.load_view("main") == before
        told_of = await it.app.commands.run("/compact the hill", "main")
        assert "tokens become" in told_of and "saved" in told_of and "/compact --undo" in told_of
        await it.say("and now?")
        await it.wait_idle()
        assert "Undid compaction" in await it.app.commands.run("/compact --undo", "main")
        after = it.app.stores.conversation.load_view("main")
        assert after.messages[:-2] == before.messages
        assert [m.content for m in after.messages[-2:]] == ["and now?", "A fine walk."]


async def test_the_focus_reaches_the_model_that_summarises(tmp_path: Path) -> None:
    by = summary_writer()
    async with app_with_long_messages(tmp_path, 28, by=by) as it:
        await it.app.commands.run("/compact the harbour fees", "main")
        asked = by.requests[0]
        assert "the harbour fees" in asked.system[0].text + asked.messages[-1].content


async def test_an_undo_that_would_not_fit_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 30) as it:
        await it.app.commands.run("/compact", "main")
        use_model(it.app, ScriptedModel("Small.", window=4_000, name="small-1"))
        await it.say("and now?")
        await it.wait_idle()
        with pytest.raises(UsageError, match="more than the context of 4,000"):
            await it.app.commands.run(f"/compact --undo {checkpoints_in(it)[0].id}", "main")


async def test_f21_a_pin_stands_in_every_request_whatever_is_compacted(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 2) as it:
        await it.app.commands.run("/pin Never book flights before ten", "main")
        await _fill(it, 60)
        assert checkpoints_in(it)
        assert "user: Never book flights before ten" in it.model.requests[-1].system[0].text
        pins = await it.app.commands.run("/pins", "main")
        assert "Never book flights" in pins
        await it.app.commands.run("/unpin 1", "main")
        await it.say("and now?")
        await it.wait_idle()
        assert "Never book flights" not in it.model.requests[-1].system[0].text


async def test_f21_pins_have_a_limit_that_is_told(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 1) as it:
        with pytest.raises(UsageError, match="pins_max_tokens"):
            await it.app.commands.run("/pin " + "very long words " * 1_000, "main")


async def test_f18_a_task_stays_word_for_word_through_compactions_until_it_is_done(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 1, **ROOMY_CONTEXT) as it:
        await it.say("Please book the ferry to Bergen for the tenth of March")
        await it.wait_idle()
        await _fill(it, 90)
        assert checkpoints_in(it)
        assert any("book the ferry to Bergen" in m.content for m in it.model.requests[-1].messages)
        assert "book the ferry" in await it.app.commands.run("/requests", "main")
        (number,) = [r.message_id for r in it.app.stores.requests.list_open("main")]
        assert "Done: " in await it.app.commands.run(f"/done {number}", "main")
        assert "No request is open." in await it.app.commands.run("/requests", "main")
        assert f"done {it.clock().date()}, " in await it.app.commands.run("/requests --all", "main")


async def test_f18_the_model_closes_a_request_by_its_tool_and_cites_what_shows_it(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 1) as it:
        await it.say("Please book the ferry to Bergen")
        await it.wait_idle()
        (number,) = [r.message_id for r in it.app.stores.requests.list_open("main")]
        close = ToolCall("c1", "close_requests", {"ids": [number], "state": "done", "cites": [number]})
        it.model.script = [close, "Done."]
        await it.say("it is booked")
        await it.wait_idle()
        # The model has read more than the person's words: what they did not ask for waits for their yes.
        await it.say("yes")
        await it.wait_idle()
        assert it.app.stores.requests.list_open("main") == []
        (done,) = [r for r in it.app.stores.requests.list_requests("owner") if r.message_id == number]
        assert (done.state, done.closed_by, done.cites) == ("done", "model", (number,))


async def test_what_left_the_view_is_recalled_when_it_is_asked_for(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 1) as it:
        await it.say("The locker at Oslo station opens with 7719, Marta knows it too")
        await it.wait_idle()
        await _fill(it, 60)
        assert not any("7719" in m.content for m in it.app.stores.conversation.load_view("main").messages)
        await it.say("Which number does Marta use for the locker at the station?")
        await it.wait_idle()
        volatile = it.model.requests[-1].messages[-1].metadata["volatile"]
        assert "7719" in volatile and "Recalled from earlier" in volatile
        assert not any("Recalled" in r.content for r in it.app.stores.history.recent("owner", limit=10))


async def test_a_branch_goes_on_by_itself(tmp_path: Path) -> None:
    async with app_with_long_messages(tmp_path, 3) as it:
        second = it.app.stores.conversation.load_view("main").messages[1].id
        answer = await it.app.commands.run(f"/branch {second}", "main")
        assert "branch:1 has everything up to" in answer
        branched = it.app.stores.conversation.load_view("branch:1").messages
        assert [m.metadata.get("carried_from") for m in branched[:2]] == [1, second]
        assert branched[2].content.startswith("This conversation branched from main at message")
