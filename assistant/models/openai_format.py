"""Chat Completions: a request as its body, and the chunks of its stream as one reply. Pure: the same request gives the
same bytes.

Requests are written for the strictest reader: local servers push the messages through a chat template that knows one
system message at the start, then user and assistant in turn, and text rather than parts. So system blocks are joined,
neighbours of one role are merged, and parts appear only where an image is. Streams are read as local servers really
send them: no usage, tool calls without index or id, arguments as an object or as broken JSON. A chunk that is no chunk
raises `MalformedProviderData`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from assistant.core.dataclass import dataclass
from assistant.core.messages import Media, Message, ToolCall, Usage
from assistant.core.model_api import MAX_CALLS_IN_ANSWER, ModelReply, ModelRequest, StopReason
from assistant.core.quoting import replace_unsendable, replace_unsendable_in_json
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
    unique_call_id,
)
from assistant.models.errors import PartialAnswer

NO_OUTPUT = "(no output)"

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
        body["tools"] = [
            {"type": "function", "function": tool} for tool in encode_tools(request.tools, schema_key="parameters")
        ]
    return body


def _system(request: ModelRequest) -> list[dict[str, Any]]:
    texts = [replace_unsendable(block.text) for block in request.system if block.text.strip()]
    return [{"role": "system", "content": "\n\n".join(texts)}] if texts else []


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
            entry: dict[str, Any] = {"role": "assistant", "content": encode_text(message.content)}
            if message.tool_calls:
                entry["tool_calls"] = [_call(call, ids) for call in message.tool_calls]
            return entry
        case "tool":
            parts = [message.content, *(describe_media(medium) for medium in message.media)]
            text = replace_unsendable("\n\n".join(part for part in parts if part.strip()))
            return {
                "role": "tool",
                "tool_call_id": ids.id_for_result(message.tool_call_id or ""),
                "content": text or NO_OUTPUT,
            }
        case _:
            volatile = encode_text(str(message.metadata.get("volatile", "")))
            return {"role": "user", "content": [*_media(message.media), *encode_text(message.content), *volatile]}


def _merge(before: dict[str, Any], entry: dict[str, Any]) -> None:
    before["content"] = before["content"] + entry["content"]
    if calls := entry.get("tool_calls"):
        before["tool_calls"] = [*before.get("tool_calls", ()), *calls]


def _flat(parts: list[Part]) -> str | list[Part]:
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _call(call: ToolCall, ids: CallIds) -> dict[str, Any]:
    arguments = json.dumps(replace_unsendable_in_json(dict(call.arguments)), ensure_ascii=False)
    function = {"name": safe_tool_name(call.name), "arguments": arguments}
    return {"id": ids.id_for_call(call.id), "type": "function", "function": function}


def _media(media: tuple[Media, ...]) -> Iterator[Part]:
    for medium in media:
        if is_image(medium):
            yield {"type": "image_url", "image_url": {"url": f"data:{medium.mime};base64,{medium.data}"}}
            if medium.path:
                yield from encode_text(describe_media(medium, is_shown=True))
        else:
            yield from encode_text(describe_media(medium))


# --------------------------------------------------------------------------------------------------------------- stream

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


class OpenAIAnswer(AnswerSize):
    """Collects one streamed answer. `feed` each chunk in order; `reply` once `finished`. `estimate_prompt` (tokens)
    stands in for servers that report no usage."""

    def __init__(self, model: str, estimate_prompt: Callable[[], int]) -> None:
        super().__init__()
        self.text = ""
        self.begun = False
        self._model = model
        self._estimate_prompt = estimate_prompt
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._stop = ""
        self._refusal = ""
        self._reported: Usage | None = None

    @property
    def finished(self) -> bool:
        """Whether the provider said why it stopped: without that the stream was cut off."""
        return bool(self._stop)

    @property
    def usage(self) -> Usage:
        """What was reported, else an estimate from the prompt and the characters of the answer."""
        return self._reported or Usage(self._estimate_prompt(), -(-self._characters // CHARS_PER_TOKEN))

    @property
    def partial(self) -> PartialAnswer:
        return PartialAnswer(self.begun, self.text, self.usage)

    def feed(self, chunk: Mapping[str, Any]) -> str:
        """Take one chunk; returns the text to show for it. Raises `MalformedProviderData`."""
        choices = chunk.get("choices")
        usage = chunk.get("usage")
        if not isinstance(choices, list) and (choices or not isinstance(usage, dict)):
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

    def cut_off(self) -> None:
        """End an answer that does not end. What it calls for is incomplete."""
        self._stop = "length"
        self._calls.clear()

    def reply(self) -> ModelReply:
        """Return the whole answer, after the end of the stream. A refusal has no text, but its reason in the message's
        metadata."""
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
                self.count_hidden(len(delta[key]))
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
        self.count_hidden(len(written))

    def _call_of(self, piece: Mapping[str, Any]) -> _Call:
        """The call that a piece belongs to: by index; a new id at a known index begins another call."""
        call_id, index = str(piece.get("id") or ""), piece.get("index")
        call = self._by_index.get(index) if isinstance(index, int) else None
        if call is None and not isinstance(index, int) and not call_id and self._calls:
            call = self._calls[-1]
        if call is None or (call_id and call.id and call_id != call.id):
            call = _Call()
            self._calls.append(call)
            self.count_piece(len(self._calls))
            if isinstance(index, int):
                self._by_index[index] = call
        call.id = call.id or call_id
        return call

    def _finished_calls(self) -> tuple[ToolCall, ...]:
        taken: set[str] = set()
        return tuple(
            ToolCall(unique_call_id(call.id or "call", taken), call.name, parse_arguments(call.arguments))
            for call in self._calls[:MAX_CALLS_IN_ANSWER]
        )


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    """None where the server reports zeros or nothing, as some do in every chunk but the last."""
    prompt = read_token_count(usage.get("prompt_tokens"))
    if not prompt:
        return None
    details = require_object(usage.get("prompt_tokens_details"))
    read, write = read_token_count(details.get("cached_tokens")), read_token_count(details.get("cache_write_tokens"))
    return Usage(max(0, prompt - read - write), read_token_count(usage.get("completion_tokens")), read, write)
