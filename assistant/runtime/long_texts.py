"""Handles long texts without blocking the event loop, and limits the length of answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from assistant.core.jobs import DeliveryTarget
from assistant.core.messages import Message
from assistant.core.model_api import MAX_ANSWER_CHARACTERS, ModelReply
from assistant.core.notices import NoticeAddress, NoticeKind, NoticePlace
from assistant.core.records import Turn
from assistant.core.store_ports import Conversation
from assistant.gateway.attachments import LONG_TEXT_START, long_text_file
from assistant.gateway.notices import NoticeSender

# Encoding a message of this length blocks the loop for 3 ms; shorter ones are not worth a thread.
_LONG = 1_000_000


async def prepare_if_long(conversation: Conversation, message: Message) -> None:
    """Encode a long message in a thread, so that logging it does not block the event loop."""
    if len(message.content) >= _LONG:
        await asyncio.to_thread(conversation.prepare, message)


def announce_long_text(turn: Turn, notices: NoticeSender) -> None:
    """Tell the user of the turn's messages that were stored as files. Raises `StoreError`."""
    for item in turn.items:
        if (moved := long_text_file(item.incoming)) is None:
            continue
        characters, file = moved
        notice = NoticeKind.TEXT_AS_FILE.fill(
            item.message_id, characters=characters, file=file.path or file.name, start=f"{LONG_TEXT_START:,}"
        )
        place = DeliveryTarget(turn.session, turn.scope, item.incoming.bridge, item.incoming.target)
        notices.send(NoticeAddress((NoticePlace(place, item.id),), turn.id), notice)


def cut_endless_answer(reply: ModelReply) -> ModelReply:
    """Cut an answer above the limit; the person is told, as with every answer that is cut off."""
    message = reply.message
    if len(message.content) <= MAX_ANSWER_CHARACTERS:
        return reply
    stop = "max_tokens" if reply.stop == "end" else reply.stop
    return replace(reply, message=replace(message, content=message.content[:MAX_ANSWER_CHARACTERS]), stop=stop)
