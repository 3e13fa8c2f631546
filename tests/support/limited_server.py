"""The web server over real sockets, with its limits, around a small application; and a client that sends bytes."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from assistant.web.server import ConnectionLimit, SlowClientProtocol, serve_with_uvicorn
from assistant.web.tcp_listener import listen_tcp

ASKING = b"GET /0 HTTP/1.1\r\nHost: localhost\r\n"


class LongRequestTimeout(SlowClientProtocol):
    request_timeout_seconds = 60.0


async def plain(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that reads what it is sent, and answers with its size and so much more as the path says."""
    body = await Request(scope, receive).body()
    await PlainTextResponse(f"read {len(body)}" + "." * int(scope["path"][1:] or 0))(scope, receive, send)


class RawClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, request: bytes) -> bytes:
        """The first line of the answer, "" where there is none; the rest is read too."""
        with contextlib.suppress(ConnectionError):
            self.writer.write(request)
            line = await self.reader.readline()
            while await self.reader.readline() not in (b"\r\n", b""):
                pass
            await self.reader.read(1000)
            return line
        return b""

    async def rest(self) -> bytes:
        """Until the connection ends."""
        with contextlib.suppress(ConnectionError):
            return await self.reader.read()
        return b""


@dataclass(frozen=True)
class LimitedServer:
    address: tuple[str, int]
    tls: ssl.SSLContext | None

    async def connect(self) -> RawClient:
        return RawClient(*await asyncio.open_connection(*self.address, ssl=self.tls))

    async def silent(self) -> RawClient:
        """Who says nothing, not even of TLS."""
        return RawClient(*await asyncio.open_connection(*self.address))


@asynccontextmanager
async def served(
    *,
    app: ASGIApp = plain,
    crowd: ConnectionLimit | None = None,
    protocol: type[SlowClientProtocol] = SlowClientProtocol,
    files: tuple[Path, Path] | None = None,
    handshake: float = 10,
) -> AsyncIterator[LimitedServer]:
    ours = theirs = None
    if files is not None:
        ours, theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=files[0])
        ours.load_cert_chain(*files)
    listening = await listen_tcp("127.0.0.1", 0)
    serve = serve_with_uvicorn(
        app, tls=ours, limit=crowd or ConnectionLimit(256), protocol=protocol, handshake_seconds=handshake
    )
    with listening:
        async with asyncio.timeout(20), serve(listening):
            yield LimitedServer(listening.getsockname(), theirs)
