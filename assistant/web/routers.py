"""Makes the routers of the web API. Each has its full prefix, so that its routes are added to the application as they
are: FastAPI's `include_router` would analyse every route a second time."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

API_PREFIX = "/v1"
_MAX_NAME_SHOWN = 100


def api_router(
    prefix: str = API_PREFIX,
    *,
    tag: str = "",
    responses: dict[int | str, dict[str, Any]] | None = None,
    route_class: type[APIRoute] = APIRoute,
) -> APIRouter:
    """Return a router whose routes refuse parameters that they do not have. `tag` groups them in the description;
    `responses` are the errors that each of them documents."""
    return APIRouter(
        prefix=prefix,
        tags=[tag] if tag else None,
        responses=responses,
        route_class=route_class,
        dependencies=[Depends(_reject_unknown_parameters)],
    )


async def _reject_unknown_parameters(request: Request) -> None:
    """The framework ignores parameters that an address does not have, and all but the last of those given twice: with
    one letter wrong, it would answer another question."""
    names = [field.alias for field in request.scope["route"].dependant.query_params]
    for name, times in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in names or times > 1:
            where = ("query", name[:_MAX_NAME_SHOWN] or '""')
            what = "is given more than once" if name in names else _unknown_parameter(names)
            raise RequestValidationError([{"type": "extra", "loc": where, "msg": what}])


def _unknown_parameter(names: list[str]) -> str:
    return f"there is no such parameter; there are: {', '.join(names)}" if names else "this address has no parameters"
