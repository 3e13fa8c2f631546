"""Cache of calendars and address books: calendars.db, a derived database.

Only one process writes at a time, the child that reads a source (`assistant/calendars/worker.py`), with one transaction
per source; readers open it per query. So a query always sees a consistent state of a source, and a damaged or missing
database only has to be read again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date, datetime, timedelta
from pathlib import Path
from sqlite3 import Row
from typing import Any

from assistant.core.calendar_events import CalendarEvent, Contact, SourceState, birthday_on
from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore
from assistant.core.text import fold_text
from assistant.store.database import Database
from assistant.store.derived import open_derived, remove_set_aside, set_aside
from assistant.store.rows import class_row, format_time, parse_time
from assistant.store.schema.migrations import calendar_migrations

FOLDER, _FILE = "calendars", "calendars.db"
CALENDARS_DB = f"{FOLDER}/{_FILE}"
MOST_EVENTS = 1_000
_EVENT_COLUMNS = (
    "source, url, calendar, ref, uid, occurrence, starts, ends, all_day, title, place, notes, state, answer, organizer,"
    " guests, repeats, folded"
)


@dataclass(frozen=True, slots=True)
class StoredCollection:
    """A collection of a source. `tag` and `token` are the server's sync state as of the last read."""

    url: str
    name: str
    kind: str  # "calendar" or "contacts"
    tag: str = ""
    token: str = ""
    writable: bool = True


@dataclass(frozen=True, slots=True)
class StoredResource:
    """One resource of a collection: an event with its occurrences, or a contact."""

    url: str
    collection: str
    tag: str
    text: str = ""  # of recurring events, to expand them again
    events: Sequence[CalendarEvent] = ()
    contacts: Sequence[Contact] = ()


@dataclass(frozen=True, slots=True)
class CalendarReader:
    """Reads the cache of a home, which may not exist. Methods raise `StoreError`."""

    home: Path

    def list_sources(self) -> dict[str, SourceState]:
        """Return what is known of each source that was ever read, by name."""
        with self._open() as db:
            rows = db.rows("SELECT * FROM sources") if db else []
        return {row["name"]: _source_state(row) for row in rows}

    def list_collections(self, source: str = "") -> list[tuple[str, StoredCollection]]:
        """Return collections with the names of their sources, of one source or all."""
        with self._open() as db:
            where, values = (" WHERE source = ?", (source,)) if source else ("", ())
            rows = db.rows(f"SELECT * FROM collections{where} ORDER BY source, name", values) if db else []
        return [(row["source"], _read_collection(row)) for row in rows]

    def count_entries(self) -> dict[str, tuple[int, int]]:
        """Return the number of events and contacts by source."""
        with self._open() as db:
            if db is None:
                return {}
            rows = db.rows(
                "SELECT name, (SELECT count(DISTINCT uid) FROM events WHERE source = sources.name) AS events,"
                " (SELECT count(*) FROM contacts WHERE source = sources.name) AS contacts FROM sources"
            )
        return {row["name"]: (row["events"], row["contacts"]) for row in rows}

    def list_events(
        self, start: datetime, end: datetime, words: Sequence[str] = (), *, limit: int = MOST_EVENTS
    ) -> list[CalendarEvent]:
        """Return events between two moments, in order; with `words`, only those that contain all of them in title,
        place or notes."""
        likes = [f"%{_escaped(fold_text(word))}%" for word in words]
        query = (
            # An event without a duration counts at its start.
            "SELECT * FROM events WHERE ends >= ? AND (ends > ? OR starts >= ?) AND starts < ?"
            + " AND folded LIKE ? ESCAPE '\\'" * len(likes)
            + " ORDER BY starts, ends, id LIMIT ?"
        )
        from_, to = format_time(start), format_time(end)
        with self._open() as db:
            return db.read_all(_read_event, query, (from_, from_, from_, to, *likes, limit)) if db else []

    def find_event(self, ref: str) -> CalendarEvent | None:
        """Return None if the event is gone from its calendar."""
        with self._open() as db:
            return db.read_one(_read_event, "SELECT * FROM events WHERE ref = ?", (ref,)) if db else None

    def find_contacts(self, words: Sequence[str], *, limit: int = 50) -> list[Contact]:
        """Return contacts whose name, organization or addresses contain all words."""
        likes = [f"%{_escaped(fold_text(word))}%" for word in words]
        query = f"SELECT * FROM contacts WHERE 1{' AND folded LIKE ? ESCAPE ?' * len(likes)} ORDER BY name, id LIMIT ?"
        values = [part for like in likes for part in (like, "\\")]
        with self._open() as db:
            return db.read_all(_read_contact, query, (*values, limit)) if db else []

    def list_birthdays(self, first: date, last: date) -> list[tuple[date, Contact]]:
        """Return the birthdays on the days from `first` to `last`, both included, by day."""
        with self._open() as db:
            found = db.read_all(_read_contact, "SELECT * FROM contacts WHERE birthday <> '' ORDER BY id") if db else []
        if not found:
            return []
        days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
        return [(day, contact) for day in days for contact in found if birthday_on(contact.birthday, day)]

    @contextmanager
    def _open(self) -> Iterator[Database | None]:
        path = self.home / FOLDER / _FILE
        if not path.exists():
            yield None
            return
        db = Database.open_reader(path)
        try:
            db.require_schema(calendar_migrations)
            yield db
        finally:
            db.close()


class CalendarWriter:
    """Write access for the child process that reads sources."""

    def __init__(self, home: Path, now: datetime) -> None:
        """Open the cache, replacing a damaged one. Raises `StoreError`."""
        path = home / FOLDER / _FILE
        try:
            self._db = open_derived(path, calendar_migrations, now)
        except CorruptStore:
            set_aside(path)
            self._db = open_derived(path, calendar_migrations, now)
            remove_set_aside(path)

    def close(self) -> None:
        self._db.close()

    def load_state(self, source: str, made_of: str) -> tuple[dict[str, Any], str]:
        """Return a source's saved state and the date of expansion; empty if the source changed."""
        row = self._db.row("SELECT * FROM sources WHERE name = ? AND made_of = ?", (source, made_of))
        if row is None or row["read_at"] is None:
            return {}, ""
        return json.loads(row["state"]), row["expanded_at"]

    def load_collections(self, source: str) -> list[StoredCollection]:
        """Return them as they were at the last reading, by URL."""
        rows = self._db.rows("SELECT * FROM collections WHERE source = ? ORDER BY url", (source,))
        return [_read_collection(row) for row in rows]

    def load_tags(self, source: str, collection: str) -> dict[str, str]:
        """Return resource tags by URL."""
        query = "SELECT url, tag FROM resources WHERE source = ? AND collection = ?"
        return {row["url"]: row["tag"] for row in self._db.rows(query, (source, collection))}

    def load_series(self, source: str) -> list[StoredResource]:
        """Return recurring events."""
        query = "SELECT * FROM resources WHERE source = ? AND text <> ''"
        rows = self._db.rows(query, (source,))
        return [StoredResource(row["url"], row["collection"], row["tag"], row["text"]) for row in rows]

    def save_success(
        self,
        source: str,
        made_of: str,
        *,
        collections: Sequence[StoredCollection],
        changed: Iterable[StoredResource],
        removed: Mapping[str, Collection[str]],
        state: Mapping[str, Any],
        expanded_at: str,
        remark: str,
        now: datetime,
        anew: bool,
    ) -> None:
        """Save the result of reading a source. `removed`: URLs by collection. `anew`: replaces all earlier content."""
        with self._db.write():
            if anew:
                self._forget_entries(source)
            kept = [collection.url for collection in collections]
            for row in self._db.rows("SELECT url FROM collections WHERE source = ?", (source,)):
                if row["url"] not in kept:
                    self._remove_resources(source, self.load_tags(source, row["url"]))
            self._db.execute("DELETE FROM collections WHERE source = ?", (source,))
            for collection in collections:
                self._db.insert_row("collections", source=source, **asdict(collection))
            for urls in removed.values():
                self._remove_resources(source, urls)
            for resource in changed:
                self.save_resource(source, resource)
            self._db.upsert_row(
                "sources",
                ("name",),
                name=source,
                made_of=made_of,
                state=json.dumps(state),
                expanded_at=expanded_at,
                read_at=format_time(now),
                tried_at=format_time(now),
                error="",
                remark=remark,
            )

    def save_failure(self, source: str, made_of: str, error: str, now: datetime) -> None:
        """Record a failed read. Earlier content is kept unless the source under this name changed."""
        with self._db.write():
            row = self._db.row("SELECT made_of FROM sources WHERE name = ?", (source,))
            if row is not None and row["made_of"] == made_of:
                self._db.update_rows("sources", {"name": source}, tried_at=format_time(now), error=error)
                return
            self._forget_source(source)
            self._db.insert_row(
                "sources",
                name=source,
                made_of=made_of,
                state="{}",
                expanded_at="",
                read_at=None,
                tried_at=format_time(now),
                error=error,
                remark="",
            )

    def save_changed_resource(self, source: str, resource: StoredResource) -> None:
        """Save a resource after it was changed."""
        with self._db.write():
            self.save_resource(source, resource)

    def remove_resource(self, source: str, url: str) -> None:
        """Remove a resource with its events or contacts. Does nothing if there is none."""
        with self._db.write():
            self._remove_resources(source, [url])

    def keep_only(self, sources: Collection[str]) -> None:
        """Delete sources that are no longer in the settings."""
        stored = {row["name"] for row in self._db.rows("SELECT name FROM sources")}
        with self._db.write():
            for name in stored - set(sources):
                self._forget_source(name)

    def save_resource(self, source: str, resource: StoredResource) -> None:
        """Save a resource, within a transaction."""
        self._remove_resources(source, [resource.url])
        values = {name: getattr(resource, name) for name in ("url", "collection", "tag", "text")}
        self._db.insert_row("resources", source=source, **values)
        marks = ", ".join("?" * (_EVENT_COLUMNS.count(",") + 1))
        self._db.execute_many(
            f"INSERT INTO events ({_EVENT_COLUMNS}) VALUES ({marks})", map(_event_values, resource.events)
        )
        for it in resource.contacts:
            self._db.insert_row(
                "contacts",
                source=source,
                url=resource.url,
                name=it.name,
                emails=json.dumps(it.emails),
                phones=json.dumps(it.phones),
                organization=it.organization,
                birthday=it.birthday,
                folded=fold_text(" ".join([it.name, it.organization, *it.emails])),
            )

    def _remove_resources(self, source: str, urls: Iterable[str]) -> None:
        for table in ("resources", "events", "contacts"):
            self._db.execute_many(f"DELETE FROM {table} WHERE source = ? AND url = ?", ((source, url) for url in urls))

    def _forget_entries(self, source: str) -> None:
        for table in ("resources", "events", "contacts"):
            self._db.execute(f"DELETE FROM {table} WHERE source = ?", (source,))

    def _forget_source(self, source: str) -> None:
        self._forget_entries(source)
        self._db.execute("DELETE FROM collections WHERE source = ?", (source,))
        self._db.execute("DELETE FROM sources WHERE name = ?", (source,))


def _event_values(it: CalendarEvent) -> tuple[Any, ...]:
    return (
        *(it.source, it.url, it.calendar, it.ref, it.uid, it.occurrence, format_time(it.starts), format_time(it.ends)),
        *(int(it.all_day), it.title, it.place, it.notes, it.state, it.answer, it.organizer, it.guests, int(it.repeats)),
        fold_text(" ".join([it.title, it.place, it.notes, it.calendar])),
    )


_read_event = class_row(CalendarEvent)
_read_contact = class_row(Contact)
_read_collection = class_row(StoredCollection)


def _source_state(row: Row) -> SourceState:
    read_at = parse_time(row["read_at"]) if row["read_at"] else None
    return SourceState(row["name"], read_at, parse_time(row["tried_at"]), row["error"], row["remark"])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
