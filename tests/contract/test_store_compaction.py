"""Compactions committed by the stores: compare-and-swap, contiguous coverage, nothing installed that breaks it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assistant.compactions import Compaction
from assistant.errors import AssistantError, CorruptStore, StaleView
from assistant.messages import Message
from tests.store_home import NOW, StoreHome, count


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path).open()
    yield home
    assert home.verify().problems == ()
    home.close()


def plan(home: StoreHome, first: int, last: int, *prefix: Message, session: str = "main") -> Compaction:
    """A compaction of the live rows `first` to `last` (inclusive indexes among them)."""
    view = home.conversation.view(session)
    live = [message for message in view.messages if message.id and "carried_from" not in message.metadata]
    of_it = live[first : last + 1]
    return Compaction(
        session, view.prefix_rev, "test", "drop", of_it[0].id or 0, of_it[-1].id or 0, len(of_it), prefix, "summary",
        sum(count(message) for message in of_it), sum(count(message) for message in prefix), {"identifiers": ["A-1"]},
    )  # fmt: skip


def summary(text: str = "[CONTEXT SUMMARY] earlier") -> Message:
    return Message("system", text, metadata={"type": "compaction"})


def ranges(home: StoreHome) -> list[tuple[int, int]]:
    rows = home.db.rows("SELECT from_seq, to_seq FROM checkpoints ORDER BY checkpoint_num")
    return [(row["from_seq"], row["to_seq"]) for row in rows]


def test_a_prefix_takes_the_place_of_what_it_covers(home: StoreHome) -> None:
    home.chat(4)
    done = home.conversation.compact(plan(home, 0, 5, summary()), NOW)
    assert home.shown() == ["[CONTEXT SUMMARY] earlier", "question 3", "answer 3"]
    assert home.conversation.view("main").messages[0].is_summary
    assert home.conversation.view("main").prefix_rev == 1
    assert (done.num, done.messages_compressed, done.summary, done.tier) == (1, 6, "summary", "drop")
    assert home.conversation.checkpoints("main") == [done]
    assert len(home.said()) == 8


def test_totals_follow(home: StoreHome) -> None:
    home.chat(4)
    home.conversation.compact(plan(home, 0, 3, summary()), NOW)
    home.chat(2)
    view = home.conversation.view("main")
    assert view.tokens == sum(count(message) for message in view.messages)
    assert home.restart().conversation.view("main") == view


def test_ranges_of_later_checkpoints_follow_without_gap(home: StoreHome) -> None:
    home.chat(6)
    home.conversation.compact(plan(home, 0, 3, summary("one")), NOW)
    home.chat(1)
    home.conversation.compact(plan(home, 0, 1, summary("one and two")), NOW)
    assert ranges(home) == [(1, 4), (5, 6)]
    assert home.shown()[:2] == ["one and two", "question 3"]


def test_carried_copies_stand_outside_of_coverage(home: StoreHome) -> None:
    home.chat(3)
    kept = home.conversation.view("main").messages[0]
    copy = replace(kept, metadata={**kept.metadata, "carried_from": kept.id})
    home.conversation.compact(plan(home, 0, 3, summary(), copy), NOW)
    assert home.shown() == ["[CONTEXT SUMMARY] earlier", "question 0", "question 2", "answer 2"]
    again = home.conversation.view("main").messages[1]
    home.conversation.compact(plan(home, 0, 1, summary(), again), NOW)
    assert ranges(home) == [(1, 4), (5, 6)]


def test_a_compaction_on_an_old_revision_is_stale(home: StoreHome) -> None:
    home.chat(3)
    old = plan(home, 0, 1, summary())
    home.conversation.compact(plan(home, 0, 1, summary("first")), NOW)
    with pytest.raises(StaleView):
        home.conversation.compact(old, NOW)
    assert home.shown()[0] == "first"


def test_messages_that_arrive_meanwhile_stay(home: StoreHome) -> None:
    home.chat(3)
    planned = plan(home, 0, 3, summary())
    home.chat(1)
    home.conversation.compact(planned, NOW)
    assert len(home.shown()) == 5


@pytest.mark.parametrize("wrong", ["gap at the start", "unknown end", "live copy", "another session's message"])
def test_what_would_break_coverage_is_refused_and_changes_nothing(home: StoreHome, wrong: str) -> None:
    home.chat(4)
    home.say("hi", "ho", "peer:x")
    theirs = home.conversation.view("peer:x").messages[0].id or 0
    live = home.conversation.view("main").messages[0]
    planned = {
        "gap at the start": plan(home, 2, 3, summary()),
        "unknown end": replace(plan(home, 0, 3, summary()), to_message_id=999),
        "live copy": plan(home, 0, 3, summary(), live),
        "another session's message": replace(plan(home, 0, 3, summary()), to_message_id=theirs),
    }[wrong]
    before = home.conversation.view("main")
    with pytest.raises(CorruptStore, match="Nothing was changed"):
        home.conversation.compact(planned, NOW)
    assert home.restart().conversation.view("main") == before
    assert home.conversation.checkpoints("main") == []


def test_a_view_that_lost_a_row_is_not_compacted(home: StoreHome) -> None:
    home.chat(4)
    planned = plan(home, 0, 5, summary())
    with home.db.write() as db:
        db.execute("DELETE FROM conversation_history WHERE message_id = 3")
    with pytest.raises(CorruptStore, match="lacks messages"):
        home.conversation.compact(planned, NOW)
    home.repair()


def test_undone_messages_need_no_row_to_be_covered(home: StoreHome) -> None:
    home.chat(4)
    home.conversation.undo("main", [1, 2], NOW)
    home.conversation.undo("main", [5, 6], NOW)
    home.conversation.compact(plan(home, 0, 1, summary()), NOW)
    home.chat(1)
    home.conversation.compact(plan(home, 0, 1, summary()), NOW)
    assert ranges(home) == [(1, 4), (5, 8)]


def test_undo_takes_carried_copies_along(home: StoreHome) -> None:
    home.chat(3)
    kept = home.conversation.view("main").messages[0]
    copy = replace(kept, metadata={**kept.metadata, "carried_from": kept.id})
    home.conversation.compact(plan(home, 0, 3, copy), NOW)
    home.conversation.undo("main", [kept.id or 0], NOW)
    assert home.shown() == ["question 2", "answer 2"]


def test_numbers_count_per_session(home: StoreHome) -> None:
    for session in ("main", "peer:x"):
        home.chat(3, session)
        for number in (1, 2):
            assert home.conversation.compact(plan(home, 0, 1, session=session), NOW).num == number


def test_the_view_hash_holds_no_words(home: StoreHome) -> None:
    home.chat(2)
    home.conversation.compact(plan(home, 0, 1, summary()), NOW)
    row = home.db.row("SELECT view_hash FROM checkpoints")
    assert row is not None
    assert len(row["view_hash"]) == 64


def test_two_compactions_of_one_plan_install_one(home: StoreHome) -> None:
    home.chat(3)
    planned = plan(home, 0, 1, summary())
    outcomes: list[str] = []
    for _ in range(2):
        try:
            home.conversation.compact(planned, NOW)
            outcomes.append("done")
        except AssistantError as error:
            outcomes.append(type(error).__name__)
    assert outcomes == ["done", "StaleView"]
    assert len(home.conversation.checkpoints("main")) == 1
