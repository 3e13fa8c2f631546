"""Checks of single settings that sections share, and the base class of every section."""

from __future__ import annotations

import difflib
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BaseModel, ConfigDict

PROVIDERS = ("anthropic", "openai", "offline")
_NAMES_TOLD = 3


class UnknownName(ValueError):
    """`near` are the names that were most likely meant."""

    def __init__(self, near: Sequence[str]) -> None:
        super().__init__("unknown name")
        self.near = tuple(near)


def check_zone_name(value: str) -> str:
    """A time zone as the database spells it, in whatever case it was written. Raises `NoSuchName`."""
    if not value:
        return value
    try:
        return ZoneInfo(value).key
    except (KeyError, ValueError, OSError):
        return _zone_in_any_case(value)


def _zone_in_any_case(value: str) -> str:
    spelled = value.strip().replace(" ", "_").casefold()
    known: dict[str, list[str]] = {}
    for name in available_timezones():
        known.setdefault(name.casefold(), []).append(name)
    if len(known.get(spelled, ())) == 1:
        return known[spelled][0]
    places = [name for name in known if name.rpartition("/")[2] == spelled]
    near = places or difflib.get_close_matches(spelled, known)
    raise UnknownName(sorted(name for one in near[:_NAMES_TOLD] for name in known[one]))


def check_web_address(value: str) -> str:
    if value and not value.startswith(("http://", "https://")):
        raise ValueError("no address")
    return value


def check_provider_chain(value: Any) -> Any:
    """TOML's list as a tuple, each entry a known provider with an optional model."""
    if not isinstance(value, list):
        return value
    for entry in value:
        provider, colon, name = entry.partition(":") if isinstance(entry, str) else ("", "", "")
        if provider not in PROVIDERS or (colon and not name):
            raise ValueError("unknown provider")
    return tuple(value)


def check_name_list(value: Any) -> Any:
    """TOML's list of names as a tuple."""
    if isinstance(value, list) and not all(isinstance(name, str) and name for name in value):
        raise ValueError("not a name")
    return tuple(value) if isinstance(value, list) else value


def check_model_choice(value: str) -> str:
    provider, _, name = value.partition(":")
    if value and (provider not in PROVIDERS or not name):
        raise ValueError("unknown provider")
    return value


def check_time_of_day(value: str) -> str:
    if value:
        time.strptime(value, "%H:%M")
    return value


def check_hours_of_day(value: str) -> str:
    """Two times of day with a hyphen between."""
    if value:
        first, _, last = value.partition("-")
        time.strptime(first, "%H:%M")
        time.strptime(last, "%H:%M")
    return value


def check_archive_url(value: str) -> str:
    """Chained addresses go through a cache, from which nothing can be proved; a password would be shown with them."""
    if value and ("::" in value or not ("://" in value or value.startswith("/")) or urlsplit(value).password):
        raise ValueError("no address")
    return value


def check_context_size(value: int) -> int:
    if 0 < value < 2000:
        raise ValueError("too small to talk in")
    return value


class SettingsSection(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True)
