"""Lists the calendars and address books of a server, and finds what has changed in one.

If the server supports it (sync token, collection tag, resource tags), only changes are requested; otherwise, or if the
token has expired, everything is listed. Missing values are not guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urljoin, urlsplit

from assistant.calendars.dav import (
    DavClient,
    DavError,
    DavResource,
    find_properties,
    find_sync_token,
    multiget,
    normal_url,
    sync_collection,
)
from assistant.core.dataclass import dataclass
from assistant.store.calendars import StoredCollection

_MOST_COLLECTIONS = 50
_MOST_RESOURCES = 200_000
_AT_ONCE = 100
_WANTED = (
    *("d:resourcetype", "d:displayname", "d:current-user-principal", "d:sync-token", "s:getctag"),
    *("d:current-user-privilege-set", "c:supported-calendar-component-set"),
)


@dataclass(frozen=True, slots=True)
class FoundCollections:
    collections: tuple[StoredCollection, ...]
    addresses: tuple[str, ...]  # addresses by which invitations name the owner


@dataclass(frozen=True, slots=True)
class CollectionChanges:
    """Changes of a collection since it was last read."""

    collection: StoredCollection  # with its new tag and token
    changed: Mapping[str, tuple[str, str]]  # tag and text, by address
    removed: frozenset[str]


async def find_collections(client: DavClient) -> FoundCollections:
    """Return the collection at the address of a source, or all of its user's. Raises `DavError`."""
    kind = "calendar" if client.source.kind == "caldav" else "contacts"
    resource = await _find_resource(client, client.source.url)
    if resource is None:
        well_known = urljoin(client.source.url, f"/.well-known/{client.source.kind}")
        resource = await _find_resource(client, well_known)
    if resource is None:
        raise DavError(f"{client.source.url} does not answer as {_SERVERS[client.source.kind]}. {_CHECK}")
    if _is_collection(resource, kind):
        return FoundCollections((_collection(resource, kind),), ())
    principal_url = resource.link("d:current-user-principal") or resource.url
    home = "c:calendar-home-set" if kind == "calendar" else "a:addressbook-home-set"
    body = find_properties(home, "c:calendar-user-address-set")
    _, answers = await client.multistatus("PROPFIND", principal_url, body)
    home_url = next((found for it in answers if (found := it.link(home))), "")
    if not home_url:
        raise DavError(f"{client.source.url} has nothing of this user as {_SERVERS[client.source.kind]}. {_CHECK}")
    _, members = await client.multistatus("PROPFIND", home_url, find_properties(*_WANTED), depth="1")
    collections = [_collection(it, kind) for it in members if _is_collection(it, kind)]
    addresses = tuple(address for it in answers for address in _addresses(it))
    return FoundCollections(tuple(collections[:_MOST_COLLECTIONS]), addresses)


_SERVERS = {"caldav": "a calendar server", "carddav": "a server of address books"}
_CHECK = "Check the address: a page to log in at is not the one that programs use."


async def _find_resource(client: DavClient, address: str) -> DavResource | None:
    answer, found = await client.multistatus("PROPFIND", address, find_properties(*_WANTED))
    if not found and answer.status not in (207, 301, 302, 404, 405, 501):
        raise DavError(f"{address} does not answer as {_SERVERS[client.source.kind]} (HTTP {answer.status}). {_CHECK}")
    return found[0] if found else None


def _is_collection(resource: DavResource, kind: str) -> bool:
    types = resource.properties.get("d:resourcetype")
    wanted = (
        "{urn:ietf:params:xml:ns:caldav}calendar"
        if kind == "calendar"
        else ("{urn:ietf:params:xml:ns:carddav}addressbook")
    )
    if types is None or types.find(wanted) is None:
        return False
    components = resource.properties.get("c:supported-calendar-component-set")
    return kind != "calendar" or components is None or any(it.get("name") == "VEVENT" for it in components)


def _collection(resource: DavResource, kind: str) -> StoredCollection:
    name = " ".join(resource.text("d:displayname").split())[:80] or resource.url.rstrip("/").rpartition("/")[2]
    privileges = resource.properties.get("d:current-user-privilege-set")
    writable = privileges is None or any(
        privileges.find(f".//{{DAV:}}{it}") is not None for it in ("write", "write-content", "bind", "all")
    )
    tag, token = resource.text("s:getctag"), resource.text("d:sync-token")
    return StoredCollection(resource.url, name, kind, tag, token, writable)


def _addresses(resource: DavResource) -> Iterator[str]:
    element = resource.properties.get("c:calendar-user-address-set")
    for link in element if element is not None else ():
        if text := (link.text or "").strip().lower():
            yield text


async def read_changes(
    client: DavClient, found: StoredCollection, before: StoredCollection | None, known: Mapping[str, str]
) -> CollectionChanges:
    """`known`: tags by address as last read. Raises `DavError`."""
    if before is not None and before.tag and before.tag == found.tag:
        return CollectionChanges(replace(found, token=before.token), {}, frozenset())
    if before is not None and before.token and (synced := await _sync(client, found, before.token)) is not None:
        return synced
    answer, listed = await client.multistatus("PROPFIND", found.url, find_properties("d:getetag"), depth="1")
    if answer.status != 207:
        raise DavError(f"{found.url} answers {answer.status} instead of its list.")
    tags = {it.url: it.text("d:getetag") for it in listed if _is_member(it.url, found.url)}
    if len(tags) > _MOST_RESOURCES:
        raise DavError(f"{found.url} has more than {_MOST_RESOURCES:,} entries, the most that is read.")
    new = [url for url, tag in tags.items() if not tag or known.get(url) != tag]
    changed = await read_resources(client, found, new)
    return CollectionChanges(found, changed, frozenset(known.keys() - tags.keys()))


async def _sync(client: DavClient, found: StoredCollection, token: str) -> CollectionChanges | None:
    """Return the changes since a token; None if the server no longer knows the token."""
    answer, listed = await client.multistatus("REPORT", found.url, sync_collection(token), depth="0")
    if answer.status != 207:
        return None
    members = [it for it in listed if _is_member(it.url, found.url)]
    if any(it.status == 507 for it in listed):  # the server has more, and returned only a part
        return None
    removed = frozenset(it.url for it in members if it.status == 404)
    changed = await read_resources(client, found, [it.url for it in members if it.url not in removed])
    return CollectionChanges(replace(found, token=find_sync_token(answer) or found.token), changed, removed)


async def read_resources(
    client: DavClient, collection: StoredCollection, urls: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """Return tag and text of each by address. Raises `DavError`."""
    content = "c:calendar-data" if collection.kind == "calendar" else "a:address-data"
    texts: dict[str, tuple[str, str]] = {}
    for at in range(0, len(urls), _AT_ONCE):
        asked = urls[at : at + _AT_ONCE]
        body = multiget(collection.kind, [urlsplit(url).path for url in asked])
        answer, found = await client.multistatus("REPORT", collection.url, body, depth="1")
        if answer.status != 207:
            raise DavError(f"{collection.url} answers {answer.status} instead of its entries.")
        texts |= {it.url: (it.text("d:getetag"), it.text(content)) for it in found if it.url in asked}
    return {url: found for url, found in texts.items() if found[1]}


def _is_member(url: str, collection: str) -> bool:
    base = normal_url(collection).rstrip("/") + "/"
    return url.startswith(base) and url != base and not url.endswith("/")
