"""Errors of the web API: each is one line of JSON, `{"error": "..."}`, that says what was kept. Clients of OpenAI's API
get it in that API's format."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assistant.core.errors import AssistantError, StoreError, UsageError
from assistant.web.schemas_chat import Answer, ErrorAnswer
from assistant.web.schemas_completions import OpenAIErrorAnswer

MAX_BODY_BYTES = 64 * 1024 * 1024
# Maximum number of reported problems per request, and of characters of each.
_MAX_PROBLEMS = 5
_MAX_PROBLEM_LENGTH = 300
REQUEST_INTERRUPTED = (
    "The assistant was stopped while it did this. What it had finished is kept: check before you repeat it."
)

SCHEMA_REFERENCE = "#/components/schemas/{model}"
ERROR_SHAPES: Sequence[type[Answer]] = (ErrorAnswer, OpenAIErrorAnswer)

_MEANINGS: Mapping[int, str] = {
    400: "The request is not valid. Nothing was changed.",
    401: "The bearer token is missing or wrong (only over TCP).",
    403: "Host or Origin is not a name of this assistant (only over TCP).",
    404: "There is no such thing.",
    405: "This address does not take that method.",
    409: "The `external_id` belongs to another message, which is kept. This one was not accepted.",
    413: f"The body is larger than {MAX_BODY_BYTES // 2**20} MB.",
    429: "Too many wrong tokens came from your address (only over TCP).",
    431: "The headers, the address among them, are longer than 16 KB. The connection ends.",
    500: "The assistant failed at this; what was accepted is kept.",
    503: (
        "The data folder cannot be read or written now, the assistant is not ready, or too many event streams are "
        "open. Try again later."
    ),
}


# Paths of clients of OpenAI's API, which only show errors in its format.
_OPENAI_PATHS = ("/v1/chat/", "/v1/models")


def error_content(path: str, text: str) -> dict[str, Any]:
    """Return the body of an error for a path."""
    if path.startswith(_OPENAI_PATHS):
        return {"error": {"message": text, "type": "invalid_request_error", "param": None, "code": None}}
    return {"error": text}


def error_responses(*statuses: int, shape: type[Answer] = ErrorAnswer) -> dict[int | str, dict[str, Any]]:
    """Return the errors that a route documents: those of every route, and these. `shape` is one of `ERROR_SHAPES`."""
    documented = sorted({400, 401, 403, 405, 429, 431, 500, 503, *statuses})
    content = {"application/json": {"schema": {"$ref": SCHEMA_REFERENCE.format(model=shape.__name__)}}}
    # Named, not as a `model`: FastAPI would build validators for each error of each route, more than for all answers.
    return {status: {"description": _MEANINGS[status], "content": content} for status in documented}


def add_error_handlers(app: FastAPI) -> None:
    """Answer every error as JSON with a sentence for people, and refuse bodies that are too large."""
    app.add_middleware(_SizeLimit)
    app.add_middleware(_InterruptedRequests)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(AssistantError, _on_assistant_error)
    app.add_exception_handler(Exception, _on_fault)


class _SizeLimit:
    """Refuses a body that is announced as larger than `MAX_BODY_BYTES`, or that exceeds it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        lengths = [int(value) for name, value in scope.get("headers", ()) if name == b"content-length"]
        announced, read = max(lengths, default=0), 0

        async def counted() -> Message:
            nonlocal read
            if announced <= MAX_BODY_BYTES:
                message = await receive()
                read += len(message.get("body", b""))
                if read <= MAX_BODY_BYTES:
                    return message
            raise HTTPException(413, f"The body is larger than {MAX_BODY_BYTES // 2**20} MB. Nothing was accepted.")

        await self._app(scope, counted, send)


class _InterruptedRequests:
    """Answers requests that the shutdown of the daemon interrupts."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:
            # Only the shutdown cancels a request, whose task ends here: uvicorn would log an error.
            if not has_begun:
                await _error_answer(scope["path"], 503, REQUEST_INTERRUPTED)(scope, receive, send)


def _error_answer(path: str, status: int, text: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(error_content(path, " ".join(text.split())), status, headers)


async def _on_invalid_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError), "it is registered for these"
    problems = error.errors()
    lines = [_describe_problem(problem)[:_MAX_PROBLEM_LENGTH] for problem in problems[:_MAX_PROBLEMS]]
    if more := len(problems) - len(lines):
        lines.append(f"and {more} more")
    return _error_answer(request.url.path, 400, f"The request is not valid: {'; '.join(lines)}. Nothing was changed.")


def _describe_problem(problem: Mapping[str, Any]) -> str:
    text = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "json_invalid":
        return f"the body is not valid JSON ({problem['ctx']['error']})"
    if problem["loc"] != ("body",):
        return f"`{'.'.join(str(part) for part in problem['loc'][1:])}`: {text}"
    if problem["type"] == "missing":
        return "there is no body; send a JSON object with `Content-Type: application/json`"
    if isinstance(problem["input"], bytes):
        return "the body is not marked as JSON; send it with `Content-Type: application/json`"
    if problem["type"] == "model_attributes_type":
        return "the body is JSON, but not an object with named fields"
    return f"the body: {text}"


async def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException), "it is registered for these"
    texts = {
        "There was an error parsing the body": "The body is not JSON in valid UTF-8. Nothing was accepted.",
        "Not Found": "The web API has no such address.",
        "Method Not Allowed": "This address of the web API does not take that method.",
    }
    detail = str(error.detail)
    return _error_answer(request.url.path, error.status_code, texts.get(detail, detail), error.headers)


async def _on_assistant_error(request: Request, error: Exception) -> JSONResponse:
    status = 400 if isinstance(error, UsageError) else 503 if isinstance(error, StoreError) else 500
    return _error_answer(request.url.path, status, str(error))


async def _on_fault(request: Request, error: Exception) -> JSONResponse:
    text = f"The daemon failed ({type(error).__name__}); its log has the details. Nothing was lost."
    return _error_answer(request.url.path, 500, text)
