"""What both adapters do with the connection to a provider: load what it needs, limit how much it may send as one
answer, and name the proxy that it is asked through.

The SDKs collect a line until it ends, however long it is, so that a server that sends one without an end would fill the
memory. What counts is what was unpacked: little that is compressed may be very much.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from threading import Thread
from typing import Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakMethod

import httpx2

from assistant.core.text import host_of_address
from assistant.models.encoding import MalformedProviderData

_MAX_MEGABYTES = 64


def load_event_loop_support() -> None:
    """Import what a client of HTTP would import on the event loop, at its first request or while it is closed: open and
    close one in a loop, and thus a thread, of its own."""

    async def open_and_close() -> None:
        async with httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(verify=False)):
            pass

    # One that the end of the process does not wait for.
    thread = Thread(target=lambda: asyncio.run(open_and_close()), daemon=True)
    thread.start()
    thread.join()


class RequestBody:
    """What is sent as a request, in one piece.

    The SDKs keep what they sent, and their answers are part of cycles (of tracebacks and of frames that were left
    early), which stay until those are collected: some fifty requests, each with all messages in view, 12 MB after 200
    turns. So a request's body is let go of once the answer begins: at the end of a `with` block."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        # Else it would be sent in chunks.
        self.headers = {"Content-Length": str(len(content))}

    def __len__(self) -> int:
        return len(self._content)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._content = b""


def limit_size(response: httpx2.Response) -> None:
    """Have reading the response raise `MalformedProviderData` once more has come than any answer takes."""
    # A reference to the response would make a cycle of it, which stays until cycles are collected.
    read = WeakMethod(response.aiter_bytes)

    async def aiter_bytes(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        size = 0
        reader = read()
        assert reader is not None, "whoever reads a response has it"
        async for data in reader(chunk_size):
            size += len(data)
            if size > _MAX_MEGABYTES * 2**20:
                raise MalformedProviderData(f"it sent more than {_MAX_MEGABYTES} MB as one answer")
            yield data

    response.aiter_bytes = aiter_bytes  # type: ignore[method-assign, assignment]


def proxy_remark(address: str) -> str:
    """Say through which proxy of the environment an address is asked, also one of this machine; "" for none."""
    url = urlsplit(address)
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all") or ""
    if not proxy or proxy_bypass(url.hostname or ""):
        return ""
    return f" (asked through the proxy {host_of_address(proxy)}, which the environment names; NO_PROXY excepts hosts)"
