"""uvicorn on a listening socket, inside the daemon's own loop: no signal handlers, no log set-up, no child of its own.

Heavy to import; `web/listener.py` and `web/tcp.py` load it at the first connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from assistant.web.control import control_app
from assistant.web.guard import Guard
from assistant.web.impatient import Impatient
from assistant.web.listener import Serving
from assistant.web.ways import Behind, Rules

# Requests in flight get this long when the daemon stops; event streams end with the terminal bridge before that.
_GRACE_SECONDS = 1
# A person at a terminal says something every few minutes.
_KEPT_OPEN_SECONDS = 600
# For whoever watches over it: they say no more than yes or no.
_OPEN_PATHS = frozenset({"/healthz", "/readyz"})
# Over TCP whoever connects costs something before they show a token.
_MOST_CONNECTIONS = 256
_KEPT_OPEN_TCP_SECONDS = 60


def control_server(behind: Behind) -> Serving:
    """What `serve_control` loads: the API for the owner, who is whoever can open the socket."""
    return serving(control_app(behind))


def guarded_server(behind: Behind, rules: Rules, tls: ssl.SSLContext | None, clock: Callable[[], float]) -> Serving:
    """What `TcpListener` loads: the API for whoever keeps the rules."""
    app = control_app(behind, trusted=False)
    return serving(
        Guard(app, rules, clock, _OPEN_PATHS), tls=tls, kept_open=_KEPT_OPEN_TCP_SECONDS, most=_MOST_CONNECTIONS,
        protocol=Impatient,
    )  # fmt: skip


def serving(
    app: ASGIApp, *, tls: ssl.SSLContext | None = None, kept_open: int = _KEPT_OPEN_SECONDS, most: int | None = None,
    protocol: type[H11Protocol] = H11Protocol,
) -> Serving:  # fmt: skip
    @asynccontextmanager
    async def serve(listening: socket.socket) -> AsyncIterator[None]:
        config = Config(
            app, http=protocol, ws="none", lifespan="off", log_config=None, access_log=False, proxy_headers=False,
            server_header=False, timeout_graceful_shutdown=_GRACE_SECONDS, timeout_keep_alive=kept_open,
            limit_concurrency=most, ssl_context_factory=None if tls is None else lambda config, default: tls,
        )  # fmt: skip
        config.load()
        server = Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listening])
        ticking = asyncio.create_task(server.main_loop(), name="control server")
        try:
            yield
        finally:
            ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ticking
            await server.shutdown(sockets=[listening])

    return serve
