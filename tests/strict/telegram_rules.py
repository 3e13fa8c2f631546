"""What the Bot API refuses of a message that a bot sends, and in which words. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

LONGEST = 4096
LONGEST_CAPTION = 1024
_ENTITIES = {
    "bold",
    "italic",
    "underline",
    "strikethrough",
    "spoiler",
    "blockquote",
    "expandable_blockquote",
    "code",
    "pre",
    "text_link",
    "text_mention",
    "custom_emoji",
    "mention",
    "hashtag",
    "url",
    "email",
    "bot_command",
}
_TAGS = {"b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "a", "code", "pre", "blockquote", "tg-spoiler"}


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def text_complaint(params: Mapping[str, Any], *, empty: bool = False) -> str:
    """Why this text is refused, "" for one that is taken. A draft may be `empty`."""
    text, mode = str(params.get("text", "")), params.get("parse_mode")
    if mode not in (None, "HTML", "Markdown", "MarkdownV2"):
        return "Bad Request: unsupported parse_mode"
    if mode == "HTML":
        parsed = _Html()
        parsed.feed(text)
        parsed.close()
        if complaint := parsed.complaint or ("Can't find an end tag" if parsed.stack else ""):
            return f"Bad Request: can't parse entities: {complaint}"
        text = parsed.text
    if not text.strip() and not empty:
        return "Bad Request: message text is empty"
    if units(text) > LONGEST:
        return "Bad Request: message is too long"
    return entities_complaint(text, loaded(params.get("entities"), []))


def entities_complaint(text: str, entities: Any) -> str:
    if not isinstance(entities, list):
        return "Bad Request: can't parse entities: Expected an Array"
    for entity in entities:
        start, length = entity.get("offset"), entity.get("length")
        if entity.get("type") not in _ENTITIES:
            return "Bad Request: can't parse entities: unsupported type"
        if not isinstance(start, int) or not isinstance(length, int) or start < 0 or length < 1:
            return "Bad Request: can't parse entities: wrong offset"
        if start + length > units(text) or _splits(text, start) or _splits(text, start + length):
            return "Bad Request: ENTITY_BOUNDS_INVALID"
        if entity["type"] == "text_link" and not entity.get("url"):
            return "Bad Request: can't parse entities: url is empty"
    return ""


def keyboard_complaint(markup: Any) -> str:
    for row in loaded(markup, {}).get("inline_keyboard", []):
        for button in row:
            if not str(button.get("text", "")).strip():
                return "Bad Request: can't parse inline keyboard button: Text of the button must be non-empty"
            if not 1 <= len(str(button.get("callback_data", "")).encode()) <= 64:
                return "Bad Request: BUTTON_DATA_INVALID"
    return ""


def loaded(value: Any, otherwise: Any) -> Any:
    """What was sent as JSON within a form."""
    return otherwise if value is None else json.loads(value)


def _splits(text: str, at: int) -> bool:
    """Whether a place stands in the middle of a character."""
    before = text.encode("utf-16-le")[: 2 * at]
    return len(before) >= 2 and 0xD8 <= before[-1] <= 0xDB


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.stack: list[str] = []
        self.complaint = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _TAGS:
            self.complaint = self.complaint or f'Unsupported start tag "{tag}"'
        self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.stack or self.stack.pop() != tag:
            self.complaint = self.complaint or f'Unmatched end tag "{tag}"'

    def handle_data(self, data: str) -> None:
        self.text += data
