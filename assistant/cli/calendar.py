"""`assistant calendar add` and `remove`: which calendars and address books are read.

What always holds: what is added was reached first, as the assistant will reach it; nothing is kept of what was not. A
password is never an argument and never printed.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from assistant.calendars.service import CalendarService, CalendarWorker, require_calendar_libraries
from assistant.cli.config.change import change_config_file
from assistant.cli.output import json_result, print_remark, print_text
from assistant.cli.prompts import prompt_until_valid, read_all_stdin
from assistant.cli.shell import with_commands
from assistant.commands import calendars as calendar_commands
from assistant.commands.completion import complete_files
from assistant.core.calendar import utc_now
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.plain_files import expand_home
from assistant.core.text import pluralize
from assistant.documents.fetch import is_public
from assistant.service.home_lock import is_home_served
from assistant.settings.calendar_sources import CalendarSource, read_passwords
from assistant.settings.config_text import CONFIG_HEADER, set_key
from assistant.settings.settings import Settings, load_settings
from assistant.store.calendars import CalendarReader
from assistant.store.home.config_file import HomeSecretStore

_PASSWORDS, _SOURCES = "calendar.passwords", "calendar.sources"


@dataclass(frozen=True, slots=True)
class AddedCalendar:
    """What was added, and what is there."""

    name: str
    kind: str
    found: list[str]


@click.command("add")
@click.argument("url", metavar="URL_OR_FILE", shell_complete=complete_files)
@click.option("--name", default="", help="What to call it; by default after its address.")
@click.option("--user", default=None, help="Your user there. Without one, the address is read as it is.")
@click.option("--email", default="", metavar="ADDRESS", help="Whom invitations call you, if that is not the user.")
@click.option("--contacts", "has_contacts", is_flag=True, help="It is an address book.")
@click.option("--read-only", is_flag=True, help="Never offer to change anything there.")
@click.option(
    "--ca-file",
    default="",
    metavar="FILE",
    shell_complete=complete_files,
    help="The certificate of a server of your own.",
)
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input; ask nothing.")
@click.option("--file", "in_file", is_flag=True, help="Store the password in secrets.toml, not in the keyring.")
@json_result(AddedCalendar)
def add(
    url: str,
    name: str,
    user: str | None,
    email: str,
    has_contacts: bool,
    read_only: bool,
    ca_file: str,
    password_stdin: bool,
    in_file: bool,
) -> AddedCalendar:
    """Add a calendar or an address book.

    A server (CalDAV, CardDAV), an address, or a file (.ics, .vcf).

    It is tried before anything is saved. Use a password for this one program (an app password), where your provider
    has those.

    > assistant calendar add https://cloud.example.org/ --user anna
    > assistant calendar add https://cloud.example.org/ --user anna --contacts
    > assistant calendar add https://example.org/holidays.ics
    > assistant calendar add ~/birthdays.vcf
    """
    require_calendar_libraries()
    settings = load_settings()
    path = expand_home(url)
    is_file = "://" not in url
    if is_file and not path.is_file():
        raise UsageError(f"{url} is no file, and no address: one begins with https://. Nothing was changed.")
    place = str(path.resolve()) if is_file else url.replace("webcal://", "https://", 1)
    if not is_file and user is None and not password_stdin and not _is_one_file(place):
        user = prompt_until_valid("Your user there (empty for a public address)", "", str.strip)
    source = describe_source(
        settings, place, name, user or "", email, has_contacts, writable=not read_only, ca_file=ca_file
    )
    password = read_all_stdin().strip() if password_stdin else ""
    if source.user and not password:
        password = prompt_until_valid("Password (not shown)", "", lambda answer: answer, secret=True)
    return _try_and_save(settings, source, password, in_file=in_file)


def _is_one_file(url: str) -> bool:
    return urlsplit(url).path.lower().endswith((".ics", ".vcf"))


def describe_source(
    settings: Settings,
    place: str,
    name: str,
    user: str,
    email: str,
    has_contacts: bool,
    *,
    writable: bool,
    ca_file: str = "",
) -> CalendarSource:
    """Raises `UsageError`."""
    has_contacts = has_contacts or place.lower().endswith(".vcf")
    kind = ("carddav" if has_contacts else "caldav") if user else ("vcard" if has_contacts else "ics")
    sources = settings.values.calendar.sources
    if known := next((it for it in sources if (it.kind, it.url, it.user) == (kind, place, user)), None):
        raise UsageError(f"{place} is read already, as {known.name}. Nothing was changed.")
    taken = {source.name.casefold() for source in sources}
    values = {"name": name or _free_name(place, taken), "kind": kind, "url": place, "user": user, "email": email}
    if values["name"].casefold() in taken:
        raise UsageError(f"There is a calendar {values['name']} already. Nothing was changed; choose another --name.")
    is_private = "://" in place and _is_in_own_network(urlsplit(place).hostname or "")
    if is_private:
        print_remark("It is in this machine's own network; only this one host there is read.")
    try:
        return CalendarSource.from_values(
            values
            | {"private": is_private, "writable": writable and kind == "caldav"}
            | {"ca_file": str(expand_home(ca_file).resolve()) if ca_file else ""}
        )
    except ValueError:
        raise UsageError(
            f"{place} as {values['name']} cannot be added: a name has letters, numbers, spaces, dots and hyphens "
            "(at most 40), an address begins with https:// and has no password in it. Nothing was changed."
        ) from None


def _free_name(place: str, taken: set[str]) -> str:
    base = Path(place).stem if "://" not in place else urlsplit(place).hostname or "calendar"
    base = "".join(letter if letter.isalnum() or letter in " .-" else " " for letter in base).strip(" .-")[:30]
    names = (base or "calendar", *(f"{base or 'calendar'} {number}" for number in range(2, 100)))
    return next(it for it in names if it.casefold() not in taken)


def _is_in_own_network(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False  # the try says that there is none
    return not all(is_public(str(place[0])) for *_, place in found)


def _try_and_save(settings: Settings, source: CalendarSource, password: str, *, in_file: bool) -> AddedCalendar:
    """Raises `UsageError`, and then nothing was changed."""
    chosen = settings.values.calendar
    worker = CalendarWorker(settings.home.path, settings.zone, chosen.timeout_seconds, chosen.max_megabytes * 2**20)
    try:
        answer = asyncio.run(worker.run("test", utc_now(), source=source.as_json(), password=password))
    except UsageError as error:
        raise UsageError(f"{error} Nothing was changed.") from None
    found = [str(it) for it in answer["found"]]
    if password:
        _save_passwords(settings, {**read_passwords(chosen.passwords), source.name: password}, in_file=in_file)
    save_sources(settings, [*chosen.sources, source])
    print_text(f"{source.name} is added: {', '.join(found)}.")
    read_or_wait(settings, source)
    return AddedCalendar(source.name, source.kind, found)


def read_or_wait(settings: Settings, source: CalendarSource) -> None:
    """Read a source, where no assistant runs that would."""
    if is_home_served(settings.home.path):
        print_remark("The running assistant reads it within half a minute.")
        return
    settings = load_settings()
    service = CalendarService(settings.values.calendar, CalendarReader(settings.home.path), settings.zone, utc_now)
    problem = asyncio.run(service.read_now([source.name]))[source.name]
    events, contacts = service.reader.count_entries().get(source.name, (0, 0))
    print_remark(f"It has {pluralize(events, 'event')} and {pluralize(contacts, 'contact')}. {problem}".strip())


def save_sources(settings: Settings, sources: Sequence[CalendarSource]) -> None:
    """Replace all calendars in config.toml, which is made if there is none; comments elsewhere in it stay."""
    values: list[dict[str, Any]] = [source.as_json(without_defaults=True) for source in sources]
    change_config_file(settings.home, lambda text: set_key(text or CONFIG_HEADER, _SOURCES, values))


def _save_passwords(settings: Settings, passwords: dict[str, str], *, in_file: bool) -> None:
    import json

    HomeSecretStore(settings.home.secrets).put(_PASSWORDS, json.dumps(passwords), in_file=in_file)


@dataclass(frozen=True, slots=True)
class RemovedCalendar:
    """A calendar that is read no more."""

    name: str


@click.command("remove")
@click.argument("name")
@json_result(RemovedCalendar)
def remove(name: str) -> RemovedCalendar:
    """Stop reading a calendar or an address book. Nothing is changed there.

    > assistant calendar remove Home
    """
    settings = load_settings()
    sources = settings.values.calendar.sources
    gone = next((source for source in sources if source.name.casefold() == name.casefold()), None)
    if gone is None:
        known = ", ".join(source.name for source in sources) or "none"
        raise UsageError(f"No calendar is called {name!r}. Nothing was changed; there are: {known}.")
    passwords = read_passwords(settings.values.calendar.passwords)
    if passwords.pop(gone.name, None) is not None:
        _save_passwords(settings, passwords, in_file=False)
    save_sources(settings, [source for source in sources if source is not gone])
    print_text(f"{gone.name} is not read any more, and what was read of it is removed here.")
    return RemovedCalendar(gone.name)


calendar = with_commands(calendar_commands.calendar, add, remove)
