"""What calendars and address books have: events, contacts, and how each of them was read last."""

from __future__ import annotations

import hashlib
from datetime import date, datetime
from typing import Literal

from assistant.core.dataclass import dataclass

EventState = Literal["confirmed", "tentative", "cancelled"]
InvitationAnswer = Literal["", "needs-action", "accepted", "declined", "tentative", "delegated"]
SourceKind = Literal["caldav", "carddav", "ics", "vcard"]


@dataclass(frozen=True, slots=True)
class CalendarEvent:
    """One occurrence of an event. Everything of it is somebody's text, and no order."""

    source: str  # name in the settings
    url: str  # of the resource that has it; the UID in a file
    calendar: str  # as people call it
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
    answer: InvitationAnswer = ""  # of the owner, to an invitation
    organizer: str = ""
    guests: int = 0  # how many others are invited
    repeats: bool = False

    @property
    def ref(self) -> str:
        """What tools and people call it by; the same as long as the event exists."""
        return hashlib.sha256(f"{self.source}\n{self.uid}\n{self.occurrence}".encode()).hexdigest()[:10]


@dataclass(frozen=True, slots=True)
class Contact:
    """Somebody in an address book."""

    source: str
    url: str
    name: str
    emails: tuple[str, ...] = ()
    phones: tuple[str, ...] = ()
    organization: str = ""
    birthday: str = ""  # "1980-02-29", or "--02-29" without the year


@dataclass(frozen=True, slots=True)
class SourceState:
    """How a calendar or an address book was read last."""

    name: str
    read_at: datetime | None = None  # when it was read whole; None: never
    tried_at: datetime | None = None
    error: str = ""  # why it was not read when it was tried last
    remark: str = ""  # what of it could not be read


@dataclass(frozen=True, slots=True)
class CalendarChange:
    """A change of a calendar that was asked for: what the owner approves. `key` is the key of the effect; times are
    local, as in "2026-03-01T09:00", or days as in "2026-03-01"."""

    action: Literal["add", "move", "cancel", "answer"]
    key: str
    source: str
    collection: str = ""  # address of the calendar, to add to
    url: str = ""  # of the resource that is changed
    uid: str = ""
    occurrence: str = ""  # "" for the whole event or series
    title: str = ""
    place: str = ""
    notes: str = ""
    starts: str = ""
    ends: str = ""
    answer: InvitationAnswer = ""


def birthday_on(birthday: str, day: date) -> bool:
    """Whether a birthday is on a day; one of 29 February is on 1 March in years without."""
    if birthday[-5:] == "02-29" and (day.month, day.day) == (3, 1):
        return not (day.year % 4 == 0 and (day.year % 100 != 0 or day.year % 400 == 0))
    return birthday[-5:] == f"{day:%m-%d}"


def age_on(birthday: str, day: date) -> int | None:
    """How old somebody gets on their birthday; None where the year is not known."""
    return day.year - int(birthday[:4]) if birthday[:4].isdigit() else None
