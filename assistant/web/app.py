"""The web API as an ASGI application, served over the daemon's Unix socket and, if configured, over TCP; and health
endpoints.

The socket is the owner's (mode 0600): everybody who can open it is the owner, and only the owner's sessions are
accessible; over TCP `guard` only admits the owner. A message is answered with 202 once it is durable, never before.
There are no documentation pages, since they would load scripts from other sites; `/openapi.json` describes the API.

`/healthz` says whether the daemon makes progress: if not, a restart helps. `/readyz` says whether it can accept and
answer messages now: a full disk, for example, is no reason to restart. Both answer 200 or 503, and without a token
(`details` False) nothing more. `/metrics` is for Prometheus, and needs the token over TCP.
"""

from __future__ import annotations

import asyncio
import json
from threading import Lock
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response

from assistant import __version__
from assistant.health.status import DaemonStatus
from assistant.web.deps import ApiDeps
from assistant.web.errors import add_error_handlers
from assistant.web.routes_chat import chat_routes
from assistant.web.routes_completions import completion_routes
from assistant.web.routes_page import page_routes
from assistant.web.routes_read import read_routes
from assistant.web.schemas_chat import reject_unknown_parameters

_NO_STORE = {"Cache-Control": "no-store"}
# FastAPI silences warnings while it builds models, which is not thread-safe.
_BUILDING = Lock()


def health_routes(status: DaemonStatus, *, details: bool) -> APIRouter:
    """`details`: whether health says what is wrong, as on the control socket. Metrics are only for clients that may
    know how much is done and spent."""
    routes = APIRouter(tags=["health"])

    @routes.get("/healthz", summary="Whether the assistant makes progress")
    async def healthz() -> Response:
        return _health_answer("alive", [reason] if (reason := status.stall_reason()) else [], details)

    @routes.get("/readyz", summary="Whether it can take messages and answer them")
    async def readyz() -> Response:
        return _health_answer("ready", status.readiness_problems(), details)

    @routes.get("/metrics", summary="Numbers for Prometheus", response_class=Response)
    async def metrics() -> Response:
        from assistant.web import metrics as exposition  # rarely used

        return Response(exposition.render_metrics(status), media_type=exposition.MEDIA_TYPE, headers=_NO_STORE)

    return routes


def _health_answer(name: str, problems: list[str], details: bool) -> Response:
    body: dict[str, Any] = {name: not problems}
    if details:
        body["problems"] = problems
    return JSONResponse(body, 503 if problems else 200, _NO_STORE)


_DESCRIPTION = (
    "Talk with your assistant and read what it stores. Over the control socket only the file's mode protects it; over "
    "TCP every request but `/healthz` and `/readyz` needs the bearer token, or the cookie of a browser that logged in "
    "at `/v1/login`. Times are UTC. Every error is one line: "
    '`{"error": "..."}`.'
)


def build_web_app(deps: ApiDeps, *, trusted: bool = True) -> FastAPI:
    """Build the API of a running daemon. `trusted`: whether health says what is wrong without a token, as on the
    control socket."""
    with _BUILDING:
        return _build(deps, trusted)


def _build(deps: ApiDeps, trusted: bool) -> FastAPI:
    app = FastAPI(
        title="Nocturne",
        version=__version__,
        openapi_url=None,
        redirect_slashes=False,
        dependencies=[Depends(reject_unknown_parameters)],
    )
    app.include_router(chat_routes(deps.control, deps.read_api, deps.terminal), prefix="/v1")
    app.include_router(read_routes(deps.control, deps.read_api, deps.terminal), prefix="/v1")
    app.include_router(page_routes(deps.browsers))
    app.include_router(completion_routes(deps.control, deps.read_api, deps.terminal), prefix="/v1")
    app.include_router(health_routes(deps.status, details=trusted))
    app.include_router(_description_route(app))
    add_error_handlers(app)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    # FastAPI would build the models of all requests and answers at the first request, blocking everything else.
    for route in app.routes:
        route.matches({"type": "http", "path": "/", "root_path": "", "method": "GET", "headers": []})
    return app


def _description_route(app: FastAPI) -> APIRouter:
    routes = APIRouter()
    making = asyncio.Lock()
    description = b""

    @routes.get("/openapi.json", include_in_schema=False)
    async def describe() -> Response:
        """Build it once, in a worker thread, since it takes a while."""
        nonlocal description
        async with making:
            if not description:
                description = await asyncio.to_thread(lambda: json.dumps(app.openapi(), separators=(",", ":")).encode())
        return Response(description, media_type="application/json")

    return routes


def _describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description, built once. Malformed requests are answered with 400, like every other error."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=_DESCRIPTION, routes=app.routes)
        for item in schema["paths"].values():
            for operation in item.values():
                operation["responses"].pop("422", None)
        shapes = schema["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            shapes.pop(name, None)
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}, {}]
        app.openapi_schema = schema
    return app.openapi_schema
