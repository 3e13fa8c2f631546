"""What Discord refuses of a message that a bot sends, and in which words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LONGEST = 2000
_FLAGS = 1 << 2 | 1 << 12 | 1 << 15


def message_complaint(body: Mapping[str, Any], *, has_file: bool) -> str:
    """Why it is refused, "" for what is taken. Its length counts in units of UTF-16, the stricter of two readings."""
    content, nonce = str(body.get("content", "")), str(body.get("nonce", ""))
    if not content.strip() and not has_file:
        return "Cannot send an empty message"
    if len(content.encode("utf-16-le")) // 2 > LONGEST:
        return "Must be 2000 or fewer in length."
    if len(nonce) > 25:
        return "nonce: Must be 25 or fewer in length."
    if int(body.get("flags", 0)) & ~_FLAGS:
        return "flags: invalid"
    if not isinstance(body.get("allowed_mentions", {}).get("parse", []), list):
        return "allowed_mentions: invalid"
    rows = body.get("components", [])
    names = [button.get("custom_id") for row in rows for button in row.get("components", ())]
    if len(rows) > 5 or len(set(names)) != len(names) or not all(map(_is_row, rows)):
        return "components: invalid"
    return ""


def _is_row(row: Mapping[str, Any]) -> bool:
    buttons = row.get("components", [])
    return row.get("type") == 1 and 1 <= len(buttons) <= 5 and all(map(_is_button, buttons))


def _is_button(button: Mapping[str, Any]) -> bool:
    return (
        button.get("type") == 2
        and button.get("style") in (1, 2, 3, 4)
        and 1 <= len(button.get("label", "")) <= 80
        and 1 <= len(button.get("custom_id", "")) <= 100
    )
