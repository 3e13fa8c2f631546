"""Value types for calendars and address books: events, contacts, and the sync state of sources."""

from __future__ import annotations

import hashlib
from datetime import date, datetime
from typing import Literal

from assistant.core.dataclass import dataclass

EventState = Literal["confirmed", "tentative", "cancelled"]
InvitationAnswer = Literal["", "needs-action", "accepted", "declined", "tentative", "delegated"]


@dataclass(frozen=True, slots=True)
class CalendarEvent:
    """One occurrence of an event. All its texts are untrusted third-party content."""

    source: str  # name in the settings
    url: str  # of its resource; the UID in a file
    calendar: str  # display name
    uid: str
    occurrence: (
        str  # of a series, which one: its first start, as "20260301T080000Z" or "20260301"; "" of a single event
    )
    starts: datetime  # UTC
    ends: datetime  # UTC, exclusive
    all_day: bool
    title: str
    place: str = ""
    notes: str = ""
    state: EventState = "confirmed"
    answer: InvitationAnswer = ""  # the owner's answer to an invitation
    organizer: str = ""
    guests: int = 0  # number of other invitees
    repeats: bool = False

    @property
    def ref(self) -> str:
        """A stable short id for tools and people."""
        return hashlib.sha256(f"{self.source}\n{self.uid}\n{self.occurrence}".encode()).hexdigest()[:10]


@dataclass(frozen=True, slots=True)
class Contact:
    """An entry of an address book."""

    source: str
    url: str
    name: str
    emails: tuple[str, ...] = ()
    phones: tuple[str, ...] = ()
    organization: str = ""
    birthday: str = ""  # "1980-02-29", or "--02-29" without the year


@dataclass(frozen=True, slots=True)
class SourceState:
    """The sync state of a calendar or address book."""

    name: str
    read_at: datetime | None = None  # last complete read; None: never
    tried_at: datetime | None = None
    error: str = ""  # why the latest attempt failed
    remark: str = ""  # what could not be parsed


@dataclass(frozen=True, slots=True)
class CalendarChange:
    """A requested change of a calendar, as the owner approves it. `key` is the idempotency key; times are local, e.g.
    "2026-03-01T09:00", or days, e.g. "2026-03-01"."""

    action: Literal["add", "move", "cancel", "answer"]
    key: str
    source: str
    collection: str = ""  # address of the target calendar, for "add"
    url: str = ""  # of the changed resource
    uid: str = ""
    occurrence: str = ""  # "" for the whole event or series
    title: str = ""
    place: str = ""
    notes: str = ""
    starts: str = ""
    ends: str = ""
    answer: InvitationAnswer = ""


def birthday_on(birthday: str, day: date) -> bool:
    """Return whether `day` is the birthday; 29 February falls on 1 March in other years."""
    if birthday[-5:] == "02-29" and (day.month, day.day) == (3, 1):
        return not (day.year % 4 == 0 and (day.year % 100 != 0 or day.year % 400 == 0))
    return birthday[-5:] == f"{day:%m-%d}"


def age_on(birthday: str, day: date) -> int | None:
    """Return the age reached in the year of `day`, or None if the birth year is unknown."""
    return day.year - int(birthday[:4]) if birthday[:4].isdigit() else None
