"""A tool result that stands in view by one line: what it was, when, what about, and where all of it is. Pure.

The line is short enough to be cheap and says enough for the model to know whether it has to look: asking again for what
it knows it has is how assistants go in circles after a compaction (F03).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from assistant.context.topics import topics
from assistant.core.messages import Message, ToolCall
from assistant.core.records import LogLocation

ARCHIVED = "[TOOL OUTPUT ARCHIVED"
_LONGEST_CALL = 80


def archived(
    message: Message,
    call: ToolCall | None,
    place: LogLocation,
    tokens: int,
    *,
    repeats: int = 1,
    latest: int | None = None,
) -> Message:
    """The tool result `message` (of `call`, which took `tokens`) by reference. `repeats` is how often the same call
    stands in view, `latest` the message with its newest result, where that is another one."""
    when = f", {message.ts:%Y-%m-%d %H:%M}" if message.ts else ""
    about = topics(message.content)
    words = f"; about: {', '.join(about)}" if about else ""
    again = f" The same call was made {repeats} times; " if repeats > 1 else ""
    if again:
        again += f"its newest result is message {latest}." if latest is not None else "do not repeat it, read this."
    span = place.span
    content = (
        f"{ARCHIVED}: {_called(message, call)}{when}, about {tokens} tokens{words}. All of it: "
        f"read_history(message_id={message.id}), {place.path} bytes {span.start}-{span.end}.{again}]"
    )
    return message.with_content(content, archived=True)


def signature(call: ToolCall) -> str:
    """The same for calls that ask for the same thing."""
    return f"{call.name}({json.dumps(dict(call.arguments), sort_keys=True, ensure_ascii=False, default=str)})"


def calls_by_id(messages: list[Message]) -> Mapping[str, ToolCall]:
    return {call.id: call for message in messages for call in message.tool_calls}


def _called(message: Message, call: ToolCall | None) -> str:
    if call is None:
        return message.name or "a tool"
    shown = ", ".join(f"{key}={_short(value)}" for key, value in call.arguments.items())
    return f"{call.name}({_cut(shown)})"


def _short(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False, default=str))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_CALL else f"{text[: _LONGEST_CALL - 1]}…"
