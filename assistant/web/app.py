"""The web API as an ASGI application: what a person's tools ask of the running daemon, over the home's Unix socket and,
where it is wanted, over TCP; and health for machines.

The socket is the owner's (mode 0600): whoever can open it speaks for the owner, so only the owner's sessions are
reachable here; over TCP `guard` lets nobody through but the owner. A message is answered with 202 once it is durable,
never before. There are no documentation pages: they would load scripts from elsewhere; `/openapi.json` describes all.

`/healthz` tells whether the daemon makes progress: where it does not, a restart mends it. `/readyz` tells whether it
can take messages and answer them now: a full disk, say, is no reason to restart. Both answer 200 or 503, and to
somebody from elsewhere (`details` False) nothing more. `/metrics` is for Prometheus; whoever includes these routes
makes sure that only those who may ask for it do.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response

from assistant import __version__
from assistant.health.vitals import Vitals
from assistant.web.deps import ApiDeps
from assistant.web.errors import add_error_handlers
from assistant.web.routes_chat import chat_routes
from assistant.web.routes_read import read_routes
from assistant.web.schemas_chat import reject_unknown_parameters

_NEVER_KEPT = {"Cache-Control": "no-store"}


def health_routes(vitals: Vitals, *, details: bool) -> APIRouter:
    """`details`: whether those who ask may know what is wrong, as on the home's own socket."""
    routes = APIRouter(tags=["health"])

    @routes.get("/healthz", summary="Whether the assistant gets on")
    async def healthz() -> Response:
        return _answer("alive", [vitals.stall_reason()] if vitals.stall_reason() else [], details)

    @routes.get("/readyz", summary="Whether it can take messages and answer them")
    async def readyz() -> Response:
        return _answer("ready", list(vitals.readiness_problems()), details)

    return routes


def metrics_routes(vitals: Vitals) -> APIRouter:
    """For those alone who may know how much is done and spent."""
    routes = APIRouter(tags=["health"])

    @routes.get("/metrics", summary="Numbers for Prometheus", response_class=Response)
    async def metrics() -> Response:
        from assistant.web import metrics as exposition  # few ask for it

        return Response(exposition.render_metrics(vitals), media_type=exposition.MEDIA_TYPE, headers=_NEVER_KEPT)

    return routes


def _answer(name: str, problems: list[str], details: bool) -> Response:
    said: dict[str, Any] = {name: not problems}
    if details:
        said["problems"] = problems
    return JSONResponse(said, 503 if problems else 200, _NEVER_KEPT)


_ABOUT = (
    "Talk with your assistant and look into it. Over the control socket nothing but the file's mode guards it; over "
    "TCP every request but `/healthz` and `/readyz` shows the bearer token. Times are UTC. Every failure is one line: "
    '`{"error": "..."}`.'
)


def build_web_app(behind: ApiDeps, *, trusted: bool = True) -> FastAPI:
    """The API over one running daemon. `trusted`: whether whoever reaches it may know what is wrong without a token,
    as on the control socket."""
    app = FastAPI(
        title="Nocturne",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(reject_unknown_parameters)],
    )
    app.include_router(chat_routes(behind.control, behind.read_api, behind.terminal), prefix="/v1")
    app.include_router(read_routes(behind.control, behind.read_api, behind.terminal), prefix="/v1")
    app.include_router(health_routes(behind.vitals, details=trusted))
    app.include_router(metrics_routes(behind.vitals))
    add_error_handlers(app)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    """The description, made once. Malformed requests are answered with 400, in the words of every other failure."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=_ABOUT, routes=app.routes)
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
