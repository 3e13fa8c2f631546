"""Converts Slack messages to text, and Markdown to Slack messages. Pure.

Text of others (shared messages) is quoted, with every line marked (I10).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from assistant.bridges.remote_files import RemoteFile
from assistant.core.dataclass import dataclass
from assistant.core.errors import BridgeError
from assistant.core.people import clean_display_name
from assistant.core.quoting import quote_block
from assistant.core.records import Button
from assistant.core.text import lazy_regex, shorten

JsonObject = Mapping[str, Any]

# Slack accepts 12,000 characters of Markdown per message, including markup; buttons count too.
MAX_TEXT = 11_000
EVENT_TYPE = "assistant_message"
_FALLBACK_CHARACTERS = 3000
_MAX_QUOTE = 2000
_MAX_BUTTONS, _MAX_LABEL, _MAX_VALUE = 25, 75, 2000
_MAX_THREADS = 50
_SAID_SUBTYPES = (None, "file_share", "thread_broadcast", "me_message")
_PICTURES = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif"})
_MARKUP = lazy_regex(r"<([^<>\n]{1,3000})>")
_USER = lazy_regex(r"<@([A-Z0-9]{2,32})(?:\|[^<>\n]{0,200})?>")
# Mentions of groups, wherever they are in a model's text.
_CALLS = lazy_regex(r"<(?=@[UWB]|!(?:channel|here|everyone|subteam))")


# ----------------------------------------------------------------------------------------------------------- places


def format_target(channel: str, thread: str = "") -> str:
    """Return what `parse_target` reads."""
    return f"{channel}:{thread}" if thread else channel


def parse_target(target: str) -> tuple[str, str]:
    """Return channel and thread. Raises `BridgeError` for other texts."""
    channel, _, thread = target.partition(":")
    if not channel:
        raise BridgeError(f'"{target}" is not a channel of Slack. The message is kept.', refused=True)
    return channel, thread


def is_private(channel: str) -> bool:
    """Return whether it is a direct conversation: Slack's ids of these begin with D."""
    return channel.startswith("D")


def thread_of(message: JsonObject) -> str:
    """Return the first message of the thread; "" outside of one."""
    thread = str(message.get("thread_ts", ""))
    return "" if thread == message.get("ts") else thread


@dataclass(frozen=True, slots=True)
class SlackPosition:
    """The newest received message by channel or `channel:thread`."""

    newest: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> SlackPosition:
        """Return the stored position. An unreadable one is empty, as before the first message."""
        try:
            newest = json.loads(text or "{}")
        except ValueError:
            newest = {}
        return cls(newest if isinstance(newest, dict) else {})

    def __str__(self) -> str:
        return json.dumps(self.newest, separators=(",", ":"))

    def advance(self, place: str, ts: str) -> SlackPosition:
        """Return the position after a message. Newest threads are last, and their number is limited."""
        newest = {key: value for key, value in self.newest.items() if key != place}
        newest[place] = max(ts, self.newest.get(place, ""))
        threads = [key for key in newest if ":" in key]
        for key in threads[:-_MAX_THREADS]:
            del newest[key]
        return replace(self, newest=newest)

    def threads(self) -> tuple[tuple[str, str], ...]:
        """The threads of which something was received, as (channel, thread)."""
        return tuple(parse_target(place) for place in self.newest if ":" in place)


# ------------------------------------------------------------------------------------------------------------ coming in


def is_said_by_a_person(message: JsonObject, me: str) -> bool:
    """Return whether a message is by a person, not a program, the assistant itself, or Slack."""
    sender = message.get("user")
    return bool(
        isinstance(sender, str)
        and sender not in ("", me, "USLACKBOT")
        and not message.get("bot_id")
        and message.get("type", "message") == "message"
        and message.get("subtype") in _SAID_SUBTYPES
        and isinstance(message.get("ts"), str)
    )


def is_addressed(message: JsonObject, me: str) -> bool:
    """Return whether a message in a channel is for the assistant: a mention, or a reply to it."""
    return me in _USER.findall(str(message.get("text", ""))) or message.get("parent_user_id") == me


def mentioned_users(message: JsonObject) -> set[str]:
    """Return the ids of all users named in the message and in what it shares."""
    texts = [str(message.get("text", "")), *(str(shared.get("text", "")) for shared in _shared(message))]
    return {user for text in texts for user in _USER.findall(text)}


def text_of_message(message: JsonObject, me: str, names: Mapping[str, str]) -> str:
    """Return the text; `names` are those of mentioned accounts. The assistant's own mention at either end is
    removed."""
    mention = f"<@{me}>"
    text = str(message.get("text", "")).strip()
    if text.startswith(mention):
        text = text.removeprefix(mention).lstrip().removeprefix(",").removeprefix(":").lstrip()
    text = plain_text(text.removesuffix(mention).rstrip(), names)
    quotes = [
        f"[shared, by {clean_display_name(str(shared.get('author_name') or 'somebody'))}]\n"
        + quote_block(shorten(plain_text(str(shared["text"]), names), _MAX_QUOTE))
        for shared in _shared(message)
    ]
    return "\n\n".join(part for part in (text, *quotes) if part)


def plain_text(text: str, names: Mapping[str, str]) -> str:
    """Replace Slack's codes for accounts, channels and links by names."""

    def written(match: re.Match[str]) -> str:
        inner, _, label = match[1].partition("|")
        match inner[:1]:
            case "@":
                return f"@{names.get(inner[1:]) or label or inner[1:]}"
            case "#":
                return f"#{label or inner[1:]}"
            case "!":
                return label or f"@{inner[1:].partition('^')[0]}"
        address = inner.removeprefix("mailto:")
        return f"{label} ({inner})" if label and label not in (inner, address) else address

    return _MARKUP.sub(written, text).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def files_of(message: JsonObject) -> Iterator[RemoteFile]:
    """Yield the files that can be downloaded: Slack leaves out deleted ones and those beyond a free plan."""
    for file in message.get("files") or ():
        if not isinstance(file, dict) or file.get("mode") in ("tombstone", "hidden_by_limit") or "id" not in file:
            continue
        mime = str(file.get("mimetype") or "application/octet-stream")
        yield RemoteFile(
            str(file["id"]),
            "image" if mime in _PICTURES else "file",
            mime,
            str(file.get("name") or file["id"]),
            int(file.get("size") or 0),
            str(file.get("url_private_download") or file.get("url_private") or ""),
            file.get("subtype") == "slack_audio",
        )


def _shared(message: JsonObject) -> list[JsonObject]:
    """Return shared messages."""
    attachments = message.get("attachments") or ()
    return [one for one in attachments if isinstance(one, dict) and one.get("is_share") and one.get("text")]


# ------------------------------------------------------------------------------------------------------------ going out


def part_key(key: str, target: str) -> str:
    """Return the key that Slack stores with a message to recognize it."""
    return hashlib.sha256(json.dumps([key, target]).encode()).hexdigest()[:32]


def message_payload(markdown: str, buttons: Iterable[Button]) -> dict[str, Any]:
    """Return Markdown, which Slack formats itself, with buttons below; `text` is for notifications and screen
    readers."""
    calm = _CALLS.sub("<\N{WORD JOINER}", markdown)
    blocks: list[dict[str, Any]] = [{"type": "markdown", "text": calm}]
    if elements := [_button(number, button) for number, button in enumerate(_visible(buttons))]:
        blocks.append({"type": "actions", "elements": elements})
    return {"text": shorten(escape(calm), _FALLBACK_CHARACTERS), "blocks": blocks}


def plain_payload(markdown: str) -> dict[str, Any]:
    """Return the text as plain text, if Slack rejects the Markdown."""
    return {"text": escape(markdown), "mrkdwn": False}


def escape(text: str) -> str:
    """Return the text with the three characters escaped that Slack's mrkdwn reads as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _visible(buttons: Iterable[Button]) -> list[Button]:
    """Return the buttons Slack accepts; the text has the commands of all others."""
    fitting = [one for one in buttons if one.label.strip() and 0 < len(one.command) <= _MAX_VALUE]
    return fitting[:_MAX_BUTTONS]


def _button(number: int, button: Button) -> dict[str, Any]:
    label = {"type": "plain_text", "text": shorten(button.label, _MAX_LABEL)}
    return {"type": "button", "text": label, "value": button.command, "action_id": f"button-{number}"}
