"""What offline mode replies to messages, with the results of its calls as a test gives them."""

from __future__ import annotations

from assistant.core.messages import Message
from assistant.core.model_api import ModelReply, ModelRequest, ToolSpec
from assistant.core.quoting import QuotedMessage, format_quote
from assistant.models.offline.model import OfflineModel

TOOLS = tuple(
    ToolSpec(name, "", {"type": "object"})
    for name in ("search_history", "manage_todo_list", "current_time", "read_file")
)


def user(text: str, id: int = 41, **fields: object) -> Message:
    return Message("user", text, id=id, **fields)  # type: ignore[arg-type]


async def reply_to(*messages: Message, tools: tuple[ToolSpec, ...] = TOOLS, **fields: object) -> ModelReply:
    request = ModelRequest((), messages, tools, **fields)  # type: ignore[arg-type]
    events = [event async for event in OfflineModel().stream(request)]
    assert isinstance(events[-1], ModelReply)
    return events[-1]


async def answers(question: Message, *results: str, before: tuple[Message, ...] = ()) -> Message:
    """The answer to `question` after its calls returned `results`."""
    messages = [*before, question]
    for result in results:
        asked = (await reply_to(*messages)).message
        messages.append(asked)
        messages += [Message("tool", result, tool_call_id=call.id, name=call.name) for call in asked.tool_calls]
    return (await reply_to(*messages)).message


def found(*lines: tuple[int, str]) -> str:
    quotes = [format_quote(QuotedMessage(number, "Fri 2026-11-20 09:00", "user", text)) for number, text in lines]
    return "\n".join([f"{len(quotes)} found, best first.", *quotes])
