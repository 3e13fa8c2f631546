"""The long conversation of `tests/study`, a small one of it: that the harness measures what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assistant.runtime.recall import HISTORY_MARK
from assistant.runtime.turn_context import OPEN_TASKS_HEADING
from tests.study.answerer import Answerer, lossy_summary
from tests.study.asked import place_of, purpose_of
from tests.study.baselines import SlidingWindow, replayed
from tests.study.conversation import BEGUN, LEAST_GAP, StudyTurn, written
from tests.study.facts import MOST_SHARED, planted, shared_words
from tests.study.life import run_study
from tests.study.measure import cached_share, fullest, usd

WINDOW = 12_000


def _body(*texts: str, system: str = "Be kind.") -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    return {"system": [{"type": "text", "text": system}], "messages": [{"role": "user", "content": content}]}


async def test_a_small_conversation_is_held_counted_and_billed(tmp_path: Path) -> None:
    conversation = written(60, 6, seed=7)
    held = await run_study(conversation, tmp_path, window=WINDOW, keep=2)
    assert held.refused == ()
    assert held.failed == ()
    assert {one.turn for one in held.seen} == set(range(60))
    assert all(one.usd > 0 for one in held.seen)
    assert 0 < fullest(held.seen, "chat", WINDOW, held.reserve) < 1
    assert 0 < cached_share(held.seen) < 1
    assert len(held.outcomes.answered) + len(held.outcomes.missed) == 6
    assert any(one.state == "live" for one in held.checkpoints)
    assert 0 < sum(one.first for one in held.seen) <= len(held.checkpoints)
    room = WINDOW - held.reserve
    halving, creeping = (
        replayed(conversation, held.outcomes, held.frame, window)
        for window in (SlidingWindow.halving(room), SlidingWindow.creeping(room))
    )
    assert max(one.usage.prompt for one in (*halving, *creeping)) <= room
    assert 0 < sum(one.first for one in halving) < sum(one.first for one in creeping)
    assert 0 < usd(halving) < usd(creeping)


def test_every_question_comes_long_after_its_fact_and_shares_few_words_with_it() -> None:
    conversation = written(2_000, 200, seed=7)
    said = {turn.fact: turn.number for turn in conversation.turns if turn.fact and turn.kind == "fact"}
    asked = {turn.fact: turn.number for turn in conversation.turns if turn.fact and turn.kind == "question"}
    assert said.keys() == asked.keys() == set(conversation.facts)
    assert min(asked[fact] - said[fact] for fact in said) >= LEAST_GAP
    assert max(len(shared_words(fact.said, fact.question)) for fact in said) <= MOST_SHARED
    told = "\n".join(f"{turn.text}\n{turn.reply}" for turn in conversation.turns)
    assert all(told.count(fact.value) == 2 for fact in said), "in the fact and in the answer, nowhere else"
    assert written(2_000, 200, seed=7) == conversation


def test_shared_words_are_counted_whatever_their_endings() -> None:
    assert shared_words("The paintings of Ada", "Who was painting for Ada?") == {"paint", "ada"}


def test_where_a_value_stands_in_a_request_is_told_apart() -> None:
    assert place_of("K-1", _body("nothing", system="It says K-1.")) == "summary"
    assert place_of("K-1", _body("I said K-1.", "and now?")) == "view"
    assert place_of("K-1", _body(f"{HISTORY_MARK} K-1", "and now?")) == "recalled"
    assert place_of("K-1", _body("and now?")) is None
    result = [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "found K-1"}]}]
    searched = {**_body(), "messages": [{"role": "user", "content": result}]}
    assert place_of("K-1", searched) == "searched"


def test_the_model_ticks_off_what_it_was_told_is_open_and_nothing_else() -> None:
    turn = StudyTurn(9, BEGUN, "done", "I did call Ada.", "Good.", task="call Ada")
    answerer = Answerer([], keep=3)
    answerer.turn = turn
    told = answerer(
        _body(f"{OPEN_TASKS_HEADING}\n- #2: Book it\n- #3: Please remind me to call Ada.", "I did call Ada.")
    )
    assert [(call.name, call.arguments) for call in told.calls] == [("close_requests", {"ids": [3], "state": "done"})]
    assert answerer(_body("I did call Ada.")).text == "Good."
    assert answerer.outcomes.closed == 1


def test_a_lossy_summary_keeps_as_many_facts_as_it_may_and_the_same_ones_each_time() -> None:
    facts = planted(12, seed=3)
    asked = _body("\n".join(fact.said for fact in facts), system="Answer with <summary>\n</summary>")
    assert purpose_of(asked) == "summary"
    text = lossy_summary(asked, facts, 3).text
    assert sum(fact.value in text for fact in facts) == 3
    assert lossy_summary(asked, facts, 3).text == text
