"""Anthropic's stream of events put together to one reply. Pure: events in, a `Reply` out.

Events are plain JSON objects. A known event of another shape than expected raises `Garbled`;
events and blocks of unknown types are passed over, since the API adds new ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from assistant.core.messages import Message, ToolCall, Usage
from assistant.core.model_api import ModelReply, StopReason
from assistant.models.anthropic_request import SIGNED_BLOCK_TYPES, position_mark
from assistant.models.encoding import (
    CHARS_PER_TOKEN,
    MalformedProviderData,
    parse_arguments,
    read_token_count,
    require_object,
)
from assistant.models.errors import PartialAnswer

PARAGRAPH = "\n\n"

_BILLED = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_STOPS: Mapping[str, StopReason] = {
    "max_tokens": "max_tokens",
    "refusal": "refusal",
    "model_context_window_exceeded": "overflow",
}


class AnthropicAnswer:
    """Collects one streamed answer. `feed` each event in order; `reply` once `finished`."""

    def __init__(self, model: str) -> None:
        self.begun = False
        self.finished = False
        self._model = model
        self._blocks: list[dict[str, Any]] = []
        self._usage: dict[str, int] = {}
        self._stop = ""
        self._refusal = ""
        self._characters = 0

    @property
    def text(self) -> str:
        return PARAGRAPH.join(block["text"] for block in self._blocks if block["type"] == "text" and block["text"])

    @property
    def usage(self) -> Usage:
        """What is known so far: the prompt as billed, the answer as billed or by its characters."""
        told = self._usage
        estimated = 0 if self.finished else self._characters // CHARS_PER_TOKEN
        return Usage(
            input=told.get("input_tokens", 0),
            output=max(told.get("output_tokens", 0), estimated),
            cache_read=told.get("cache_read_input_tokens", 0),
            cache_write=told.get("cache_creation_input_tokens", 0),
        )

    @property
    def partial(self) -> PartialAnswer:
        return PartialAnswer(self.begun, self.text, self.usage)

    def feed(self, event: Mapping[str, Any]) -> str:
        """Take one event; returns the text to show for it, mostly none. Raises `Garbled`."""
        match event:
            case {"type": "message_start", "message": {"usage": dict(usage)}}:
                self.begun = True
                self._bill(usage)
            case {"type": "content_block_start", "index": int(index), "content_block": {"type": str()} as block}:
                if index != len(self._blocks):
                    raise MalformedProviderData(f"block {index} came out of order")
                self._blocks.append(_opened(block))
                if block["type"] == "text" and block.get("text"):
                    return self._grow(self._blocks[-1], {"type": "text_delta", "text": block["text"]})
            case {"type": "content_block_delta", "index": int(index), "delta": {"type": str()} as delta}:
                if not 0 <= index < len(self._blocks):
                    raise MalformedProviderData(f"block {index} was never opened")
                return self._grow(self._blocks[index], delta)
            case {"type": "message_delta", "delta": dict(delta)}:
                self._stop = str(delta.get("stop_reason") or self._stop)
                self._refusal = _explanation(delta) or self._refusal
                self._bill(require_object(event.get("usage")))
            case {"type": "message_stop"}:
                self.finished = True
            case {"type": "message_start" | "content_block_start" | "content_block_delta" | "message_delta"}:
                raise MalformedProviderData(f"a {event['type']} event of an unknown shape")
            case {"type": str()}:
                pass
            case _:
                raise MalformedProviderData("an event without a type")
        return ""

    def reply(self) -> ModelReply:
        calls = tuple(_call(block) for block in self._blocks if block["type"] == "tool_use")
        stop = _STOPS.get(self._stop, "end")
        if stop == "refusal":
            message = Message("assistant", model=self._model, metadata={"refusal": self._refusal or "no reason given"})
            return ModelReply(message, self.usage, stop)
        message = Message("assistant", self.text, tool_calls=calls, thinking=self._thinking(), model=self._model)
        return ModelReply(message, self.usage, "tool_calls" if calls and stop != "overflow" else stop)

    def _bill(self, usage: Mapping[str, Any]) -> None:
        self._usage |= {key: read_token_count(usage[key]) for key in _BILLED if read_token_count(usage.get(key))}

    def _grow(self, block: dict[str, Any], delta: Mapping[str, Any]) -> str:
        match block, delta:
            case {"type": "text"}, {"type": "text_delta", "text": str(text)}:
                shown = PARAGRAPH + text if text and not block["text"] and self.text else text
                block["text"] += text
                self._characters += len(text)
                return shown
            case {"type": "tool_use"}, {"type": "input_json_delta", "partial_json": str(piece)}:
                block["json"] += piece
                self._characters += len(piece)
            case {"type": "thinking"}, {"type": "thinking_delta", "thinking": str(piece)}:
                block["thinking"] += piece
                self._characters += len(piece)
            case {"type": "thinking"}, {"type": "signature_delta", "signature": str(piece)}:
                block["signature"] += piece
            case _, {"type": "text_delta" | "input_json_delta" | "thinking_delta" | "signature_delta"}:
                raise MalformedProviderData(f"a {delta['type']} in a {block['type']} block")
        return ""

    def _thinking(self) -> tuple[Mapping[str, Any], ...]:
        """The signed blocks verbatim, with marks where they do not simply lead the answer."""
        entries: list[Mapping[str, Any]] = []
        pending: list[Mapping[str, Any]] = []
        written = 0
        for block in self._blocks:
            if block["type"] in SIGNED_BLOCK_TYPES:
                entries += [*pending, block]
                pending = []
            elif block["type"] == "text" and block["text"]:
                characters = len(block["text"]) + (len(PARAGRAPH) if written else 0)
                written += characters
                pending.append(position_mark(characters=characters))
            elif block["type"] == "tool_use":
                pending.append(position_mark(call=block["id"]))
        return tuple(entries)


def _opened(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block as it stands when it opens, with what the API sends whole at this point."""
    match block:
        case {"type": "text"}:
            return {"type": "text", "text": ""}
        case {"type": "thinking"}:
            thinking, signature = str(block.get("thinking") or ""), str(block.get("signature") or "")
            return {"type": "thinking", "thinking": thinking, "signature": signature}
        case {"type": "redacted_thinking", "data": str(data)}:
            return {"type": "redacted_thinking", "data": data}
        case {"type": "tool_use", "id": str(call_id), "name": str(name)}:
            return {
                "type": "tool_use",
                "id": call_id,
                "name": name,
                "json": "",
                "input": require_object(block.get("input")),
            }
        case {"type": "tool_use" | "redacted_thinking"}:
            raise MalformedProviderData(f"a {block['type']} block of an unknown shape")
        case _:
            return {"type": block["type"]}


def _call(block: Mapping[str, Any]) -> ToolCall:
    written = block["json"] or json.dumps(block["input"])
    return ToolCall(block["id"], block["name"], parse_arguments(written))


def _explanation(delta: Mapping[str, Any]) -> str:
    details = delta.get("stop_details")
    if not isinstance(details, dict):
        return ""
    return str(details.get("explanation") or details.get("category") or "")
