"""A `Request` as the body of Anthropic's Messages API. Pure: the same request gives the same bytes.

What the API insists on, and this form therefore always does:
- all results of one assistant message stand first in the one user message that follows it;
- no empty or blank text block; nothing but a user message at the end (no prefill);
- signed thinking blocks go back verbatim and in place while their tool loop is open, and only to the model that made
  them; elsewhere they are left out whole (F09);
- at most four cache breakpoints, none on a thinking block;
- the volatile block last, behind every breakpoint: a tool loop is written to the cache once, and read from there by the
  turns that follow it, which do not send that block again. A model that thinks gets it with the request that it was
  given with, since what it thought is signed for all that stood before it;
- no sampling parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assistant.context.structure import tool_loop_start
from assistant.core.messages import Media, Message, ToolCall
from assistant.core.model_api import ModelRequest, ToolSpec
from assistant.models.encoding import CallIds, clean_json, clean_text, describe_media, safe_tool_name

MAX_BREAKPOINTS = 4
MAX_IMAGE_BYTES = 5_000_000
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
SIGNED_BLOCK_TYPES = ("thinking", "redacted_thinking")

Block = dict[str, Any]


def render_anthropic_request(request: ModelRequest, model: str, *, thinking: str = "") -> dict[str, Any]:
    """The JSON body, without `stream`. `thinking` is the type to ask for ("adaptive", "disabled"), "" for none."""
    system, system_edges = _system(request)
    messages, message_edges = _messages(request, model, thinks=thinking not in ("", "disabled"))
    for block in _breakpoints(system_edges + message_edges):
        block["cache_control"] = {"type": "ephemeral"}
    body: dict[str, Any] = {"model": model, "max_tokens": request.max_output_tokens, "messages": messages}
    if system:
        body["system"] = system
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
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
        blocks += _text(part.text)
        if part.cache_boundary and blocks:
            edges.append(blocks[-1])
    return blocks, edges


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": clean_text(spec.description),
        "input_schema": clean_json(dict(spec.schema)),
    }


def _breakpoints(edges: list[Block]) -> list[Block]:
    """At most four of the wanted ones: the first outlives every change behind it, the last ones cover the most."""
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
        volatile = _text(str(message.metadata.get("volatile", "")))
        if thinks or index == len(request.messages) - 1:
            blocks = [*volatile, *blocks]
        else:
            moved += volatile
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
        if index in request.cache_boundaries and turns:
            edges += [block for block in turns[-1]["content"] if block["type"] not in SIGNED_BLOCK_TYPES][-1:]
    for turn in turns:
        turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    if moved and turns[-1]["role"] == "user":
        turns[-1]["content"] += moved
    return turns, edges


def _blocks(message: Message, ids: CallIds, signed: bool) -> tuple[str, list[Block]]:
    match message.role:
        case "assistant":
            return "assistant", _assistant(message, ids, signed)
        case "tool":
            return "user", [_result(message, ids)]
        case _:
            return "user", _user(message)


def _user(message: Message) -> list[Block]:
    return [*_media(message.media), *_text(message.content)]


def _assistant(message: Message, ids: CallIds, signed: bool) -> list[Block]:
    ids.start_answer()
    blocks = list(_in_order(message, signed, ids))
    while blocks and blocks[-1]["type"] in SIGNED_BLOCK_TYPES:
        blocks.pop()
    return blocks


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
            yield from _text(text[: entry["characters"]])
            text = text[entry["characters"] :]
    yield from _text(text)
    for call in calls:
        yield _call(call, ids)


def _call(call: ToolCall, ids: CallIds) -> Block:
    return {
        "type": "tool_use",
        "id": ids.id_for_call(call.id),
        "name": safe_tool_name(call.name),
        "input": clean_json(dict(call.arguments)),
    }


def _result(message: Message, ids: CallIds) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": ids.id_for_result(message.tool_call_id or "")}
    content = [*_text(message.content), *_media(message.media)]
    if content:
        block["content"] = content
    if message.metadata.get("is_error"):
        block["is_error"] = True
    return block


def _text(text: str) -> list[Block]:
    return [{"type": "text", "text": clean_text(text)}] if text.strip() else []


def _media(media: tuple[Media, ...]) -> list[Block]:
    return [block for medium in media for block in _medium(medium)]


def _medium(medium: Media) -> list[Block]:
    fits = medium.data and len(medium.data) * 3 // 4 <= MAX_IMAGE_BYTES
    if medium.kind == "image" and medium.mime in IMAGE_TYPES and fits:
        return [{"type": "image", "source": {"type": "base64", "media_type": medium.mime, "data": medium.data}}]
    return _text(describe_media(medium))
