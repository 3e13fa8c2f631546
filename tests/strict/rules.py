"""What both validators share: walking a body for characters JSON cannot carry, and checks of single fields."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item)


def surrogates(body: Any) -> list[str]:
    for text in strings(body):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            return ["The request body is not valid JSON: no low surrogate in string"]
    return []


def unknown_keys(value: Mapping[str, Any], known: frozenset[str], where: str) -> list[str]:
    return [f"{where}{key}: Extra inputs are not permitted" for key in value if key not in known]


def whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def decoded_size(data: str) -> int | None:
    """Bytes of base64 text; None where it is not base64."""
    try:
        return len(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return None
