"""How many connections there may be over TCP, and how long each may take: uvicorn's own protocol, with the limits
that it does not have.

What always holds: a connection counts from the moment it is accepted, before a word of TLS or HTTP, and each takes one
of the files that the daemon may have open: without a limit, silent ones would take those of the stores too (F42). A
connection that has shown the token stays; of the others, the oldest makes room for a new one, so that a silent crowd
keeps nobody out. A client has to send its headers soon and its body at some pace, and to read its answer. Otherwise the
connection ends, with a reason where one can still be sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from typing import Any, Literal

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

# Host and port of who is connected, as ASGI has them.
ClientAddress = tuple[str, int]


class ConnectionLimit:
    """At most so many connections that have shown the token, and one that may do so."""

    def __init__(self, max_authenticated: int) -> None:
        self._max_authenticated = max_authenticated
        # The oldest first.
        self._connections: dict[ClientAddress, socket.socket] = {}
        self._authenticated: set[ClientAddress] = set()

    def register(self, connection: socket.socket, address: ClientAddress) -> None:
        """One more is connected; where there are too many, the oldest without a token is closed."""
        self._forget_closed()
        if len(self._connections) > self._max_authenticated:
            self._close_oldest()
        self._connections[address] = connection

    def admit_authenticated(self, address: ClientAddress) -> bool:
        """This connection has shown the token; False where as many have as may be connected."""
        self._forget_closed()
        if address not in self._authenticated and len(self._authenticated) >= self._max_authenticated:
            return False
        self._authenticated.add(address)
        return True

    def _forget_closed(self) -> None:
        self._connections = {address: open_ for address, open_ in self._connections.items() if open_.fileno() != -1}
        self._authenticated &= self._connections.keys()

    def _close_oldest(self) -> None:
        address = next(address for address in self._connections if address not in self._authenticated)
        # The protocol that serves it sees its end, and closes it.
        with contextlib.suppress(OSError):
            self._connections.pop(address).shutdown(socket.SHUT_RDWR)


class LimitedSocket(socket.socket):
    """A listening socket as `listening`; each connection is registered with the limit."""

    def __init__(self, listening: socket.socket, limit: ConnectionLimit) -> None:
        super().__init__(fileno=os.dup(listening.fileno()))
        self._limit = limit

    def accept(self) -> tuple[socket.socket, Any]:
        connection, address = super().accept()
        self._limit.register(connection, (str(address[0]), int(address[1])))
        return connection, address


_Awaited = Literal["request", "body", ""]


class SlowClientProtocol(H11Protocol):
    """Ends connections that are too slow."""

    request_timeout_seconds = 10.0  # for a request's headers
    min_bytes_per_second = 1000.0  # a body's time grows with what has come of it
    write_timeout_seconds = 30.0  # for an answer to be read

    _awaited: _Awaited = ""
    _since = 0.0
    _received = 0
    _request_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()
        self._received += len(data)

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._request_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    # ------------------------------------------------------------------------------------------------ what is asked for

    def _awaited_now(self) -> _Awaited:
        """After an answer the next request has its time too."""
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
        if awaited:
            self._request_timer = self.loop.call_later(self.request_timeout_seconds, self._check_pace)

    def _check_pace(self) -> None:
        earned = self._received / self.min_bytes_per_second if self._awaited == "body" else 0.0
        left = self._since + self.request_timeout_seconds + earned - self.loop.time()
        if left > 0:
            self._request_timer = self.loop.call_later(left, self._check_pace)
        else:
            self._refuse(408, "The request came too slowly. Nothing was accepted.")

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
        """Closing waits until everything written is read, which a client may never do."""
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.write_timeout_seconds, self.transport.abort)

    def send_400_response(self, msg: str) -> None:
        """For uvicorn, where something is no HTTP, or has headers without end."""
        self._refuse(400, "This is no HTTP request, or its headers are too long. Nothing was accepted.")

    def _refuse(self, status: int, error: str) -> None:
        """End it, with a failure as every other where no answer has begun."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        body = json.dumps({"error": error}).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        for event in (
            h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status]),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
        self._abort_later()
