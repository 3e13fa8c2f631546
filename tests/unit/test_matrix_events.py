"""What Matrix events say, and what is written as events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assistant.bridges.matrix import events as form
from assistant.bridges.matrix.events import SyncPosition, UndecryptedEvent

ME = "@nocturne:example.org"


def message(body: str, **content: Any) -> dict[str, Any]:
    return {"type": "m.room.message", "content": {"msgtype": "m.text", "body": body, **content}}


def own(event: str, transaction: str, **content: Any) -> dict[str, Any]:
    return {**message("", **content), "event_id": event, "unsigned": {"transaction_id": transaction}}


def test_a_position_is_read_as_it_was_written() -> None:
    position = SyncPosition("s7", (UndecryptedEvent("!a", "$1", "session"),), {"!a": "$2"})
    assert SyncPosition.parse(str(position)) == position
    assert SyncPosition.parse("") == SyncPosition()


def test_the_oldest_that_waits_for_its_key_is_given_up_where_too_many_do() -> None:
    position = SyncPosition()
    for number in range(201):
        position = position.with_undecrypted(UndecryptedEvent("!a", f"${number}", "s"))
    assert len(position.unread) == 200 and position.unread[0].event == "$1"
    assert position.with_undecrypted(position.unread[5]) == position


def test_a_draft_stands_until_its_answer_or_its_end() -> None:
    begun = SyncPosition().after_own_event(own("$1", form.draft_transaction_id("t1", "!a")), "!a")
    assert begun.drafts == {"!a": "$1"}
    edit = {"m.relates_to": {"rel_type": "m.replace", "event_id": "$1"}}
    assert begun.after_own_event(own("$2", "notice-x", **edit), "!a") == begun
    assert begun.after_own_event(own("$3", form.answer_transaction_id("k", "!a", "b"), **edit), "!a").drafts == {}
    deleted = {"type": "m.room.redaction", "event_id": "$4", "content": {"redacts": "$1"}}
    assert begun.after_own_event(deleted, "!a").drafts == {}


def test_an_answers_transaction_is_its_own() -> None:
    one = form.answer_transaction_id("reply:1", "!a", "yes")
    assert one == form.answer_transaction_id("reply:1", "!a", "yes")
    others = {
        form.answer_transaction_id(*of)
        for of in [("reply:2", "!a", "yes"), ("reply:1", "!b", "yes"), ("reply:1", "!a", "no")]
    }
    assert len({one, *others}) == 4


@pytest.mark.parametrize(
    "said",
    ["Nocturne, what now?", "what does NOCTURNE think", f"ask {ME}", "@nocturne: yes"],
)
def test_it_is_called_by_its_name(said: str) -> None:
    assert form.mentions_account(message(said), ME, "Nocturne")


@pytest.mark.parametrize("said", ["nocturnes by Chopin", "@nocturnes", "good night", ""])
def test_other_words_do_not_call_it(said: str) -> None:
    assert not form.mentions_account(message(said), ME, "Nocturne")


def test_a_mention_that_the_app_marked_calls_it() -> None:
    assert form.mentions_account(message("hey", **{"m.mentions": {"user_ids": [ME]}}), ME, "")


def test_the_message_that_is_answered_is_not_said_again() -> None:
    reply = {"m.relates_to": {"m.in_reply_to": {"event_id": "$1"}}}
    assert form.read_text(message("> <@ann:x> one\n> two\n\nthree\n> four", **reply)) == "three\n> four"
    assert form.read_text(message("> my own quote\nthree", **reply)) == "> my own quote\nthree"
    assert form.read_text(message("> <@ann:x> one\n\nthree")) == "> <@ann:x> one\n\nthree"


def test_in_a_thread_what_is_named_for_old_apps_is_no_reply() -> None:
    inner = {"rel_type": "m.thread", "event_id": "$1", "m.in_reply_to": {"event_id": "$2"}}
    assert form.replied_event_id(message("x", **{"m.relates_to": {**inner, "is_falling_back": True}})) == ""
    assert form.replied_event_id(message("x", **{"m.relates_to": {**inner, "is_falling_back": False}})) == "$2"


@pytest.mark.parametrize("broken", [None, 7, "x", [], {"body": 7}, {"m.relates_to": "$1"}, {"msgtype": {}}])
def test_an_event_of_any_form_is_borne(broken: Any) -> None:
    event = {"type": "m.room.message", "content": broken, "unsigned": broken}
    assert form.read_text(event) == "" and form.read_attachment(event) is None
    assert (
        not form.replaced_event_id(event)
        and not form.thread_root_id(event)
        and not form.mentions_account(event, ME, "N")
    )


@pytest.mark.parametrize("text", ["word " * 4000, "**b** `<&>` " * 1600, '"\\\n' * 6600])
def test_the_longest_answer_fits_into_an_event_that_is_encrypted(text: str) -> None:
    text = text.encode()[: form.MAX_TEXT_BYTES].decode()
    edit = {"content": form.edit_content("$" + "x" * 43, text), "type": "m.room.message", "room_id": "!" + "x" * 43}
    assert len(json.dumps(edit, ensure_ascii=False).encode()) * 4 / 3 < 65_536 - 2_000


def test_markdown_is_shown_and_html_is_not_let_through() -> None:
    content = form.message_content("see [this](https://example.org) <script>x</script> ![p](https://example.org/p.png)")
    assert '<a href="https://example.org">this</a>' in content["formatted_body"]
    assert "<script>" not in content["formatted_body"] and "<img" not in content["formatted_body"]
    assert "formatted_body" not in form.message_content("as it is")
