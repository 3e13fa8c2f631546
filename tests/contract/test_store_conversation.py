"""`ports.Conversation` on the stores: inbox, turns, tools, the view, undo and notes."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.errors import StoreError
from assistant.core.messages import Media, Message, ToolCall
from assistant.core.records import ContextView, InboxReceipt, IncomingMessage, OutgoingMessage
from assistant.store.database import Database
from assistant.store.log.writer import MessageLog
from assistant.store.script.conversation import StoredConversation
from tests.support.store_home import NOW, StoreHome, count_tokens, cut_tool_output, never_a_task, reply_item, tool_round


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path).open()
    yield home
    assert home.verify().problems == ()
    home.close()


def incoming(text: str = "hi", external: str = "x1", **changes: str) -> IncomingMessage:
    return replace(IncomingMessage("terminal", external, "main", "owner", "me", "owner", text), **changes)


# --------------------------------------------------------------------------------------------------------------- inbox


def test_the_same_external_id_is_accepted_once(home: StoreHome) -> None:
    first = home.conversation.accept(incoming(), NOW)
    again = home.conversation.accept(incoming(), NOW)
    assert again == InboxReceipt(first.inbox_id, first.message_id, duplicate=True)
    other = home.conversation.accept(incoming("other words"), NOW)
    assert other == InboxReceipt(first.inbox_id, first.message_id, duplicate=True, conflicts=True)
    assert [item.incoming.content for item in home.conversation.list_accepted("main")] == ["hi"]


def test_another_message_under_the_same_external_id_is_told_from_a_repeat(home: StoreHome) -> None:
    def picture(data: str = "QQ==", **changes: str) -> IncomingMessage:
        return replace(incoming(**changes), media=(Media("image", "image/png", "boat.png", 1, data),))

    def differs(again: IncomingMessage) -> bool:
        return home.conversation.accept(again, NOW).conflicts

    item = home.conversation.inbox_item(home.conversation.accept(picture(), NOW).inbox_id)
    others = (incoming(), picture(text="hi "), picture(session="thread:trip"), replace(picture(), name="Ada"))
    assert not differs(picture()) and differs(picture("Qg==")) and all(map(differs, others))
    assert item is not None
    turn = home.conversation.begin_turn(item, "", NOW)
    home.conversation.finish_turn(turn, "answered", Message("assistant", "Nice."), [], NOW)
    home.restart()
    assert not differs(picture()) and all(map(differs, others)), "its bytes are in the log alone by now"


def test_the_same_id_on_another_bridge_is_another_message(home: StoreHome) -> None:
    home.conversation.accept(incoming(), NOW)
    assert not home.conversation.accept(incoming(bridge="matrix"), NOW).duplicate


def test_an_accepted_message_comes_back_as_it_came(home: StoreHome) -> None:
    whole = replace(
        incoming("words\x00 of \U0001f600"), media=(Media("image", "image/png", data="QQ=="),), name="Ada", target="t:1"
    )
    accepted = home.conversation.accept(whole, NOW)
    home.restart()
    item = home.conversation.inbox_item(accepted.inbox_id)
    assert item is not None
    assert (item.incoming, item.message_id, item.state, item.received_at) == (
        whole,
        accepted.message_id,
        "accepted",
        NOW,
    )
    assert home.conversation.inbox_item(999) is None


def test_sessions_wait_oldest_first(home: StoreHome) -> None:
    for session in ("peer:b", "main", "peer:b", "peer:a"):
        home.accept("hi", session)
    assert home.conversation.sessions_waiting() == ["peer:b", "main", "peer:a"]
    item = home.conversation.list_accepted("peer:b")[0]
    home.conversation.begin_turn(item, "", NOW)
    assert home.conversation.sessions_waiting() == ["main", "peer:b", "peer:a"]
    assert len(home.conversation.list_accepted("peer:b", limit=1)) == 1


def test_message_ids_grow_over_sessions_and_restarts(home: StoreHome) -> None:
    ids = [home.accept("a").message_id, home.accept("b", "peer:x").message_id]
    home.say("c", "d")
    home.restart()
    ids.append(home.accept("e").message_id)
    assert ids == sorted(set(ids))
    assert ids[-1] > max(record.id for record in home.log.scan("main"))


def test_a_session_of_another_scope_takes_no_words(home: StoreHome) -> None:
    home.accept("mine")
    with pytest.raises(StoreError, match="scope"):
        home.accept("theirs", "main", scope="guest")


# --------------------------------------------------------------------------------------------------------------- turns


def test_a_turn_shows_question_and_answer(home: StoreHome) -> None:
    turn = home.begin_turn("what is six times seven?")
    assert home.view_contents() == ["what is six times seven?"]
    reply = home.conversation.finish_turn(
        turn, "answered", Message("assistant", "42", model="m"), [reply_item(turn, "42")], NOW
    )
    view = home.conversation.load_view("main")
    assert view.messages[-1] == reply
    assert (view.messages[1].role, view.messages[1].content, view.messages[1].model) == ("assistant", "42", "m")
    assert view.tokens == sum(count_tokens(message) for message in view.messages)
    assert view.bytes >= len("what is six times seven?42")


def test_a_turn_carries_its_item_and_volatile_block(home: StoreHome) -> None:
    turn = home.begin_turn("hi")
    assert (turn.state, turn.volatile, turn.session, turn.scope) == ("running", "it is ten o'clock", "main", "owner")
    assert [(item.state, item.turn) for item in turn.items] == [("running", turn.id)]


def test_the_log_has_who_said_it_and_in_which_turn(home: StoreHome) -> None:
    turn = home.say("hi", "hello")
    question, answer = home.log.scan("main")
    assert (question.bridge, question.sender, question.trust, question.turn) == ("terminal", "me", "owner", turn.id)
    assert (answer.trust, answer.turn, answer.scope, answer.generation) == ("model", turn.id, "owner", 1)


def test_the_answer_ends_the_inbox_row_and_fills_the_outbox(home: StoreHome) -> None:
    turn = home.say("hi", "hello")
    item = home.conversation.inbox_item(turn.items[0].id)
    assert item is not None
    assert item.state == "answered"
    (sent,) = home.outbox.list_by_turn(turn.id)
    assert (sent.outgoing.body, sent.state) == ("hello", "pending")
    assert sent.outgoing.message_id == home.conversation.load_view("main").messages[-1].id


@pytest.mark.parametrize("state", ["failed", "aborted"])
def test_a_turn_without_answer_fails_its_items_and_tools(home: StoreHome, state: str) -> None:
    turn = home.begin_turn("hi")
    home.conversation.start_tool(turn, ToolCall("c1", "look"), NOW)
    home.conversation.finish_turn(turn, state, None, [reply_item(turn, "sorry")], NOW, error="no model")  # type: ignore[arg-type]
    item = home.conversation.inbox_item(turn.items[0].id)
    assert item is not None
    assert item.state == "failed"
    assert [run.state for run in home.conversation.list_tool_runs(turn)] == ["interrupted"]
    assert home.outbox.list_by_turn(turn.id)[0].outgoing.message_id is None


def test_a_turn_that_ended_takes_no_more_words(home: StoreHome) -> None:
    turn = home.say("hi", "hello")
    for write in (
        lambda: home.conversation.record_messages(turn, [Message("assistant", "more")], NOW),
        lambda: home.conversation.finish_turn(turn, "answered", Message("assistant", "twice"), [], NOW),
        lambda: home.conversation.join_turn(turn, home.inbox_item("late"), NOW),
    ):
        with pytest.raises(StoreError, match="has ended"):
            write()
    assert home.add_message() == ["hi", "hello"]


def test_a_turn_that_begins_twice_is_one_turn(home: StoreHome) -> None:
    item = home.inbox_item("hi")
    first = home.conversation.begin_turn(item, "ten", NOW)
    again = home.conversation.begin_turn(item, "eleven", NOW)
    assert again == first
    assert home.add_message() == ["hi"]


def test_tool_rounds_are_logged_and_end_their_runs(home: StoreHome) -> None:
    turn = home.begin_turn("look")
    call, result = tool_round()
    home.conversation.record_messages(turn, [call], NOW)
    home.conversation.start_tool(turn, call.tool_calls[0], NOW)
    home.conversation.start_tool(turn, call.tool_calls[0], NOW)
    assert [(run.call, run.state) for run in home.conversation.list_tool_runs(turn)] == [
        (call.tool_calls[0], "started")
    ]
    home.conversation.record_messages(turn, [result], NOW)
    assert [run.state for run in home.conversation.list_tool_runs(turn)] == ["done"]
    assert [message.role for message in home.conversation.turn_messages(turn)] == ["user", "assistant", "tool"]
    assert home.conversation.turn_messages(turn)[1].tool_calls == call.tool_calls


def test_the_messages_of_a_turn_are_those_of_its_view_and_are_not_read_for_each_step(home: StoreHome) -> None:
    turn = home.begin_turn("look")
    call, result = tool_round()
    home.conversation.record_messages(turn, [call], NOW)
    home.conversation.record_messages(turn, [result], NOW)
    view = home.conversation.load_view("main").messages
    statements: list[str] = []
    home.db._connection.set_trace_callback(statements.append)
    assert all(map(operator.is_, home.conversation.turn_messages(turn), view))
    home.db._connection.set_trace_callback(None)
    assert not [sql for sql in statements if "FROM conversation_history" in sql]
    home.restart()
    assert home.conversation.turn_messages(turn) == view


def test_a_long_tool_result_is_whole_in_the_log_and_cut_in_the_view(home: StoreHome) -> None:
    turn = home.begin_turn("look")
    call, result = tool_round(result="x" * 5000)
    shown = home.conversation.record_messages(turn, [call, result], NOW)
    assert home.add_message()[-1] == "x" * 5000
    assert home.view_contents()[-1] == shown[-1].content
    place = f"log/main/conversation.jsonl {[one.span for one in home.log.scan('main')][-1].start}-"
    assert place in shown[-1].content
    assert home.restart().conversation.load_view("main").messages[-1] == replace(shown[-1])


def test_what_has_an_id_is_not_logged_again(home: StoreHome) -> None:
    turn = home.begin_turn("look")
    call, result = tool_round()
    shown = home.conversation.record_messages(turn, [call], NOW)
    again = home.conversation.record_messages(turn, [*shown, result], NOW)
    assert again[0] == shown[0]
    assert home.add_message() == ["look", "", "done"]


def test_metadata_is_of_the_view_and_not_of_the_log(home: StoreHome) -> None:
    turn = home.begin_turn("hi")
    home.conversation.record_messages(turn, [Message("system", "note", metadata={"internal": True})], NOW)
    assert home.conversation.load_view("main").messages[-1].metadata == {"turn": turn.id, "internal": True}
    assert b"internal" not in home.log_bytes()


def test_a_waiting_message_joins_a_turn(home: StoreHome) -> None:
    turn = home.begin_turn("one")
    turn = home.conversation.join_turn(turn, home.inbox_item("and two"), NOW)
    assert [item.state for item in turn.items] == ["running", "running"]
    assert home.view_contents() == ["one", "and two"]
    home.conversation.finish_turn(turn, "answered", Message("assistant", "both"), [], NOW)
    states = [home.conversation.inbox_item(item.id) for item in turn.items]
    assert [item.state for item in states if item] == ["answered", "answered"]


def test_superseded_messages_are_kept_and_shown(home: StoreHome) -> None:
    items = [home.inbox_item("never mind"), home.inbox_item("hello?", "peer:x")]
    outgoing = [
        OutgoingMessage(f"n:{item.id}", item.incoming.session, "owner", "terminal", "", "skipped") for item in items
    ]
    home.conversation.supersede_items(items, outgoing, NOW)
    assert (home.add_message(), home.add_message("peer:x")) == (["never mind"], ["hello?"])
    assert home.view_contents("peer:x") == ["hello?"]
    assert home.conversation.sessions_waiting() == []
    assert len(home.outbox.pending_items("terminal")) == 2


# ------------------------------------------------------------------------------------------------------------ the view


def test_a_view_is_the_same_after_a_restart(home: StoreHome) -> None:
    home.chat(3)
    turn = home.begin_turn("look")
    home.conversation.record_messages(turn, tool_round(result="y" * 3000), NOW)
    before = home.conversation.load_view("main")
    assert home.restart().conversation.load_view("main") == before
    home.conversation.finish_turn(turn, "answered", Message("assistant", "seen"), [], NOW)


def test_an_unknown_session_has_an_empty_view(home: StoreHome) -> None:
    assert home.conversation.load_view("peer:nobody") == ContextView("peer:nobody", 1, "", 0, (), 0, 0, 0)
    assert home.conversation.list_sessions() == []


def test_a_view_read_before_a_failed_write_stays_as_it_was(home: StoreHome) -> None:
    home.chat(1)
    before = home.conversation.load_view("main")
    turn = home.begin_turn("second")
    home.db.rows(f"PRAGMA max_page_count = {home.db.rows('PRAGMA page_count')[0][0]}")
    with pytest.raises(StoreError):
        home.conversation.record_messages(turn, [Message("assistant", "z" * 200_000)], NOW)
    assert home.view_contents() == [*(message.content for message in before.messages), "second"]
    home.db.rows("PRAGMA max_page_count = 1000000")
    home.conversation.recover_after_crash(NOW)
    assert home.view_contents()[-1] == "z" * 200_000


def test_a_call_that_is_repeated_after_a_full_disk_is_logged_once(home: StoreHome) -> None:
    turn = home.begin_turn("hi")
    long = Message("assistant", "z" * 200_000)
    home.db.rows(f"PRAGMA max_page_count = {home.db.rows('PRAGMA page_count')[0][0]}")
    for _ in range(2):
        with pytest.raises(StoreError, match="disk is full"):
            home.conversation.finish_turn(turn, "answered", long, [reply_item(turn, "z")], NOW)
    home.db.rows("PRAGMA max_page_count = 1000000")
    home.conversation.finish_turn(turn, "answered", long, [reply_item(turn, "z")], NOW + timedelta(seconds=5))
    assert home.add_message() == ["hi", long.content]
    assert home.view_contents() == ["hi", long.content]


def test_another_call_after_a_full_disk_finds_what_the_log_has(home: StoreHome) -> None:
    turn = home.begin_turn("hi")
    home.db.rows(f"PRAGMA max_page_count = {home.db.rows('PRAGMA page_count')[0][0]}")
    with pytest.raises(StoreError, match="disk is full"):
        home.conversation.record_messages(turn, [Message("assistant", "z" * 200_000)], NOW)
    home.db.rows("PRAGMA max_page_count = 1000000")
    home.conversation.finish_turn(turn, "answered", Message("assistant", "ho"), [], NOW)
    assert home.add_message() == home.view_contents() == ["hi", "z" * 200_000, "ho"]


def test_a_failed_call_that_start_has_settled_is_not_taken_for_unwritten(home: StoreHome) -> None:
    turn = home.begin_turn("hi")
    long = Message("assistant", "z" * 200_000)
    home.db.rows(f"PRAGMA max_page_count = {home.db.rows('PRAGMA page_count')[0][0]}")
    with pytest.raises(StoreError, match="disk is full"):
        home.conversation.record_messages(turn, [long], NOW)
    home.db.rows("PRAGMA max_page_count = 1000000")
    home.conversation.recover_after_crash(NOW)
    home.conversation.record_messages(turn, [long], NOW)
    assert home.add_message() == home.view_contents() == ["hi", long.content, long.content]


def test_a_reader_beside_the_writer_sees_what_is_added(home: StoreHome) -> None:
    home.chat(1)
    reader = Database.open_reader(home.path / "script.db")
    beside = StoredConversation(
        reader,
        MessageLog(home.path),
        to_view_message=cut_tool_output,
        count_tokens=count_tokens,
        classify_request=never_a_task,
        undo_kept=10,
    )
    assert len(beside.load_view("main").messages) == 2
    home.chat(1)
    assert beside.load_view("main") == home.conversation.load_view("main")
    reader.close()


def test_reported_usage_stands_in_the_view(home: StoreHome) -> None:
    home.chat(1)
    assert home.conversation.load_view("main").reported is None
    home.conversation.report_usage("main", 0, 1234, 2)
    assert home.conversation.load_view("main").reported == (0, 1234, 2)


def test_appending_does_not_bump_the_revision(home: StoreHome) -> None:
    home.chat(3)
    assert home.conversation.load_view("main").prefix_rev == 0


# ----------------------------------------------------------------------------------------------------- undo and notes


def test_undo_hides_from_the_view_and_says_so_in_the_log(home: StoreHome) -> None:
    home.chat(2)
    ids = [message.id for message in home.conversation.load_view("main").messages[2:]]
    before = home.log_bytes()
    record = home.conversation.hide_messages("main", [one for one in ids if one], NOW)
    assert (record.kind, list(record.refs), record.sender) == ("undo", ids, "owner")
    assert home.log_bytes().startswith(before)
    assert home.view_contents() == ["question 0", "answer 0"]
    view = home.conversation.load_view("main")
    assert (view.prefix_rev, view.tokens) == (1, sum(count_tokens(message) for message in view.messages))
    rows = home.db.rows("SELECT id, hidden_by FROM messages WHERE hidden_by IS NOT NULL")
    assert [tuple(row) for row in rows] == [(ids[0], record.id), (ids[1], record.id)]


def test_undo_of_what_is_not_there_changes_nothing(home: StoreHome) -> None:
    home.chat(1)
    home.say("hi", "ho", "peer:x")
    theirs = home.conversation.load_view("peer:x").messages[0].id
    assert theirs is not None
    for wrong in ([999], [1, theirs]):
        with pytest.raises(StoreError, match="Nothing was changed"):
            home.conversation.hide_messages("main", wrong, NOW)
    assert len(home.add_message()) == 2
    with pytest.raises(StoreError, match="no session"):
        home.conversation.hide_messages("nowhere", [1], NOW)


def test_an_edit_on_a_bridge_is_a_note_and_changes_nothing_else(home: StoreHome) -> None:
    home.chat(1)
    record = home.conversation.annotate("main", "edit", [1], "edited to: question zero", NOW)
    assert (record.kind, record.refs) == ("edit", (1,))
    note = home.conversation.load_view("main").messages[-1]
    assert (note.role, note.content, note.metadata) == (
        "system",
        "edited to: question zero",
        {"type": "edit", "refs": [1]},
    )
    assert home.view_contents()[0] == "question 0"
