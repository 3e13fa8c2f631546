"""Rows of the tables to values and back. Nothing here reads or writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from sqlite3 import Row
from typing import Any

from assistant.core.checkpoints import Checkpoint
from assistant.core.messages import (
    Message,
    ToolCall,
    media_from_json,
    media_to_json,
    tool_call_from_json,
    tool_call_to_json,
)
from assistant.core.records import Button, InboxItem, IncomingMessage, OutboxItem, OutgoingMessage, ToolRun, Turn
from assistant.store.text import clean, dumps, moment


def inbox_body(incoming: IncomingMessage) -> str:
    return dumps(
        {
            "content": incoming.content,
            "media": [media_to_json(media) for media in incoming.media],
            "name": incoming.name,
        }
    )


def inbox_item(row: Row) -> InboxItem:
    body = json.loads(row["body"])
    incoming = IncomingMessage(
        bridge=row["bridge"],
        external_id=row["external_id"],
        session=row["session"],
        scope=row["scope"],
        sender=row["sender"],
        trust=row["trust"],
        content=body["content"],
        media=tuple(media_from_json(media) for media in body["media"]),
        name=body["name"],
        target=row["target"],
    )
    return InboxItem(
        row["id"], row["message_id"], incoming, row["state"], moment(row["received_at"]), row["turn"]
    )  # fmt: skip


def outbox_item(row: Row) -> OutboxItem:
    outgoing = OutgoingMessage(
        key=row["key"],
        session=row["session"],
        scope=row["scope"],
        bridge=row["bridge"],
        target=row["target"],
        body=row["body"],
        kind=row["kind"],
        message_id=row["message_id"],
        inbox_id=row["inbox_id"],
        buttons=tuple(Button(*one) for one in json.loads(row["buttons"])),
        media=tuple(media_from_json(one) for one in json.loads(row["media"])),
    )
    at = moment(row["created_at"])
    return OutboxItem(row["id"], outgoing, row["state"], row["attempts"], at, row["parts_sent"])


def outbox_buttons(outgoing: OutgoingMessage) -> str:
    return dumps([[clean(one.label), clean(one.command)] for one in outgoing.buttons])


def outbox_media(outgoing: OutgoingMessage) -> str:
    return dumps([media_to_json(one) for one in outgoing.media])


def turn(row: Row, items: tuple[InboxItem, ...]) -> Turn:
    return Turn(
        row["id"], row["session"], row["generation"], row["scope"], row["volatile"], row["state"],
        moment(row["started_at"]), items,
    )  # fmt: skip


def tool_run(row: Row) -> ToolRun:
    return ToolRun(ToolCall(row["call_id"], row["name"], json.loads(row["arguments"])), row["turn"], row["state"])


def checkpoint(row: Row) -> Checkpoint:
    return Checkpoint(
        id=row["id"],
        session=row["session_id"],
        num=row["checkpoint_num"],
        generation=row["generation"],
        from_message_id=row["from_message_id"],
        to_message_id=row["to_message_id"],
        messages_compressed=row["messages_compressed"],
        summary=row["summary_content"],
        key_facts=json.loads(row["key_facts"]),
        original_tokens=row["original_tokens"],
        compressed_tokens=row["compressed_tokens"],
        cost_usd=row["summary_cost_usd"],
        created_at=moment(row["created_at"]),
        trigger=row["trigger"],
        tier=row["tier"],
        state=row["state"],
        scope=row["scope"],
        depth=row["depth"],
        model=row["model"],
        attempts=row["attempts"],
        note=row["note"],
    )


def message_parts(message: Message) -> str:
    """What a view row holds of a message besides its text, as JSON; unset parts are left out."""
    parts: dict[str, Any] = {}
    if message.tool_calls:
        parts["tool_calls"] = [tool_call_to_json(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        parts["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        parts["name"] = message.name
    if message.media:
        parts["media"] = [media_to_json(media) for media in message.media]
    if message.thinking:
        parts["thinking"] = list(message.thinking)
    if message.model is not None:
        parts["model"] = message.model
    return dumps(parts)


def view_message(row: Row | Mapping[str, Any]) -> Message:
    parts: Mapping[str, Any] = json.loads(row["parts"])
    return Message(
        role=row["role"],
        content=row["content"],
        id=row["message_id"],
        ts=moment(row["ts"]),
        tool_calls=tuple(tool_call_from_json(call) for call in parts.get("tool_calls", ())),
        tool_call_id=parts.get("tool_call_id"),
        name=parts.get("name"),
        media=tuple(media_from_json(media) for media in parts.get("media", ())),
        thinking=tuple(parts.get("thinking", ())),
        model=parts.get("model"),
        metadata=json.loads(row["metadata"]),
    )
