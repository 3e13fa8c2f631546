"""uvicorn on a listening socket, inside the daemon's own loop: no signal handlers, no log set-up, no child of its own.

Heavy to import: `web/listeners.py` loads it at the first connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from assistant.web.app import build_web_app
from assistant.web.connection_limits import ConnectionLimit, LimitedSocket, SlowClientProtocol
from assistant.web.deps import AccessRules, ApiDeps
from assistant.web.guard import AccessGuard
from assistant.web.listeners import ServeSocket

# Requests in flight get this long when the daemon stops; event streams end with the terminal bridge before that.
_SHUTDOWN_SECONDS = 1
# A person at a terminal says something every few minutes.
_KEEP_ALIVE_SECONDS = 600
# For monitoring: they answer no more than yes or no.
_OPEN_PATHS = frozenset({"/healthz", "/readyz"})
# Over TCP a connection costs a file before it shows a token, and the stores need files too.
_MAX_CONNECTIONS = 256
_MAX_SHARE_OF_FILES = 1 / 4
_KEEP_ALIVE_TCP_SECONDS = 60
_HANDSHAKE_SECONDS = 10


def build_control_server(deps: ApiDeps) -> ServeSocket:
    """What `serve_control` loads: the API for the owner. Everybody who can open the socket is the owner."""
    return serve_with_uvicorn(build_web_app(deps))


def build_tcp_server(
    deps: ApiDeps, rules: AccessRules, tls: ssl.SSLContext | None, clock: Callable[[], float]
) -> ServeSocket:
    """What `TcpListener` loads: the API for clients that follow the rules."""
    limit = ConnectionLimit(_max_connections())
    app = AccessGuard(build_web_app(deps, trusted=False), rules, clock, _OPEN_PATHS, limit.admit_authenticated)
    return serve_with_uvicorn(
        app, tls=tls, keep_alive_seconds=_KEEP_ALIVE_TCP_SECONDS, limit=limit, protocol=SlowClientProtocol
    )


def _max_connections() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_CONNECTIONS if files < 0 else min(_MAX_CONNECTIONS, int(files * _MAX_SHARE_OF_FILES))


def serve_with_uvicorn(
    app: ASGIApp,
    *,
    tls: ssl.SSLContext | None = None,
    keep_alive_seconds: int = _KEEP_ALIVE_SECONDS,
    limit: ConnectionLimit | None = None,
    protocol: type[H11Protocol] = H11Protocol,
    handshake_seconds: float = _HANDSHAKE_SECONDS,
) -> ServeSocket:
    """`limit` says who may be connected; without one everybody may."""

    @asynccontextmanager
    async def serve(listening: socket.socket) -> AsyncIterator[None]:
        config = Config(
            app,
            http=protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            timeout_keep_alive=keep_alive_seconds,
        )
        config.load()
        server = Server(config)
        server.lifespan = config.lifespan_class(config)
        entrance = listening if limit is None else LimitedSocket(listening, limit)
        await _start(server, entrance, tls, handshake_seconds)
        ticking = asyncio.create_task(server.main_loop(), name="control server")
        try:
            yield
        finally:
            ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ticking
            await server.shutdown(sockets=[listening, entrance])

    return serve


async def _start(server: Server, listening: socket.socket, tls: ssl.SSLContext | None, handshake: float) -> None:
    """As uvicorn does, which would wait a minute for a TLS handshake."""

    def connected() -> asyncio.Protocol:
        protocol: asyncio.Protocol = server.config.http_protocol_class(  # type: ignore[call-arg]
            config=server.config, server_state=server.server_state, app_state={}
        )
        return protocol

    loop, timeout = asyncio.get_running_loop(), None if tls is None else handshake
    server.servers = [await loop.create_server(connected, sock=listening, ssl=tls, ssl_handshake_timeout=timeout)]
    server.started = True
