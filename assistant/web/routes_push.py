"""Routes for notifications in a browser that is logged in to the page; each is about the browser that asks.

`GET /v1/push` says whether they are on, and gives the key that the browser asks its push service with; `POST` turns
them on, `POST /v1/push/off` off. The worker that shows them is served at the root of the page, so that it may open it.
"""

from __future__ import annotations

import asyncio
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Request
from pydantic import AfterValidator, Field
from starlette.routing import BaseRoute

from assistant.core.errors import UsageError
from assistant.notify.browser_push import PushKey
from assistant.store.home.browser_sessions import BrowserSessions, PushAddress
from assistant.web.errors import error_responses
from assistant.web.guard import cookie_secret
from assistant.web.routers import api_router
from assistant.web.schemas_chat import Answer, Body

_LOCAL = ("127.0.0.1", "localhost", "::1")


def _require_encrypted(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
        raise ValueError("it is not an address that begins with https://")
    return address


class PushState(Answer):
    """Whether this browser takes notifications, and the key for its push service, as base64url."""

    on: bool
    key: str


class PushSubscription(Body):
    """What the browser's `PushManager` gave."""

    endpoint: Annotated[str, Field(max_length=2000), AfterValidator(_require_encrypted)]
    p256dh: Annotated[str, Field(pattern="^[A-Za-z0-9_-]{80,100}=?$")]
    auth: Annotated[str, Field(pattern="^[A-Za-z0-9_-]{16,50}={0,2}$")]


def push_routes(browsers: BrowserSessions, key: PushKey) -> list[BaseRoute]:
    """Turning notifications on and off in a browser that is logged in; others are refused."""
    routes = api_router(tag="page", responses=error_responses())

    async def state_of(request: Request) -> PushState:
        secret = cookie_secret(request.scope)
        if not secret or not browsers.is_valid(secret):
            raise UsageError("Notifications are turned on in a browser that is logged in. Nothing was changed.")
        return PushState(on=browsers.push_of(secret) is not None, key=await asyncio.to_thread(key.public))

    @routes.get("/push", summary="Whether this browser takes notifications")
    async def push_state(request: Request) -> PushState:
        return await state_of(request)

    @routes.post("/push", summary="Notify me in this browser")
    async def turn_on(request: Request, subscription: PushSubscription) -> PushState:
        """Of reminders and questions that nobody has seen."""
        await state_of(request)  # refuses while nothing could be sent
        address = PushAddress(subscription.endpoint, subscription.p256dh, subscription.auth)
        browsers.set_push(cookie_secret(request.scope), address)
        return await state_of(request)

    @routes.post("/push/off", summary="No notifications in this browser")
    async def turn_off(request: Request) -> PushState:
        browsers.set_push(cookie_secret(request.scope), None)
        return await state_of(request)

    return routes.routes
