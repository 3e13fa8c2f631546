"""The note that hands a conversation over: bounded, a record of the past, with what was open first."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.core.checkpoints import Checkpoint, UserRequest
from assistant.core.messages import Message
from assistant.sessions.handover import RECORD_OF_PAST, EndedGeneration, write_handover

OSLO = ZoneInfo("Europe/Oslo")
AT = datetime(2026, 6, 2, 2, 0, tzinfo=UTC)


def count(text: str) -> int:
    return len(text) // 4 + 1


def request(number: int, text: str) -> UserRequest:
    return UserRequest(number, "main", "owner", text, "open", True, AT)


def summary(text: str) -> Checkpoint:
    return Checkpoint(1, "main", 1, 1, 1, 9, 9, text, {}, 900, 90, 0.0, AT, "sleep", "full", "live")


ENDED = EndedGeneration(
    "main",
    "owner",
    3,
    "daily",
    AT,
    240,
    datetime(2026, 5, 31, 23, tzinfo=UTC),
    archive="s3://cellar/main/3.jsonl.gz",
    requests=(request(9, "Please write to the bank."),),
    todos=2,
    helpers=("compare prices",),
    summary=summary("They planned the move to Bergen."),
    rows=(Message("user", "My sister Ines keeps the spare key at Torggata 14.", 20, AT),),
)


def test_the_note_says_what_was_when_why_where_and_what_is_open() -> None:
    note = write_handover(ENDED, 600, count, OSLO)
    assert note.splitlines()[0] == (
        "The conversation before this one (number 3) ended on Tuesday 2026-06-02 04:00, at its daily hour."
    )
    for words in (
        RECORD_OF_PAST,
        "240 messages since 2026-06-01",
        "s3://cellar/main/3.jsonl.gz",
        "2 to-dos on the list",
        "compare prices",
        "#9 (2026-06-02): Please write to the bank.",
        "They planned the move to Bergen.",
        "Ines keeps the spare key",
    ):
        assert words in note
    late = write_handover(replace(ENDED, late=True, resumes=2), 600, count, OSLO)
    assert late.startswith("Conversation number 2 continues here") and "later than it should have been" in late


def test_a_conversation_that_went_on_and_said_nothing_new_is_told_of_by_what_it_showed() -> None:
    copies = (
        Message("user", "The ferry leaves at six.", None, AT, metadata={"carried_from": 4, "inherited": True}),
        Message("user", "Kept by a compaction.", None, AT, metadata={"carried_from": 5}),
    )
    note = write_handover(replace(ENDED, messages=0, summary=None, rows=copies), 600, count, OSLO)
    assert "The ferry leaves at six." in note and "Kept by a compaction" not in note
    assert "0 messages" not in note and "It is archived at s3://cellar/main/3.jsonl.gz." in note


@pytest.mark.parametrize("most", [0, 20, 60, 100, 150, 200, 300, 600])
def test_the_note_is_never_longer_than_it_may_be_but_for_its_first_line(most: int) -> None:
    long = replace(
        ENDED,
        requests=tuple(request(number, f"Please do thing {number} " * 30) for number in range(40)),
        summary=summary("\n".join(f"They spoke of matter {number}." for number in range(200))),
        rows=tuple(Message("user", f"I own boat {number}, called Mio {number}.", number, AT) for number in range(300)),
    )
    note = write_handover(long, most, count, OSLO)
    first = write_handover(long, 0, count, OSLO)
    assert first.count("\n") == 0
    assert count(note) <= max(most, count(first))
    if most >= 300:
        assert "more" in note and "boat" in note and "matter 0" in note


def test_open_requests_come_before_what_it_was_about() -> None:
    note = write_handover(replace(ENDED, summary=summary("They spoke. " * 400)), 200, count, OSLO)
    assert "Please write to the bank." in note


@settings(deadline=None, max_examples=60)
@given(st.text(), st.text(), st.integers(0, 400))
def test_whatever_was_said_the_note_holds(words: str, told: str, most: int) -> None:
    ended = replace(ENDED, requests=(request(1, words),), summary=summary(told), rows=(Message("user", words, 5, AT),))
    note = write_handover(ended, most, count, OSLO)
    assert count(note) <= max(most, count(write_handover(ended, 0, count, OSLO)))
    assert not any(ord(letter) < 32 and letter not in "\n\t" for letter in note)


def test_what_was_said_is_dated_by_the_clock_of_the_home() -> None:
    late = datetime(2026, 6, 1, 23, 30, tzinfo=UTC)
    ended = replace(ENDED, rows=(Message("user", "My sister Ines keeps the spare key at Torggata 14.", 20, late),))
    assert "- #20 2026-06-02 user: My sister Ines" in write_handover(ended, 600, count, OSLO)
