"""Runs uvicorn on a listening socket within the daemon's event loop (without signal handlers, log setup, or child
processes), and adds limits for TCP: the number of connections, and how slow each may be.

A connection counts from the moment it is accepted, before TLS or HTTP, and uses one of the daemon's open files: without
a limit, idle connections would take those of the stores too (F42). A connection that has sent the token stays; among
the others, the oldest is closed for a new one, so that idle connections block nobody. A client has to send its headers
soon and its body at some speed, and to read its answer. Otherwise the connection is closed, with a reason if it can
still be sent.

Slow to import: `web/servers.py` loads it at the first connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.server import Server

from assistant.web.deps import AccessRules
from assistant.web.entrance import Entrance
from assistant.web.guard import AccessGuard, ClientAddress
from assistant.web.strict_http import StrictProtocol
from assistant.web.tcp_listener import BACKLOG, ServeSocket

# Requests in progress get this long when the daemon stops; event streams already end with the terminal bridge.
_SHUTDOWN_SECONDS = 1
# People at a terminal write every few minutes.
_KEEP_ALIVE_SECONDS = 600
# Over TCP a connection uses a file before it sends a token, and the stores need files too.
_MAX_CONNECTIONS = 256
_MAX_SHARE_OF_FILES = 1 / 4
_KEEP_ALIVE_TCP_SECONDS = 60
_HANDSHAKE_SECONDS = 10
# It takes a third of the time of level 9, for answers that are 3 % larger.
_GZIP_LEVEL = 4
# Files may be large, and are mostly compressed already.
_NOT_COMPRESSED = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream")


def build_tcp_server(
    app: ASGIApp, rules: AccessRules, tls: ssl.SSLContext | None, clock: Callable[[], float]
) -> ServeSocket:
    """Return a server of the API for clients that follow the rules, as loaded by `TcpListener`."""
    limit = ConnectionLimit(_max_connections(_MAX_CONNECTIONS))
    compressed = GZipMiddleware(app, compresslevel=_GZIP_LEVEL, exclude_content_types=_NOT_COMPRESSED)
    guarded = AccessGuard(compressed, rules, clock, limit.admit_authenticated)
    return serve_with_uvicorn(
        guarded, tls=tls, keep_alive_seconds=_KEEP_ALIVE_TCP_SECONDS, limit=limit, protocol=SlowClientProtocol
    )


def _max_connections(most: int) -> int:
    """Return how many connections there may be of a kind: at most so many, and a share of the files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if files < 0 else min(most, int(files * _MAX_SHARE_OF_FILES))


def serve_with_uvicorn(
    app: ASGIApp,
    *,
    tls: ssl.SSLContext | None = None,
    keep_alive_seconds: int = _KEEP_ALIVE_SECONDS,
    limit: ConnectionLimit | None = None,
    protocol: type[StrictProtocol] = StrictProtocol,
    handshake_seconds: float = _HANDSHAKE_SECONDS,
) -> ServeSocket:
    """`limit` decides who may connect; without one everybody may."""

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
        entrance = _open_entrance(app, server, listening, limit, tls, handshake_seconds)
        ticking = asyncio.create_task(server.main_loop(), name="control server")
        try:
            yield
        finally:
            ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ticking
            entrance.close()
            await server.shutdown()

    return serve


def _open_entrance(
    app: ASGIApp,
    server: Server,
    listening: socket.socket,
    limit: ConnectionLimit | None,
    tls: ssl.SSLContext | None,
    handshake_seconds: float,
) -> Entrance:
    """Start like uvicorn does, which would wait a minute for a TLS handshake."""
    loop, timeout = asyncio.get_running_loop(), None if tls is None else handshake_seconds

    def connected() -> asyncio.Protocol:
        protocol: asyncio.Protocol = server.config.http_protocol_class(  # type: ignore[call-arg]
            config=server.config, server_state=server.server_state, app_state={}
        )
        return protocol

    async def begin(connection: socket.socket, address: Any) -> None:
        if limit is not None:
            limit.register(connection, (str(address[0]), int(address[1])))
        await loop.connect_accepted_socket(connected, connection, ssl=tls, ssl_handshake_timeout=timeout)

    listening.listen(BACKLOG)
    entrance = Entrance(listening, begin, None if tls else app, _max_connections(BACKLOG))
    entrance.open()
    server.servers, server.started = [], True
    return entrance


_UNAUTHENTICATED = 64


class ConnectionLimit:
    """Limits the connections that have sent the token, and the others. If all of the latter are taken, a client that is
    answered at once (a health check) is not displaced by the next ones."""

    def __init__(self, max_authenticated: int) -> None:
        self._max_authenticated = max_authenticated
        # Oldest first.
        self._connections: dict[ClientAddress, socket.socket] = {}
        self._authenticated: set[ClientAddress] = set()

    def register(self, connection: socket.socket, address: ClientAddress) -> None:
        """Register a connection; if there are too many, the oldest without a token is closed."""
        limit = self._max_authenticated + _UNAUTHENTICATED
        if len(self._connections) >= limit:
            self._forget_closed()
        if len(self._connections) >= limit:
            self._close_oldest()
        # Another one may have had its address.
        self._connections.pop(address, None)
        self._authenticated.discard(address)
        self._connections[address] = connection

    def admit_authenticated(self, address: ClientAddress) -> bool:
        """This connection has sent the token; return False if there are too many of these."""
        if address in self._authenticated:
            return True
        if len(self._authenticated) >= self._max_authenticated:
            self._forget_closed()
        if len(self._authenticated) >= self._max_authenticated:
            return False
        self._authenticated.add(address)
        return True

    def _forget_closed(self) -> None:
        self._connections = {address: open_ for address, open_ in self._connections.items() if open_.fileno() != -1}
        self._authenticated &= self._connections.keys()

    def _close_oldest(self) -> None:
        address = next(address for address in self._connections if address not in self._authenticated)
        # The protocol that serves it notices, and closes it.
        with contextlib.suppress(OSError):
            self._connections.pop(address).shutdown(socket.SHUT_RDWR)


# How long what a client has sent is read before it is refused.
_READ_SECONDS = 0.05
_Awaited = Literal["request", "body", ""]


class SlowClientProtocol(StrictProtocol):
    """Closes connections that are too slow. One that sends a request in many small pieces is read at intervals, so that
    hundreds of them, each with a byte at a time, do not keep the event loop busy."""

    request_timeout_seconds = 10.0  # for a request's headers
    min_bytes_per_second = 1000.0  # a body's time grows with what was received
    write_timeout_seconds = 30.0  # for reading an answer
    # From so many small pieces of a request on, the next ones are read together. One on its way through a network comes
    # in a few, and larger ones.
    prompt_pieces, small_piece_bytes, interval_seconds = 8, 512, 0.5

    _awaited: _Awaited = ""
    _since = 0.0
    _received = 0
    _small_pieces = 0
    _is_late = False
    _request_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()
        self._received += len(data)
        self._small_pieces = self._small_pieces + 1 if self._awaited and len(data) < self.small_piece_bytes else 0
        if self._small_pieces >= self.prompt_pieces and not self._is_late and not self.transport.is_closing():
            self.transport.pause_reading()
            self._read_timer = self.loop.call_later(self.interval_seconds, self._read_on)

    def _read_on(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
        # Or else the application has not taken what is there, and resumes it.
        if not self.flow.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._request_timer, self._write_timer, self._read_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    # ------------------------------------------------------------------------------------------------ what is asked for

    def _awaited_now(self) -> _Awaited:
        """Return what is awaited now; after an answer the next request has its own time."""
        if self.cycle is None or self.cycle.response_complete:
            return "request"
        return "body" if self.cycle.more_body else ""

    def _watch(self) -> None:
        awaited = self._awaited_now()
        if awaited == self._awaited:
            return
        if self._request_timer is not None:
            self._request_timer.cancel()
        self._awaited, self._since, self._received, self._request_timer = awaited, self.loop.time(), 0, None
        self._is_late = False
        if awaited:
            self._request_timer = self.loop.call_later(self.request_timeout_seconds, self._check_pace)

    def _check_pace(self) -> None:
        earned = self._received / self.min_bytes_per_second if self._awaited == "body" else 0.0
        left = self._since + self.request_timeout_seconds + earned - self.loop.time()
        if left > 0:
            self._request_timer = self.loop.call_later(left, self._check_pace)
        elif self._read_timer is not None:
            # Where something is left unread, closing takes back the answer.
            self._is_late = True
            self._read_on()
            self._request_timer = self.loop.call_later(_READ_SECONDS, self._check_pace)
        else:
            self.refuse(408, "The request came too slowly. Nothing was accepted.")

    # ------------------------------------------------------------------------------------------------ what is answered

    def pause_writing(self) -> None:
        super().pause_writing()
        self._abort_later()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None and not self.transport.is_closing():
            self._write_timer.cancel()
            self._write_timer = None

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._abort_later()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._abort_later()

    def _abort_later(self) -> None:
        """Abort after a while: closing waits until everything written is read, which a client may never do."""
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.write_timeout_seconds, self.transport.abort)

    def refuse(self, status: int, error: str) -> None:
        super().refuse(status, error)
        self._abort_later()
