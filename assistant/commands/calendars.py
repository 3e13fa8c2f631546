"""`calendar`: the calendars and address books that are read; `contacts`: who is in them. The owner's alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import CommandGroup, words_argument
from assistant.core.calendar import format_local_time
from assistant.core.calendar_events import Contact, SourceState
from assistant.core.dataclass import dataclass
from assistant.core.errors import NothingYet, UsageError
from assistant.core.quoting import quote_text
from assistant.core.text import pluralize

_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class CalendarItem:
    """A calendar, an address book, or a server with several."""

    name: str
    kind: str
    url: str
    user: str
    read_at: datetime | None  # when it was read last; null: not yet
    error: str  # why it was not read when it was tried last; "" where it was
    remark: str  # what of it could not be read
    collections: list[str]  # the names of the calendars or address books on a server
    events: int
    contacts: int


def _render_calendars(items: Sequence[CalendarItem], zone: tzinfo) -> str:
    if not items:
        return "No calendar is set up. `assistant calendar add` in a shell adds one."
    return "\n".join(_line(item, zone) for item in items)


def _line(item: CalendarItem, zone: tzinfo) -> str:
    entries = (
        pluralize(item.contacts, "contact") if item.kind in ("carddav", "vcard") else pluralize(item.events, "event")
    )
    state = f"read {format_local_time(item.read_at, zone)}" if item.read_at else "not read yet"
    several = f": {', '.join(map(quote_text, item.collections))}" if item.collections else ""
    notes = " ".join(filter(None, [item.remark, item.error and f"The last try failed: {item.error}"]))
    return f"- {item.name} ({item.kind}){several}, {entries}, {state}.{f' {notes}' if notes else ''}"


@click.group(cls=CommandGroup, default="list")
def calendar() -> None:
    """Show the calendars and address books that are read, and read them now.

    `agenda` shows what is on. In a shell, `calendar add` and `calendar remove` change which there are.

    > assistant calendar
    > assistant calendar sync
    """


@calendar.command("list", render=_render_calendars, reads=True)
def list_calendars(context: CommandContext) -> list[CalendarItem]:
    """List them: when each was read, what it has, what went wrong.

    > assistant calendar list
    """
    return _list_items(context, [source.name for source in context.stores.calendar_sources()])


def _list_items(context: CommandContext, names: Sequence[str]) -> list[CalendarItem]:
    reader = context.stores.calendars
    states, counts, collections = reader.list_sources(), reader.count_entries(), reader.list_collections()
    return [
        CalendarItem(
            it.name,
            it.kind,
            it.url,
            it.user,
            (state := states.get(it.name, SourceState(it.name))).read_at,
            state.error,
            state.remark,
            [collection.name for source, collection in collections if source == it.name],
            *counts.get(it.name, (0, 0)),
        )
        for it in context.stores.calendar_sources()
        if it.name in names
    ]


@calendar.command("sync", render=_render_calendars, max_seconds=_SECONDS)
@words_argument("name", required=False, metavar="NAME")
async def sync(context: CommandContext, name: str) -> list[CalendarItem]:
    """Read all calendars and address books now, or one of them.

    > assistant calendar sync
    > assistant calendar sync Home
    """
    names = [source.name for source in context.services.calendars.settings.sources]
    chosen = [it for it in names if not name or it.casefold() == name.strip().casefold()]
    if name and not chosen:
        raise UsageError(f"No calendar is called {name!r}. Nothing was read; there are: {', '.join(names) or 'none'}.")
    await context.services.calendars.read_now(chosen)
    return _list_items(context, chosen)


# ------------------------------------------------------------------------------------------------------------- contacts


@dataclass(frozen=True, slots=True)
class ContactItem:
    """Somebody in an address book."""

    name: str
    emails: list[str]
    phones: list[str]
    organization: str
    birthday: str  # "1980-02-29", or "--02-29" without the year
    source: str


def _render_contacts(items: Sequence[ContactItem], _: tzinfo) -> str:
    return "\n".join(map(format_contact, items)) or "Nobody in your address books is called that."


def _render_people(items: Sequence[ContactItem], zone: tzinfo) -> str:
    no_one = "There is nobody in your address books. `assistant calendar add` in a shell adds one."
    return _render_contacts(items, zone) if items else no_one


def format_contact(it: ContactItem | Contact) -> str:
    """In a line. The texts are quoted: they are data."""
    about = [*map(quote_text, filter(None, [*it.emails, *it.phones, it.organization]))]
    about += [f"born {it.birthday.removeprefix('--')}"] if it.birthday else []
    return f"- {quote_text(it.name)}: {', '.join(about) or 'nothing else is known'}"


@click.group(cls=CommandGroup, default="find")
def contacts() -> None:
    """Find people in your address books. `find` may be left out.

    > assistant contacts Anna
    """


@contacts.command("list", render=_render_people, reads=True)
def list_contacts(context: CommandContext) -> list[ContactItem]:
    """List the people of your address books, 50 at most.

    > assistant contacts list
    """
    return _contact_items(context, "")


@contacts.command("find", render=_render_contacts, reads=True)
@words_argument("name", metavar="NAME")
def find_contacts(context: CommandContext, name: str) -> list[ContactItem]:
    """Find somebody by name, e-mail address or organization.

    A part of it is enough.

    > assistant contacts find Anna
    > assistant contacts find example.org
    """
    if not context.stores.calendar_sources():
        raise NothingYet("You have no address book yet. `assistant calendar add` in a shell adds one.")
    return _contact_items(context, name)


def _contact_items(context: CommandContext, name: str) -> list[ContactItem]:
    found = context.stores.calendars.find_contacts(name.split())
    names = [source.name for source in context.stores.calendar_sources()]
    return [
        ContactItem(it.name, list(it.emails), list(it.phones), it.organization, it.birthday, it.source)
        for it in found
        if it.source in names
    ]
