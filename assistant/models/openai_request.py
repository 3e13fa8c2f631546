"""A `Request` as the body of Chat Completions. Pure: the same request gives the same bytes.

Written for the strictest reader: local servers push the messages through a chat template that knows one system
message at the start, then user and assistant in turn, and text rather than parts. So system blocks are joined,
neighbours of one role are merged, and parts appear only where an image is.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from assistant.core.messages import Media, Message, ToolCall
from assistant.core.model_api import ModelRequest, ToolSpec
from assistant.models.encoding import CallIds, clean_json, clean_text, describe_media, safe_tool_name

NO_OUTPUT = "(no output)"
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")

Part = dict[str, Any]
OutputLimit = Literal["max_tokens", "max_completion_tokens"]


def render_openai_request(
    request: ModelRequest, model: str, *, output_limit: OutputLimit = "max_tokens"
) -> dict[str, Any]:
    """The JSON body, without `stream`. `output_limit` is the name under which the server knows the cap on the answer:
    OpenAI's own models refuse the old name, many other servers ignore the new one."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [*_system(request), *_messages(request)],
        output_limit: request.max_output_tokens,
    }
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    return body


def _system(request: ModelRequest) -> list[dict[str, Any]]:
    texts = [clean_text(block.text) for block in request.system if block.text.strip()]
    return [{"role": "system", "content": "\n\n".join(texts)}] if texts else []


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {
        "name": spec.name,
        "description": clean_text(spec.description),
        "parameters": clean_json(dict(spec.schema)),
    }
    return {"type": "function", "function": function}


def _messages(request: ModelRequest) -> list[dict[str, Any]]:
    ids = CallIds()
    rendered: list[dict[str, Any]] = []
    for message in request.messages:
        entry = _entry(message, ids)
        before = rendered[-1] if rendered else None
        if before and before["role"] == entry["role"] != "tool":
            _merge(before, entry)
        elif entry["role"] == "tool" or entry["content"] or entry.get("tool_calls"):
            rendered.append(entry)
    for entry in rendered:
        if isinstance(entry["content"], list):
            entry["content"] = _flat(entry["content"])
    return rendered


def _entry(message: Message, ids: CallIds) -> dict[str, Any]:
    """One message; its content a list of parts until neighbours are merged."""
    match message.role:
        case "assistant":
            ids.start_answer()
            entry: dict[str, Any] = {"role": "assistant", "content": _text(message.content)}
            if message.tool_calls:
                entry["tool_calls"] = [_call(call, ids) for call in message.tool_calls]
            return entry
        case "tool":
            parts = [message.content, *(describe_media(medium) for medium in message.media)]
            text = clean_text("\n\n".join(part for part in parts if part.strip()))
            return {
                "role": "tool",
                "tool_call_id": ids.id_for_result(message.tool_call_id or ""),
                "content": text or NO_OUTPUT,
            }
        case _:
            volatile = _text(str(message.metadata.get("volatile", "")))
            return {"role": "user", "content": [*volatile, *_media(message.media), *_text(message.content)]}


def _merge(before: dict[str, Any], entry: dict[str, Any]) -> None:
    before["content"] = before["content"] + entry["content"]
    if calls := entry.get("tool_calls"):
        before["tool_calls"] = [*before.get("tool_calls", ()), *calls]


def _flat(parts: list[Part]) -> str | list[Part]:
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _call(call: ToolCall, ids: CallIds) -> dict[str, Any]:
    arguments = json.dumps(clean_json(dict(call.arguments)), ensure_ascii=False)
    function = {"name": safe_tool_name(call.name), "arguments": arguments}
    return {"id": ids.id_for_call(call.id), "type": "function", "function": function}


def _text(text: str) -> list[Part]:
    return [{"type": "text", "text": clean_text(text)}] if text.strip() else []


def _media(media: tuple[Media, ...]) -> list[Part]:
    return [part for medium in media for part in _medium(medium)]


def _medium(medium: Media) -> list[Part]:
    if medium.kind == "image" and medium.mime in IMAGE_TYPES and medium.data:
        return [{"type": "image_url", "image_url": {"url": f"data:{medium.mime};base64,{medium.data}"}}]
    return _text(describe_media(medium))
