"""Ids of tool calls: none stands twice in what a provider is sent."""

from __future__ import annotations

from assistant.core.messages import Message, ToolCall


def calls(*ids: str) -> Message:
    return Message("assistant", tool_calls=tuple(ToolCall(id_, "look") for id_ in ids))


def ids(message: Message) -> list[str]:
    return [call.id for call in message.tool_calls]


def test_a_call_that_is_new_keeps_its_id() -> None:
    assert ids(calls("a", "b").with_unique_call_ids([calls("c")], "t1")) == ["a", "b"]


def test_an_id_that_was_said_before_stands_twice_or_is_empty_becomes_another() -> None:
    said = [calls("0"), Message("user", "go on"), calls("t1_1")]
    assert ids(calls("0", "1", "1", "").with_unique_call_ids(said, "t1")) == ["t1_2", "1", "t1_3", "t1_4"]
