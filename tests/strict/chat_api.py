"""The Chat Completions side of the strict server: OpenAI's own, or a local server's way of speaking it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.strict.behaviour import ErrorStatus, Refusal, ScriptedAnswer, pieces
from tests.strict.count import block_tokens, count_tokens
from tests.strict.validate import RequestLimits, validate_chat

OVERFLOW = "context_length_exceeded"


@dataclass
class ChatApi:
    """`models` is what /v1/models lists. `hosted`: behaves as OpenAI's own service. `indexed`: False leaves the index
    out of streamed tool calls."""

    bounds: RequestLimits
    models: list[dict[str, Any]] = field(default_factory=lambda: [model("local-model")])
    hosted: bool = False
    indexed: bool = True
    cached: int = 0
    ids: int = 0

    def complaints(self, body: Any) -> list[str]:
        return validate_chat(body, self.bounds, hosted=self.hosted)

    def events(self, body: dict[str, Any], answer: ScriptedAnswer | Refusal) -> Iterator[bytes]:
        yield from self.opening(body, answer.text)
        if isinstance(answer, Refusal):
            yield self._chunk(body, {"refusal": answer.explanation})
            yield self._chunk(body, {}, "content_filter")
        else:
            for index, call in enumerate(answer.calls):
                yield from self._call(body, index, call)
            yield self._chunk(body, {}, answer.stop or ("tool_calls" if answer.calls else "stop"))
            if not answer.silent_usage:
                yield self._usage(body, answer)
        yield b"data: [DONE]\n\n"

    def opening(self, body: dict[str, Any], text: str = "") -> Iterator[bytes]:
        yield self._chunk(body, {"role": "assistant", "content": ""})
        for piece in pieces(text):
            yield self._chunk(body, {"content": piece})

    def error_event(self, kind: str, message: str) -> bytes:
        return _data({"error": {"message": message, "type": kind, "param": None, "code": None}})

    def error_body(self, status: ErrorStatus) -> dict[str, Any]:
        error = {"message": status.message, "type": status.type, "param": None, "code": status.code}
        return {"error": error}

    def refusal_of_request(self, status: int, complaint: str) -> ErrorStatus:
        code = OVERFLOW if "maximum context length is" in complaint else None
        kinds = {400: "invalid_request_error", 401: "invalid_request_error", 413: "invalid_request_error"}
        return ErrorStatus(status, kinds[status], complaint, code=code)

    def _call(self, body: dict[str, Any], index: int, call: Any) -> Iterator[bytes]:
        written = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        self.ids += 1
        place = {"index": index} if self.indexed else {}
        head = {"id": call.id or f"call_{self.ids}", "type": "function"}
        half = len(written) // 2
        first = {**place, **head, "function": {"name": call.name, "arguments": ""}}
        for piece in (
            first,
            *({**place, "function": {"arguments": part}} for part in (written[:half], written[half:])),
        ):
            yield self._chunk(body, {"tool_calls": [piece]})

    def _usage(self, body: dict[str, Any], answer: ScriptedAnswer) -> bytes:
        prompt = count_tokens(body)
        output = block_tokens({"type": "text", "text": answer.text})
        usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
        details = {"cached_tokens": min(self.cached, prompt)}
        return _data(
            {**_head(body), "choices": [], "usage": {**usage, "prompt_tokens_details": details}},
        )

    def _chunk(self, body: dict[str, Any], delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _data({**_head(body), "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def model(name: str, **told: Any) -> dict[str, Any]:
    """An entry of /v1/models."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "someone", **told}


def _head(body: dict[str, Any]) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": body["model"]}


def _data(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()
