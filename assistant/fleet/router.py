"""Passes HTTP requests to the host that runs a home, and waits while no host does.

The first part of the name in `Host` is the home: "alice.example.org" is alice. The router keeps nothing: for each
request it asks PostgreSQL where the home is, so any number of routers may run. It wakes a home that sleeps. A request
is tried again only while no connection was made; what may have reached a home is never sent twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from assistant.core.errors import ReplicaUnavailable
from assistant.core.logger import get_logger
from assistant.fleet.tables import FleetTables, HomePlace

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

log = get_logger()

# Whoever has waited long is looked for less often: of a thousand homes that are woken, each has to wait for its turn.
_LOOK_EVERY, _LOOK_AT_LEAST_EVERY, _LOOKS = 0.1, 1.0, 20
_CONNECT_SECONDS = 3.0
# Of one connection, not of the request.
_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding upgrade".split()
)
_TIMEOUTS = httpx2.Timeout(None, connect=_CONNECT_SECONDS).as_dict()


class FleetRouter:
    """An ASGI app. `wait_seconds`: how long a request waits for a home that no host runs. `ca`: PEM file of who signed
    the certificates of the hosts, None where they have no TLS."""

    def __init__(self, tables: FleetTables, wait_seconds: float, ca: Path | None) -> None:
        self._tables, self._wait_seconds = tables, wait_seconds
        self._scheme = "https" if ca else "http"
        self._asking = asyncio.Lock()
        self._next_homes = set[str]()
        self._next_answer: asyncio.Task[Mapping[str, HomePlace]] | None = None
        # A connection that was kept might be closed by a home that stops just when it is used.
        self._transport = httpx2.AsyncHTTPTransport(
            verify=ssl.create_default_context(cafile=ca), limits=httpx2.Limits(max_keepalive_connections=0)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        home = request.headers.get("host", "").partition(":")[0].partition(".")[0].lower()
        try:
            response = await self._forward(home, request)
        except httpx2.TransportError as error:
            log.warning("a home did not answer", home=home, error=str(error))
            response = _refuse(502, f"{home!r} stopped while it was asked. It may or may not have got this request.")
        except ClientDisconnect:
            return
        if isinstance(response, Response):
            await response(scope, receive, send)
            return
        try:
            await _pass_back(response)(scope, receive, send)
        finally:
            await response.aclose()

    async def _forward(self, home: str, request: Request) -> httpx2.Response | Response:
        """Return the response of the home, or the router's own. Raises `httpx2.TransportError` if the connection broke
        after it was made."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while True:
            place = await self._find_place(home)
            if place is None:
                return _refuse(404, f"There is no home {home!r} here.")
            if place.is_full:
                text = f"{home!r} has used up its disk space and is stopped. Nothing was accepted; ask who runs it."
                return _refuse(507, text)
            if place.address:
                # Without a connection, it is just starting, or its host is lost.
                with contextlib.suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                    return await self._transport.handle_async_request(
                        _pass_on(request, f"{self._scheme}://{place.address}")
                    )
            waited = loop.time() - begun
            if waited > self._wait_seconds:
                return _refuse(503, f"{home!r} does not run now. Nothing was accepted; try again later.")
            await asyncio.sleep(max(_LOOK_EVERY, min(_LOOK_AT_LEAST_EVERY, waited / _LOOKS)))

    async def _find_place(self, home: str) -> HomePlace | None:
        """Return where a home is, None if there is no such home. Requests that come while PostgreSQL is asked share the
        next question, so that thousands which wait for their homes delay nobody."""
        if self._next_answer is None:
            self._next_answer = asyncio.create_task(self._ask())
        self._next_homes.add(home)
        return (await asyncio.shield(self._next_answer)).get(home)

    async def _ask(self) -> Mapping[str, HomePlace]:
        async with self._asking:
            homes, self._next_homes, self._next_answer = self._next_homes, set(), None
            try:
                places = await self._tables.find_places(homes)
                if asleep := [home for home, place in places.items() if place.is_asleep]:
                    await self._tables.wake(asleep)
                return places
            except ReplicaUnavailable as error:
                log.error("the fleet's database does not answer", error=str(error))
                return dict.fromkeys(homes, HomePlace("", False, False))


def _pass_on(request: Request, address: str) -> httpx2.Request:
    query = request.scope["query_string"]
    target = request.scope["raw_path"] + (b"?" + query if query else b"")
    headers = _without_hops(request.headers.raw)
    if request.client and "x-forwarded-for" not in request.headers:
        headers.append((b"x-forwarded-for", request.client.host.encode()))
    has_body = "content-length" in request.headers or "transfer-encoding" in request.headers
    return httpx2.Request(
        request.method,
        httpx2.URL(address).copy_with(raw_path=target),
        headers=headers,
        content=request.stream() if has_body else None,
        extensions={"timeout": _TIMEOUTS},
    )


def _pass_back(response: httpx2.Response) -> StreamingResponse:
    """If the home breaks off, the server cuts the connection, so that the client sees that something is missing."""
    passed = StreamingResponse(response.aiter_raw(), response.status_code)
    # The server adds a date of its own.
    passed.raw_headers = [(name, value) for name, value in _without_hops(response.headers.raw) if name != b"date"]
    return passed


def _without_hops(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower(), value) for name, value in headers if name.lower() not in _HOP_BY_HOP]


def _refuse(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status, {"retry-after": "5"} if status == 503 else None)
