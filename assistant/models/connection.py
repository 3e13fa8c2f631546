"""What both adapters do with the connection to a provider: load what it needs, limit how much it may send as one
answer, and name the proxy that it is asked through.

The SDKs collect a line until it ends, however long it is, so that a server that sends one without an end would fill the
memory. What counts is what was unpacked: little that is compressed may be very much.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from threading import Thread
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

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


def limit_size(response: httpx2.Response) -> None:
    """Have reading the response raise `MalformedProviderData` once more has come than any answer takes."""
    read = response.aiter_bytes

    async def aiter_bytes(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        size = 0
        async for data in read(chunk_size):
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
