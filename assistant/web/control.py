"""The control API: what a person's tools ask of the running daemon, over the home's Unix socket.

The socket is the owner's (mode 0600): whoever can open it speaks for the owner, so only the owner's sessions are
reachable here. A message is answered with 202 once it is durable, never before. Every failure is one line of JSON,
`{"error": "..."}`, that says what was kept.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assistant.bridges.terminal import TerminalBridge
from assistant.errors import AssistantError, StoreError, UsageError
from assistant.ports import Control
from assistant.sessions import MAIN
from assistant.web.bodies import NewMessage, OneSession, Session, Shown, Typed

MAX_BODY_BYTES = 64 * 1024 * 1024
_KEEPALIVE_SECONDS = 15.0


def control_app(control: Control, terminal: TerminalBridge) -> FastAPI:
    """The API over one running daemon. Without documentation pages: they would load scripts from elsewhere."""
    app = FastAPI(title="Nocturne control", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(_conversation(control, terminal), prefix="/v1")
    app.include_router(_looking(control), prefix="/v1")
    app.add_middleware(_SizeLimit)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(AssistantError, _failed)
    app.add_exception_handler(Exception, _broken)
    return app


def _conversation(control: Control, terminal: TerminalBridge) -> APIRouter:
    routes = APIRouter()

    @routes.post("/messages", status_code=202)
    async def say(body: NewMessage) -> Mapping[str, Any]:
        return asdict(await control.accept(body.incoming(terminal.name)))

    @routes.get("/events")
    async def events(session: Session = MAIN, inbox_id: int | None = None) -> StreamingResponse:
        """With `inbox_id`, only the deliveries that answer that message."""
        frames = _frames(terminal, session, inbox_id)
        return StreamingResponse(frames, media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    @routes.post("/deliveries/ack")
    async def shown(body: Shown) -> Mapping[str, Any]:
        return {"acknowledged": terminal.acknowledge(body.key)}

    @routes.post("/commands")
    async def command(body: Typed) -> Mapping[str, Any]:
        return {"text": await control.command(body.text, body.session, bridge=terminal.name)}

    @routes.post("/stop")
    async def stop(body: OneSession) -> Mapping[str, Any]:
        return {"stopped": await control.stop_turn(body.session)}

    return routes


def _looking(control: Control) -> APIRouter:
    routes = APIRouter()

    @routes.get("/results/{inbox_id}")
    async def result(inbox_id: int) -> Mapping[str, Any]:
        try:
            return await control.result(inbox_id)
        except UsageError as error:
            raise HTTPException(404, str(error)) from None

    @routes.get("/status")
    async def status() -> Mapping[str, Any]:
        return control.status()

    return routes


async def _frames(terminal: TerminalBridge, session: str, inbox_id: int | None) -> AsyncIterator[bytes]:
    with terminal.attach(session, inbox_id) as attached:
        async for name, data in attached.events(_KEEPALIVE_SECONDS):
            if name == "idle":
                yield KEEPALIVE_COMMENT
            else:
                yield format_sse_event(event=name, data_str=json.dumps(data, ensure_ascii=False))


# --------------------------------------------------------------------------------------------------------------- errors


class _SizeLimit:
    """Refuses a body as soon as more than `MAX_BODY_BYTES` of it have come."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > MAX_BODY_BYTES:
                raise HTTPException(413, f"The body is larger than {MAX_BODY_BYTES // 2**20} MB. Nothing was accepted.")
            return message

        await self._app(scope, counted, send)


def _one_line(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": " ".join(text.split())}, status)


async def _malformed(_: Request, error: Exception) -> JSONResponse:
    problems: Sequence[Any] = error.errors() if isinstance(error, RequestValidationError) else ()
    return _one_line(400, f"The request is not understood: {'; '.join(map(_problem, problems))}. Nothing was changed.")


def _problem(problem: Mapping[str, Any]) -> str:
    if problem["type"] == "json_invalid":
        return f"the body is not valid JSON ({problem['ctx']['error']})"
    where = ".".join(str(part) for part in problem["loc"][1:]) or "the body"
    return f"`{where}`: {problem['msg'].removeprefix('Value error, ')}"


async def _refused(_: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = str(error.detail) if isinstance(error, HTTPException) else str(error)
    said = {
        "There was an error parsing the body": "The body is not JSON in valid UTF-8. Nothing was accepted.",
        "Not Found": "There is no such address in the control API.",
        "Method Not Allowed": "This address of the control API does not take that method.",
    }
    return _one_line(status, said.get(detail, detail))


async def _failed(_: Request, error: Exception) -> JSONResponse:
    status = 400 if isinstance(error, UsageError) else 503 if isinstance(error, StoreError) else 500
    return _one_line(status, str(error))


async def _broken(_: Request, error: Exception) -> JSONResponse:
    return _one_line(500, f"The daemon failed ({type(error).__name__}); its log has the details. Nothing is lost.")
