"""How the web API says no: every failure is one line of JSON, `{"error": "..."}`, that says what was kept."""

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
from assistant.web.schemas_chat import ErrorAnswer

MAX_BODY_BYTES = 64 * 1024 * 1024
# What is told of one request: the first few, not what somebody sent back to them.
_MOST_PROBLEMS = 5
_LONGEST_PROBLEM = 300
REQUEST_INTERRUPTED = (
    "The assistant was stopped while it did this. What it had finished is kept: look before repeating."
)

_MEANS: Mapping[int, str] = {
    400: "The request is not understood, or asks for what cannot be. Nothing was changed.",
    401: "The bearer token is missing or wrong (over TCP alone).",
    403: "Host or Origin are not of this assistant (over TCP alone).",
    404: "It is not there.",
    405: "This address does not take that method.",
    409: "The `external_id` belongs to another message, which is kept. This one was not accepted.",
    413: f"The body is larger than {MAX_BODY_BYTES // 2**20} MB.",
    429: "Too many wrong tokens came from there (over TCP alone).",
    500: "The assistant failed at this; what was accepted is kept.",
    503: (
        "The home cannot be read or written just now, the assistant is not ready, or too many event streams are open. "
        "Try again later."
    ),
}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What routes may answer beside their success: what every one may, and these."""
    told = sorted({400, 401, 403, 405, 429, 500, 503, *statuses})
    return {status: {"model": ErrorAnswer, "description": _MEANS[status]} for status in told}


def add_error_handlers(app: FastAPI) -> None:
    app.add_middleware(_SizeLimit)
    app.add_middleware(_CutOff)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(AssistantError, _failed)
    app.add_exception_handler(Exception, _broken)


class _SizeLimit:
    """Refuses a body that says it is larger than `MAX_BODY_BYTES`, or as soon as more than that has come."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        announced, read = _announced(scope), 0

        async def counted() -> Message:
            nonlocal read
            if announced <= MAX_BODY_BYTES:
                message = await receive()
                read += len(message.get("body", b""))
                if read <= MAX_BODY_BYTES:
                    return message
            raise HTTPException(413, f"The body is larger than {MAX_BODY_BYTES // 2**20} MB. Nothing was accepted.")

        await self._app(scope, counted, send)


class _CutOff:
    """Answers what the end of the daemon cuts off: the request itself, or the work that it waits for."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:
            # Nothing else cancels a request, and its task ends here: uvicorn would tell of it as of a failure.
            if not begun:
                await _one_line(503, REQUEST_INTERRUPTED)(scope, receive, send)


def _announced(scope: Scope) -> int:
    """How many bytes of a body are to come; 0 where that is not said."""
    return next((int(value) for name, value in scope.get("headers", ()) if name == b"content-length"), 0)


def _one_line(status: int, text: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": " ".join(text.split())}, status, headers)


async def _malformed(_: Request, error: Exception) -> JSONResponse:
    problems: Sequence[Any] = error.errors() if isinstance(error, RequestValidationError) else ()
    told = [_problem(problem)[:_LONGEST_PROBLEM] for problem in problems[:_MOST_PROBLEMS]]
    if more := len(problems) - len(told):
        told.append(f"and {more} more")
    return _one_line(400, f"The request is not understood: {'; '.join(told)}. Nothing was changed.")


def _problem(problem: Mapping[str, Any]) -> str:
    if problem["type"] == "json_invalid":
        return f"the body is not valid JSON ({problem['ctx']['error']})"
    where = ".".join(str(part) for part in problem["loc"][1:])
    if problem["loc"] == ("body",):
        return _no_object(problem)
    return f"`{where}`: {problem['msg'].removeprefix('Value error, ')}"


def _no_object(problem: Mapping[str, Any]) -> str:
    if problem["type"] == "missing":
        return "there is no body; send a JSON object with `Content-Type: application/json`"
    if isinstance(problem["input"], bytes):
        return "the body is not said to be JSON; send it with `Content-Type: application/json`"
    if problem["type"] == "model_attributes_type":
        return "the body is JSON, and no object with named fields"
    return f"the body: {problem['msg'].removeprefix('Value error, ')}"


async def _refused(_: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        return _one_line(500, str(error))
    said = {
        "There was an error parsing the body": "The body is not JSON in valid UTF-8. Nothing was accepted.",
        "Not Found": "There is no such address in the web API.",
        "Method Not Allowed": "This address of the web API does not take that method.",
    }
    detail = str(error.detail)
    return _one_line(error.status_code, said.get(detail, detail), error.headers)


async def _failed(_: Request, error: Exception) -> JSONResponse:
    status = 400 if isinstance(error, UsageError) else 503 if isinstance(error, StoreError) else 500
    return _one_line(status, str(error))


async def _broken(_: Request, error: Exception) -> JSONResponse:
    return _one_line(500, f"The daemon failed ({type(error).__name__}); its log has the details. Nothing is lost.")
