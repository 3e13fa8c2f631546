"""Whatever a view holds, the request made of it is one that both providers accept (I5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from assistant.context.build import PromptFrame, build_request
from assistant.context.normalise import normalise
from assistant.context.structure import newest_request_index
from assistant.core.messages import Message, ToolCall
from assistant.core.model_api import ModelRequest
from assistant.models import anthropic_format, openai_format
from tests.strict.validate import RequestLimits, validate_chat, validate_messages
from tests.support.conversation_strategies import FRAME, LIMITS, MODEL, any_messages, crashed, signed, turns, view_of

BOUNDS = RequestLimits(window=LIMITS.window, max_images=LIMITS.max_images)
many = settings(max_examples=150, deadline=None, database=None)


def complaints(request: ModelRequest, issued: dict[str, list[dict[str, Any]]] | None = None) -> list[str]:
    messages = anthropic_format.render_anthropic_request(request, MODEL)
    chat = openai_format.render_openai_request(request, MODEL)
    return validate_messages(messages, BOUNDS, issued) + validate_chat(chat, BOUNDS)


def all_signed() -> dict[str, list[dict[str, Any]]]:
    """The service knows every thought of these conversations, and no call of them."""
    return {"nothing": [signed(number) for number in range(100)]}


def answers_given(rows: list[Message]) -> dict[str, list[dict[str, Any]]]:
    """What the service gave out, by the id of the first call in it."""
    given: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row.role == "assistant" and row.tool_calls:
            text = [{"type": "text", "text": row.content}] if row.content.strip() else []
            uses = [{"type": "tool_use", "id": call.id} for call in row.tool_calls]
            given.setdefault(row.tool_calls[0].id, [*map(dict, row.thinking), *text, *uses])
    return given


@many
@given(any_messages, st.sampled_from(["owner", "guest", "room"]), st.sampled_from(["", "It is noon."]))
@example([], "owner", "now")
@example([Message("assistant", "", tool_calls=(ToolCall("a", "b"),))], "guest", "")
@example([Message("user", "a\udc00"), Message("tool", "\x00", tool_call_id="call_0")], "owner", "\ud800")
def test_any_sequence_of_messages_makes_a_request_that_both_providers_accept(
    rows: list[Message], role: str, volatile: str
) -> None:
    frame = PromptFrame(FRAME.rules, FRAME.persona, FRAME.tools, role)
    assert complaints(build_request(view_of(rows), frame, LIMITS, volatile=volatile), all_signed()) == []


@many
@given(crashed())
def test_a_conversation_broken_by_crashes_and_cuts_is_still_accepted(rows: list[Message]) -> None:
    assert complaints(build_request(view_of(rows), FRAME, LIMITS, volatile="now"), all_signed()) == []


@many
@given(turns(longest=5))
def test_thinking_comes_back_as_it_was_signed_in_every_open_tool_loop(rows: list[Message]) -> None:
    assert complaints(build_request(view_of(rows), FRAME, LIMITS), answers_given(rows)) == []


@many
@given(crashed())
def test_the_newest_request_is_always_sent(rows: list[Message]) -> None:
    newest = newest_request_index(rows)
    sent = normalise(rows)
    if newest >= 0:
        assert rows[newest].content in sent[newest_request_index(sent)].content


@many
@given(turns(longest=5))
def test_within_a_turn_of_a_model_that_thinks_what_was_sent_is_sent_again_unchanged(rows: list[Message]) -> None:
    """The provider's cache lives on that, and what was thought is signed for all of it."""
    for body, sent in _in_a_row(rows, thinking="adaptive"):
        assert [_unmarked(message) for message in body["messages"]][: len(sent)] == [_unmarked(one) for one in sent]


@many
@given(turns(longest=5))
def test_within_a_turn_nothing_but_the_volatile_block_moves_and_that_stands_last(rows: list[Message]) -> None:
    for body, sent in _in_a_row([replace(row, thinking=()) for row in rows]):
        messages = [_without_noon(message) for message in body["messages"]]
        assert messages[: len(sent)] == [_without_noon(message) for message in sent]
        assert [m for m in body["messages"] if _NOON in m["content"]] in ([], body["messages"][-1:])


def _in_a_row(rows: list[Message], **form: str) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The bodies of one turn's requests, each with the messages of the one before it."""
    sent: list[dict[str, Any]] = []
    for end in range(newest_request_index(rows) + 1, len(rows) + 1):
        if rows[end - 1].role in ("user", "tool") and _whole(rows[:end]):
            view = build_request(view_of(rows[:end]), FRAME, LIMITS, volatile="noon")
            body = anthropic_format.render_anthropic_request(view, MODEL, **form)
            yield body, sent
            sent = body["messages"]


_NOON = {"type": "text", "text": "noon"}


def _whole(rows: list[Message]) -> bool:
    """Whether every call has its result: the next model call is made only then."""
    called = {call.id for row in rows for call in row.tool_calls}
    return called == {row.tool_call_id for row in rows if row.role == "tool"}


def _unmarked(message: dict[str, Any]) -> dict[str, Any]:
    blocks = [{key: value for key, value in block.items() if key != "cache_control"} for block in message["content"]]
    return {**message, "content": blocks}


def _without_noon(message: dict[str, Any]) -> dict[str, Any]:
    unmarked = _unmarked(message)
    return {**unmarked, "content": [block for block in unmarked["content"] if block != _NOON]}
