"""How many connections there may be over TCP, and how long each may take: uvicorn's own protocol, with the limits
that it does not have.

What always holds: a connection counts from the moment it is accepted, before a word of TLS or HTTP, and each takes one
of the files that the daemon may have open: without a limit, silent ones would take those of the stores too (F42). Who
has shown the token stays; of the others, whoever has been connected longest makes room for who comes, so that a crowd
that says nothing keeps nobody out. Whoever connects asks for something soon, whole to the end of its headers; a body
comes at some pace; an answer is taken. Otherwise the connection ends, with a reason where one can still be sent.
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
    """`most` who are known, and one who may become so."""

    def __init__(self, most: int) -> None:
        self._most = most
        # Longest there first.
        self._there: dict[ClientAddress, socket.socket] = {}
        self._known: set[ClientAddress] = set()

    def register(self, connection: socket.socket, address: ClientAddress) -> None:
        """One more is there; whoever has to go for that is on the way."""
        self._forget_gone()
        if len(self._there) > self._most:
            self._one_goes()
        self._there[address] = connection

    def admit_authenticated(self, address: ClientAddress) -> bool:
        """Who is connected from there has shown the token; False where as many have as may be connected."""
        self._forget_gone()
        if address not in self._known and len(self._known) >= self._most:
            return False
        self._known.add(address)
        return True

    def _forget_gone(self) -> None:
        self._there = {address: one for address, one in self._there.items() if one.fileno() != -1}
        self._known &= self._there.keys()

    def _one_goes(self) -> None:
        address = next(one for one in self._there if one not in self._known)
        # Whoever serves it sees its end, and closes it.
        with contextlib.suppress(OSError):
            self._there.pop(address).shutdown(socket.SHUT_RDWR)


class LimitedSocket(socket.socket):
    """A listening socket as `listening`, where the crowd is told of each who comes."""

    def __init__(self, listening: socket.socket, crowd: ConnectionLimit) -> None:
        super().__init__(fileno=os.dup(listening.fileno()))
        self._crowd = crowd

    def accept(self) -> tuple[socket.socket, Any]:
        connection, address = super().accept()
        self._crowd.register(connection, (str(address[0]), int(address[1])))
        return connection, address


_Awaited = Literal["request", "body", ""]


class SlowClientProtocol(H11Protocol):
    """`asking_seconds` is how long a request's headers may take, and a body so much longer as it has bytes by
    `bytes_a_second`; `taking_seconds` how long an answer may wait to be taken."""

    request_timeout_seconds = 10.0
    min_bytes_per_second = 1000.0
    write_timeout_seconds = 30.0

    _awaited: _Awaited = ""
    _since = 0.0
    _came = 0
    _asking: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()
        self._came += len(data)

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._asking, self._taking):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    # ------------------------------------------------------------------------------------------------ what is asked for

    def _waits_for(self) -> _Awaited:
        """What comes after an answer, and is no request yet, has its time too."""
        if self.cycle is None or self.cycle.response_complete:
            return "request"
        return "body" if self.cycle.more_body else ""

    def _watch(self) -> None:
        awaited = self._waits_for()
        if awaited == self._awaited:
            return
        if self._asking is not None:
            self._asking.cancel()
        self._awaited, self._since, self._came, self._asking = awaited, self.loop.time(), 0, None
        if awaited:
            self._asking = self.loop.call_later(self.request_timeout_seconds, self._look)

    def _look(self) -> None:
        earned = self._came / self.min_bytes_per_second if self._awaited == "body" else 0.0
        left = self._since + self.request_timeout_seconds + earned - self.loop.time()
        if left > 0:
            self._asking = self.loop.call_later(left, self._look)
        else:
            self._refuse(408, "The request came too slowly. Nothing was accepted.")

    # ------------------------------------------------------------------------------------------------ what is answered

    def pause_writing(self) -> None:
        super().pause_writing()
        self._let_go_soon()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._taking is not None and not self.transport.is_closing():
            self._taking.cancel()
            self._taking = None

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._let_go_soon()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._let_go_soon()

    def _let_go_soon(self) -> None:
        """An end waits until everything written is taken, which nobody has to do."""
        if self._taking is None:
            self._taking = self.loop.call_later(self.write_timeout_seconds, self.transport.abort)

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
        self._let_go_soon()
