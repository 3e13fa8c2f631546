"""The web API as an ASGI application, served over the daemon's Unix socket and, if configured, over TCP; and health
endpoints.

The socket is the owner's (mode 0600): everybody who can open it is the owner, and only the owner's sessions are
accessible; over TCP `guard` only admits the owner. A message is answered with 202 once it is durable, never before.
There are no documentation pages, since they would load scripts from other sites; `/openapi.json` describes the API.

`/healthz` says whether the daemon makes progress: if not, a restart helps. `/readyz` says whether it can accept and
answer messages now: a full disk, for example, is no reason to restart. Both answer 200 or 503, and over TCP nothing
more, since they need no token there. `/metrics` is for Prometheus, and needs the token over TCP.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response
from fastapi.telemetry import TelemetryConfig
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from assistant import __version__
from assistant.core.pacing import Pacer
from assistant.health.status import DaemonStatus
from assistant.web.deps import ApiDeps
from assistant.web.description import ApiDescription
from assistant.web.entrance import HEALTH_PATHS
from assistant.web.errors import ERROR_SHAPES, SCHEMA_REFERENCE, add_error_handlers, error_content
from assistant.web.guard import is_guarded
from assistant.web.routers import api_router
from assistant.web.routes_chat import chat_routes
from assistant.web.routes_completions import completion_routes
from assistant.web.routes_page import page_routes
from assistant.web.routes_push import push_routes
from assistant.web.routes_read import read_routes

_NO_STORE = {"Cache-Control": "no-store"}
_NO_DESCRIPTION = "The description could not be made; the log says why. Try again later."
# A request takes a millisecond or two until it first waits for something, and whoever comes meanwhile needs several
# rounds for an answer.
_BEGUN_IN_A_ROUND = 1


def health_routes(status: DaemonStatus) -> list[BaseRoute]:
    """Metrics are only for clients that may know how much is done and spent."""
    routes = api_router("", tag="health")

    @routes.get("/healthz", summary="Whether the assistant makes progress")
    async def healthz(request: Request) -> Response:
        return _health_answer(request, "alive", [reason] if (reason := status.stall_reason()) else [])

    @routes.get("/readyz", summary="Whether it can take messages and answer them")
    async def readyz(request: Request) -> Response:
        return _health_answer(request, "ready", status.readiness_problems())

    @routes.get("/metrics", summary="Numbers for Prometheus", response_class=Response)
    async def metrics() -> Response:
        from assistant.web import metrics as exposition  # rarely used

        return Response(exposition.render_metrics(status), media_type=exposition.MEDIA_TYPE, headers=_NO_STORE)

    return routes.routes


def _health_answer(request: Request, name: str, problems: list[str]) -> Response:
    body: dict[str, Any] = {name: not problems}
    if not is_guarded(request.scope):
        body["problems"] = problems
    return JSONResponse(body, 503 if problems else 200, _NO_STORE)


class _PacedRequests:
    """Begins one request in a round of the event loop; those for the health, which are short, at once."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._pacer = Pacer(_BEGUN_IN_A_ROUND)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in HEALTH_PATHS:
            await self._pacer.wait()
        await self._app(scope, receive, send)


_DESCRIPTION = (
    "Talk with your assistant and read what it stores. Over the control socket only the file's mode protects it; over "
    "TCP every request but `/healthz` and `/readyz` needs the bearer token, or the cookie of a browser that logged in "
    "at `/v1/login`. Times are UTC. Every error is one line: "
    '`{"error": "..."}`.'
)

# Otherwise each request asks all providers of OpenTelemetry whether they are configured.
_NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False}


def build_web_app(deps: ApiDeps) -> FastAPI:
    """Build the API of a running daemon, for the control socket and for TCP: there `AccessGuard` is around it."""
    app = FastAPI(
        title="Nocturne", version=__version__, openapi_url=None, redirect_slashes=False, telemetry=_NO_TELEMETRY
    )
    app.router.routes += [
        *chat_routes(deps.control, deps.read_api, deps.terminal),
        *read_routes(deps.control, deps.read_api, deps.terminal),
        *page_routes(deps.browsers),
        *push_routes(deps.browsers, deps.push_key),
        *completion_routes(deps.control, deps.read_api, deps.terminal),
        *health_routes(deps.status),
        *_description_route(),
    ]
    app.add_middleware(_PacedRequests)
    add_error_handlers(app)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    return app


def _description_route() -> list[BaseRoute]:
    routes = api_router("")
    description = ApiDescription()

    @routes.get("/openapi.json", include_in_schema=False)
    async def describe() -> Response:
        if made := await description.read():
            return Response(made, media_type="application/json")
        return JSONResponse(error_content("/openapi.json", _NO_DESCRIPTION), 503)

    return routes.routes


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
        for shape in ERROR_SHAPES:
            described = shape.model_json_schema(ref_template=SCHEMA_REFERENCE)
            shapes |= described.pop("$defs", {}) | {shape.__name__: described}
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}, {}]
        app.openapi_schema = schema
    return app.openapi_schema
