"""The chunks of a Chat Completions stream put together to one reply. Pure: chunks in, a `Reply` out.

Written for what local servers really send: no usage, tool calls without index or id, arguments as an object or as
broken JSON. A chunk that is no chunk raises `Garbled`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from assistant.core.messages import Message, ToolCall, Usage
from assistant.core.model_api import ModelReply, StopReason
from assistant.models.encoding import (
    CHARS_PER_TOKEN,
    MalformedProviderData,
    parse_arguments,
    read_token_count,
    require_object,
    unique_call_id,
)
from assistant.models.errors import PartialAnswer

_STOPS: Mapping[str, StopReason] = {
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "content_filter": "refusal",
    "model_context_window_exceeded": "overflow",
}


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""


class OpenAIAnswer:
    """Collects one streamed answer. `feed` each chunk in order; `reply` once `finished`. `estimate_prompt` (tokens)
    stands in for servers that report no usage."""

    def __init__(self, model: str, estimate_prompt: Callable[[], int]) -> None:
        self.text = ""
        self.begun = False
        self._model = model
        self._estimate_prompt = estimate_prompt
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._stop = ""
        self._refusal = ""
        self._reported: Usage | None = None
        self._characters = 0

    @property
    def finished(self) -> bool:
        return bool(self._stop)

    @property
    def usage(self) -> Usage:
        return self._reported or Usage(self._estimate_prompt(), -(-self._characters // CHARS_PER_TOKEN))

    @property
    def partial(self) -> PartialAnswer:
        return PartialAnswer(self.begun, self.text, self.usage)

    def feed(self, chunk: Mapping[str, Any]) -> str:
        """Take one chunk; returns the text to show for it. Raises `Garbled`."""
        choices = chunk.get("choices")
        usage = chunk.get("usage")
        if not isinstance(choices, list) and not isinstance(usage, dict):
            raise MalformedProviderData("a chunk without choices")
        self.begun = True
        if isinstance(usage, dict):
            self._reported = _usage(usage) or self._reported
        shown = ""
        for choice in choices or ():
            match choice:
                case {"index": int(index)} if index > 0:
                    continue
                case {"delta": dict(delta)}:
                    shown += self._grow(delta)
                case {"finish_reason": str()}:
                    pass
                case _:
                    raise MalformedProviderData("a choice of an unknown shape")
            self._stop = str(choice.get("finish_reason") or self._stop)
        return shown

    def reply(self) -> ModelReply:
        stop = "refusal" if self._refusal else _STOPS.get(self._stop, "end")
        estimated = self._reported is None
        if stop == "refusal":
            reason = self._refusal or "the provider's content filter"
            message = Message("assistant", model=self._model, metadata={"refusal": reason})
            return ModelReply(message, self.usage, "refusal", estimated)
        message = Message("assistant", self.text, tool_calls=self._finished_calls(), model=self._model)
        return ModelReply(message, self.usage, "tool_calls" if message.tool_calls else stop, estimated)

    def _grow(self, delta: Mapping[str, Any]) -> str:
        for key in ("reasoning_content", "reasoning"):
            if isinstance(delta.get(key), str):
                self._characters += len(delta[key])
        if isinstance(delta.get("refusal"), str):
            self._refusal += delta["refusal"]
        pieces = delta.get("tool_calls") or ()
        if not isinstance(pieces, list | tuple):
            raise MalformedProviderData("tool calls that are no list")
        for piece in pieces:
            self._grow_call(require_object(piece))
        text = delta.get("content")
        if text is None:
            return ""
        if not isinstance(text, str):
            raise MalformedProviderData("content that is no text")
        self.text += text
        self._characters += len(text)
        return text

    def _grow_call(self, piece: Mapping[str, Any]) -> None:
        call = self._call_of(piece)
        function = piece.get("function")
        if not isinstance(function, dict):
            return
        call.name = call.name or str(function.get("name") or "")
        arguments = function.get("arguments")
        written = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
        call.arguments += written
        self._characters += len(written)

    def _call_of(self, piece: Mapping[str, Any]) -> _Call:
        """The call that a piece belongs to: by index; a new id at a known index begins another call."""
        given, index = str(piece.get("id") or ""), piece.get("index")
        known = self._by_index.get(index) if isinstance(index, int) else None
        if known is None and not isinstance(index, int) and not given and self._calls:
            known = self._calls[-1]
        if known is None or (given and known.id and given != known.id):
            known = _Call()
            self._calls.append(known)
            if isinstance(index, int):
                self._by_index[index] = known
        known.id = known.id or given
        return known

    def _finished_calls(self) -> tuple[ToolCall, ...]:
        taken: set[str] = set()
        calls: list[ToolCall] = []
        for call in self._calls:
            call_id = unique_call_id(call.id or "call", taken)
            taken.add(call_id)
            calls.append(ToolCall(call_id, call.name, parse_arguments(call.arguments)))
        return tuple(calls)


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    """None where the server reports zeros or nothing, as some do in every chunk but the last."""
    prompt = read_token_count(usage.get("prompt_tokens"))
    if not prompt:
        return None
    details = require_object(usage.get("prompt_tokens_details"))
    read, write = read_token_count(details.get("cached_tokens")), read_token_count(details.get("cache_write_tokens"))
    return Usage(max(0, prompt - read - write), read_token_count(usage.get("completion_tokens")), read, write)
