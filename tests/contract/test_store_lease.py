"""Compactions that take time: one at a time a session, none that stays half done, none that undoes another's work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from assistant.core.checkpoints import Checkpoint, CheckpointState
from assistant.core.errors import CorruptStore, StaleView
from tests.support.compactions import plan_compaction, summary_message
from tests.support.store_home import NOW, StoreHome

UNTIL = NOW + timedelta(minutes=5)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path).open()
    home.chat(4)
    yield home
    assert home.verify().problems == ()
    home.close()


def begin(home: StoreHome, now: datetime = NOW, session: str = "main") -> int | None:
    rev = home.conversation.load_view(session).prefix_rev
    until = now + timedelta(minutes=5)
    ids = plan_compaction(home, 0, 3, session=session)
    named = (ids.from_message_id, ids.to_message_id)
    return home.conversation.begin_compaction(session, rev, "nap", named, until, now)


def only(home: StoreHome) -> Checkpoint:
    (checkpoint,) = home.conversation.checkpoints("main")
    return checkpoint


def states(home: StoreHome) -> list[CheckpointState]:
    return [one.state for one in home.conversation.checkpoints("main")]


def leases(home: StoreHome) -> int:
    return len(home.db.rows("SELECT 1 FROM checkpoints WHERE state = 'started' AND lease_until IS NOT NULL"))


def test_a_compaction_is_noted_before_its_slow_part_and_committed_under_the_same_number(home: StoreHome) -> None:
    started = begin(home)
    note = only(home)
    assert (note.id, note.num, note.state, note.trigger) == (started, 1, "started", "nap")
    assert (note.from_message_id, note.to_message_id) == (1, 4)
    done = home.conversation.commit_compaction(
        replace(plan_compaction(home, 0, 3, summary_message()), started_id=started), NOW
    )
    assert (done.id, done.num, done.state) == (started, 1, "live")
    assert leases(home) == 0


def test_f14_a_second_compaction_of_a_session_is_refused_and_of_another_is_not(home: StoreHome) -> None:
    home.chat(2, "peer:x")
    assert begin(home) is not None
    assert begin(home) is None
    assert begin(home) is None
    assert begin(home, session="peer:x") is not None
    assert states(home) == ["started"]


def test_f14_a_lease_that_ran_out_is_taken_over_and_its_holder_comes_too_late(home: StoreHome) -> None:
    slow = begin(home)
    later = UNTIL + timedelta(seconds=1)
    quick = begin(home, later)
    assert quick is not None
    assert states(home) == ["failed", "started"]
    assert "ran out" in home.conversation.checkpoints("main")[0].note
    with pytest.raises(StaleView):
        home.conversation.commit_compaction(
            replace(plan_compaction(home, 0, 3, summary_message("slow")), started_id=slow), later
        )
    home.conversation.abandon_compaction(slow or 0, "too late")
    assert begin(home, later) is None
    home.conversation.commit_compaction(
        replace(plan_compaction(home, 0, 3, summary_message("quick")), started_id=quick), later
    )
    assert states(home) == ["failed", "live"]
    assert home.view_contents()[0] == "quick"


def test_a_lease_that_ran_out_and_was_not_taken_still_commits(home: StoreHome) -> None:
    started = begin(home)
    late = replace(plan_compaction(home, 0, 3, summary_message()), started_id=started)
    assert home.conversation.commit_compaction(late, UNTIL + timedelta(hours=1)).state == "live"


def test_f13_a_message_that_arrives_between_begin_and_commit_stays(home: StoreHome) -> None:
    planned = replace(plan_compaction(home, 0, 3, summary_message()), started_id=begin(home))
    home.say("meanwhile", "answered")
    home.conversation.commit_compaction(planned, NOW)
    assert home.view_contents()[-2:] == ["meanwhile", "answered"]
    assert len(home.view_contents()) == 7


def test_what_changed_before_the_commit_makes_it_stale(home: StoreHome) -> None:
    planned = replace(plan_compaction(home, 0, 3, summary_message()), started_id=begin(home))
    home.conversation.hide_messages("main", [7, 8], NOW)
    with pytest.raises(StaleView):
        home.conversation.commit_compaction(planned, NOW)
    home.conversation.abandon_compaction(planned.started_id or 0, "the view changed")
    assert only(home).note == "the view changed"


def test_one_without_a_lease_goes_first_and_the_one_begun_before_it_fails(home: StoreHome) -> None:
    """The floor does not wait for a summary; the summary was planned on what stood there before."""
    started = begin(home)
    home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message("floor")), NOW)
    planned = replace(plan_compaction(home, 0, 1, summary_message("late")), started_id=started)
    with pytest.raises(StaleView):
        home.conversation.commit_compaction(planned, NOW)
    home.conversation.abandon_compaction(started or 0, "overtaken")
    assert states(home) == ["failed", "live"]


def test_a_refused_commit_leaves_it_started_with_its_lease(home: StoreHome) -> None:
    started = begin(home)
    with pytest.raises(CorruptStore):
        home.conversation.commit_compaction(
            replace(plan_compaction(home, 2, 3, summary_message()), started_id=started), NOW
        )
    assert (states(home), leases(home)) == (["started"], 1)
    home.conversation.abandon_compaction(started or 0, "refused")
    assert leases(home) == 0


def test_one_that_was_given_up_frees_the_session(home: StoreHome) -> None:
    started = begin(home) or 0
    home.conversation.abandon_compaction(started, "the model refused")
    assert (only(home).state, only(home).note, leases(home)) == ("failed", "the model refused", 0)
    home.conversation.abandon_compaction(started, "again")
    assert only(home).note == "the model refused"
    assert begin(home) is not None
    assert [one.num for one in home.conversation.checkpoints("main")] == [1, 2]


def test_giving_up_what_was_committed_changes_nothing(home: StoreHome) -> None:
    started = begin(home)
    home.conversation.commit_compaction(
        replace(plan_compaction(home, 0, 3, summary_message()), started_id=started), NOW
    )
    home.conversation.abandon_compaction(started or 0, "late")
    assert (only(home).state, only(home).note) == ("live", "")


def test_nothing_is_begun_on_an_old_revision_or_over_strangers(home: StoreHome) -> None:
    home.say("hi", "ho", "peer:x")
    for ids, wrong in (((1, 10), CorruptStore), ((3, 1), CorruptStore), ((1, 99), CorruptStore)):
        with pytest.raises(wrong):
            home.conversation.begin_compaction("main", 0, "nap", ids, UNTIL, NOW)
    home.conversation.hide_messages("main", [7, 8], NOW)
    with pytest.raises(StaleView):
        home.conversation.begin_compaction("main", 0, "nap", (1, 4), UNTIL, NOW)
    assert states(home) == []


def test_f15_what_an_earlier_process_left_started_has_failed_after_a_start(home: StoreHome) -> None:
    begin(home)
    before = home.conversation.load_view("main")
    home.restart().conversation.recover_after_crash(NOW)
    assert (states(home), leases(home)) == (["failed"], 0)
    assert "cut off" in only(home).note
    assert home.conversation.load_view("main") == before
    assert begin(home) is not None


def test_a_process_that_looks_again_keeps_what_it_has_begun_itself(home: StoreHome) -> None:
    started = begin(home)
    home.conversation.recover_after_crash(NOW)
    assert states(home) == ["started"]
    assert (
        home.conversation.commit_compaction(
            replace(plan_compaction(home, 0, 3, summary_message()), started_id=started), NOW
        ).state
        == "live"
    )
