"""The subset of WebDAV that calendars and address books need, over HTTP.

- Only checked addresses are connected to (`AddressGuard`), also after redirects or links in answers; addresses in this
  machine's network only if the settings permit it for this source.
- The password is only sent to the configured host and its subdomains, and never unencrypted beyond this machine's
  network.
- Size and redirects are limited; XML with a document type is refused. Runs only in the child process, which has a time
  limit.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urljoin, urlsplit

from assistant.core.dataclass import dataclass
from assistant.core.errors import ToolError
from assistant.core.network_errors import describe_connection_error, is_certificate_refused
from assistant.core.quoting import quote_text
from assistant.core.text import shorten
from assistant.documents.fetch import AddressGuard
from assistant.settings.calendar_sources import CalendarSource

if TYPE_CHECKING:
    import httpx2

DAV, CALDAV, CARDDAV = "DAV:", "urn:ietf:params:xml:ns:caldav", "urn:ietf:params:xml:ns:carddav"
SERVER = "http://calendarserver.org/ns/"
_NAMES = f'xmlns:d="{DAV}" xmlns:c="{CALDAV}" xmlns:a="{CARDDAV}" xmlns:s="{SERVER}"'
_PREFIXES = {"d": DAV, "c": CALDAV, "a": CARDDAV, "s": SERVER}
_PATH_LETTERS = "/:@!$&'()*+,;=~-._"
_MAX_REDIRECTS = 5
CHANGE_SECONDS = 30.0
"""How long a change waits for each step: then there is time left to look whether it was made."""
_ADVICE = "a calendar there needs `private = true` in its table of calendar.sources."
_ADVICE_OF_PRIVATE = "of your own network, only the host that you named is read; name the other one if it is yours."
_CERTIFICATE_ADVICE = (
    " The password was not sent. For a server of your own with its own certificate, `assistant calendar add` takes the "
    "file: --ca-file."
)
# iCloud redirects each account to its own host.
_ONE_OWNER = ".icloud.com"
_HEADERS = {"User-Agent": "Nocturne (a personal assistant; reads one person's calendars)", "Accept": "*/*"}


class DavError(Exception):
    """Why a source could not be read or changed, as a sentence. `unsure`: a change was sent, and it is unknown whether
    it was made."""

    def __init__(self, text: str, *, unsure: bool = False) -> None:
        super().__init__(text)
        self.unsure = unsure


@dataclass(frozen=True, slots=True)
class DavAnswer:
    """A server's answer. `address` is where it came from, after redirects."""

    address: str
    status: int
    headers: Mapping[str, str]
    data: bytes

    @property
    def text(self) -> str:
        """The data as UTF-8; what is not is replaced."""
        return self.data.decode("utf-8-sig", "replace")


@dataclass(frozen=True, slots=True)
class DavResource:
    """One resource of a multi-status answer."""

    url: str
    status: int
    properties: Mapping[str, Any]  # found properties by prefixed name, such as "d:getetag"

    def text(self, name: str) -> str:
        """Return the text of a property, "" without it."""
        element = self.properties.get(name)
        return "" if element is None else (element.text or "").strip()

    def link(self, name: str) -> str:
        """Return the address in a property."""
        element = self.properties.get(name)
        found = None if element is None else element.find(f"{{{DAV}}}href")
        return "" if found is None else urljoin(self.url, (found.text or "").strip())


@dataclass
class DavClient:
    """Requests to one source. Methods raise `DavError`."""

    source: CalendarSource
    password: str
    max_bytes: int
    timeout_seconds: float | None = CHANGE_SECONDS  # for each step; None: the child's own limit is enough
    _clients: dict[str, httpx2.AsyncClient] = field(default_factory=dict)

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()

    async def request(
        self, method: str, address: str, body: str = "", headers: Mapping[str, str] | None = None
    ) -> DavAnswer:
        """Return the answer, whatever its status. Raises `DavError`."""
        import httpx2

        changes = method in ("PUT", "DELETE")
        try:
            for _ in range(_MAX_REDIRECTS + 1):
                answer = await self._send(method, address, body, headers or {})
                if answer.status not in (301, 302, 307, 308) or not answer.headers.get("location"):
                    return answer
                if changes:
                    raise DavError(f"{_shown(address)} has moved to another address; nothing was changed there.")
                address = urljoin(address, answer.headers["location"])
        except ToolError as error:
            raise DavError(str(error)) from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.InvalidURL, ssl.SSLError) as error:
            advice = _CERTIFICATE_ADVICE if is_certificate_refused(error) else ""
            why = describe_connection_error(error)
            raise DavError(f"{_shown(address)} cannot be reached: {why}.{advice}") from None
        except (httpx2.HTTPError, OSError) as error:
            raise DavError(
                f"{_shown(address)} gave no answer: {describe_connection_error(error)}.", unsure=changes
            ) from None
        raise DavError(f"{_shown(address)} redirects more than {_MAX_REDIRECTS} times.")

    async def multistatus(
        self, method: str, address: str, body: str, *, depth: str = "0"
    ) -> tuple[DavAnswer, list[DavResource]]:
        """Return the answer and its resources; empty if it is not a multi-status answer. Raises `DavError`."""
        headers = {"Content-Type": "application/xml; charset=utf-8", "Depth": depth}
        answer = await self.request(method, address, f'<?xml version="1.0" encoding="utf-8"?>{body}', headers)
        if answer.status == 401:
            raise DavError(f"{_shown(address)} refuses the user or the password.")
        if answer.status != 207:
            return answer, []
        return answer, list(_read_multistatus(answer))

    async def _send(self, method: str, address: str, body: str, headers: Mapping[str, str]) -> DavAnswer:
        guard = AddressGuard([self._own_host], _ADVICE_OF_PRIVATE) if self.source.private else AddressGuard([], _ADVICE)
        host = urlsplit(address).netloc
        client = self._clients.get(host)
        if client is None:
            client = self._clients[host] = self._new_client()
        request = await guard.build_request(
            client, method, address, {**headers, **self._credentials(address)}, body.encode() if body else None
        )
        response = await client.send(request, stream=True)
        try:
            data = bytearray()
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > self.max_bytes:
                    most = self.max_bytes // 2**20
                    raise DavError(f"{_shown(address)} gives more than {most} MB (calendar.max_megabytes).")
            return DavAnswer(address, response.status_code, dict(response.headers), bytes(data))
        finally:
            await response.aclose()

    def _new_client(self) -> httpx2.AsyncClient:
        import httpx2

        return httpx2.AsyncClient(
            timeout=httpx2.Timeout(self.timeout_seconds, connect=CHANGE_SECONDS),
            trust_env=False,
            verify=self._certificates,
            headers=_HEADERS,
        )

    def _credentials(self, address: str) -> dict[str, str]:
        parts = urlsplit(address)
        if not self.source.user or not self._is_trusted((parts.hostname or "").lower()):
            return {}
        if parts.scheme != "https" and not self.source.private:
            raise DavError(f"{_shown(address)} is not encrypted (http://), so the password was not sent there.")
        secret = base64.b64encode(f"{self.source.user}:{self.password}".encode()).decode()
        return {"Authorization": f"Basic {secret}"}

    def _is_trusted(self, host: str) -> bool:
        own = self._own_host
        return host == own or host.endswith(f".{own}") or all(it.endswith(_ONE_OWNER) for it in (host, own))

    @property
    def _own_host(self) -> str:
        return (urlsplit(self.source.url).hostname or "").lower()

    @cached_property
    def _certificates(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self.source.ca_file:
            try:
                context.load_verify_locations(cafile=self.source.ca_file)
            except OSError as error:
                why = "it has no certificate" if isinstance(error, ssl.SSLError) else error.strerror
                raise DavError(f"{self.source.ca_file} cannot be used: {why}. Nothing was sent.") from None
        return context


def find_properties(*names: str) -> str:
    """Return the body of a PROPFIND."""
    return f"<d:propfind {_NAMES}><d:prop>{''.join(f'<{name}/>' for name in names)}</d:prop></d:propfind>"


def multiget(kind: str, paths: Sequence[str]) -> str:
    """Return the body of a REPORT for the content of some resources."""
    prefix, report, content = ("c", "calendar", "calendar") if kind == "calendar" else ("a", "addressbook", "address")
    links = "".join(f"<d:href>{_escaped(path)}</d:href>" for path in paths)
    wanted = f"<d:prop><d:getetag/><{prefix}:{content}-data/></d:prop>"
    return f"<{prefix}:{report}-multiget {_NAMES}>{wanted}{links}</{prefix}:{report}-multiget>"


def sync_collection(token: str) -> str:
    """Return the body of a REPORT for changes since a token (RFC 6578)."""
    return (
        f"<d:sync-collection {_NAMES}><d:sync-token>{_escaped(token)}</d:sync-token><d:sync-level>1</d:sync-level>"
        "<d:prop><d:getetag/></d:prop></d:sync-collection>"
    )


def find_sync_token(answer: DavAnswer) -> str:
    """Return the token of an answer to a sync report (RFC 6578), "" without one."""
    return next((element.text or "" for element in _root(answer).iterfind(f"{{{DAV}}}sync-token")), "").strip()


def _read_multistatus(answer: DavAnswer) -> Iterator[DavResource]:
    own = urlsplit(answer.address)
    for response in _root(answer).iterfind(f"{{{DAV}}}response"):
        href = (response.findtext(f"{{{DAV}}}href") or "").strip()
        url = normal_url(urljoin(answer.address, href))
        if not href or (urlsplit(url).scheme, urlsplit(url).netloc) != (own.scheme, own.netloc):
            continue  # a resource on another host does not belong to this collection
        properties = {}
        for part in response.iterfind(f"{{{DAV}}}propstat"):
            if _status(part) == 200:
                for element in part.find(f"{{{DAV}}}prop") if part.find(f"{{{DAV}}}prop") is not None else ():
                    if isinstance(element.tag, str):
                        properties[_short_name(element.tag)] = element
        yield DavResource(url, _status(response) or 200, properties)


def _root(answer: DavAnswer) -> Any:
    from lxml import etree

    if b"<!DOCTYPE" in answer.data:
        raise DavError(f"{_shown(answer.address)} answers with a document type, which is not read.")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    try:
        root = etree.fromstring(answer.data, parser)
    except etree.XMLSyntaxError as error:
        raise DavError(f"{_shown(answer.address)} answers with damaged XML ({error.msg}).") from None
    return root


def _status(element: Any) -> int:
    words = (element.findtext(f"{{{DAV}}}status") or "").split()
    return int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0


def _short_name(tag: str) -> str:
    space, _, name = tag.removeprefix("{").rpartition("}")
    return next((f"{prefix}:{name}" for prefix, known in _PREFIXES.items() if known == space), tag)


def normal_url(url: str) -> str:
    """Return a normal form of an address, with percent-escapes unified."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{quote(unquote(parts.path), safe=_PATH_LETTERS)}"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _shown(address: str) -> str:
    return quote_text(shorten(address, 200))
