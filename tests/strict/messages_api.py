"""Anthropic's side of the strict server: requests checked and answered, events on the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.strict.behaviour import ErrorStatus, Refusal, ScriptedAnswer, pieces
from tests.strict.cache import PromptCache
from tests.strict.count import block_tokens
from tests.strict.signing import Signatures
from tests.strict.validate import RequestLimits, validate_messages

ERROR_TYPES = {400: "invalid_request_error", 401: "authentication_error", 413: "request_too_large"}


class MessagesApi:
    """Validates, signs, counts and caches. `thinking_types` are those the model takes."""

    def __init__(self, bounds: RequestLimits, cache: PromptCache, *, thinking_types: tuple[str, ...]) -> None:
        self.bounds = bounds
        self.cache = cache
        self.signatures = Signatures()
        self.thinking_types = thinking_types
        self._ids = 0

    def complaints(self, body: Any) -> list[str]:
        found = validate_messages(body, self.bounds)
        kind = body.get("thinking", {}).get("type") if not found else None
        if kind and kind not in self.thinking_types:
            return [f'"thinking.type.{kind}" is not supported for this model.']
        return found or self.signatures.complaints(body)

    def model_info(self, name: str) -> dict[str, Any]:
        types = {
            kind: {"supported": kind in self.thinking_types}
            for kind in ("adaptive", "between_tools", "disabled", "enabled")
        }
        return {
            "type": "model",
            "id": name,
            "display_name": name,
            "created_at": "2026-09-28T00:00:00Z",
            "lifecycle": "active",
            "max_input_tokens": self.bounds.window,
            "max_tokens": self.bounds.max_output,
            "capabilities": {"thinking": {"supported": True, "types": types}},
        }

    def events(self, body: dict[str, Any], answer: ScriptedAnswer | Refusal) -> Iterator[bytes]:
        """A whole streamed answer."""
        content, stop, details = self._content(body, answer)
        yield from self.opening(body)
        for index, block in enumerate(content):
            yield from _block_events(index, block)
        output = sum(block_tokens(block) for block in content) or 1
        delta = {"stop_reason": stop, "stop_sequence": None, "stop_details": details}
        yield event("message_delta", {"delta": delta, "usage": {"output_tokens": output}})
        yield event("message_stop", {})

    def opening(self, body: dict[str, Any], text: str = "") -> Iterator[bytes]:
        """The start of a stream, and perhaps of a text that will not end."""
        usage = {**self.cache.use(body), "output_tokens": 1}
        message = {
            "id": self._fresh("msg"),
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        yield event("message_start", {"message": message})
        yield event("ping", {})
        if text:
            yield event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
            for piece in pieces(text):
                yield event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": piece}})

    def error_event(self, kind: str, message: str) -> bytes:
        return event("error", {"error": {"type": kind, "message": message}})

    def error_body(self, status: ErrorStatus) -> dict[str, Any]:
        error: dict[str, Any] = {"type": status.type, "message": status.message}
        if status.code:
            error["details"] = {"error_code": status.code}
        return {"type": "error", "error": error, "request_id": "req_strict"}

    def refusal_of_request(self, status: int, complaint: str) -> ErrorStatus:
        return ErrorStatus(status, ERROR_TYPES[status], complaint)

    def _content(
        self, body: dict[str, Any], answer: ScriptedAnswer | Refusal
    ) -> tuple[list[dict[str, Any]], str, dict[str, Any] | None]:
        if isinstance(answer, Refusal):
            text = [{"type": "text", "text": answer.text}] if answer.text else []
            return text, "refusal", {"type": "refusal", "category": None, "explanation": answer.explanation}
        content: list[dict[str, Any]] = []
        if answer.thinking is not None:
            content.append(self.signatures.thinking(body, answer.thinking))
        if answer.redacted is not None:
            content.append(self.signatures.redacted(body, answer.redacted))
        if answer.text:
            content.append({"type": "text", "text": answer.text})
        if answer.again is not None:
            content.append(self.signatures.thinking(body, answer.again))
        for call in answer.calls:
            used = {"type": "tool_use", "id": call.id or self._fresh("toolu"), "name": call.name}
            content.append({**used, "input": call.arguments})
        self.signatures.remember(body, content)
        return content, answer.stop or ("tool_use" if answer.calls else "end_turn"), None

    def _fresh(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}_{self._ids:04d}"


def event(kind: str, data: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


def _block_events(index: int, block: dict[str, Any]) -> Iterator[bytes]:
    kind = block["type"]
    deltas: list[dict[str, Any]] = []
    opened = dict(block)
    if kind == "text":
        opened["text"] = ""
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    elif kind == "thinking":
        opened |= {"thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif kind == "tool_use":
        written = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
        opened["input"] = {}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *_halves(written))]
    yield event("content_block_start", {"index": index, "content_block": opened})
    for delta in deltas:
        yield event("content_block_delta", {"index": index, "delta": delta})
    yield event("content_block_stop", {"index": index})


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]
