"""Handles long texts without blocking the event loop, and limits the length of answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from assistant.core.messages import Message
from assistant.core.model_api import MAX_ANSWER_CHARACTERS, ModelReply
from assistant.core.store_ports import Conversation

# Encoding a message of this length blocks the loop for 3 ms; shorter ones are not worth a thread.
_LONG = 1_000_000


async def prepare_if_long(conversation: Conversation, message: Message) -> None:
    """Encode a long message in a thread, so that logging it does not block the event loop."""
    if len(message.content) >= _LONG:
        await asyncio.to_thread(conversation.prepare, message)


def cut_endless_answer(reply: ModelReply) -> ModelReply:
    """Cut an answer above the limit; the person is told, as with every answer that is cut off."""
    message = reply.message
    if len(message.content) <= MAX_ANSWER_CHARACTERS:
        return reply
    stop = "max_tokens" if reply.stop == "end" else reply.stop
    return replace(reply, message=replace(message, content=message.content[:MAX_ANSWER_CHARACTERS]), stop=stop)
