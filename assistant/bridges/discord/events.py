"""Converts Discord messages to text, and Markdown to Discord messages. Pure.

Text of others (forwarded or replied to) is quoted, with every line marked (I10).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from markdown_it import MarkdownIt

from assistant.bridges.remote_files import RemoteFile
from assistant.core.dataclass import dataclass
from assistant.core.errors import BridgeError
from assistant.core.people import clean_display_name
from assistant.core.quoting import quote_block
from assistant.core.records import Button
from assistant.core.text import lazy_regex, shorten

JsonObject = Mapping[str, Any]

# Discord's limit. A table gets two additional lines to align its columns.
MAX_CHARACTERS = 2000
MAX_TEXT = 1950
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_MAX_QUOTE = 500
_NONCE_LENGTH = 25
_ROWS, _IN_A_ROW, _MAX_LABEL, _MAX_COMMAND = 5, 5, 80, 100
_NO_PREVIEWS = 1 << 2
_VOICE_FLAG = 1 << 13
_DISCORD_EPOCH = 1_420_070_400_000
_DEFAULT, _REPLY = 0, 19
_MAX_PLACES = 500
_PICTURES = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif"})
_MARKUP = lazy_regex(r"<(@!|@&|@|#|a?:\w{1,32}:)(\d{1,20})>")


def snowflake_at(seconds: float) -> int:
    """Return the smallest id of what was created at this Unix time or later."""
    return max(0, int(seconds * 1000) - _DISCORD_EPOCH) << 22


# Prefix of direct channels in a position: Discord does not list these.
DIRECT = "@"


def place_of(channel: str, room: str | None) -> str:
    """Return a channel in a position."""
    return f"{DIRECT}{channel}" if room is None else channel


@dataclass(frozen=True, slots=True)
class DiscordPosition:
    """The newest received message by channel; `since` is the newest of all, for channels not known yet."""

    since: int = 0
    newest: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> DiscordPosition:
        """Return the stored position. An unreadable one is empty, as before the first message."""
        try:
            read = json.loads(text or "{}")
            newest = {str(place): int(message) for place, message in dict(read.get("newest", {})).items()}
            return cls(int(read.get("since", 0)), newest)
        except (ValueError, TypeError, AttributeError):
            return cls()

    def __str__(self) -> str:
        return json.dumps({"since": self.since, "newest": self.newest}, separators=(",", ":"))

    def advance(self, place: str, message: int) -> DiscordPosition:
        """Return the position after a message. Only the `_MAX_PLACES` places that spoke last are kept."""
        newest = {key: value for key, value in self.newest.items() if key != place}
        newest[place] = max(message, self.newest.get(place, 0))
        for key in list(newest)[:-_MAX_PLACES]:
            del newest[key]
        return DiscordPosition(max(self.since, message), newest)


# ------------------------------------------------------------------------------------------------------------ coming in


def is_said_by_a_person(message: JsonObject) -> bool:
    """Return whether a message is by a person, not a bot, a webhook, or Discord itself."""
    author = message.get("author") or {}
    return bool(
        author.get("id")
        and not author.get("bot")
        and not author.get("system")
        and not message.get("webhook_id")
        and message.get("type", _DEFAULT) in (_DEFAULT, _REPLY)
    )


def name_of(message: JsonObject) -> str:
    """Return the name of the sender."""
    author = message.get("author") or {}
    nick = (message.get("member") or {}).get("nick")
    return str(nick or author.get("global_name") or author.get("username") or "")


def is_addressed(message: JsonObject, me: str) -> bool:
    """Return whether a message in a channel is for the bot: a mention, or a reply to it."""
    replied = message.get("referenced_message") or {}
    mentioned = any(str(user.get("id")) == me for user in message.get("mentions") or ())
    return mentioned or str((replied.get("author") or {}).get("id", "")) == me


def text_of_message(message: JsonObject, me: str, channels: Mapping[str, str]) -> str:
    """Return the text; `channels` are names by id. The bot's own mention at either end is removed."""
    text = str(message.get("content", "")).strip()
    for mention in (f"<@{me}>", f"<@!{me}>"):
        if text.startswith(mention):
            text = text.removeprefix(mention).lstrip().removeprefix(",").removeprefix(":").lstrip()
        text = text.removesuffix(mention).rstrip()
    stickers = [
        f"[sticker {clean_display_name(str(one.get('name', '')))}]" for one in message.get("sticker_items") or ()
    ]
    said = "\n".join(part for part in (_written(text, message, channels), *stickers) if part)
    quotes = [*_forwarded(message, channels), *_replied(message, me, channels)]
    return said if said.startswith("/") else "\n\n".join(part for part in (said, *quotes) if part)


def _forwarded(message: JsonObject, channels: Mapping[str, str]) -> Iterator[str]:
    for snapshot in message.get("message_snapshots") or ():
        forwarded = snapshot.get("message") or {}
        yield "[forwarded]\n" + quote_block(_written(str(forwarded.get("content", "")), forwarded, channels))


def _replied(message: JsonObject, me: str, channels: Mapping[str, str]) -> Iterator[str]:
    replied = message.get("referenced_message")
    if message.get("type") == _REPLY and replied:
        is_own = str((replied.get("author") or {}).get("id", "")) == me
        author = "you" if is_own else clean_display_name(name_of(replied)) or "somebody"
        text = shorten(_written(str(replied.get("content", "")), replied, channels), _MAX_QUOTE)
        yield f"[in reply to {author}]" + (f"\n{quote_block(text)}" if text else "")


def _written(text: str, message: JsonObject, channels: Mapping[str, str]) -> str:
    """Replace Discord's codes for accounts, channels and emoji by names."""
    names = {str(user.get("id")): name_of({"author": user}) for user in message.get("mentions") or ()}

    def written(match: re.Match[str]) -> str:
        kind, number = match[1], match[2]
        if kind in ("@", "@!"):
            return f"@{names.get(number) or number}"
        if kind == "#":
            return f"#{channels.get(number) or number}"
        return f"@{number}" if kind == "@&" else kind.removeprefix("a")

    return _MARKUP.sub(written, text)


def files_of(message: JsonObject) -> Iterator[RemoteFile]:
    """Yield the attachments; sizes are in bytes as Discord states them."""
    is_voice = bool(int(message.get("flags") or 0) & _VOICE_FLAG)
    for file in message.get("attachments") or ():
        mime = str(file.get("content_type") or "application/octet-stream").partition(";")[0]
        yield RemoteFile(
            str(file["id"]),
            "image" if mime in _PICTURES else "file",
            mime,
            str(file.get("filename") or file["id"]),
            int(file.get("size") or 0),
            str(file.get("url") or ""),
            is_voice,
        )


# ------------------------------------------------------------------------------------------------------------ going out


def require_channel(target: str) -> str:
    """Raises `BridgeError` for an invalid channel."""
    if not target.isdecimal():
        raise BridgeError(f'"{target}" is not a channel of Discord. The message is kept.', refused=True)
    return target


def nonce_of(key: str, target: str) -> str:
    """Return a nonce that is always the same for the same part; Discord creates one message per nonce."""
    return hashlib.sha256(json.dumps([key, target]).encode()).hexdigest()[:_NONCE_LENGTH]


def message_payload(markdown: str, nonce: str, buttons: Iterable[Button]) -> dict[str, Any]:
    """Return a message that mentions nobody and has no link previews."""
    payload: dict[str, Any] = {
        "content": with_tables_as_code(markdown),
        "nonce": nonce,
        "enforce_nonce": True,
        "allowed_mentions": {"parse": []},
        "flags": _NO_PREVIEWS,
    }
    if rows := _button_rows(buttons):
        payload["components"] = rows
    return payload


def with_tables_as_code(markdown: str) -> str:
    """Format tables as code, since Discord has none; code aligns their columns. One that would no longer fit is
    unchanged."""
    if "|" not in markdown:
        return markdown
    lines = markdown.split("\n")
    for token in reversed(_MARKDOWN.parse(markdown)):
        if token.type == "table_open" and token.map and token.level == 0:
            start, end = token.map
            lines[start:end] = ["```", *lines[start:end], "```"]
    written = "\n".join(lines)
    return written if len(written.encode("utf-16-le", "replace")) // 2 <= MAX_CHARACTERS else markdown


def _button_rows(buttons: Iterable[Button]) -> list[dict[str, Any]]:
    """Return the buttons Discord accepts; the text has the commands of all others."""
    visible: dict[str, Button] = {}
    for button in buttons:
        if button.label.strip() and 0 < len(button.command) <= _MAX_COMMAND:
            visible.setdefault(button.command, button)
    made = [
        {"type": 2, "style": 2, "label": shorten(one.label, _MAX_LABEL), "custom_id": one.command}
        for one in list(visible.values())[: _ROWS * _IN_A_ROW]
    ]
    return [{"type": 1, "components": made[at : at + _IN_A_ROW]} for at in range(0, len(made), _IN_A_ROW)]
