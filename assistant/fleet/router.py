"""Passes HTTP requests to the host that runs a home, and waits while no host does.

The first part of the name in `Host` is the home: "alice.example.org" is alice. The router keeps nothing: for each
request it asks PostgreSQL where the home is, so any number of routers may run. It wakes a home that sleeps. A request
is tried again only while no connection was made; what may have reached a home is never sent twice.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

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

_NOWHERE = HomePlace("", False, False)

Headers = list[tuple[bytes, bytes]]


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
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        home = host.partition(":")[0].partition(".")[0].lower()
        try:
            response = await self._forward(home, scope, receive)
        except httpx2.TransportError as error:
            log.warning("a home did not answer", home=home, error=str(error))
            await _answer(send, 502, f"{home!r} stopped while it was asked. It may or may not have got this request.")
            return
        if isinstance(response, tuple):
            await _answer(send, *response)
            return
        try:
            await _pass_back(response, receive, send)
        finally:
            await response.aclose()

    async def _forward(self, home: str, scope: Scope, receive: Receive) -> httpx2.Response | tuple[int, str]:
        """Return the response of the home, or a status and a text. Raises `httpx2.TransportError` if the connection
        broke after it was made."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while True:
            place = await self._find_place(home)
            if place is None:
                return 404, f"There is no home {home!r} here."
            if place.is_full:
                return (
                    507,
                    f"{home!r} has used up its disk space and is stopped. Nothing was accepted; ask who runs it.",
                )
            if place.address:
                try:
                    return await self._transport.handle_async_request(
                        _request(f"{self._scheme}://{place.address}", scope, receive)
                    )
                except (httpx2.ConnectError, httpx2.ConnectTimeout):
                    pass  # it is just starting, or its host is lost
            waited = loop.time() - begun
            if waited > self._wait_seconds:
                return 503, f"{home!r} does not run now. Nothing was accepted; try again later."
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
                return dict.fromkeys(homes, _NOWHERE)


def _request(address: str, scope: Scope, receive: Receive) -> httpx2.Request:
    query = scope["query_string"]
    target = scope["raw_path"] + (b"?" + query if query else b"")
    headers = _without_hops(scope["headers"])
    names = {name for name, _ in scope["headers"]}
    if scope.get("client") and b"x-forwarded-for" not in names:
        headers.append((b"x-forwarded-for", scope["client"][0].encode()))
    return httpx2.Request(
        scope["method"],
        httpx2.URL(address).copy_with(raw_path=target),
        headers=headers,
        content=_read_body(receive) if names & {b"content-length", b"transfer-encoding"} else None,
        extensions={"timeout": _TIMEOUTS},
    )


async def _read_body(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise httpx2.ReadError("the client has gone")
        yield message.get("body", b"")
        if not message.get("more_body"):
            return


async def _pass_back(response: httpx2.Response, receive: Receive, send: Send) -> None:
    """Until the response ends or the client goes."""

    async def stream() -> None:
        # The server adds a date of its own.
        headers = [(name, value) for name, value in _without_hops(response.headers.raw) if name != b"date"]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        async for data in response.aiter_raw():
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def wait_until_gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.create_task(stream()), asyncio.create_task(wait_until_gone())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    if isinstance(ended[0], Exception):
        raise ended[0]  # the server then cuts the connection, so that the client sees that something is missing


def _without_hops(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    return [(name.lower(), value) for name, value in headers if name.lower() not in _HOP_BY_HOP]


async def _answer(send: Send, status: int, text: str) -> None:
    body = json.dumps({"error": text}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 503:
        headers.append((b"retry-after", b"5"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
