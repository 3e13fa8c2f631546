"""Compactions committed by the stores: compare-and-swap, contiguous coverage, nothing installed that breaks it; what is
shortened, what is covered, what is merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assistant.core.errors import AssistantError, CorruptStore, StaleView
from tests.support.compactions import (
    kept_copy,
    live_messages,
    plan_compaction,
    plan_masking,
    plan_merge,
    summary_message,
)
from tests.support.store_home import NOW, StoreHome, count_tokens


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path).open()
    yield home
    assert home.verify().problems == ()
    home.close()


def ranges(home: StoreHome) -> list[tuple[int, int]]:
    rows = home.db.rows("SELECT from_seq, to_seq FROM checkpoints ORDER BY checkpoint_num")
    return [(row["from_seq"], row["to_seq"]) for row in rows]


def states(home: StoreHome, session: str = "main") -> list[str]:
    return [one.state for one in home.conversation.checkpoints(session)]


def test_a_prefix_takes_the_place_of_what_it_covers(home: StoreHome) -> None:
    home.chat(4)
    done = home.conversation.commit_compaction(plan_compaction(home, 0, 5, summary_message()), NOW)
    assert home.view_contents() == ["[CONTEXT SUMMARY] earlier", "question 3", "answer 3"]
    assert home.conversation.load_view("main").messages[0].is_summary
    assert home.conversation.load_view("main").prefix_rev == 1
    assert (done.num, done.messages_compressed, done.summary, done.tier) == (1, 6, "summary", "drop")
    assert home.conversation.checkpoints("main") == [done]
    assert len(home.add_message()) == 8


def test_totals_follow(home: StoreHome) -> None:
    home.chat(4)
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message()), NOW)
    home.chat(2)
    view = home.conversation.load_view("main")
    assert view.tokens == sum(count_tokens(message) for message in view.messages)
    assert home.restart().conversation.load_view("main") == view


def test_sizes_are_kept_with_the_rows_and_extended_by_what_is_said(home: StoreHome) -> None:
    home.chat(3)
    home.conversation.load_view("main")
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message()), NOW)
    home.chat(2)
    view = home.conversation.load_view("main")
    assert [size[0] for size in view.sizes] == [count_tokens(message) for message in view.messages]
    assert tuple(map(sum, zip(*view.sizes, strict=True))) == (view.tokens, view.bytes, view.images)
    rows = home.db.rows("SELECT tokens, bytes, images FROM conversation_history WHERE message_id > 4 ORDER BY position")
    assert [tuple(row) for row in rows] == list(view.sizes[1:])


def test_a_summary_names_the_live_checkpoints(home: StoreHome) -> None:
    home.chat(6)
    one = home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message("one")), NOW)
    assert home.conversation.load_view("main").messages[0].metadata == {"type": "compaction", "checkpoints": [one.id]}
    two = home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message("two")), NOW)
    home.conversation.commit_compaction(plan_masking(home, 0), NOW)
    both = home.conversation.commit_compaction(plan_merge(home, [one, two], summary_message("both")), NOW)
    assert home.conversation.load_view("main").messages[0].metadata["checkpoints"] == [both.id]


def test_a_checkpoint_tells_how_it_was_made(home: StoreHome) -> None:
    home.chat(3)
    how = replace(
        plan_compaction(home, 0, 3, summary_message()), depth=2, model="small", attempts=3, cost_usd=None, trigger="nap"
    )
    done = home.conversation.commit_compaction(how, NOW)
    assert (done.depth, done.model, done.attempts, done.cost_usd, done.trigger) == (2, "small", 3, None, "nap")
    assert (done.scope, done.created_at, done.key_facts) == ("owner", NOW, {"identifiers": ["A-1"]})


def test_f11_ranges_of_later_checkpoints_follow_without_gap(home: StoreHome) -> None:
    home.chat(6)
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message("one")), NOW)
    home.chat(1)
    home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message("one and two")), NOW)
    assert ranges(home) == [(1, 4), (5, 6)]
    assert home.view_contents()[:2] == ["one and two", "question 3"]


def test_carried_copies_stand_outside_of_coverage(home: StoreHome) -> None:
    home.chat(3)
    kept = home.conversation.load_view("main").messages[0]
    copy = kept_copy(kept)
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message(), copy), NOW)
    assert home.view_contents() == ["[CONTEXT SUMMARY] earlier", "question 0", "question 2", "answer 2"]
    again = home.conversation.load_view("main").messages[1]
    home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message(), again), NOW)
    assert ranges(home) == [(1, 4), (5, 6)]


def test_a_compaction_on_an_old_revision_is_stale(home: StoreHome) -> None:
    home.chat(3)
    old = plan_compaction(home, 0, 1, summary_message())
    home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message("first")), NOW)
    with pytest.raises(StaleView):
        home.conversation.commit_compaction(old, NOW)
    assert home.view_contents()[0] == "first"


def test_f13_a_message_that_arrives_between_plan_and_commit_stays(home: StoreHome) -> None:
    home.chat(3)
    planned = plan_compaction(home, 0, 3, summary_message())
    home.chat(1)
    home.conversation.commit_compaction(planned, NOW)
    assert len(home.view_contents()) == 5


@pytest.mark.parametrize(
    "wrong",
    [
        "gap at the start",
        "unknown end",
        "live copy",
        "another session's message",
        "nothing to do",
        "a covered message again",
        "shortens what leaves",
        "shortens what is not there",
    ],
)
def test_f11_what_would_break_coverage_is_refused_and_changes_nothing(home: StoreHome, wrong: str) -> None:
    home.chat(4)
    home.say("hi", "ho", "peer:x")
    theirs = home.conversation.load_view("peer:x").messages[0].id or 0
    row = home.conversation.load_view("main").messages[0]
    home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message("first")), NOW)
    planned = {
        "gap at the start": plan_compaction(home, 2, 3, summary_message()),
        "unknown end": replace(plan_compaction(home, 0, 3, summary_message()), to_message_id=999),
        "live copy": plan_compaction(home, 0, 3, summary_message(), live_messages(home)[0]),
        "another session's message": replace(plan_compaction(home, 0, 3, summary_message()), to_message_id=theirs),
        "nothing to do": plan_compaction(home, 0, 3),
        "a covered message again": replace(plan_compaction(home, 0, 3, summary_message()), from_message_id=row.id or 0),
        "shortens what leaves": replace(
            plan_compaction(home, 0, 3, summary_message()), shortened=plan_masking(home, 1).shortened
        ),
        "shortens what is not there": replace(plan_masking(home, 1), shortened=(row,)),
    }[wrong]
    before = home.conversation.load_view("main")
    with pytest.raises(CorruptStore, match="Nothing was changed"):
        home.conversation.commit_compaction(planned, NOW)
    assert home.restart().conversation.load_view("main") == before
    assert states(home) == ["live"]


def test_a_view_that_lost_a_row_is_not_compacted(home: StoreHome) -> None:
    home.chat(4)
    planned = plan_compaction(home, 0, 5, summary_message())
    with home.db.write() as db:
        db.execute("DELETE FROM conversation_history WHERE message_id = 3")
    with pytest.raises(CorruptStore, match="lacks messages"):
        home.conversation.commit_compaction(planned, NOW)
    home.repair()


def test_undone_messages_need_no_row_to_be_covered(home: StoreHome) -> None:
    home.chat(4)
    home.conversation.hide_messages("main", [1, 2], NOW)
    home.conversation.hide_messages("main", [5, 6], NOW)
    home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message()), NOW)
    home.chat(1)
    home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message()), NOW)
    assert ranges(home) == [(1, 4), (5, 8)]


def test_undo_takes_carried_copies_along(home: StoreHome) -> None:
    home.chat(3)
    kept = home.conversation.load_view("main").messages[0]
    copy = kept_copy(kept)
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, copy), NOW)
    home.conversation.hide_messages("main", [kept.id or 0], NOW)
    assert home.view_contents() == ["question 2", "answer 2"]
    home.chat(1)
    assert home.view_contents() == ["question 2", "answer 2", "question 0", "answer 0"]


def test_numbers_count_per_session(home: StoreHome) -> None:
    for session in ("main", "peer:x"):
        home.chat(3, session)
        for number in (1, 2):
            assert (
                home.conversation.commit_compaction(
                    plan_compaction(home, 0, 1, summary_message(), session=session), NOW
                ).num
                == number
            )


def test_the_view_hash_holds_no_words(home: StoreHome) -> None:
    home.chat(2)
    home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message()), NOW)
    row = home.db.row("SELECT view_hash FROM checkpoints")
    assert row is not None
    assert len(row["view_hash"]) == 64


def test_two_compactions_of_one_plan_install_one(home: StoreHome) -> None:
    home.chat(3)
    planned = plan_compaction(home, 0, 1, summary_message())
    outcomes: list[str] = []
    for _ in range(2):
        try:
            home.conversation.commit_compaction(planned, NOW)
            outcomes.append("done")
        except AssistantError as error:
            outcomes.append(type(error).__name__)
    assert outcomes == ["done", "StaleView"]
    assert len(home.conversation.checkpoints("main")) == 1


# --------------------------------------------------------------------------------------------------------- shortening


def test_rows_that_are_only_shortened_make_a_masked_checkpoint_that_covers_nothing(home: StoreHome) -> None:
    home.chat(3)
    done = home.conversation.commit_compaction(plan_masking(home, 1, 3), NOW)
    assert (done.state, done.from_message_id, done.to_message_id) == ("masked", 2, 4)
    assert home.view_contents() == ["question 0", "[archived]", "question 1", "[archived]", "question 2", "answer 2"]
    assert home.add_message()[1] == "answer 0"
    view = home.conversation.load_view("main")
    assert (view.prefix_rev, view.tokens) == (1, sum(count_tokens(message) for message in view.messages))
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message()), NOW)
    assert states(home) == ["masked", "live"]


def test_one_compaction_shortens_and_covers(home: StoreHome) -> None:
    home.chat(4)
    both = replace(plan_compaction(home, 0, 3, summary_message()), shortened=plan_masking(home, 5).shortened)
    assert home.conversation.commit_compaction(both, NOW).state == "live"
    assert home.view_contents() == ["[CONTEXT SUMMARY] earlier", "question 2", "[archived]", "question 3", "answer 3"]
    view = home.conversation.load_view("main")
    assert view.tokens == sum(count_tokens(message) for message in view.messages)
    assert home.restart().conversation.load_view("main") == view


def test_shortening_names_messages_of_this_conversation_in_their_order(home: StoreHome) -> None:
    home.chat(2)
    home.say("hi", "ho", "peer:x")
    right = plan_masking(home, 0, 1)
    for wrong in (replace(right, from_message_id=2, to_message_id=1), replace(right, to_message_id=5)):
        with pytest.raises(CorruptStore, match="Nothing was changed"):
            home.conversation.commit_compaction(wrong, NOW)
    assert states(home) == []


# ------------------------------------------------------------------------------------------------------------ merging


def test_merging_replaces_the_prefix_alone_and_covers_what_it_absorbs(home: StoreHome) -> None:
    home.chat(6)
    first, second, third = (
        home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message(f"s{n}")), NOW)
        for n in range(3)
    )
    merged = home.conversation.commit_compaction(
        plan_merge(home, [first, second], summary_message("s0 and s1, s2")), NOW
    )
    assert (merged.from_message_id, merged.to_message_id, merged.depth) == (1, 4, 2)
    assert states(home) == ["absorbed", "absorbed", "live", "live"]
    assert home.view_contents()[0] == "s0 and s1, s2" and len(home.view_contents()) == 7
    last = home.conversation.commit_compaction(plan_merge(home, [merged, third], summary_message("all")), NOW)
    home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message("all, and one")), NOW)
    assert states(home) == ["absorbed", "absorbed", "absorbed", "absorbed", "live", "live"]
    assert (last.from_message_id, last.to_message_id) == (1, 6)


def test_a_checkpoint_that_none_has_taken_over_is_found(home: StoreHome) -> None:
    home.chat(3)
    done = [home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message()), NOW) for _ in range(2)]
    home.conversation.commit_compaction(plan_merge(home, done, summary_message("both")), NOW)
    with home.db.write() as db:
        db.execute("UPDATE checkpoints SET absorbs = '[2]' WHERE id = 3")
    (problem,) = home.verify().problems
    assert "checkpoint 1 was taken over by none" in problem.text
    with home.db.write() as db:
        db.execute("UPDATE checkpoints SET absorbs = '[1,2]' WHERE id = 3")


def test_a_new_range_takes_over_the_checkpoints_before_it(home: StoreHome) -> None:
    home.chat(6)
    first, second = (
        home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message(f"s{n}")), NOW)
        for n in range(2)
    )
    wider = replace(plan_compaction(home, 0, 1, summary_message("s0, s1 and more")), absorbed_ids=(first.id, second.id))
    done = home.conversation.commit_compaction(wider, NOW)
    assert (done.from_message_id, done.to_message_id) == (1, 6)
    assert states(home) == ["absorbed", "absorbed", "live"]
    assert ranges(home)[-1] == (1, 6)


@pytest.mark.parametrize("wrong", ["not in a row", "not live", "not before the range", "another start", "unknown"])
def test_f11_checkpoints_are_taken_over_in_a_row_or_not_at_all(home: StoreHome, wrong: str) -> None:
    home.chat(8)
    one, two, three = (
        home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message(f"s{n}")), NOW)
        for n in range(3)
    )
    masked = home.conversation.commit_compaction(plan_masking(home, 0), NOW)
    planned = {
        "not in a row": plan_merge(home, [one, three], summary_message()),
        "not live": replace(
            plan_merge(home, [two, three], summary_message()), absorbed_ids=(two.id, three.id, masked.id)
        ),
        "not before the range": replace(plan_compaction(home, 0, 1, summary_message()), absorbed_ids=(one.id, two.id)),
        "another start": replace(plan_merge(home, [one, two], summary_message()), from_message_id=2),
        "unknown": replace(plan_merge(home, [one, two], summary_message()), absorbed_ids=(one.id, two.id, 99)),
    }[wrong]
    before = home.conversation.load_view("main")
    with pytest.raises(CorruptStore, match="Nothing was changed"):
        home.conversation.commit_compaction(planned, NOW)
    assert home.restart().conversation.load_view("main") == before
    assert states(home) == ["live", "live", "live", "masked"]


def test_live_checkpoints_are_those_that_cover_the_messages_of_a_conversation(home: StoreHome) -> None:
    home.chat(6)
    one = home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message("one")), NOW)
    two = home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message("two")), NOW)
    assert home.conversation.live_checkpoints("main", 1) == [one, two]
    home.conversation.commit_compaction(plan_masking(home, 0), NOW)
    both = home.conversation.commit_compaction(plan_merge(home, [one, two], summary_message("both")), NOW)
    assert home.conversation.live_checkpoints("main", 1)[0] == both
    assert all(checkpoint.state == "live" for checkpoint in home.conversation.live_checkpoints("main", 1))
    assert home.conversation.live_checkpoints("main", 2) == []
