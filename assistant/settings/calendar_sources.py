"""The calendars and address books of the settings, one table each, and their passwords."""

import json
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from assistant.core.checked_tables import CheckedTable
from assistant.core.secret_text import SecretStr
from assistant.settings.validators import AnyPath, GivenName

# Before the name of a file that was imported: it is in the workspace, wherever the data folder is.
IMPORTED = "imported/"


class CalendarSource(CheckedTable, frozen=True):
    """A calendar or address book, or a server with several."""

    name: GivenName
    kind: Literal["caldav", "carddav", "ics", "vcard"]
    # An address, the full path of a file, or an imported file of the workspace (`IMPORTED`).
    url: Annotated[str, Meta(min_length=1, max_length=2_000)]
    user: Annotated[str, Meta(max_length=200)] = ""
    # The owner's address in invitations, if it is not the user.
    email: Annotated[str, Meta(max_length=200)] = ""
    # Certificates to trust besides the system's: the whole path of a PEM file.
    ca_file: AnyPath = ""
    # Whether it may be in this machine's own network.
    private: bool = False
    # Whether events may be added and changed there.
    writable: bool = True

    def check(self) -> None:
        parts = urlsplit(self.url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.password
        if not is_address and (self.kind in ("caldav", "carddav") or not self.is_file):
            raise ValueError(
                "needs as `url` an address that starts with http:// or https:// and has no password, or the whole "
                "path of a file"
            )

    @property
    def is_file(self) -> bool:
        """Whether it is a path on this machine, not an address."""
        return self.url.startswith("/") or (self.url.startswith(IMPORTED) and ".." not in PurePosixPath(self.url).parts)


def check_sources(value: Any) -> Any:
    """Convert TOML's list to a tuple, with unique names."""
    if not isinstance(value, list):
        return value
    names = [str(entry.get("name", "")).casefold() for entry in value if isinstance(entry, dict)]
    if len(set(names)) < len(names):
        raise ValueError("two have the same name")
    return tuple(value)


CalendarSources = Annotated[
    tuple[CalendarSource, ...],
    Meta(extra={"convert": check_sources}),
    Meta(
        description='a list of tables, each with a name of its own, a kind ("caldav", "carddav", "ics" or "vcard") and '
        "a url (an address without a password, or the whole path of a file)"
    ),
]


class CalendarSettings(CheckedTable, frozen=True):
    sources: CalendarSources
    passwords: SecretStr
    interval_minutes: Annotated[float, Meta(ge=1, le=10_080)]
    timeout_seconds: Annotated[float, Meta(ge=5, le=3600)]
    max_megabytes: Annotated[int, Meta(ge=1, le=500)]


def read_passwords(passwords: SecretStr) -> dict[str, str]:
    """Return passwords by the name of the source; empty if the text is invalid."""
    try:
        found = json.loads(passwords.get_secret_value() or "{}")
    except ValueError:
        return {}
    return {name: value for name, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}
