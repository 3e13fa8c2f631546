"""Text and times as they are stored: UTF-8 that every reader accepts, UTC times of one width.

Half a surrogate pair (broken input, cut emoji) has no UTF-8 form: it becomes U+FFFD before anything is hashed or
written. A NUL is kept; JSON escapes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from typing import Any

from assistant.core.messages import Message, media_from_json, media_to_json, tool_call_from_json, tool_call_to_json

FORGOTTEN_PLACEHOLDER = "[forgotten]"
"""What is shown where somebody had words forgotten."""


def format_time(when: datetime) -> str:
    """A time as stored: `2026-11-20T10:00:00.000000Z`, always this wide, so that times sort as text."""
    return when.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_time(stored: str) -> datetime:
    return datetime.fromisoformat(stored)


def clean_text(text: str) -> str:
    """`text` with halves of surrogate pairs joined, or replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def json_safe(value: Any) -> Any:
    """`value` (JSON-like, times, dataclasses) as JSON has it: every text clean, NaN and infinity as text."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {clean_text(str(key)): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    return value if value is None or isinstance(value, int | float) else json_safe(_plain(value))


def _plain(value: Any) -> Any:
    """What JSON has in place of a time or a dataclass."""
    if isinstance(value, datetime):
        return format_time(value)
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def dump_json(value: Any) -> str:
    """Compact JSON of JSON-like values, times and dataclasses, keys in their order; always encodable as UTF-8."""
    try:
        text = _compact(value)
        text.encode()
    except ValueError:
        return _compact(json_safe(value))
    return text


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)


def clean_message(message: Message) -> Message:
    """The same message with all its words clean; the message itself where they are."""
    rest = [message.name, [tool_call_to_json(call) for call in message.tool_calls], list(message.thinking)]
    try:
        message.content.encode()
        _compact([*rest, [media_to_json(media) for media in message.media]]).encode()
    except ValueError:
        return replace(
            message,
            content=clean_text(message.content),
            name=json_safe(message.name),
            tool_calls=tuple(tool_call_from_json(json_safe(tool_call_to_json(call))) for call in message.tool_calls),
            media=tuple(media_from_json(json_safe(media_to_json(media))) for media in message.media),
            thinking=tuple(json_safe(block) for block in message.thinking),
        )
    return message
