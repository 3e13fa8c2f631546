"""What both validators share: walking a body for characters JSON cannot carry, and checks of single fields."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def surrogates(body: Any) -> list[str]:
    try:
        json.dumps(body, ensure_ascii=False, default=str).encode("utf-8")
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
