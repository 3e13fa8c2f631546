"""What a setting may be: the checks that sections share, and what every section is."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict

PROVIDERS = ("anthropic", "openai", "offline")


def zone_name(value: str) -> str:
    if value:
        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError):
            raise ValueError("unknown time zone") from None
    return value


def web_address(value: str) -> str:
    if value and not value.startswith(("http://", "https://")):
        raise ValueError("no address")
    return value


def provider_chain(value: Any) -> Any:
    """TOML's list as a tuple, each entry a known provider with an optional model."""
    if not isinstance(value, list):
        return value
    for entry in value:
        provider, colon, name = entry.partition(":") if isinstance(entry, str) else ("", "", "")
        if provider not in PROVIDERS or (colon and not name):
            raise ValueError("unknown provider")
    return tuple(value)


def name_list(value: Any) -> Any:
    """TOML's list of names as a tuple."""
    if isinstance(value, list) and not all(isinstance(name, str) and name for name in value):
        raise ValueError("not a name")
    return tuple(value) if isinstance(value, list) else value


def model_choice(value: str) -> str:
    provider, _, name = value.partition(":")
    if value and (provider not in PROVIDERS or not name):
        raise ValueError("unknown provider")
    return value


def time_of_day(value: str) -> str:
    if value:
        time.strptime(value, "%H:%M")
    return value


def hours_of_day(value: str) -> str:
    """Two times of day with a hyphen between."""
    if value:
        first, _, last = value.partition("-")
        time.strptime(first, "%H:%M")
        time.strptime(last, "%H:%M")
    return value


def archive_url(value: str) -> str:
    """Chained addresses go through a cache, from which nothing can be proved; a password would be shown with them."""
    if value and ("::" in value or not ("://" in value or value.startswith("/")) or urlsplit(value).password):
        raise ValueError("no address")
    return value


def zero_or_useful(value: int) -> int:
    if 0 < value < 2000:
        raise ValueError("too small to talk in")
    return value


class Section(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True
    )  # fmt: skip
