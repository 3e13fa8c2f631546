"""What people asked for: opened when it is taken up, closed by its answer or by somebody's word."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.checkpoints import RequestKind, UserRequest
from assistant.core.errors import UsageError
from assistant.core.jobs import DueSlot, NewJob, OneTimeSpec
from assistant.core.messages import Message
from assistant.store.rows import FORGOTTEN_PLACEHOLDER
from assistant.store.script.jobs import Jobs
from assistant.store.script.turns import UserRequests
from tests.contract.test_store_crash import crash_after
from tests.support.imports import import_messages
from tests.support.store_home import NOW, StoreHome, blank_words, reply_item, tool_round

LATER = NOW + timedelta(hours=1)


def asked(text: str) -> RequestKind:
    return RequestKind.REMINDER if text.startswith("remind") else RequestKind(text.startswith("please"))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path / "home", asked=asked).open()
    yield home
    assert home.verify().problems == ()
    home.close()


def ledger(home: StoreHome) -> UserRequests:
    return UserRequests(home.db, home.log)


def only(home: StoreHome) -> UserRequest:
    (request,) = ledger(home).list_requests("owner")
    return request


def test_f18_every_message_of_a_person_is_a_request_until_it_is_answered(home: StoreHome) -> None:
    turn = home.begin_turn("what is it?")
    opened = only(home)
    assert (opened.text, opened.state, opened.task, opened.opened_at) == ("what is it?", "open", False, NOW)
    assert (opened.session, opened.scope, opened.answered_by, opened.closed_by) == ("main", "owner", None, "")
    assert ledger(home).list_open("main") == [opened]
    reply = home.conversation.finish_turn(turn, "answered", Message("assistant", "a test"), [], LATER)
    done = only(home)
    assert reply is not None
    assert (done.state, done.closed_by, done.cites, done.answered_by) == ("done", "answer", (reply.id,), reply.id)
    assert done.closed_at == LATER
    assert ledger(home).list_open("main") == []


def test_f18_a_task_stays_open_after_its_answer(home: StoreHome) -> None:
    home.say("please paint the fence", "I will")
    task = only(home)
    assert (task.task, task.state, task.answered_by, task.cites) == (True, "open", 2, ())
    (done,) = ledger(home).close_requests("main", [1], "done", "model", [2], LATER)
    assert (done.state, done.closed_by, done.cites, done.closed_at) == ("done", "model", (2,), LATER)


@pytest.mark.parametrize("state", ["failed", "aborted"])
def test_f18_what_was_not_answered_stays_open(home: StoreHome, state: str) -> None:
    turn = home.begin_turn("what is it?")
    ended = "failed" if state == "failed" else "aborted"
    home.conversation.finish_turn(turn, ended, Message("assistant", "<turn-aborted>"), [], NOW)
    assert (only(home).state, only(home).answered_by) == ("open", None)


def test_messages_that_steer_a_turn_are_answered_with_it(home: StoreHome) -> None:
    turn = home.begin_turn("look")
    home.conversation.record_messages(turn, tool_round(), NOW)
    home.conversation.join_turn(turn, home.inbox_item("please look there too"), NOW)
    quickly = home.inbox_item("quickly")
    for _ in range(2):
        home.conversation.join_turn(turn, quickly, NOW)
    assert [one.text for one in ledger(home).list_open("main")] == ["quickly", "please look there too", "look"]
    home.conversation.finish_turn(turn, "answered", Message("assistant", "seen"), [], NOW)
    assert [one.text for one in ledger(home).list_open("main")] == ["please look there too"]
    assert {one.answered_by for one in ledger(home).list_requests("owner")} == {6}


@pytest.mark.parametrize(
    ("reminders", "still_open"), [(0, ["remind me too", "remind me"]), (1, ["remind me too", "remind me"]), (2, [])]
)
def test_f18_what_asks_for_reminders_alone_is_done_where_the_turn_set_as_many(
    home: StoreHome, reminders: int, still_open: list[str]
) -> None:
    jobs = Jobs(home.db, home.conversation.appender)
    turn = home.begin_turn("remind me")
    home.conversation.join_turn(turn, home.inbox_item("remind me too"), NOW)
    home.conversation.join_turn(turn, home.inbox_item("please paint the fence"), NOW)
    found = jobs.origin_of_turn(turn.id)
    assert found is not None
    for number in range(reminders):
        spec, due = OneTimeSpec(LATER), DueSlot(LATER, "2026-11-20T12:00")
        jobs.add(NewJob(f"k{number}", "reminder", found[0], "x", spec, "UTC", "once", due, made_by=found[1]), 9, NOW)
    reply = home.conversation.finish_turn(turn, "answered", Message("assistant", "set"), [], NOW)
    assert reply is not None
    assert [one.text for one in ledger(home).list_open("main")] == ["please paint the fence", *still_open]
    done = [one for one in ledger(home).list_requests("owner") if one.state == "done"]
    assert {(one.closed_by, one.cites, one.task) for one in done} <= {("model", (reply.id,), True)}


def test_f18_closing_is_told_once_and_can_be_taken_back(home: StoreHome) -> None:
    home.say("please paint the fence", "I will")
    book = ledger(home)
    first = book.close_requests("main", [1, 1], "superseded", "user", [1], NOW)
    assert book.close_requests("main", [1], "superseded", "model", [2], LATER) == first
    (again,) = book.close_requests("main", [1], "open", "user", [], LATER)
    assert (again.state, again.closed_by, again.cites, again.closed_at) == ("open", "", (), None)
    (done,) = book.close_requests("main", [1], "done", "user", [], LATER)
    assert (done.state, done.closed_at) == ("done", LATER)


def test_closing_what_is_no_request_changes_nothing(home: StoreHome) -> None:
    home.say("please paint the fence", "I will")
    home.say("please do not", "no", "peer:x")
    for wrong in ([1, 2], [1, 99], [1, 3]):
        with pytest.raises(UsageError, match=rf"request #{wrong[1]} .*Nothing was changed"):
            ledger(home).close_requests("main", wrong, "done", "model", [], NOW)
    assert [one.state for one in ledger(home).list_open("main")] == ["open"]


def test_f18_a_message_that_is_taken_back_is_wanted_no_longer(home: StoreHome) -> None:
    home.say("please paint the fence", "I will")
    undone = home.conversation.hide_messages("main", [1, 2], LATER)
    request = only(home)
    assert (request.state, request.closed_by, request.cites) == ("superseded", "user", (undone.id,))
    assert request.closed_at == LATER


def test_a_request_is_of_its_scope_and_session(home: StoreHome) -> None:
    home.begin_turn("mine")
    theirs = home.conversation.inbox_item(home.accept("theirs", "peer:x", scope="peer:x").inbox_id)
    assert theirs is not None
    home.conversation.begin_turn(theirs, "", NOW)
    assert [one.text for one in ledger(home).list_requests("owner")] == ["mine"]
    assert [one.text for one in ledger(home).list_requests("peer:x")] == ["theirs"]
    assert [one.text for one in ledger(home).list_open("peer:x")] == ["theirs"]


def test_the_newest_come_first_and_no_more_than_asked(home: StoreHome) -> None:
    for number in range(5):
        home.say(f"please {number}", "yes")
    assert [one.text for one in ledger(home).list_open("main", limit=2)] == ["please 4", "please 3"]
    assert [one.text for one in ledger(home).list_requests("owner", limit=3)] == ["please 4", "please 3", "please 2"]


def test_open_tasks_are_found_however_many_questions_wait_after_them(home: StoreHome) -> None:
    home.say("please paint the fence", "yes")
    for number in range(12):
        home.begin_turn(f"what about {number}?")
        home.conversation.recover_after_crash(NOW)
    assert len(ledger(home).list_open("main")) == 13
    assert [one.text for one in ledger(home).list_open_tasks("main", limit=9)] == ["please paint the fence"]


def test_forgotten_words_are_not_shown(home: StoreHome) -> None:
    home.say("please paint the fence", "I will")
    requests = ledger(home)
    assert [one.text for one in requests.list_open("main")] == ["please paint the fence"]
    blank_words(home, 1, "please paint the fence")
    home.conversation.annotate("main", "redaction", [1], "", NOW)
    assert [one.text for one in requests.list_open("main")] == [FORGOTTEN_PLACEHOLDER]


def test_what_was_imported_asks_for_nothing(home: StoreHome) -> None:
    import_messages(home.conversation, "main", "owner", [Message("user", "please?")], NOW)
    assert ledger(home).list_requests("owner") == []


def test_f18_a_crash_between_log_and_index_opens_one_request(home: StoreHome) -> None:
    item = home.inbox_item("please do it")
    crash_after(home, lambda: home.conversation.begin_turn(item, "", NOW))
    assert ledger(home).list_requests("owner") == []
    turn = home.conversation.begin_turn(home.conversation.list_accepted("main")[0], "", NOW)
    home.conversation.begin_turn(item, "", NOW)
    assert [one.text for one in ledger(home).list_open("main")] == ["please do it"]
    reply = Message("assistant", "done")
    crash_after(home, lambda: home.conversation.finish_turn(turn, "answered", reply, [], NOW))
    said = home.conversation.turn_messages(turn)[-1]
    home.conversation.finish_turn(turn, "answered", said, [reply_item(turn, "done")], NOW)
    assert only(home).answered_by == said.id


def test_requests_of_messages_that_are_gone_go_with_them(home: StoreHome) -> None:
    home.say("one", "1")
    home.say("two", "2")
    with home.db.write() as db:
        db.execute("DELETE FROM outbox")
        db.execute("DELETE FROM inbox")
        db.execute("DELETE FROM conversation_history")
    lines = home.log_bytes().splitlines(True)
    home.log.path("main").write_bytes(b"".join(lines[:2]))
    assert {problem.kind for problem in home.repair().problems} == {"gone"}
    assert [one.text for one in ledger(home).list_requests("owner")] == ["one"]
