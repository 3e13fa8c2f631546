"""Counts requests, to tell whether a daemon is asked anything. What only watches it does not count."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_WATCHES = frozenset({"/healthz", "/readyz", "/metrics"})


class RequestCounter:
    """Wraps an ASGI app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._running = 0
        self._was_asked = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _WATCHES:
            await self._app(scope, receive, send)
            return
        self._running += 1
        self._was_asked = True
        try:
            await self._app(scope, receive, send)
        finally:
            self._running -= 1

    def is_asked(self) -> bool:
        """Return whether a request runs, or one came since the last call."""
        was_asked, self._was_asked = self._was_asked, False
        return was_asked or self._running > 0
