"""The web API: what a person's tools ask of the running daemon, over the home's Unix socket and, where it is wanted,
over TCP.

The socket is the owner's (mode 0600): whoever can open it speaks for the owner, so only the owner's sessions are
reachable here; over TCP `guard` lets nobody through but the owner. A message is answered with 202 once it is durable,
never before. There are no documentation pages: they would load scripts from elsewhere; `/openapi.json` describes all.
"""

from __future__ import annotations

from typing import Any

from fastapi import Depends, FastAPI
from fastapi.openapi.utils import get_openapi

from assistant import __version__
from assistant.web.bodies import nothing_else
from assistant.web.conversing import conversing_routes
from assistant.web.failures import add_failures
from assistant.web.health import health_routes, metrics_routes
from assistant.web.looking import looking_routes
from assistant.web.ways import Behind

_ABOUT = (
    "Talk with your assistant and look into it. Over the control socket nothing but the file's mode guards it; over "
    "TCP every request but `/healthz` and `/readyz` shows the bearer token. Times are UTC. Every failure is one line: "
    '`{"error": "..."}`.'
)


def control_app(behind: Behind, *, trusted: bool = True) -> FastAPI:
    """The API over one running daemon. `trusted`: whether whoever reaches it may know what is wrong without a token,
    as on the control socket."""
    app = FastAPI(
        title="Nocturne", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False,
        dependencies=[Depends(nothing_else)],
    )  # fmt: skip
    app.include_router(conversing_routes(behind.control, behind.looking, behind.terminal), prefix="/v1")
    app.include_router(looking_routes(behind.control, behind.looking, behind.terminal), prefix="/v1")
    app.include_router(health_routes(behind.vitals, details=trusted))
    app.include_router(metrics_routes(behind.vitals))
    add_failures(app)
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
