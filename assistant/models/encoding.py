"""What the formats of providers share: text that survives JSON, ids and names that every provider takes, media.

Pure. What a message says is never changed beyond characters that no request can carry (lone surrogates).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from assistant.core.messages import Media
from assistant.core.model_api import (
    MAX_ANSWER_CHARACTERS,
    MAX_CALLS_IN_ANSWER,
    HiddenProgress,
    ModelEvent,
    TextDelta,
    ToolSpec,
)
from assistant.core.quoting import replace_unsendable, replace_unsendable_in_json
from assistant.core.text import lazy_regex, parse_json

CHARS_PER_TOKEN = 4
MAX_ID_LENGTH = 40
MAX_NAME_LENGTH = 64
INVALID_JSON = "__invalid_json__"
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_NOT_IN_NAMES = lazy_regex(r"[^a-zA-Z0-9_-]")
_TOOL_SETS_KEPT = 8
_BYTES_OF_PIECE = 200
# By the identity of the tools and the key of their schemas: the tools, and what is sent of them.
_encoded_tools: dict[tuple[int, str], tuple[tuple[ToolSpec, ...], list[dict[str, Any]]]] = {}


class MalformedProviderData(ValueError):
    """What the provider sent is not what its API promises."""


def encode_body(body: Mapping[str, Any]) -> bytes:
    """A request as JSON. The SDKs would copy each part of it first, and all of a view goes out with each call."""
    return msgspec.json.encode(body)


def require_object(value: object) -> Mapping[str, Any]:
    """`value` if it is a JSON object, an empty one for null. Raises `MalformedProviderData`."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MalformedProviderData(f"a {type(value).__name__} where an object belongs")
    return value


def read_token_count(value: object) -> int:
    """A number of tokens; 0 for anything that is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def encode_text(text: str) -> list[dict[str, Any]]:
    """`text` as the one part that all providers write alike; nothing for blank text, which they refuse."""
    return [{"type": "text", "text": replace_unsendable(text)}] if text.strip() else []


def encode_tools(specs: tuple[ToolSpec, ...], *, schema_key: str) -> list[dict[str, Any]]:
    """Kept as long as they stay the same, since they go out with each call; not to be changed."""
    key = (id(specs), schema_key)
    known = _encoded_tools.get(key)
    if known is None or known[0] is not specs:
        known = specs, [_encode_tool(spec, schema_key) for spec in specs]
        # Long requests are written in threads, several at a time.
        for oldest in list(_encoded_tools)[: max(0, len(_encoded_tools) + 1 - _TOOL_SETS_KEPT)]:
            _encoded_tools.pop(oldest, None)
        _encoded_tools[key] = known
    return known[1]


def _encode_tool(spec: ToolSpec, schema_key: str) -> dict[str, Any]:
    schema = replace_unsendable_in_json(dict(spec.schema))
    return {"name": spec.name, "description": replace_unsendable(spec.description), schema_key: schema}


def is_image(media: Media) -> bool:
    """Whether it is an image that providers take."""
    return bool(media.kind == "image" and media.mime in IMAGE_TYPES and media.data)


def safe_tool_name(name: str) -> str:
    """A tool name in letters, digits, `_` and `-`: models invent others, and a history that holds one is refused."""
    return _NOT_IN_NAMES.sub("_", name)[:MAX_NAME_LENGTH] or "unknown"


def parse_arguments(written: str) -> dict[str, Any]:
    """What a model wrote as a call's arguments: its object, or its raw text under `__invalid_json__`. Nothing written
    means no arguments."""
    if not written.strip():
        return {}
    try:
        parsed = parse_json(written)
    except ValueError:
        return {INVALID_JSON: written}
    return parsed if isinstance(parsed, dict) else {INVALID_JSON: written}


class AnswerSize:
    """How much of an answer has come; the base of what collects one."""

    def __init__(self) -> None:
        self._characters = 0
        self._hidden = 0

    @property
    def is_endless(self) -> bool:
        """Whether more has come than any model answers."""
        return self._characters > MAX_ANSWER_CHARACTERS

    def count_hidden(self, characters: int) -> None:
        """Count what nobody is shown."""
        self._characters += characters
        self._hidden += characters

    def count_piece(self, number: int) -> None:
        """Count a call or a block: nobody needs more than so many, and they may be empty."""
        self.count_hidden(_BYTES_OF_PIECE if number > MAX_CALLS_IN_ANSWER else 0)

    def progress(self, text: str) -> Iterator[ModelEvent]:
        """Yield what came with one chunk, of which `text` is shown."""
        if text:
            yield TextDelta(text)
        if self._hidden:
            yield HiddenProgress(self._hidden)
            self._hidden = 0


class CallIds:
    """Gives each tool call of one request an id that every provider takes, and each result the id of its call.

    Ids of another provider may hold characters or lengths that this one refuses, and local servers start again at
    `call_0` with every answer. The same history always gets the same ids, since the prompt cache compares bytes.
    """

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._open: dict[str, deque[str]] = {}

    def start_answer(self) -> None:
        """An assistant message begins: results that follow belong to its calls."""
        self._open.clear()

    def id_for_call(self, call_id: str) -> str:
        """Return an id that providers accept and no earlier call of this request has."""
        given = unique_call_id(call_id, self._used)
        self._open.setdefault(call_id, deque()).append(given)
        return given

    def id_for_result(self, call_id: str) -> str:
        """Return the id given to the oldest call of this id that still waits for its result."""
        waiting = self._open.get(call_id)
        return waiting.popleft() if waiting else safe_call_id(call_id)


def safe_call_id(call_id: str) -> str:
    """Return the id with only the characters that providers accept, cut to `MAX_ID_LENGTH`; never empty."""
    return _NOT_IN_NAMES.sub("_", call_id)[:MAX_ID_LENGTH] or "call"


def unique_call_id(call_id: str, taken: set[str]) -> str:
    """`call_id` in safe characters, with a number behind it when it is taken; added to `taken`."""
    base = given = safe_call_id(call_id)
    number = 1
    while given in taken:
        number += 1
        suffix = f"_{number}"
        given = base[: MAX_ID_LENGTH - len(suffix)] + suffix
    taken.add(given)
    return given


def describe_media(media: Media, *, is_shown: bool = False) -> str:
    """A medium in words: one that this request cannot carry, or, `is_shown`, where one is that it carries."""
    name = f' "{replace_unsendable(media.name)}"' if media.name else ""
    size = f", {media.size} bytes" if media.size else ""
    place = f"; it is in the workspace as {replace_unsendable(media.path)}" if media.path else ""
    shown = "is shown here" if is_shown else "is not shown here"
    return f"[{media.kind}{name} ({replace_unsendable(media.mime)}{size}) {shown}{place}]"
