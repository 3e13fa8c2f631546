"""Sleep cycles over a home's own stores: what is read, kept, cut off, tried again and reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assistant.core.errors import StoreError
from assistant.core.messages import Message
from assistant.core.model_api import ModelRequest
from assistant.core.sessions import GenerationEnd
from assistant.store.script.generations import StoredGenerations
from tests.support.compactions import plan_compaction, summary_message
from tests.support.imports import import_messages
from tests.support.sleep_home import (
    FACTS,
    LATER,
    LEARNED_TEXTS,
    NETWORK_ERROR,
    JournalHome,
    learn_every_line,
    memories_answer,
    say_facts,
)
from tests.support.store_home import NOW, CrashingStore, SimulatedCrash, blank_words, reply_item, tool_round


@pytest.fixture
def home(tmp_path: Path) -> Iterator[JournalHome]:
    home = JournalHome(tmp_path).open()
    yield home
    assert home.verify().problems == ()
    home.close()


# --------------------------------------------------------------------------------------------------- nothing is skipped


@pytest.mark.parametrize(
    "trigger", ["sleep", "nap", "emergency", "model", "overflow", "messages", "manual", "switch", "floor"]
)
async def test_f28_what_any_compaction_took_out_of_view_is_read_later(home: JournalHome, trigger: str) -> None:
    say_facts(home)
    home.conversation.commit_compaction(replace(plan_compaction(home, 0, 5, summary_message()), trigger=trigger), NOW)
    assert (home.unread_count(), home.view_contents()[1:]) == (6, [FACTS[3], "Noted."])
    report = await home.sleep()
    assert home.entry_texts()[1:] == LEARNED_TEXTS
    assert home.unread_count() == 0
    assert (report.state, report.phases["extract"]["read"], report.phases["extract"]["written"]) == ("done", 8, 4)


async def test_f28_what_an_import_put_under_a_checkpoint_is_read_later(home: JournalHome) -> None:
    words = [Message("user" if n % 2 == 0 else "assistant", f"I own boat {n}.") for n in range(200)]
    import_messages(home.conversation, "main", "owner", words, NOW, keep=10)
    waiting = home.unread_count()
    assert waiting > 100
    await home.sleep()
    assert home.entry_texts() == [f"Told: I own boat {n}." for n in range(0, 200, 2)]
    assert home.unread_count() == 0


Cut = Callable[[JournalHome], dict[str, Any]]


def conversation_dies(method: str, **how: Any) -> Cut:
    return lambda home: {"conversation": CrashingStore(home.conversation, method, **how)}


def journal_dies(method: str, **how: Any) -> Cut:
    return lambda home: {"journal": CrashingStore(home.journal, method, **how)}


def model_dies(home: JournalHome) -> dict[str, Any]:
    def die(_: ModelRequest) -> str:
        home.model.script = [learn_every_line]
        raise SimulatedCrash

    home.model.script = [learn_every_line, die]
    return {}


CUTS: dict[str, Cut] = {
    "before the checkpoint's entries": journal_dies("add"),
    "after the checkpoint's entries": journal_dies("add", after=True),
    "before the checkpoint is marked": conversation_dies("mark_journaled"),
    "after the checkpoint is marked": conversation_dies("mark_journaled", after=True),
    "before the first batch": journal_dies("read_position"),
    "before the model is asked": journal_dies("entries", call=2),
    "while the model reads": model_dies,
    "before a batch is kept": journal_dies("add", call=3),
    "after a batch is kept": journal_dies("add", call=3, after=True),
    "before it is noted what was read": conversation_dies("mark_extracted", call=2),
    "after it is noted what was read": conversation_dies("mark_extracted", call=2, after=True),
    "before the report": journal_dies("save_cycle", call=4),
}


@pytest.mark.parametrize("cut", CUTS)
async def test_f15_f28_killed_anywhere_and_run_again_it_writes_everything_once(home: JournalHome, cut: str) -> None:
    home.batch_tokens = 40
    say_facts(home)
    facts = replace(plan_compaction(home, 0, 5, summary_message()), key_facts={"memories": ["Likes boats.", "Is 41."]})
    home.conversation.commit_compaction(facts, NOW)
    with pytest.raises(SimulatedCrash):
        await home.sleep(**CUTS[cut](home))
    home.restart()
    assert [cycle.state for cycle in home.journal.list_cycles()] == ["interrupted"]
    await home.sleep(LATER)
    assert home.entry_texts() == ["summary", "Likes boats.", "Is 41.", *LEARNED_TEXTS]
    assert (home.unread_count(), home.conversation.list_unjournaled_checkpoints()) == (0, [])
    asked = len(home.model.requests)
    assert (await home.sleep(LATER)).phases["extract"]["read"] == 0
    assert len(home.model.requests) == asked


async def test_f28_what_was_read_before_a_crash_waits_no_longer_without_a_new_message(home: JournalHome) -> None:
    """The crash came between the two files, and nobody says anything after it."""
    say_facts(home)
    home.conversation.commit_compaction(plan_compaction(home, 0, 5, summary_message()), NOW)
    with pytest.raises(SimulatedCrash):
        await home.sleep(conversation=CrashingStore(home.conversation, "mark_extracted"))
    assert home.unread_count() == 6
    asked = len(home.model.requests)
    await home.restart().sleep(LATER)
    assert (home.unread_count(), len(home.model.requests)) == (0, asked)


async def test_f28_what_was_read_before_a_crash_does_not_wait_once_it_is_compacted(home: JournalHome) -> None:
    """A sleep came between the crash and the compaction, and had nothing left to read."""
    say_facts(home)
    with pytest.raises(SimulatedCrash):
        await home.sleep(conversation=CrashingStore(home.conversation, "mark_extracted"))
    await home.restart().sleep(LATER)
    home.conversation.commit_compaction(plan_compaction(home, 0, 5, summary_message()), NOW)
    assert home.unread_count() == 0


async def test_f28_a_journal_that_cannot_be_written_is_read_for_again(home: JournalHome) -> None:
    say_facts(home)
    full = CrashingStore(home.journal, "add", error=StoreError("The disk is full."))
    report = await home.sleep(journal=full)
    assert (report.state, report.phases["extract"]["error"]) == ("failed", "The disk is full.")
    assert home.breakers.get("extraction").failures == 1
    assert (home.entry_texts(), home.journal.read_position("extract", "main", 1)) == ([], 0)
    assert (await home.sleep(LATER)).state == "done"
    assert home.entry_texts() == LEARNED_TEXTS


async def test_f31_a_session_is_read_to_its_end_before_a_reset(home: JournalHome) -> None:
    say_facts(home)
    say_facts(home, "I own a boat.", session="peer:x:ann")
    told = await home.cycle().extract_session("main", NOW)
    assert home.entry_texts() == LEARNED_TEXTS
    assert (told["waiting"], home.entry_texts("peer:x:ann")) == (0, [])


async def test_f31_what_was_read_before_a_crash_does_not_wait_again_after_a_reset(home: JournalHome) -> None:
    say_facts(home)
    dying = CrashingStore(home.conversation, "mark_extracted")
    with pytest.raises(SimulatedCrash):
        await home.cycle(conversation=dying).extract_session("main", NOW)
    await home.cycle().extract_session("main", NOW)
    seq = StoredGenerations(home.db, home.log).last_seq("main")
    home.conversation.begin_next_generation(GenerationEnd("main", 1, seq, "It ended.", "manual"), NOW)
    assert home.conversation.list_unread_generations() == []


async def test_f31_what_no_model_could_read_before_a_reset_is_read_at_the_next_sleep(home: JournalHome) -> None:
    say_facts(home)
    home.model.script = [NETWORK_ERROR]
    told = await home.cycle().extract_session("main", NOW)
    assert (home.entry_texts(), told["waiting"]) == ([], 1)
    seq = StoredGenerations(home.db, home.log).last_seq("main")
    home.conversation.begin_next_generation(GenerationEnd("main", 1, seq, "It ended.", "manual"), NOW)
    home.model.script = [learn_every_line]
    report = await home.sleep()
    assert (report.state, home.entry_texts()) == ("done", LEARNED_TEXTS)
    assert home.conversation.list_unread_generations() == []


# ----------------------------------------------------------------------------------------------------------- no rubbish


async def test_f29_recalled_words_tool_output_and_forgotten_ones_are_not_learned(home: JournalHome) -> None:
    recalled = "<memory>My passport number is X1234567.</memory>"
    turn = home.conversation.begin_turn(home.inbox_item("I live in Oslo."), recalled, NOW)
    home.conversation.record_messages(turn, tool_round(result="I own a castle."), NOW)
    home.conversation.finish_turn(turn, "answered", Message("assistant", "Nice."), [reply_item(turn, "Nice.")], NOW)
    home.say("I ate a horse.", "Really?")
    whole = home.log_bytes()
    blank_words(home, turn.items[0].message_id + 4, "I ate a horse.")
    await home.sleep()
    words = home.model.requests[0].messages[0].content
    assert home.entry_texts() == ["Told: I live in Oslo."]
    assert not any(junk in words for junk in ("X1234567", "castle", "horse"))
    home.log.path("main").write_bytes(whole)


async def test_f29_hardly_anything_of_a_day_of_chat_is_kept_by_rules(home: JournalHome) -> None:
    chat = ("hi", "How are you?", "thanks a lot", "ok sounds good", "What is a monad?", "I see, that makes sense.")
    home.model.provider = "offline"
    for _ in range(5):
        say_facts(home, *chat)
    say_facts(home, "I live in Oslo.")
    await home.sleep()
    assert (home.entry_texts(), home.model.requests) == (["I live in Oslo."], [])


async def test_f29_what_is_known_is_told_to_the_model_but_for_whole_summaries(home: JournalHome) -> None:
    say_facts(home)
    told = replace(
        plan_compaction(home, 0, 5, summary_message()),
        summary="A long summary.",
        key_facts={"memories": ["Likes boats."]},
    )
    home.conversation.commit_compaction(told, NOW)
    home.model.script = [memories_answer(("likes boats.", 1), ("Has a cat.", 3))]
    report = await home.sleep()
    words = home.model.requests[0].messages[0].content
    assert "- Likes boats." in words and "A long summary." not in words
    assert home.entry_texts() == ["A long summary.", "Likes boats.", "Has a cat."]
    assert report.phases["extract"]["rejected"] == ["known already"]


async def test_f33_every_session_is_read_for_its_own_scope(home: JournalHome) -> None:
    say_facts(home, "I live in Oslo.")
    say_facts(home, "I live in Rome.", session="peer:x:ann")
    await home.sleep()
    assert home.entry_texts() == ["Told: I live in Oslo."]
    assert home.entry_texts("peer:x:ann") == ["Told: I live in Rome."]
    assert all(
        "Oslo" not in str(request.messages) or "Rome" not in str(request.messages) for request in home.model.requests
    )
