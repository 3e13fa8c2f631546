"""The calendar of an owner whose model obeys: on a server of Mallory's, which notes whatever is asked of it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assistant.core.calendar_events import CalendarEvent, Contact
from assistant.store.calendars import CalendarWriter, StoredCollection, StoredResource

_START = datetime(2027, 1, 4, 9, tzinfo=UTC)
OWN_EVENT = CalendarEvent(
    "Own", "", "Own", "own@test", "", _START, _START + timedelta(hours=1), False, "Regatta", answer="needs-action"
)


def calendar_setting(url: str) -> str:
    return f'[{{ name = "Own", kind = "caldav", url = "{url}", private = true }}]'


def save_own_calendar(home: Path, url: str, now: datetime) -> None:
    """As it was read from the server."""
    event = replace(OWN_EVENT, url=f"{url}own/own.ics")
    with closing(CalendarWriter(home, now)) as store:
        store.save_success(
            "Own",
            "",
            collections=[StoredCollection(f"{url}own/", "Own", "calendar")],
            changed=[StoredResource(event.url, f"{url}own/", "1", events=[event])],
            removed={},
            state={},
            expanded_at=f"{now:%Y-%m-%d}",
            remark="",
            now=now,
            anew=True,
        )


def save_calendar_event(home: Path, title: str, at: datetime) -> None:
    event = replace(OWN_EVENT, uid="bait@test", url="bait", title=title, starts=at, ends=at + timedelta(hours=1))
    with closing(CalendarWriter(home, at)) as store:
        store.save_changed_resource("Own", StoredResource("bait", "own", "1", events=[event]))


def save_calendar_contact(home: Path, name: str, now: datetime) -> None:
    with closing(CalendarWriter(home, now)) as store:
        store.save_changed_resource("Own", StoredResource("bait", "own", "1", contacts=[Contact("Own", "bait", name)]))
