"""Answers a short request that is wholly there, such as a health check, in one step: no transport and no protocol, each
of which takes a round of the event loop. The application is the same, and so is what is refused. The connection is
closed with the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from email.utils import formatdate
from typing import Any

import h11
from starlette.types import ASGIApp, Message, Scope
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES

from assistant.core.dataclass import dataclass
from assistant.web.strict_http import find_head_fault

# Monitors send some hundred bytes.
_MAX_BYTES = 2048
_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class ShortRequest:
    """A request that was sent whole."""

    size: int  # bytes
    head: h11.Request
    http: h11.Connection  # renders the answer


def peek_sent(connection: socket.socket) -> bytes:
    """Return the beginning of what was sent, which stays there to be read; "" if nothing was, or the connection ended.
    Raises `ConnectionError`."""
    with contextlib.suppress(BlockingIOError, InterruptedError):
        return connection.recv(_MAX_BYTES, socket.MSG_PEEK)
    return b""


def parse_short_request(sent: bytes, paths: frozenset[str]) -> ShortRequest | None:
    """Return the request if it is a valid GET of one of these paths and all that was sent; else None."""
    is_asked = any(sent.startswith(f"GET {path} HTTP/1.1\r\n".encode()) for path in paths)
    is_whole = sent.find(_END) == len(sent) - len(_END)
    if not is_asked or not is_whole or find_head_fault(sent) is not None:
        return None
    http = h11.Connection(h11.SERVER)
    http.receive_data(sent)
    with contextlib.suppress(h11.RemoteProtocolError):
        head = http.next_event()
        # One with a body is not whole.
        if isinstance(head, h11.Request) and isinstance(http.next_event(), h11.EndOfMessage):
            return ShortRequest(len(sent), head, http)
    return None


async def answer_short_request(app: ASGIApp, connection: socket.socket, client: Any, request: ShortRequest) -> None:
    """Answer a request that was peeked at, and close the connection. Raises `OSError`."""
    with connection:
        connection.recv(request.size)
        scope = _scope(request.head, connection.getsockname(), client)
        connection.send(await _answer(app, request.http, scope))


def _scope(request: h11.Request, server: Any, client: Any) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": _address(server),
        "client": _address(client),
        "scheme": "http",
        "method": "GET",
        "root_path": "",
        "path": request.target.decode("ascii"),
        "raw_path": request.target,
        "query_string": b"",
        "headers": list(request.headers),
        "state": {},
    }


def _address(of: Any) -> tuple[str, int] | None:
    """A Unix socket has a path, and whoever connects to it nothing."""
    return (str(of[0]), int(of[1])) if isinstance(of, tuple) else None


async def _answer(app: ASGIApp, http: h11.Connection, scope: Scope) -> bytes:
    answer = bytearray()
    was_read = False

    async def receive() -> Message:
        nonlocal was_read
        if was_read:
            # Nobody looks whether the client has gone: the answer is short.
            await asyncio.get_running_loop().create_future()
        was_read = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            status, date = message["status"], formatdate(usegmt=True).encode()
            headers = [*message.get("headers", ()), (b"date", date), (b"connection", b"close")]
            answer.extend(
                http.send(h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status])) or b""
            )
        else:
            answer.extend(http.send(h11.Data(data=message.get("body", b""))) or b"")

    await app(scope, receive, send)
    return bytes(answer + (http.send(h11.EndOfMessage()) or b""))
