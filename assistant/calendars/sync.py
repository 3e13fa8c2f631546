"""Reads one source into the store: a server, an address or a file.

The store gets the complete result of a read in one transaction, or only the error, so that earlier data stays. Series
are expanded again each week, for a range around the day. Runs only in the child process.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from assistant.calendars.changes import apply_change
from assistant.calendars.collections import CollectionChanges, find_collections, read_changes, read_resources
from assistant.calendars.dav import DavClient, DavError, normal_url
from assistant.calendars.ical import EventContext, Unreadable, mail_addresses, read_events
from assistant.calendars.vcard import read_contacts
from assistant.core.calendar_events import CalendarChange
from assistant.core.dataclass import dataclass
from assistant.core.errors import StoreError
from assistant.core.plain_files import FileRefused, read_plain_text
from assistant.core.text import pluralize
from assistant.settings.calendar_sources import CalendarSource
from assistant.store.calendars import CalendarWriter, StoredCollection, StoredResource

SPAN_BACK, SPAN_AHEAD = timedelta(days=400), timedelta(days=800)
_EXPANDED_FOR = timedelta(days=7)


async def read_text(
    source: CalendarSource, password: str, workspace: Path, max_bytes: int, state: Mapping[str, str]
) -> tuple[str | None, dict[str, str]]:
    """Return the text of a file or an address, None if it is unchanged since `state`; and its new state. An imported
    file is in the workspace. Raises `DavError`."""
    if source.is_file:
        try:
            text = read_plain_text(workspace / source.url, max_bytes)
        except FileRefused as error:
            raise DavError(f"{source.url} {error}.") from None
        tag = ""
    else:
        client = DavClient(source, password, max_bytes, timeout_seconds=None)
        headers = {"If-None-Match": state["tag"]} if state.get("tag") else {}
        try:
            answer = await client.request("GET", source.url, headers=headers)
        finally:
            await client.aclose()
        if answer.status == 304 and headers:
            return None, dict(state)
        if answer.status != 200:
            raise DavError(f"{source.url} answers {answer.status}. Nothing was read.")
        text, tag = answer.text, answer.headers.get("etag", "")
    digest = hashlib.sha256(text.encode()).hexdigest()
    if state.get("digest") == digest:
        return None, {**state, "tag": tag}
    return text, {"digest": digest, "tag": tag}


def parse_text(source: CalendarSource, text: str, context: EventContext) -> tuple[StoredResource, tuple[int, ...]]:
    """Return the file as one resource, and the positions, from 1, of entries that could not be read. Raises
    `DavError`."""
    if source.kind == "vcard":
        contacts, skipped = read_contacts(text, source.name)
        if not contacts:
            raise DavError(f"{source.url} has no contact that can be read.")
        return StoredResource("", "", "", contacts=contacts), skipped
    try:
        parsed = read_events(text, context)
    except Unreadable as error:
        raise DavError(f"{source.url} {error}.") from None
    return StoredResource("", "", "", events=parsed.events), parsed.skipped


def event_context(
    source: CalendarSource, calendar: str, now: datetime, zone: ZoneInfo, addresses: frozenset[str] = frozenset()
) -> EventContext:
    """Return what `read_events` needs: recurring events are expanded from `SPAN_BACK` before today to `SPAN_AHEAD`
    after it."""
    midnight = datetime.combine(now.astimezone(zone).date(), time.min, zone).astimezone(UTC)
    own = mail_addresses([source.email, source.user]) | addresses
    return EventContext(source.name, calendar, zone, midnight - SPAN_BACK, midnight + SPAN_AHEAD, own)


@dataclass
class SourceReading:
    """One reading of a source."""

    source: CalendarSource
    password: str
    store: CalendarWriter
    now: datetime
    zone: ZoneInfo
    workspace: Path
    max_bytes: int
    skipped: int = 0
    _addresses: frozenset[str] = field(default_factory=frozenset)

    async def run(self) -> str:
        """Read it; return which entries could not be read, "" for none. Raises `DavError`, `StoreError`."""
        state, expanded_on = self.store.load_state(self.source.name, self.made_of)
        is_new, today = not state, f"{self.now.astimezone(self.zone):%Y-%m-%d}"
        # Or far ahead, by a clock that has been set back since.
        is_old = is_new or abs(date.fromisoformat(today) - date.fromisoformat(expanded_on)) > _EXPANDED_FOR
        if self.source.kind in ("caldav", "carddav"):
            return await self._read_server(state, is_new=is_new, is_old=is_old, expanded_on=expanded_on, today=today)
        text, state = await read_text(self.source, self.password, self.workspace, self.max_bytes, state)
        if text is None and is_old:
            text, state = await read_text(self.source, self.password, self.workspace, self.max_bytes, {})
        resources: list[StoredResource] = []
        if text is not None:
            resource, skipped = parse_text(self.source, text, self._context(self.source.name))
            self.skipped = len(skipped)
            resources, state["remark"] = [resource], self._remark()
        self.store.save_success(
            self.source.name,
            self.made_of,
            collections=[],
            changed=resources,
            removed={},
            state=state,
            expanded_at=today if text is not None else expanded_on,
            remark=state["remark"],
            now=self.now,
            anew=text is not None,
        )
        return state["remark"]

    @property
    def made_of(self) -> str:
        """Return what the entries depend on besides the source's content."""
        source = self.source
        parts = (source.kind, source.url, source.user, source.email, str(self.zone))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _context(self, calendar: str) -> EventContext:
        return event_context(self.source, calendar, self.now, self.zone, self._addresses)

    async def _read_server(
        self, state: Mapping[str, object], *, is_new: bool, is_old: bool, expanded_on: str, today: str
    ) -> str:
        name = self.source.name
        client = DavClient(self.source, self.password, self.max_bytes, timeout_seconds=None)
        try:
            found = await find_collections(client)
            self._addresses = frozenset(found.addresses)
            stored = {} if is_new else {it.url: it for it in self.store.load_collections(name)}
            changes = [
                await read_changes(
                    client, it, stored.get(it.url), self.store.load_tags(name, it.url) if it.url in stored else {}
                )
                for it in found.collections
            ]
        finally:
            await client.aclose()
        resources = [
            self.parse_resource(part.collection, url, tag, text)
            for part in changes
            for url, (tag, text) in part.changed.items()
        ]
        remark = self._remark() or ("" if is_new else str(state.get("remark", "")))
        if is_old and not is_new:
            resources += self._expanded_again(changes)
        self.store.save_success(
            name,
            self.made_of,
            collections=[part.collection for part in changes],
            changed=resources,
            removed={part.collection.url: part.removed for part in changes},
            state={"addresses": found.addresses, "remark": remark},
            expanded_at=today if is_old else expanded_on,
            remark=remark,
            now=self.now,
            anew=is_new,
        )
        return remark

    async def change(self, change: CalendarChange) -> None:
        """Change an event on the server, then in the store; if storing fails, the next reading shows the change. Raises
        `DavError`, `StoreError` if the change was not made."""
        name, client = self.source.name, DavClient(self.source, self.password, self.max_bytes)
        state, _ = self.store.load_state(name, self.made_of)
        self._addresses = frozenset(state.get("addresses", ()))
        collections = {it.url: it for it in self.store.load_collections(name)}
        try:
            url = await apply_change(client, change, self.zone, self.now, self._addresses)
            collection = next((it for it in collections.values() if (url or change.url).startswith(it.url)), None)
            with contextlib.suppress(DavError, StoreError):
                if not url:
                    self.store.remove_resource(name, change.url)
                elif collection is not None:
                    found = await read_resources(client, collection, [normal_url(url)])
                    for address, (tag, text) in found.items():
                        self.store.save_changed_resource(name, self.parse_resource(collection, address, tag, text))
        finally:
            await client.aclose()

    def _expanded_again(self, changes: list[CollectionChanges]) -> list[StoredResource]:
        """Return unchanged series, expanded for another range."""
        collections = {part.collection.url: part.collection for part in changes}
        fresh = {url for part in changes for url in (*part.changed, *part.removed)}
        return [
            self.parse_resource(collections[it.collection], it.url, it.tag, it.text)
            for it in self.store.load_series(self.source.name)
            if it.url not in fresh and it.collection in collections
        ]

    def parse_resource(self, collection: StoredCollection, url: str, tag: str, text: str) -> StoredResource:
        """Return the resource with its events or contacts; what cannot be read is counted in `skipped`. Its text is
        kept only if it repeats, to be expanded again later."""
        resource = StoredResource(url, collection.url, tag)
        if collection.kind == "contacts":
            contacts, skipped = read_contacts(text, self.source.name, url)
            self.skipped += len(skipped)
            return replace(resource, contacts=contacts)
        try:
            parsed = read_events(text, self._context(collection.name), url)
        except Unreadable:
            self.skipped += 1
            return resource
        self.skipped += len(parsed.skipped)
        return replace(resource, text=text if parsed.repeats else "", events=parsed.events)

    def _remark(self) -> str:
        entries = pluralize(self.skipped, "entry", "entries")
        return f"{entries} could not be read, or repeat too often to be appointments." if self.skipped else ""
