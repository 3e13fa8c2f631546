"""Counts requests, to tell whether a daemon is asked anything. What only watches it does not count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_WATCHES = frozenset({"/healthz", "/readyz", "/metrics"})
# Who looks at one page soon goes on to the next; a program that asks every two seconds delays little.
_QUIET_SECONDS, _LONGEST_WAIT_SECONDS = 1.5, 2.0
_LOOK_SECONDS = 0.05


class RequestCounter:
    """Wraps an ASGI app."""

    def __init__(self, app: ASGIApp, monotonic: Callable[[], float]) -> None:
        self._app = app
        self._monotonic = monotonic
        self._running = 0
        self._was_asked = False
        self._last_at = -_QUIET_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _WATCHES:
            await self._app(scope, receive, send)
            return
        self._running += 1
        self._was_asked = True
        self._last_at = self._monotonic()
        try:
            await self._app(scope, receive, send)
        finally:
            self._running -= 1

    def is_asked(self) -> bool:
        """Return whether a request runs, or one came since the last call."""
        was_asked, self._was_asked = self._was_asked, False
        return was_asked or self._running > 0

    def is_answering(self) -> bool:
        """Return whether a request runs, or came a moment ago. May be called from any thread."""
        return self._running > 0 or self._monotonic() - self._last_at < _QUIET_SECONDS

    async def wait_until_quiet(self) -> None:
        """Wait until no request has come for a moment; at most two seconds, however many come."""
        began = now = self._monotonic()
        while now - self._last_at < _QUIET_SECONDS and now - began < _LONGEST_WAIT_SECONDS:
            await asyncio.sleep(_LOOK_SECONDS)
            now = self._monotonic()
