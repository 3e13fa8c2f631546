"""A branch goes on from a message of another conversation: the same words in view, its own log from there on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.core.errors import StoreError, UsageError
from assistant.core.messages import Message
from tests.contract.test_store_crash import crash_after
from tests.support.compactions import kept_copy, live_messages, plan_compaction, plan_masking, summary_message
from tests.support.store_home import NOW, StoreHome, tool_round

NOTE = "This conversation branched from main at message #{}."


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path / "home").open()
    home.chat(3)
    yield home
    assert home.verify().problems == ()
    home.close()


def test_a_branch_shows_what_was_said_up_to_the_message(home: StoreHome) -> None:
    before = home.log_bytes()
    info = home.conversation.branch_session("main", 4, NOW)
    assert (info.key, info.parent, info.scope, info.generation) == ("branch:1", "main", "owner", 1)
    assert (info.messages, info.view_messages, info.checkpoints) == (1, 5, 0)
    assert home.view_contents("branch:1") == ["question 0", "answer 0", "question 1", "answer 1", NOTE.format(4)]
    copies, parent = home.conversation.load_view("branch:1").messages[:4], home.conversation.load_view("main")
    for copy, message in zip(copies, parent.messages, strict=False):
        assert (copy.id, copy.role, copy.ts) == (None, message.role, message.ts)
        assert copy.metadata == {**message.metadata, "carried_from": message.id, "inherited": True}
    view = home.conversation.load_view("branch:1")
    assert view.sizes[:4] == parent.sizes[:4]
    assert view.tokens == sum(size[0] for size in view.sizes)
    assert home.log_bytes() == before
    (record,) = home.log.scan("branch:1")
    assert (record.kind, record.refs, record.role, record.trust) == ("branch", (4,), "system", "system")
    assert home.restart().conversation.load_view("branch:1") == view


def test_a_branch_that_the_disk_refused_to_index_is_made_when_it_is_asked_for_again(home: StoreHome) -> None:
    disk = home.db.connection
    disk.execute("CREATE TRIGGER refused BEFORE INSERT ON messages BEGIN SELECT RAISE(FAIL, 'no room'); END")
    with pytest.raises(StoreError):
        home.conversation.branch_session("main", 4, NOW)
    disk.execute("DROP TRIGGER refused")
    info = home.conversation.branch_session("main", 4, NOW)
    assert (info.key, info.messages) == ("branch:1", 1)
    assert len(list(home.log.scan("branch:1"))) == 1


def test_both_go_on_apart(home: StoreHome) -> None:
    home.conversation.branch_session("main", 4, NOW)
    home.say("there", "yes", "branch:1")
    home.say("here", "no")
    assert home.view_contents("branch:1")[-2:] == ["there", "yes"]
    assert home.view_contents()[-2:] == ["here", "no"]
    home.conversation.hide_messages("main", [1, 2], NOW)
    assert home.view_contents("branch:1")[:2] == ["question 0", "answer 0"]
    with pytest.raises(StoreError, match="Nothing was changed"):
        home.conversation.hide_messages("branch:1", [3], NOW)
    assert [info.parent for info in home.conversation.list_sessions() if info.key == "main"] == [None]


def test_numbers_count_in_the_home_and_branches_have_branches(home: StoreHome) -> None:
    home.conversation.branch_session("main", 2, NOW)
    home.say("there", "yes", "branch:1")
    home.conversation.branch_session("main", 4, NOW)
    last = live_messages(home, "branch:1")[-1].id or 0
    info = home.conversation.branch_session("branch:1", last, NOW)
    assert (info.key, info.parent) == ("branch:3", "branch:1")
    assert home.view_contents("branch:3")[:-1] == [*home.view_contents("branch:1")]
    carried = [row.metadata.get("carried_from") for row in home.conversation.load_view("branch:3").messages]
    assert carried[:2] == [1, 2] and carried[-2] == last
    for number in range(4, 12):
        assert home.conversation.branch_session("main", 2, NOW).key == f"branch:{number}"


def test_the_summary_and_kept_copies_come_along(home: StoreHome) -> None:
    first = live_messages(home)[0]
    done = home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message(), kept_copy(first)), NOW)
    home.conversation.branch_session("main", 6, NOW)
    rows = home.conversation.load_view("branch:1").messages
    assert [row.content for row in rows[:2]] == ["[CONTEXT SUMMARY] earlier", "question 0"]
    assert rows[0].metadata == {"type": "compaction", "checkpoints": [done.id], "inherited": True}
    assert rows[1].metadata["carried_from"] == first.id


def test_a_branch_is_compacted_and_taken_back_as_any_conversation(home: StoreHome) -> None:
    home.conversation.branch_session("main", 4, NOW)
    home.chat(2, "branch:1")
    before = home.conversation.load_view("branch:1")
    home.conversation.commit_compaction(plan_compaction(home, 0, 2, summary_message(), session="branch:1"), NOW)
    assert home.view_contents("branch:1") == ["[CONTEXT SUMMARY] earlier", "question 1", "answer 1"]
    home.conversation.commit_compaction(plan_masking(home, 0, session="branch:1"), NOW)
    assert home.verify().ok
    home.conversation.hide_messages("main", [1, 2], NOW)
    told = home.conversation.plan_uncompact("branch:1", home.conversation.checkpoints("branch:1")[0].id)
    assert home.conversation.undo_compaction(told, "branch:1", NOW).messages == before.messages


def test_a_pair_of_call_and_result_is_never_split(home: StoreHome) -> None:
    turn = home.begin_turn("look")
    call, result = home.conversation.record_messages(turn, tool_round(), NOW)
    with pytest.raises(UsageError, match="still being written"):
        home.conversation.branch_session("main", live_messages(home)[-3].id or 0, NOW)
    home.conversation.finish_turn(turn, "answered", Message("assistant", "seen"), [], NOW)
    with pytest.raises(UsageError, match=rf"branch at message #{result.id}\."):
        home.conversation.branch_session("main", call.id or 0, NOW)
    assert home.conversation.branch_session("main", result.id or 0, NOW).view_messages == 10


def test_a_branch_needs_a_message_in_view_of_the_owners_conversation(home: StoreHome) -> None:
    home.say("hi", "ho", "peer:x")
    theirs = live_messages(home, "peer:x")[0].id or 0
    home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message()), NOW)
    for session, message_id in (("main", 1), ("main", theirs), ("main", 99), ("peer:x", theirs)):
        with pytest.raises(UsageError, match="Nothing was changed"):
            home.conversation.branch_session(session, message_id, NOW)
    with pytest.raises(StoreError, match="no session"):
        home.conversation.branch_session("nowhere", 1, NOW)
    assert {info.key for info in home.conversation.list_sessions()} == {"main", "peer:x"}


def test_f33_a_record_that_says_so_shows_nothing_of_another_scope_or_in_a_conversation_under_way(
    home: StoreHome,
) -> None:
    home.accept("hi", "peer:x", scope="peer:x")
    for session in ("peer:x", "main"):
        before = home.view_contents(session)
        home.conversation.annotate(session, "branch", [2], "This conversation branched.", NOW)
        assert home.view_contents(session) == [*before, "This conversation branched."]


def test_a_branch_killed_between_log_and_index_is_there_after_a_start(home: StoreHome) -> None:
    crash_after(home, lambda: home.conversation.branch_session("main", 4, NOW))
    assert home.view_contents("branch:1") == ["question 0", "answer 0", "question 1", "answer 1", NOTE.format(4)]
    assert home.conversation.branch_session("main", 2, NOW).key == "branch:2"


@pytest.mark.parametrize("through", ["repair", "start"])
def test_a_lost_database_gives_branches_their_copies_again(home: StoreHome, through: str) -> None:
    home.conversation.branch_session("main", 4, NOW)
    home.say("there", "yes", "branch:1")
    home.conversation.branch_session("branch:1", live_messages(home, "branch:1")[-1].id or 0, NOW)
    shown = {key: home.view_contents(key) for key in ("main", "branch:1", "branch:2")}
    home.close()
    for path in home.path.glob("script.db*"):
        path.unlink()
    home.open()
    if through == "start":
        home.conversation.recover_after_crash(NOW)
    else:
        assert home.repair().ok
    assert {key: home.view_contents(key) for key in shown} == shown
    assert [info.parent for info in home.conversation.list_sessions() if info.key == "branch:2"] == ["branch:1"]


def test_a_copy_of_a_strange_message_is_found_in_a_branch_too(home: StoreHome) -> None:
    home.conversation.branch_session("main", 4, NOW)
    home.say("hi", "ho", "peer:x")
    theirs = live_messages(home, "peer:x")[0].id
    with home.db.write() as db:
        db.execute("UPDATE conversation_history SET carried_from = ? WHERE carried_from = 1", (theirs,))
    (problem,) = home.verify().problems
    assert "is unknown" in problem.text
    with home.db.write() as db:
        db.execute("UPDATE conversation_history SET carried_from = 1 WHERE carried_from = ?", (theirs,))
