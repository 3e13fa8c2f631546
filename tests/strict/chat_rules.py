"""The rules of Chat Completions: OpenAI's own, and those that chat templates of local servers add."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from tests.strict.rules import TOOL_NAME, decoded_size, whole_number

TOP = frozenset(
    {"model", "messages", "tools", "tool_choice", "stream", "stream_options", "max_tokens", "max_completion_tokens"}
    | {"user", "prompt_cache_key", "parallel_tool_calls", "store", "response_format", "reasoning_effort"}
)
ROLES = ("system", "developer", "user", "assistant", "tool")
KEYS = {
    "system": {"role", "content"},
    "developer": {"role", "content"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal"},
    "tool": {"role", "content", "tool_call_id"},
}
MAX_ID = 40


def top_level(body: Mapping[str, Any], max_output: int, *, hosted: bool) -> list[str]:
    complaints = [f"Unrecognized request argument supplied: {key}" for key in body if key not in TOP]
    if not isinstance(body.get("model"), str) or not body["model"]:
        complaints.append("you must provide a model parameter")
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        complaints.append("Invalid 'messages': empty array. Expected an array with minimum length 1.")
    if hosted and "max_tokens" in body:
        complaints.append(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
    for key in ("max_tokens", "max_completion_tokens"):
        if key in body and (not whole_number(body[key]) or body[key] < 1):
            complaints.append(f"Invalid '{key}': integer below minimum value.")
        elif body.get(key, 0) > max_output:
            complaints.append(
                f"{key} is too large: {body[key]}. This model supports at most {max_output} completion tokens."
            )
    if "stream_options" in body and not body.get("stream"):
        complaints.append("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    return complaints


def tools(specs: Any) -> list[str]:
    complaints: list[str] = []
    names: list[Any] = []
    for index, spec in enumerate(specs if isinstance(specs, list) else [None]):
        function = spec.get("function") if isinstance(spec, dict) and spec.get("type") == "function" else None
        if not isinstance(function, dict) or not set(function) <= {"name", "description", "parameters", "strict"}:
            complaints.append(f"Missing required parameter: 'tools[{index}].function'.")
            continue
        names.append(function.get("name"))
        if not isinstance(names[-1], str) or not TOOL_NAME.fullmatch(names[-1]):
            complaints.append(f"Invalid 'tools[{index}].function.name': string does not match pattern.")
        if not isinstance(function.get("parameters"), dict) or function["parameters"].get("type") != "object":
            complaints.append(f"Invalid schema for function '{names[-1]}': schema must be of type 'object'.")
    if isinstance(specs, list) and not complaints and len(set(names)) != len(names):
        complaints.append("Tool names must be unique.")
    return complaints


def shapes(messages: list[Any]) -> list[str]:
    complaints: list[str] = []
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ROLES:
            complaints.append(f"Invalid value: '{role}'. Supported values are: {ROLES} (messages[{index}].role)")
            continue
        complaints += [f"Additional properties: messages[{index}].{key}" for key in message if key not in KEYS[role]]
        complaints += _content(message, index)
        complaints += _calls(message, index)
    return complaints


def _content(message: Mapping[str, Any], index: int) -> list[str]:
    content, role = message.get("content"), message["role"]
    where = f"messages[{index}].content"
    if isinstance(content, str):
        said = content.strip() or role == "tool" or message.get("tool_calls")
        return [] if said else [f"Invalid '{where}': the content of a {role} message may not be empty."]
    if isinstance(content, list) and content and role in ("user", "system", "developer"):
        return [complaint for part in content for complaint in _part(part, where)]
    if content is None and message.get("tool_calls"):
        return []
    return [f"Invalid value for 'content': expected a string, got {json.dumps(content)[:20]}. ({where})"]


def _part(part: Any, where: str) -> list[str]:
    match part:
        case {"type": "text", "text": str(text)} if text.strip():
            return []
        case {"type": "image_url", "image_url": {"url": str(url)}} if url.startswith("data:image/"):
            return [] if decoded_size(url.partition(",")[2]) else ["Invalid base64 image_url."]
        case {"type": "image_url", "image_url": {"url": str(url)}} if url.startswith("https://"):
            return []
        case _:
            return [f"Invalid '{where}': a part is neither text with words nor an image."]


def _calls(message: Mapping[str, Any], index: int) -> list[str]:
    complaints: list[str] = []
    calls = message.get("tool_calls", [])
    if "tool_calls" in message and not calls:
        complaints.append(f"Invalid 'messages[{index}].tool_calls': empty array.")
    for call in calls:
        match call:
            case {"id": str(one), "type": "function", "function": {"name": str(name), "arguments": str(text)}}:
                if not one or len(one) > MAX_ID:
                    complaints.append(f"Invalid 'messages[{index}].tool_calls[].id': string too long or empty.")
                if not TOOL_NAME.fullmatch(name):
                    complaints.append(f"Invalid 'messages[{index}].tool_calls[].function.name': pattern.")
                complaints += _arguments(text, index)
            case _:
                complaints.append(f"Missing required parameter in messages[{index}].tool_calls.")
    return complaints


def _arguments(text: str, index: int) -> list[str]:
    """Chat templates parse the arguments of earlier calls, and fail on what is no JSON object."""
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    return [] if isinstance(parsed, dict) else [f"Failed to parse tool call arguments as JSON: messages[{index}]"]


def pairs(messages: list[dict[str, Any]]) -> list[str]:
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                return [
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    f"'tool_calls'. (messages[{index}])"
                ]
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            break
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        if len(set(waiting)) != len(waiting):
            return [f"Duplicate value for 'tool_call_id' in messages[{index}]"]
    if not waiting:
        return []
    return [
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(waiting)}"
    ]


def order(messages: list[dict[str, Any]]) -> list[str]:
    roles = [message["role"] for message in messages]
    if roles and roles[0] in ("system", "developer"):
        roles = roles[1:]
    if "system" in roles or "developer" in roles:
        return ["System message must be at the beginning."]
    if not roles or roles[0] != "user":
        return ["After the optional system message, the first message must be from the user."]
    if roles[-1] == "assistant":
        return ["Cannot continue from an assistant message: the last message must be from the user or a tool."]
    if any(before == after != "tool" for before, after in pairwise(roles)):
        return ["Conversation roles must alternate user/assistant/user/assistant/..."]
    return []


def images(messages: list[dict[str, Any]], most: int) -> list[str]:
    contents = [message["content"] for message in messages if isinstance(message.get("content"), list)]
    found = sum(1 for content in contents for part in content if part["type"] == "image_url")
    return [f"Too many images in request. Max is {most}."] if found > most else []


def length(tokens: int, window: int) -> list[str]:
    if tokens <= window:
        return []
    return [
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
        "Please reduce the length of the messages."
    ]
