"""Health for machines: `/healthz`, `/readyz`, `/metrics`.

`/healthz` tells whether the house gets on: where it does not, a new start mends it. `/readyz` tells whether it can take
messages and answer them now: a full disk, say, is no reason to start anew. Both answer 200 or 503, and to somebody
from elsewhere (`details` False) with nothing more than that. `/metrics` is for Prometheus; whoever includes these
routes sees to it that only those who may ask for it do.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from assistant.health.gauges import VitalsPort

_NEVER_KEPT = {"Cache-Control": "no-store"}


def health_routes(vitals: VitalsPort, *, details: bool) -> APIRouter:
    """`details`: whether those who ask may know what is wrong, as on the home's own socket."""
    routes = APIRouter(tags=["health"])

    @routes.get("/healthz", summary="Whether the assistant gets on")
    async def healthz() -> Response:
        return _answer("alive", [vitals.stalled()] if vitals.stalled() else [], details)

    @routes.get("/readyz", summary="Whether it can take messages and answer them")
    async def readyz() -> Response:
        return _answer("ready", list(vitals.unready()), details)

    return routes


def metrics_routes(vitals: VitalsPort) -> APIRouter:
    """For those alone who may know how much is done and spent."""
    routes = APIRouter(tags=["health"])

    @routes.get("/metrics", summary="Numbers for Prometheus", response_class=Response)
    async def metrics() -> Response:
        from assistant.web import metrics as exposition  # few ask for it

        return Response(exposition.text(vitals), media_type=exposition.MEDIA_TYPE, headers=_NEVER_KEPT)

    return routes


def _answer(name: str, problems: list[str], details: bool) -> Response:
    said: dict[str, Any] = {name: not problems}
    if details:
        said["problems"] = problems
    return JSONResponse(said, 503 if problems else 200, _NEVER_KEPT)
