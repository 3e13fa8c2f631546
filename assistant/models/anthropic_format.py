"""Anthropic's Messages API: a request as its body, and its stream of events as one reply. Pure: the same request gives
the same bytes.

What the API insists on, and a request therefore always does:
- all results of one assistant message come first in the one user message that follows it;
- no empty or blank text block; nothing but a user message at the end (no prefill);
- signed thinking blocks go back verbatim and in place while their tool loop is open, and only to the model that made
  them; elsewhere they are left out whole (F09);
- at most four cache breakpoints, none on a thinking block;
- the volatile block last, behind every breakpoint: the person's message and a tool loop are written to the cache once,
  and read from there by the turns that follow, which do not send that block again. A model that thinks gets it directly
  behind the message that it was given with, since what it thought is signed for all that stood before it;
- no sampling parameters.

Of the stream, a known event of another shape than expected raises `MalformedProviderData`; events and blocks of unknown
types are passed over, since the API adds new ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from assistant.context.structure import tool_loop_start
from assistant.core.messages import Media, Message, ToolCall, Usage
from assistant.core.model_api import MAX_CALLS_IN_ANSWER, ModelReply, ModelRequest, StopReason
from assistant.core.quoting import replace_unsendable_in_json
from assistant.models.encoding import (
    CHARS_PER_TOKEN,
    AnswerSize,
    CallIds,
    MalformedProviderData,
    describe_media,
    encode_text,
    encode_tools,
    is_image,
    parse_arguments,
    read_token_count,
    require_object,
    safe_tool_name,
)
from assistant.models.errors import PartialAnswer

MAX_BREAKPOINTS = 4
MAX_IMAGE_BYTES = 5_000_000
SIGNED_BLOCK_TYPES = ("thinking", "redacted_thinking")

Block = dict[str, Any]


def render_anthropic_request(request: ModelRequest, model: str, *, thinking: str = "") -> dict[str, Any]:
    """The JSON body, without `stream`. `thinking` is the type to ask for ("adaptive", "disabled"), "" for none."""
    system, system_edges = _system(request)
    messages, message_edges = _messages(request, model, thinks=thinking not in ("", "disabled"))
    for block in _breakpoints(system_edges + message_edges):
        # Five minutes are what the API does where nothing is said.
        block["cache_control"] = {"type": "ephemeral"} | ({"ttl": "1h"} if request.cache_lifetime == "1h" else {})
    body: dict[str, Any] = {"model": model, "max_tokens": request.max_output_tokens, "messages": messages}
    if system:
        body["system"] = system
    if request.tools:
        body["tools"] = encode_tools(request.tools, schema_key="input_schema")
    if thinking:
        body["thinking"] = {"type": thinking}
    return body


def position_mark(*, characters: int = 0, call: str = "") -> Mapping[str, Any]:
    """An entry of `Message.thinking` that says what stood before the next signed block: so many characters of the
    text, or a tool call. Needed only where a model thinks again within one answer."""
    return {"type": "position", "call": call} if call else {"type": "position", "characters": characters}


def _system(request: ModelRequest) -> tuple[list[Block], list[Block]]:
    blocks: list[Block] = []
    edges: list[Block] = []
    for part in request.system:
        blocks += encode_text(part.text)
        if part.cache_boundary and blocks:
            edges.append(blocks[-1])
    return blocks, edges


def _breakpoints(edges: list[Block]) -> list[Block]:
    """At most four: the first outlives every change behind it, the last ones cover the most."""
    once = [edge for index, edge in enumerate(edges) if not any(edge is other for other in edges[:index])]
    return once if len(once) <= MAX_BREAKPOINTS else [once[0], *once[1 - MAX_BREAKPOINTS :]]


def _messages(request: ModelRequest, model: str, *, thinks: bool) -> tuple[list[dict[str, Any]], list[Block]]:
    loop = tool_loop_start(request.messages)
    thinks = thinks or any(message.thinking for message in request.messages)
    ids = CallIds()
    turns: list[dict[str, Any]] = []
    edges: list[Block] = []
    moved: list[Block] = []
    for index, message in enumerate(request.messages):
        signed = index > loop and message.model == model
        role, blocks = _blocks(message, ids, signed)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
        if index in request.cache_boundaries and turns:
            edges += [block for block in turns[-1]["content"] if block["type"] not in SIGNED_BLOCK_TYPES][-1:]
        volatile = encode_text(str(text)) if (text := message.metadata.get("volatile")) else []
        if thinks and volatile and turns and turns[-1]["role"] == role:
            turns[-1]["content"] += volatile
        else:
            moved += volatile
    for turn in turns:
        # Most have one.
        if len(turn["content"]) > 1:
            turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    if moved and turns[-1]["role"] == "user":
        turns[-1]["content"] += moved
    return turns, edges


def _blocks(message: Message, ids: CallIds, signed: bool) -> tuple[str, list[Block]]:
    match message.role:
        case "assistant":
            ids.start_answer()
            if not message.tool_calls and not (signed and message.thinking):
                # Most of a view is that, and all of it is written for each call.
                return "assistant", encode_text(message.content)
            blocks = list(_in_order(message, signed, ids))
            while blocks and blocks[-1]["type"] in SIGNED_BLOCK_TYPES:
                blocks.pop()
            return "assistant", blocks
        case "tool":
            return "user", [_result(message, ids)]
        case _:
            return "user", [*_media(message.media), *encode_text(message.content)]


def _in_order(message: Message, signed: bool, ids: CallIds) -> Iterator[Block]:
    """Thinking, text and calls in the order in which the model wrote them."""
    text, calls = message.content, list(message.tool_calls)
    for entry in message.thinking if signed else ():
        if entry.get("type") != "position":
            yield dict(entry)
        elif "call" in entry:
            for call in [call for call in calls if call.id == entry["call"]][:1]:
                calls.remove(call)
                yield _call(call, ids)
        else:
            yield from encode_text(text[: entry["characters"]])
            text = text[entry["characters"] :]
    yield from encode_text(text)
    for call in calls:
        yield _call(call, ids)


def _call(call: ToolCall, ids: CallIds) -> Block:
    return {
        "type": "tool_use",
        "id": ids.id_for_call(call.id),
        "name": safe_tool_name(call.name),
        "input": replace_unsendable_in_json(dict(call.arguments)),
    }


def _result(message: Message, ids: CallIds) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": ids.id_for_result(message.tool_call_id or "")}
    content = [*encode_text(message.content), *_media(message.media)]
    if content:
        block["content"] = content
    if message.metadata.get("is_error"):
        block["is_error"] = True
    return block


def _media(media: tuple[Media, ...]) -> Iterator[Block]:
    for medium in media:
        if is_image(medium) and medium.data and len(medium.data) * 3 // 4 <= MAX_IMAGE_BYTES:
            source = {"type": "base64", "media_type": medium.mime, "data": medium.data}
            yield {"type": "image", "source": source}
            if medium.path:
                yield from encode_text(describe_media(medium, is_shown=True))
        else:
            yield from encode_text(describe_media(medium))


# --------------------------------------------------------------------------------------------------------------- stream

PARAGRAPH = "\n\n"

# What is billed, by the field of `Usage` that counts it.
_BILLED = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_input_tokens": "cache_read",
    "cache_creation_input_tokens": "cache_write",
}
_STOPS: Mapping[str, StopReason] = {
    "max_tokens": "max_tokens",
    "refusal": "refusal",
    "model_context_window_exceeded": "overflow",
}
# By the type of a delta: the block that it belongs to, and its own key and the block's.
_DELTAS = {
    "text_delta": ("text", "text", "text"),
    "input_json_delta": ("tool_use", "partial_json", "json"),
    "thinking_delta": ("thinking", "thinking", "thinking"),
    "signature_delta": ("thinking", "signature", "signature"),
}


class AnthropicAnswer(AnswerSize):
    """Collects one streamed answer. `feed` each event in order; `reply` once `finished`."""

    def __init__(self, model: str) -> None:
        super().__init__()
        self.begun = False
        self.finished = False
        self._model = model
        self._blocks: list[dict[str, Any]] = []
        self._usage = Usage()
        self._stop = ""
        self._refusal = ""

    @property
    def text(self) -> str:
        """What has been said so far; each block is a paragraph."""
        return PARAGRAPH.join(block["text"] for block in self._blocks if block["type"] == "text" and block["text"])

    @property
    def usage(self) -> Usage:
        """Until now: the prompt as billed, the answer as billed or by its characters."""
        estimated = 0 if self.finished else self._characters // CHARS_PER_TOKEN
        return replace(self._usage, output=max(self._usage.output, estimated))

    @property
    def partial(self) -> PartialAnswer:
        return PartialAnswer(self.begun, self.text, self.usage)

    def feed(self, event: Mapping[str, Any]) -> str:
        """Take one event; returns the text to show for it, mostly none. Raises `MalformedProviderData`."""
        match event:
            case {"type": "message_start", "message": {"usage": dict(usage)}}:
                self.begun = True
                self._bill(usage)
            case {"type": "content_block_start", "index": int(index), "content_block": {"type": str()} as block}:
                if index != len(self._blocks):
                    raise MalformedProviderData(f"block {index} came out of order")
                self._blocks.append(_opened(block))
                self.count_piece(len(self._blocks))
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

    def cut_off(self) -> None:
        """End an answer that does not end. What it calls for is incomplete, and what it thought is not signed."""
        self._usage, self._stop, self.finished = self.usage, "max_tokens", True
        self._blocks = [block for block in self._blocks if block["type"] == "text"]

    def reply(self) -> ModelReply:
        """Return the whole answer, after the end of the stream. A refusal has no text, but its reason in the message's
        metadata."""
        called = [block for block in self._blocks if block["type"] == "tool_use"]
        calls = tuple(map(_finished_call, called[:MAX_CALLS_IN_ANSWER]))
        stop = _STOPS.get(self._stop, "end")
        if stop == "refusal":
            message = Message("assistant", model=self._model, metadata={"refusal": self._refusal or "no reason given"})
            return ModelReply(message, self.usage, stop)
        message = Message("assistant", self.text, tool_calls=calls, thinking=self._thinking(), model=self._model)
        return ModelReply(message, self.usage, "tool_calls" if calls and stop != "overflow" else stop)

    def _bill(self, usage: Mapping[str, Any]) -> None:
        counts = {field: read_token_count(usage.get(key)) for key, field in _BILLED.items()}
        by_lifetime = usage.get("cache_creation")
        if isinstance(by_lifetime, Mapping):
            counts["cache_write_hour"] = read_token_count(by_lifetime.get("ephemeral_1h_input_tokens"))
        self._usage = replace(self._usage, **{field: count for field, count in counts.items() if count})

    def _grow(self, block: dict[str, Any], delta: Mapping[str, Any]) -> str:
        if delta["type"] not in _DELTAS:
            return ""
        kind, source, target = _DELTAS[delta["type"]]
        piece = delta.get(source)
        if block["type"] != kind or not isinstance(piece, str):
            raise MalformedProviderData(f"a {delta['type']} in a {block['type']} block")
        starts_paragraph = kind == "text" and piece and not block["text"] and self.text
        block[target] += piece
        if kind != "text":
            self.count_hidden(0 if target == "signature" else len(piece))
            return ""
        self._characters += len(piece)
        return PARAGRAPH + piece if starts_paragraph else piece

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
    """A block when it opens, with what the API sends whole at this point."""
    match block:
        case {"type": "text"}:
            return {"type": "text", "text": ""}
        case {"type": "thinking"}:
            return {"type": "thinking", **{key: str(block.get(key) or "") for key in ("thinking", "signature")}}
        case {"type": "redacted_thinking", "data": str(data)}:
            return {"type": "redacted_thinking", "data": data}
        case {"type": "tool_use", "id": str(call_id), "name": str(name)}:
            given = require_object(block.get("input"))
            return {"type": "tool_use", "id": call_id, "name": name, "json": "", "input": given}
        case {"type": "tool_use" | "redacted_thinking"}:
            raise MalformedProviderData(f"a {block['type']} block of an unknown shape")
        case _:
            return {"type": block["type"]}


def _finished_call(block: Mapping[str, Any]) -> ToolCall:
    written = block["json"] or json.dumps(block["input"])
    return ToolCall(block["id"], block["name"], parse_arguments(written))


def _explanation(delta: Mapping[str, Any]) -> str:
    match delta.get("stop_details"):
        case dict(details):
            return str(details.get("explanation") or details.get("category") or "")
        case _:
            return ""
