"""Sleep cycles with models that fail, people who talk meanwhile, and phases that go wrong: what the report says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assistant.core.bridge_api import MessageChange
from assistant.core.checkpoints import CircuitBreaker
from assistant.core.errors import CorruptStore, ModelError, StaleView, StoreError
from assistant.core.messages import Message, Usage
from assistant.core.model_api import ModelReply, ModelRequest
from assistant.core.records import IncomingMessage
from assistant.store.script.edits import MessageEdits
from sleep.cycle.cycle import CompactedSession
from sleep.cycle.extract import CORRECTION_TAG
from tests.support.imports import import_messages
from tests.support.sleep_home import (
    COOL_DOWN,
    FACTS,
    LATER,
    LEARNED_TEXTS,
    MAX_FAILURES,
    NETWORK_ERROR,
    JournalHome,
    learn_every_line,
    memories_answer,
    say_facts,
)
from tests.support.store_home import NOW, CrashingStore


@pytest.fixture
def home(tmp_path: Path) -> Iterator[JournalHome]:
    home = JournalHome(tmp_path).open()
    yield home
    assert home.verify().problems == ()
    home.close()


# --------------------------------------------------------------------------------------------------- calls of the model


async def test_f32_no_new_input_no_call(home: JournalHome) -> None:
    say_facts(home)
    await home.sleep()
    for _ in range(3):
        report = await home.sleep(LATER)
        assert report.phases["extract"]["calls"] == 0
    home.conversation.annotate("main", "edit", [1], "edited", NOW)
    home.conversation.hide_messages("main", [7], NOW)
    await home.restart().sleep(LATER)
    assert len(home.model.requests) == 1
    say_facts(home, "I own a boat.")
    await home.sleep(LATER)
    assert len(home.model.requests) == 2
    assert "I live in Oslo" not in home.model.requests[1].messages[0].content.split("The conversation:")[1]


async def test_f32_nothing_but_tool_output_no_call(home: JournalHome) -> None:
    import_messages(home.conversation, "main", "owner", [Message("user", "", media=()), Message("assistant", " ")], NOW)
    report = await home.sleep()
    assert (home.model.requests, report.phases["extract"]["read"], home.unread_count()) == ([], 0, 0)
    assert home.journal.read_position("extract", "main", 1) == 2


async def test_a_model_that_is_away_is_waited_for_until_the_fuse_opens(home: JournalHome) -> None:
    """Short troubles cost no quality; long ones lose nothing."""
    say_facts(home)
    home.model.script = [NETWORK_ERROR]
    for number in range(1, MAX_FAILURES):
        report = await home.sleep(NOW + timedelta(days=number))
        assert (report.state, report.phases["extract"]["waiting"], home.entry_texts()) == ("failed", 1, [])
        assert "main is read at the next sleep: the model failed: no route to host" in report.phases["extract"]["error"]
    report = await home.restart().sleep(NOW + timedelta(days=MAX_FAILURES))
    assert (report.state, home.entry_texts()) == ("done", list(FACTS))
    assert report.phases["extract"]["rejected"] == ["the model failed: no route to host"]


async def test_a_model_that_is_back_reads_what_waited(home: JournalHome) -> None:
    say_facts(home)
    home.model.script = [NETWORK_ERROR, learn_every_line]
    await home.sleep()
    assert (await home.sleep(LATER)).state == "done"
    assert home.entry_texts() == LEARNED_TEXTS
    assert home.breakers.get("extraction").failures == 0


async def test_f07_f30_after_failures_the_rules_read_until_a_try_succeeds(home: JournalHome) -> None:
    home.model.script = [NETWORK_ERROR]
    for number in range(MAX_FAILURES):
        say_facts(home, f"I own boat {number}.")
        await home.sleep()
    assert home.breakers.get("extraction").opened_at == NOW
    say_facts(home, "I own a bicycle.")
    await home.restart().sleep(NOW + COOL_DOWN / 2)
    assert len(home.model.requests) == MAX_FAILURES
    assert home.entry_texts() == ["I own boat 0.", "I own boat 1.", "I own boat 2.", "I own a bicycle."]
    say_facts(home, "I own a car.")
    await home.sleep(NOW + COOL_DOWN)
    assert len(home.model.requests) == MAX_FAILURES + 1
    home.model.script = [learn_every_line]
    say_facts(home, "I own a horse.")
    await home.sleep(NOW + 2 * COOL_DOWN)
    assert home.entry_texts()[4:] == ["I own a car.", "Told: I own a horse."]
    assert home.breakers.get("extraction").opened_at is None


def test_a_fuse_that_a_wrong_clock_opened_in_the_future_lets_through_once_the_clock_is_right() -> None:
    fuse = CircuitBreaker("extraction", MAX_FAILURES, NOW.replace(year=2099))
    assert not fuse.allows_call(NOW.replace(year=2099), COOL_DOWN)
    assert fuse.allows_call(NOW, COOL_DOWN)
    opened = CircuitBreaker("extraction", MAX_FAILURES, NOW)
    lets = [opened.allows_call(NOW + part * COOL_DOWN, COOL_DOWN) for part in (0, 0.9, 1)]
    assert lets == [False, False, True]


async def test_f28_one_bad_answer_is_read_by_rules_and_holds_up_nothing(home: JournalHome) -> None:
    home.batch_tokens = 40
    home.model.script = ["I would rather not.", learn_every_line]
    say_facts(home)
    report = await home.sleep()
    assert report.state == "done"
    assert home.entry_texts() == [FACTS[0], *LEARNED_TEXTS[1:]]
    assert report.phases["extract"]["rejected"] == ["the model answered no list"]


_CUT_OFF = ModelReply(Message("assistant", "<memories>\n</memories>"), Usage(), "max_tokens")


@pytest.mark.parametrize(
    "script",
    [[NETWORK_ERROR] * MAX_FAILURES, ["I cannot help with that."], [_CUT_OFF]],
    ids=["away", "refuses", "cut off"],
)
@pytest.mark.parametrize(
    ("told", "change", "is_kept"),
    [
        ("The price of Greta's printer is Vega.", "The price of Greta's printer is now Rigel.", True),
        ("The printer is red.", "The printer is now blue.", True),
        ("Der Name von Gretas Boot ist Vega.", "Der Name von Gretas Boot ist jetzt Rigel.", True),
        ("The price of Greta's printer is Vega.", "The weather is now better.", False),
        ("The price of Greta's printer is Vega.", "Is the price of Greta's printer now Rigel?", False),
        ("The colour of Greta's printer is red.", "The price of Greta's printer is now Rigel.", False),
    ],
)
async def test_what_changes_an_entry_is_kept_by_the_rules_too(
    home: JournalHome, script: list[Any], told: str, change: str, is_kept: bool
) -> None:
    """Else the old value would be remembered alone."""
    home.model.script = [memories_answer((told, 1)), *script]
    say_facts(home, told)
    await home.sleep()
    # Weeks later: it is not among what was learned on the last day.
    import_messages(home.conversation, "main", "owner", [Message("user", change)], NOW + timedelta(days=30))
    for _ in range(MAX_FAILURES):
        await home.sleep(NOW + timedelta(days=30))
    kept = [entry for entry in home.entries() if entry.content == change]
    assert [entry.tags for entry in kept] == [("fact", CORRECTION_TAG)] * is_kept
    assert home.unread_count() == 0


async def test_a_message_that_is_edited_while_the_model_is_away_is_not_remembered_as_it_was(home: JournalHome) -> None:
    told, edited = "The price of Greta's printer is Vega.", "The price of Greta's printer is Rigel."
    home.conversation.accept(IncomingMessage("net", "1", "main", "owner", "me", "owner", told), NOW)
    turn = home.conversation.begin_turn(home.conversation.list_accepted("main")[0], "", NOW)
    home.conversation.finish_turn(turn, "answered", Message("assistant", "Noted."), [], NOW)
    home.model.script = [memories_answer((told, 1)), "I cannot help with that."]
    await home.sleep()
    edits = MessageEdits(home.db, home.log, home.conversation.appender)
    edits.record_change(MessageChange("net", "1", "c1", "edit", "me", edited), LATER)
    await home.sleep(LATER)
    assert [entry.content for entry in home.entries()] == [told, edited]


async def test_a_change_is_compared_with_what_its_own_scope_knows(home: JournalHome) -> None:
    home.model.script = [memories_answer(("The printer is red.", 1)), *["I cannot help with that."] * 2]
    say_facts(home, "The printer is red.")
    await home.sleep()
    import_messages(home.conversation, "peer:7", "peer:7", [Message("user", "The printer is now blue.")], LATER)
    await home.sleep(LATER)
    assert home.entries("peer:7") == []


async def test_costs_add_up_and_one_that_nobody_knows_makes_the_sum_unknown(home: JournalHome) -> None:
    def at(usd: float | None) -> Callable[[ModelRequest], ModelReply]:
        return lambda request: ModelReply(Message("assistant", learn_every_line(request)), Usage(cost_usd=usd), "end")

    home.batch_tokens = 40
    say_facts(home)
    home.model.script = [at(0.25), at(0.5), at(0.25)]
    assert (await home.sleep()).phases["extract"]["cost_usd"] == 1.25
    say_facts(home, "I own a car.", "I own a boat.")
    home.model.script = [at(None), at(0.25)]
    assert (await home.sleep(LATER)).phases["extract"]["cost_usd"] is None


# ---------------------------------------------------------------------------------------------------- people in between


async def test_f13_a_message_is_answered_while_the_model_reads(home: JournalHome) -> None:
    say_facts(home, "I live in Oslo.")
    home.model.gate = asyncio.Event()
    asleep = asyncio.create_task(home.sleep())
    await home.model.called.wait()
    say_facts(home, "I own a boat.")
    assert (home.view_contents()[-2:], asleep.done()) == (["I own a boat.", "Noted."], False)
    home.model.gate.set()
    assert (await asleep).state == "done"
    assert home.entry_texts() == ["Told: I live in Oslo.", "Told: I own a boat."]


async def test_between_two_batches_others_have_their_turn(home: JournalHome) -> None:
    home.batch_tokens = 40
    home.model.provider = "offline"
    say_facts(home)
    seen: list[int] = []

    async def others() -> None:
        while not asleep.done():
            seen.append(len(home.entry_texts()))
            await asyncio.sleep(0)

    asleep = asyncio.create_task(home.sleep())
    await asyncio.gather(asleep, others())
    assert {1, 2, 3} <= set(seen)


async def test_a_sleep_that_is_ended_is_interrupted_and_goes_on_the_next_time(home: JournalHome) -> None:
    home.batch_tokens = 40
    say_facts(home)
    home.model.gate = first = asyncio.Event()
    asleep = asyncio.create_task(home.sleep())
    await home.model.called.wait()
    home.model.called.clear()
    home.model.gate = asyncio.Event()
    first.set()
    await home.model.called.wait()
    asleep.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asleep
    (cut,) = home.journal.list_cycles()
    assert home.entry_texts() == LEARNED_TEXTS[:1]
    assert (cut.state, cut.ended_at, list(cut.phases)) == ("interrupted", NOW, ["settle"])
    home.model.gate = None
    assert (await home.sleep(LATER)).state == "done"
    assert home.entry_texts() == LEARNED_TEXTS


# ---------------------------------------------------------------------------------------------------------- the report


async def test_the_report_is_kept_as_it_was_given(home: JournalHome) -> None:
    say_facts(home)
    report = await home.cycle(clock=lambda: LATER).run(NOW, trigger="manual")
    assert home.journal.list_cycles() == [report]
    assert (report.trigger, report.started_at, report.ended_at, report.state) == ("manual", NOW, LATER, "done")
    assert list(report.phases) == ["settle", "extract", "compact"]
    for phase in report.phases.values():
        assert {"state", "read", "written", "rejected", "cost_usd", "error"} <= set(phase)
    assert (report.phases["extract"]["read"], report.phases["extract"]["written"]) == (8, 4)


async def test_f34_reading_and_saving_nothing_is_a_warning(home: JournalHome) -> None:
    say_facts(home)
    home.model.script = [memories_answer()]
    report = await home.sleep()
    assert report.phases["extract"]["warning"] == "8 messages read, and nothing was saved from them"
    assert "warning" not in (await home.sleep(LATER)).phases["extract"]
    say_facts(home)
    home.model.script = [learn_every_line]
    assert "warning" not in (await home.sleep(LATER)).phases["extract"]


async def test_f34_a_day_of_questions_greetings_and_orders_alone_is_no_warning(home: JournalHome) -> None:
    home.model.provider = "offline"
    asked = (
        "Hello there!",
        "What is the capital of Peru, by the way?",
        "Thanks a lot!",
        "Please sort this list for me.",
    )
    say_facts(home, *asked * 8)
    extract = (await home.sleep()).phases["extract"]
    assert (extract["read"], extract["written"]) == (64, 0) and "warning" not in extract


async def test_f34_many_statements_of_which_nothing_is_saved_are_a_warning(home: JournalHome) -> None:
    home.model.provider = "offline"
    say_facts(home, *(f"The weather by the river is grey as ever {'!' * number}" for number in range(19)))
    assert "warning" not in (await home.sleep()).phases["extract"]
    say_facts(home, *(f"The weather by the river is grey as ever {'!' * number}" for number in range(20)))
    extract = (await home.sleep(LATER)).phases["extract"]
    assert extract["warning"] == "40 messages read, and nothing was saved from them"


async def test_f34_what_a_model_gives_that_cannot_be_used_is_a_warning(home: JournalHome) -> None:
    say_facts(home, "Hello there!")
    home.model.script = ["no list at all"]
    assert "warning" in (await home.sleep()).phases["extract"]


async def test_a_sleep_of_some_sessions_leaves_the_others(home: JournalHome) -> None:
    say_facts(home)
    say_facts(home, "I live in Rome.", session="peer:x:ann")
    await home.cycle().run(NOW, trigger="nap", sessions=["peer:x:ann"])
    assert (home.entry_texts(), home.entry_texts("peer:x:ann")) == ([], ["Told: I live in Rome."])


async def test_a_session_that_cannot_be_read_does_not_stop_the_others(home: JournalHome) -> None:
    say_facts(home, "I live in Rome.", session="peer:x:ann")
    say_facts(home)
    log = home.log.path("main")
    kept = log.read_bytes()
    log.write_bytes(kept.replace(b'{"v":1', b'{"v":?', 1))
    report = await home.sleep()
    assert (report.state, home.entry_texts("peer:x:ann")) == ("failed", ["Told: I live in Rome."])
    assert report.phases["extract"]["error"].startswith("main: ")
    log.write_bytes(kept)
    assert (await home.sleep(LATER)).state == "done"
    assert home.entry_texts() == LEARNED_TEXTS


async def test_each_phase_stands_alone(home: JournalHome) -> None:
    say_facts(home)
    done: list[tuple[str, str]] = []

    async def compact(session: str, trigger: str) -> CompactedSession | None:
        done.append((session, trigger))
        return CompactedSession(4, 1000, 300, 0.5, "full")

    broken = CrashingStore(home.conversation, "list_unjournaled_checkpoints", error=StoreError("The disk is full."))
    report = await home.sleep(conversation=broken, compact=compact)
    assert report.state == "failed"
    assert {name: phase["state"] for name, phase in report.phases.items()} == {
        "settle": "failed",
        "extract": "done",
        "compact": "done",
    }
    assert (done, home.entry_texts()) == ([("main", "sleep")], LEARNED_TEXTS)


@pytest.mark.parametrize("error", [StaleView(), CorruptStore("Broken."), ModelError("gone", kind="network")])
async def test_one_compaction_that_fails_does_not_stop_the_others(home: JournalHome, error: Exception) -> None:
    for session in ("main", "peer:x:ann", "peer:x:bob"):
        say_facts(home, "I own a boat.", session=session)

    async def compact(session: str, trigger: str) -> CompactedSession | None:
        if session == "peer:x:ann":
            raise error
        return CompactedSession(4, 1000, 300, 0.5, "full", (7,)) if session == "main" else None

    phase = (await home.sleep(compact=compact)).phases["compact"]
    assert (phase["state"], phase["read"], phase["written"], phase["cost_usd"]) == ("failed", 3, 1, 0.5)
    assert phase["error"] == f"peer:x:ann: {error}"
    assert phase["compacted"] == {
        "main": {
            "messages": 4,
            "tokens_before": 1000,
            "tokens_after": 300,
            "tier": "full",
            "cost_usd": 0.5,
            "checkpoints": [7],
        }
    }
