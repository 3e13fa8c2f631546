"""The rules of Anthropic's Messages API: functions from a part of the body to complaints in the API's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.strict.count import as_blocks
from tests.strict.rules import TOOL_NAME, decoded_size, unknown_keys, whole_number

TOP = frozenset(
    {"model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "stream", "metadata"}
    | {"stop_sequences", "service_tier", "output_config", "cache_control"}
)
SAMPLING = ("temperature", "top_p", "top_k")
THINKING_TYPES = ("adaptive", "disabled", "between_tools")
SIGNED = ("thinking", "redacted_thinking")
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
MAX_IMAGE_BYTES = 5 * 1024 * 1024
MAX_BREAKPOINTS = 4

FIELDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    # Required and optional fields of each type of block, besides `type`.
    "text": (frozenset({"text"}), frozenset({"cache_control", "citations"})),
    "image": (frozenset({"source"}), frozenset({"cache_control"})),
    "tool_use": (frozenset({"id", "name", "input"}), frozenset({"cache_control"})),
    "tool_result": (frozenset({"tool_use_id"}), frozenset({"content", "is_error", "cache_control"})),
    "thinking": (frozenset({"thinking", "signature"}), frozenset()),
    "redacted_thinking": (frozenset({"data"}), frozenset()),
}
PLACES = {
    "user": ("text", "image", "tool_result"),
    "assistant": ("text", "tool_use", *SIGNED),
}


def top_level(body: Mapping[str, Any], max_output: int) -> list[str]:
    complaints = [f"`{key}` is not supported for this model" for key in SAMPLING if key in body]
    complaints += unknown_keys(body, TOP | set(SAMPLING), "")
    complaints += [f"{key}: Field required" for key in ("model", "max_tokens", "messages") if key not in body]
    if complaints:
        return complaints
    if not isinstance(body["model"], str) or not body["model"]:
        complaints.append("model: Input should be a valid string")
    if not whole_number(body["max_tokens"]) or body["max_tokens"] < 1:
        complaints.append("max_tokens: Input should be greater than or equal to 1")
    elif body["max_tokens"] > max_output:
        complaints.append(
            f"max_tokens: {body['max_tokens']} > {max_output}, which is the maximum allowed number of output tokens"
        )
    kind = body.get("thinking", {"type": "disabled"})
    if not isinstance(kind, dict) or kind.get("type") not in THINKING_TYPES:
        complaints.append("thinking: Input tag found does not match any of the expected tags")
    if not isinstance(body["messages"], list) or not body["messages"]:
        complaints.append("messages: at least one message is required")
    return complaints


def tools(specs: Any) -> list[str]:
    complaints: list[str] = []
    seen: set[str] = set()
    if not isinstance(specs, list):
        return ["tools: Input should be a valid list"]
    for index, spec in enumerate(specs):
        where = f"tools.{index}."
        complaints += unknown_keys(spec, frozenset({"name", "description", "input_schema", "cache_control"}), where)
        name = spec.get("name")
        if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
            complaints.append(f"{where}name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
        if name in seen:
            complaints.append("tools: Tool names must be unique.")
        seen.add(str(name))
        schema = spec.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            complaints.append(f"{where}input_schema.type: Input should be 'object'")
    return complaints


def system(value: Any) -> list[str]:
    if isinstance(value, str):
        return []
    if not isinstance(value, list):
        return ["system: Input should be a valid list"]
    return [complaint for index, block in enumerate(value) for complaint in _block(block, f"system.{index}", ("text",))]


def shapes(messages: list[Any]) -> list[str]:
    """Each message and block by itself."""
    complaints: list[str] = []
    for index, message in enumerate(messages):
        where = f"messages.{index}"
        if not isinstance(message, dict) or message.get("role") not in PLACES:
            complaints.append(f"{where}: Unexpected role. Allowed roles are user and assistant")
            continue
        complaints += unknown_keys(message, frozenset({"role", "content"}), f"{where}.")
        content = message.get("content")
        if not isinstance(content, str | list):
            complaints.append(f"{where}.content: Field required")
        elif not content:
            complaints.append(f"{where}: all messages must have non-empty content")
        else:
            for place, block in enumerate(as_blocks(content)):
                complaints += _block(block, f"{where}.content.{place}", PLACES[message["role"]])
    return complaints


def _block(block: Any, where: str, allowed: tuple[str, ...]) -> list[str]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in allowed:
        return [f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {allowed}"]
    required, optional = FIELDS[str(kind)]
    complaints = [f"{where}.{key}: Field required" for key in sorted(required) if key not in block]
    complaints += unknown_keys(block, required | optional | {"type"}, f"{where}.{kind}.")
    return complaints or _values(block, where)


def _values(block: Mapping[str, Any], where: str) -> list[str]:
    mark = block.get("cache_control")
    if mark is not None and (mark.get("type") != "ephemeral" or set(mark) - {"type", "ttl"}):
        return [f"{where}.cache_control: Input should be 'ephemeral'"]
    if mark is not None and mark.get("ttl", "5m") not in ("5m", "1h"):
        return [f"{where}.cache_control.ephemeral.ttl: Input should be '5m' or '1h'"]
    match block["type"]:
        case "text" if not isinstance(block["text"], str):
            return [f"{where}.text: Input should be a valid string"]
        case "text" if not block["text"]:
            return ["messages: text content blocks must be non-empty"]
        case "text" if not block["text"].strip():
            return ["messages: text content blocks must contain non-whitespace text"]
        case "tool_use" if not isinstance(block["input"], dict):
            return [f"{where}.tool_use.input: Input should be a valid dictionary"]
        case "tool_use" if not TOOL_NAME.fullmatch(str(block["name"])):
            return [f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"]
        case "tool_use" if not TOOL_NAME.fullmatch(str(block["id"])):
            return [f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"]
        case "tool_result" if isinstance(content := block.get("content", ""), list):
            return [
                c for i, part in enumerate(content) for c in _block(part, f"{where}.content.{i}", ("text", "image"))
            ]
        case "image":
            return _image(block["source"], where)
        case _:
            return []


def _image(source: Any, where: str) -> list[str]:
    if not isinstance(source, dict) or set(source) != {"type", "media_type", "data"} or source["type"] != "base64":
        return [f"{where}.image.source: Input should be a valid dictionary"]
    if source["media_type"] not in IMAGE_TYPES:
        return [f"{where}.image.source.base64.media_type: Input should be one of {IMAGE_TYPES}"]
    size = decoded_size(source["data"])
    if not size:
        return [f"{where}.image.source.base64.data: The image was specified with invalid base64 data"]
    if size > MAX_IMAGE_BYTES:
        return [f"{where}.image.source.base64: image exceeds 5 MB maximum: {size} bytes > {MAX_IMAGE_BYTES} bytes"]
    return []


def order(messages: list[dict[str, Any]]) -> list[str]:
    if messages[0]["role"] != "user":
        return ['messages: first message must use the "user" role']
    if messages[-1]["role"] != "user":
        return ["This model does not support assistant message prefill. The conversation must end with a user message."]
    for index, message in enumerate(messages):
        if message["role"] == "assistant" and as_blocks(message["content"])[-1]["type"] in SIGNED:
            return [f"messages.{index}: The final block in an assistant message cannot be `thinking`."]
    return []


def merged(messages: list[dict[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Neighbours of one role as the one message that the API makes of them."""
    turns: list[tuple[str, list[Any]]] = []
    for message in messages:
        blocks = as_blocks(message["content"])
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], list(blocks)))
    return turns


def pairs(messages: list[dict[str, Any]]) -> list[str]:
    turns = merged(messages)
    ids = [block["id"] for _, blocks in turns for block in blocks if block["type"] == "tool_use"]
    if len(ids) != len(set(ids)):
        return ["messages: `tool_use` ids must be unique"]
    return [complaint for index in range(len(turns)) for complaint in _turn_pairs(turns, index)]


def _turn_pairs(turns: list[tuple[str, list[Any]]], index: int) -> Iterator[str]:
    blocks = turns[index][1]
    before = turns[index - 1][1] if index else []
    called = {block["id"] for block in before if block["type"] == "tool_use"}
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    leading = [block["type"] for block in blocks[: len(results)]]
    for one in results:
        if one not in called:
            yield f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {one}. "
        elif results.count(one) > 1:
            yield f"each tool_use must have a single result. Found multiple `tool_result` blocks with id: {one}"
    missing = called - set(results)
    if missing or leading != ["tool_result"] * len(results):
        named = ", ".join(sorted(missing or results))
        yield (
            f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: {named}. "
            "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        )


def breakpoints(body: Mapping[str, Any]) -> list[str]:
    blocks = [*body.get("tools", ()), *as_blocks(body.get("system", ""))]
    for message in body["messages"]:
        blocks += as_blocks(message["content"])
    found = sum(1 for block in blocks if block.get("cache_control"))
    if found > MAX_BREAKPOINTS:
        return [f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {found}."]
    lifetimes = [block["cache_control"].get("ttl", "5m") for block in blocks if block.get("cache_control")]
    if "1h" in lifetimes and "5m" in lifetimes[: len(lifetimes) - lifetimes[::-1].index("1h")]:
        return ["A ttl='1h' cache_control block must not come after a ttl='5m' cache_control block."]
    return []


def images(messages: list[dict[str, Any]], most: int) -> list[str]:
    blocks = [block for message in messages for block in as_blocks(message["content"])]
    blocks += [
        part for block in blocks if block["type"] == "tool_result" for part in as_blocks(block.get("content", ""))
    ]
    found = sum(1 for block in blocks if block["type"] == "image")
    return [f"Too much media: 0 document pages + {found} images > {most}"] if found > most else []


def length(tokens: int, window: int) -> list[str]:
    return [f"prompt is too long: {tokens} tokens > {window} maximum"] if tokens > window else []
