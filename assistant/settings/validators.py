"""The types of texts and lists in the settings, with their validation."""

import difflib
import ipaddress
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from msgspec import Meta

from assistant.core.checked_tables import whole
from assistant.core.text import fold_text

CITIES_FILE = Path(__file__).with_name("cities.toml")
PROVIDERS = ("anthropic", "openai", "offline")
_NAMES_TOLD = 3
_LONGEST_PART = 255


class UnknownName(ValueError):
    """`near` are the names most likely meant."""

    def __init__(self, near: Sequence[str]) -> None:
        super().__init__("unknown name")
        self.near = tuple(near)


def check_zone_name(value: str) -> str:
    """Return a time zone in the database's spelling, ignoring case. Raises `UnknownName`."""
    if not value:
        return value
    try:
        return ZoneInfo(value).key
    except (KeyError, ValueError, OSError):
        return _zone_in_any_case(value)


@cache
def _zones_by_city() -> Mapping[str, str]:
    data = tomllib.loads(CITIES_FILE.read_text(encoding="utf-8"))
    return {city: zone for zone, cities in data.items() for city in cities.split()}


def zone_of_city(text: str) -> str:
    """Return the zone of a large city, or of a country with only one; "" for others."""
    return _zones_by_city().get("-".join(fold_text(text.partition(",")[0]).removesuffix(" city").split()), "")


def _zone_in_any_case(value: str) -> str:
    if zone := zone_of_city(value):
        raise UnknownName([zone])
    spelled = value.partition(",")[0].strip().replace(" ", "_").casefold().removesuffix("_city")
    known: dict[str, list[str]] = {}
    for name in available_timezones():
        known.setdefault(name.casefold(), []).append(name)
    if len(known.get(spelled, ())) == 1:
        return known[spelled][0]
    cities: dict[str, list[str]] = {}
    for name in known:
        cities.setdefault(name.rpartition("/")[2], []).append(name)
    close = difflib.get_close_matches(spelled, known) or difflib.get_close_matches(spelled, cities)
    near = [name for city in ([spelled] if spelled in cities else close) for name in cities.get(city, [city])]
    raise UnknownName(sorted(name for spelling in near[:_NAMES_TOLD] for name in known[spelling]))


def check_provider_chain(value: Any) -> Any:
    """Convert TOML's list to a tuple of known providers with an optional model."""
    if not isinstance(value, list):
        return value
    for entry in value:
        provider, colon, name = entry.partition(":") if isinstance(entry, str) else ("", "", "")
        if provider not in PROVIDERS or (colon and not name):
            raise ValueError("unknown provider")
    return tuple(value)


def check_name_list(value: Any) -> Any:
    """Convert TOML's list of names to a tuple."""
    if isinstance(value, list) and not all(isinstance(name, str) and name for name in value):
        raise ValueError("not a name")
    return convert_to_tuple(value)


def convert_to_tuple(value: Any) -> Any:
    """Convert TOML's list to a tuple."""
    return tuple(value) if isinstance(value, list) else value


def check_folder_list(value: Any) -> Any:
    """Check full paths whose last parts differ, ignoring case: these are the names of the folders."""
    if isinstance(value, list) and all(isinstance(path, str) for path in value):
        names = [Path(check_path(path)).name.casefold() for path in value]
        if not all(path.startswith(("/", "~/")) for path in value) or len({*names}) < len(names) or "" in names:
            raise ValueError("no list of folders")
        return tuple(value)
    return value


def check_archive_url(value: str) -> str:
    """Refuse chained addresses, which use a cache and cannot be verified, and passwords, which would be shown."""
    check_path(value)
    if value and ("::" in value or not ("://" in value or value.startswith("/")) or urlsplit(value).password):
        raise ValueError("no address")
    return value


def check_path(value: str) -> str:
    """Refuse what no file can be called: control characters, and parts of more than 255 bytes."""
    if any(unicodedata.category(letter) == "Cc" for letter in value):
        raise ValueError("control characters")
    if any(len(part.encode()) > _LONGEST_PART for part in value.split("/")):
        raise ValueError("too long for a name")
    return value


def check_context_size(value: int) -> int:
    """Return the value; 0 stands for the model's own window. Raises `ValueError`."""
    if 0 < value < 2000:
        raise ValueError("too small to talk in")
    return value


_TIME = r"(\d|[01]\d|2[0-3]):(\d|[0-5]\d)"
TimeOfDay = Annotated[str, Meta(pattern=whole(rf"({_TIME})?"))]
HoursOfDay = Annotated[str, Meta(pattern=whole(rf"({_TIME}-{_TIME})?"), description='hours as in "22:00-07:00", or ""')]
ZoneName = Annotated[
    str,
    Meta(extra={"check": check_zone_name}),
    Meta(description='a time zone by a large city in it, as in "Europe/Oslo", or ""'),
]
WebAddress = Annotated[
    str,
    Meta(pattern=whole(r"(?s:(https?://.*)?)"), description='an address that starts with http:// or https://, or ""'),
]
AnyPath = Annotated[
    str,
    Meta(extra={"check": check_path}),
    Meta(max_length=1000, description="the path of a file or folder, or nothing"),
]
ArchiveUrl = Annotated[
    str,
    Meta(extra={"check": check_archive_url}),
    Meta(description='an address without a password as in "s3://bucket/folder", a whole path, or ""'),
]
ModelChoice = Annotated[
    str,
    Meta(
        pattern=whole(rf"(?s:(({'|'.join(PROVIDERS)}):.+)?)"),
        description='"", or a provider with a model as in "anthropic:claude-haiku-5-5"',
    ),
]
ProviderChain = Annotated[
    tuple[str, ...],
    Meta(extra={"convert": check_provider_chain}),
    Meta(description='a list of "anthropic", "openai" and "offline", perhaps with a model as in "openai:qwen3"'),
]
ContextSize = Annotated[
    int,
    Meta(extra={"check": check_context_size}),
    Meta(ge=0, le=2_000_000, description="0, or a whole number from 2000 to 2000000"),
]
NameList = Annotated[tuple[str, ...], Meta(extra={"convert": check_name_list})]
TextList = Annotated[tuple[str, ...], Meta(extra={"convert": convert_to_tuple})]
FolderList = Annotated[tuple[str, ...], Meta(extra={"convert": check_folder_list})]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server on this host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


# Whatever a person gives a name.
GivenName = Annotated[
    str,
    Meta(
        pattern=whole(r"\w[\w .-]*"),
        max_length=40,
        description='up to 40 letters, digits, spaces, ".", "_" and "-"',
    ),
]
