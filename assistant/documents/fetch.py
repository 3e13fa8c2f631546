"""Fetches pages and files from the web, for a person who requested them.

- Only public addresses are connected to. Names are resolved here, every address of a name is checked, and the
  connection uses a checked address, also for redirects. Addresses of this machine or its network (a router, a cloud's
  metadata, another program's port) are refused unless the settings name them.
- Size, time, redirects and content types are limited. No cookie, no key and no text of the person is sent.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

from assistant.core.dataclass import dataclass
from assistant.core.errors import ToolError
from assistant.core.network_errors import describe_connection_error
from assistant.core.quoting import quote_text
from assistant.core.text import shorten

if TYPE_CHECKING:
    import httpx2

MAX_PAGE_BYTES = 20 * 1024 * 1024
TIMEOUT_SECONDS = 30.0
_MAX_REDIRECTS = 5
_MAX_ADDRESS = 2_000
_LONGEST_SHOWN = 200
_REDIRECTS = frozenset([301, 302, 303, 307, 308])
_HEADERS = {
    "User-Agent": "Nocturne (a personal assistant; reads a page for one person)",
    "Accept": "text/html,application/xhtml+xml,application/pdf,text/*;q=0.9,*/*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}
# IPv6 addresses that embed IPv4 ones, which are checked too.
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A fetched page. `address`: its final address after redirects."""

    address: str
    content_type: str  # without parameters, in lower case
    data: bytes


@dataclass(frozen=True, slots=True)
class AddressGuard:
    """Makes requests to checked addresses. `private_hosts`: names and addresses of this network that are permitted;
    `advice`: a sentence on how to permit one."""

    private_hosts: Collection[str]
    advice: str

    async def build_request(
        self,
        client: httpx2.AsyncClient,
        method: str,
        address: str,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> httpx2.Request:
        """Return a request to a checked address, with the original host name. Raises `ToolError`."""
        parts = split_address(address)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        chosen = await self._resolve(host, port)
        place = f"[{chosen}]:{port}" if ":" in chosen else f"{chosen}:{port}"
        target = urlunsplit((parts.scheme, place, parts.path or "/", parts.query, ""))
        name = host.encode("idna").decode() if not _is_address(host) else host
        named = name if parts.port is None else f"{name}:{parts.port}"
        return client.build_request(
            method,
            target,
            headers={**(headers or {}), "Host": named},
            content=content,
            extensions={"sni_hostname": name} if parts.scheme == "https" else {},
        )

    async def _resolve(self, host: str, port: int) -> str:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise ToolError(
                f"No address is known for {_quoted(host)}: is it spelled right, and is there a network?"
            ) from None
        addresses = [str(place[0]) for *_, place in found]
        allowed = all(map(is_public, addresses)) or (
            # A name may resolve differently later: a link-local address, such as a cloud's metadata, must be permitted
            # by itself.
            host.lower() in self.private_hosts and (_is_address(host) or not any(map(_is_link_local, addresses)))
        )
        if not allowed:
            raise ToolError(
                f"{_quoted(host)} is in this machine's own network, which is not read from. Nothing was read; "
                f"{self.advice}"
            )
        return addresses[0]


@dataclass(frozen=True)
class PageFetcher:
    """`private_hosts`: names and addresses of this network that are permitted."""

    private_hosts: Collection[str] = ()
    timeout_seconds: float = TIMEOUT_SECONDS
    max_bytes: int = MAX_PAGE_BYTES

    async def fetch(self, address: str) -> FetchedPage:
        """Fetch a page. Raises `ToolError`, which says why there is none."""
        import httpx2  # loaded at first use

        try:
            async with asyncio.timeout(self.timeout_seconds):
                return await self._follow(address)
        except TimeoutError:
            raise ToolError(f"{_quoted(address)} did not answer within {self.timeout_seconds:.0f} seconds.") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, ssl.SSLError, OSError) as error:
            raise ToolError(f"{_quoted(address)} cannot be read: {describe_connection_error(error)}.") from None

    async def _follow(self, address: str) -> FetchedPage:
        import httpx2

        guard = AddressGuard(self.private_hosts, "tools.fetch_private_hosts can name it.")
        # One client per page, so that no cookie is sent to another.
        async with httpx2.AsyncClient(
            timeout=self.timeout_seconds, trust_env=False, verify=self._certificates, headers=_HEADERS
        ) as client:
            for _ in range(_MAX_REDIRECTS + 1):
                request = await guard.build_request(client, "GET", address)
                response = await client.send(request, stream=True)
                try:
                    if response.status_code in _REDIRECTS and (to := response.headers.get("location")):
                        address = urljoin(address, to)
                        continue
                    return await self._read(address, response)
                finally:
                    await response.aclose()
        raise ToolError(f"{_quoted(address)} redirects more than {_MAX_REDIRECTS} times. Nothing was read.")

    async def _read(self, address: str, response: httpx2.Response) -> FetchedPage:
        if not response.is_success:
            reason = response.reason_phrase or "no reason given"
            raise ToolError(f"{_quoted(address)} answered {response.status_code} ({reason}). Nothing was read.")
        data = bytearray()
        async for chunk in response.aiter_bytes():
            data += chunk
            if len(data) > self.max_bytes:
                size = f"{self.max_bytes // 2**20} MB" if self.max_bytes >= 2**20 else f"{self.max_bytes} bytes"
                raise ToolError(f"{_quoted(address)} is larger than {size}, the most that is read.")
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        return FetchedPage(address, kind, bytes(data))

    @cached_property
    def _certificates(self) -> ssl.SSLContext:
        return ssl.create_default_context()


def split_address(address: str) -> SplitResult:
    """Split the address of a page. Raises `ToolError`."""
    try:
        parts = urlsplit(address.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = usable and len(address) <= _MAX_ADDRESS and address.isprintable()
    except ValueError:
        usable = False
    if not usable:
        raise ToolError(f"{_quoted(address)} is no address of a page: one begins with https:// or http://.")
    if parts.username or parts.password:
        raise ToolError("The address has a password in it, which would be sent. Nothing was read.")
    return parts


def is_public(address: str) -> bool:
    """Return whether an address is public: not in a private, local, shared, reserved or multicast network."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if inner is None and found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            return inner.is_global and not inner.is_multicast
    return found.is_global and not found.is_multicast and not getattr(found, "is_site_local", False)


def _is_link_local(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_link_local


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _quoted(address: str) -> str:
    return quote_text(shorten(address, _LONGEST_SHOWN))
