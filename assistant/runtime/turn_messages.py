"""What the messages of a turn, oldest first, tell of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from assistant.core.messages import ABORTED_MARKER, Message, ToolCall


def is_aborted(messages: Sequence[Message]) -> bool:
    """Return whether the log shows the turn as stopped. Within a turn, only the runtime writes system messages."""
    return bool(messages) and messages[-1].role == "system" and messages[-1].content.startswith(ABORTED_MARKER)


def newest_reply(messages: Sequence[Message]) -> Message | None:
    return next((message for message in reversed(messages) if message.role == "assistant"), None)


def unanswered_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """Return calls of the newest assistant message without a result."""
    last = newest_reply(messages)
    answered = {message.tool_call_id for message in messages if message.role == "tool"}
    return [] if last is None else [call for call in last.tool_calls if call.id not in answered]


def successful_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """Return the calls whose result is no error."""
    failed = {message.tool_call_id for message in messages if message.metadata.get("is_error")}
    return [call for message in messages for call in message.tool_calls if call.id not in failed]


def tool_result(call: ToolCall, text: str, *, ok: bool) -> Message:
    """Return the message that answers the call; with `ok` False marked as an error."""
    return Message("tool", text, tool_call_id=call.id, name=call.name, metadata={} if ok else {"is_error": True})
