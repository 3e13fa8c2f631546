"""Reads and writes Matrix events, and the position of the bridge. Pure.

The position is one text, stored with the inbox in one transaction; apart from keys, nothing else of the bridge is
durable. An answer fits into one event, also encrypted. A transaction id derives from the content, so that only a resend
has the same id (Synapse answers a known id with the old event, whatever the body).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any
from urllib.parse import quote

from markdown_it import MarkdownIt

from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex

JsonObject = Mapping[str, Any]

# An event may have 65,536 bytes. Encryption adds a third, and replacing a draft some more.
_CONTENT_BYTES = 44_000
MAX_TEXT_BYTES = 20_000
_EDIT_PREVIEW = 200
_MAX_UNDECRYPTED = 200

_MARKDOWN = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
# Matrix apps do not load images from other sites, so they stay links.
_MARKDOWN.disable("image")
_QUOTED_REPLY = lazy_regex(r"> (\* )?<@[^>]+>")


# ---------------------------------------------------------------------------------------------------- transaction ids

_ANSWER, _DRAFT = "answer-", "draft-"


def answer_transaction_id(key: str, target: str, body: str) -> str:
    """Return the id of an outgoing part. It includes the body, since a restored data folder reuses keys."""
    return _ANSWER + _digest(key, target, body)


def draft_transaction_id(turn: str, target: str) -> str:
    """Return the id of a turn's first text at a target, the same if the turn is resumed after a crash."""
    return _DRAFT + _digest(turn, target)


def file_fingerprint(name: str, data: bytes) -> str:
    """Return a hash of a file for its transaction id."""
    return f"{name} {hashlib.sha256(data).hexdigest()}"


def notice_transaction_id(*parts: str) -> str:
    """Return the same id for the same parts, so that the server sends a repeated notice once."""
    return "notice-" + _digest(*parts)


def _transaction_id(event: JsonObject) -> str:
    return _text(_mapping(event, "unsigned"), "transaction_id")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]


# -------------------------------------------------------------------------------------------------------------- targets


def api_path(*parts: str) -> str:
    """Return a path of the client API."""
    return "/_matrix/client/v3/" + "/".join(quote(part, safe="", errors="replace") for part in parts)


def format_target(room: str, thread: str = "") -> str:
    """Return what `parse_target` reads."""
    return f"{room}|{thread}" if thread else room


def parse_target(target: str) -> tuple[str, str]:
    """Return room and thread root, "" for none."""
    room, _, thread = target.partition("|")
    return room, thread


# ------------------------------------------------------------------------------------------------------- what was said


@dataclass(frozen=True, slots=True)
class MatrixAttachment:
    """A file of a message."""

    kind: str
    url: str  # its mxc:// address
    mime: str
    name: str
    size: int
    keys: JsonObject | None = None  # decryption keys if it is encrypted
    voice: bool = False  # a voice recording


def read_text(event: JsonObject) -> str:
    """Return the text of a message, or the caption of a file; "" if there is none. Also "" for notices of bots, which
    are never answered, so that two bots do not answer each other forever."""
    content = _mapping(event, "content")
    body = _text(content, "body")
    match content.get("msgtype"):
        case "m.text":
            return _strip_quoted_reply(content, body)
        case "m.emote":
            return f"* {body}"
        case "m.location":
            return " ".join(part for part in (body, _text(content, "geo_uri")) if part)
        case "m.image" | "m.file" | "m.audio" | "m.video":
            return body if _text(content, "filename") not in ("", body) else ""
    return ""


def read_attachment(event: JsonObject) -> MatrixAttachment | None:
    """Return the file or sticker of an event, None if it has none. Its size is what the sender claims."""
    content = _mapping(event, "content")
    kind = "m.image" if event.get("type") == "m.sticker" else content.get("msgtype")
    if kind not in ("m.image", "m.file", "m.audio", "m.video"):
        return None
    info, keys = _mapping(content, "info"), _mapping(content, "file")
    size = info.get("size")
    return MatrixAttachment(
        kind,
        _text(keys, "url") or _text(content, "url"),
        _text(info, "mimetype") or "application/octet-stream",
        _text(content, "filename") or _text(content, "body"),
        size if isinstance(size, int) else 0,
        keys or None,
        kind == "m.audio" and "org.matrix.msc3245.voice" in content,
    )


def is_message_event(event: JsonObject) -> bool:
    """Return whether it says something new: edits don't."""
    return event.get("type") == "m.sticker" or (event.get("type") == "m.room.message" and not replaced_event_id(event))


def replaced_event_id(event: JsonObject) -> str:
    """Return the event of which this is a new version, "" for none."""
    relation = _relation(event)
    return _text(relation, "event_id") if relation.get("rel_type") == "m.replace" else ""


def edited_event_id(event: JsonObject) -> str:
    """Return the message of which this is a new version, "" for none."""
    return replaced_event_id(event) if event.get("type") == "m.room.message" else ""


def read_edited_text(event: JsonObject) -> str:
    """Return the text of an edit."""
    content = _mapping(event, "content")
    return read_text({"content": _mapping(content, "m.new_content") or content})


def redacted_event_id(event: JsonObject) -> str:
    """Return the event that this one deletes, "" for none. In older rooms it is outside the content."""
    if event.get("type") != "m.room.redaction":
        return ""
    return _text(event, "redacts") or _text(_mapping(event, "content"), "redacts")


def thread_root_id(event: JsonObject) -> str:
    """Return the id of the event that the thread began with, "" outside threads."""
    relation = _relation(event)
    return _text(relation, "event_id") if relation.get("rel_type") == "m.thread" else ""


def replied_event_id(event: JsonObject) -> str:
    """Return the event that this one answers. "" in a thread, where apps only name one for apps without threads."""
    relation = _relation(event)
    if relation.get("rel_type") == "m.thread" and relation.get("is_falling_back", True):
        return ""
    return _text(_mapping(relation, "m.in_reply_to"), "event_id")


def mentions_account(event: JsonObject, user: str, name: str) -> bool:
    """Return whether it names the account, as a mention or in its text."""
    content = _mapping(event, "content")
    users = _mapping(content, "m.mentions").get("user_ids")
    if isinstance(users, list) and user in users:
        return True
    text, local = read_text(event), user[1:].partition(":")[0]
    names = "|".join(re.escape(candidate) for candidate in {user, f"@{local}", name} if candidate)
    return re.search(rf"(?<!\w)(?:{names})(?!\w)", text, re.IGNORECASE) is not None


def is_from_account(event: JsonObject, user: str) -> bool:
    """Return whether `user` wrote it, or, as the server reports, something in its thread."""
    thread = _mapping(_mapping(_mapping(event, "unsigned"), "m.relations"), "m.thread")
    return event.get("sender") == user or thread.get("current_user_participated") is True


def read_service_members(event: JsonObject) -> frozenset[str]:
    """Return the bridge accounts in a room that the room lists."""
    members = _mapping(event, "content").get("service_members")
    return (
        frozenset(member for member in members if isinstance(member, str)) if isinstance(members, list) else frozenset()
    )


def replacement_room_id(event: JsonObject) -> str:
    """Return the room that replaces the one with this event, "" for none."""
    if event.get("type") != "m.room.tombstone" or event.get("state_key") != "":
        return ""
    return _text(_mapping(event, "content"), "replacement_room")


def predecessor_room_id(event: JsonObject) -> str:
    """Return the room that the one with this event replaces, "" for none."""
    if event.get("type") != "m.room.create" or event.get("state_key") != "":
        return ""
    return _text(_mapping(_mapping(event, "content"), "predecessor"), "room_id")


def server_of_account(account: str) -> str:
    """Return the server of an account."""
    return quote(account.partition(":")[2], safe="", errors="replace")


def membership_change(event: JsonObject, user: str) -> tuple[str, str]:
    """Return the new and the previous membership of `user`; "" if the event is not about them."""
    if event.get("type") != "m.room.member" or event.get("state_key") != user:
        return "", ""
    previous = _mapping(event, "prev_content") or _mapping(_mapping(event, "unsigned"), "prev_content")
    return _text(_mapping(event, "content"), "membership"), _text(previous, "membership")


# ---------------------------------------------------------------------------------------------------- what is written


def message_content(text: str, thread: str = "") -> dict[str, Any]:
    """Return a message of Markdown, with HTML if that differs and fits."""
    # Without this, apps may notify people whose names are in the text.
    content: dict[str, Any] = {"msgtype": "m.text", "body": text, "m.mentions": {}}
    html = _MARKDOWN.render(text).strip()
    if html != f"<p>{text}</p>":
        formatted = {**content, "format": "org.matrix.custom.html", "formatted_body": html}
        content = formatted if _size(formatted) <= _CONTENT_BYTES else content
    return with_thread(content, thread)


def with_thread(content: dict[str, Any], thread: str) -> dict[str, Any]:
    """Return the content as an answer in a thread; clients without threads show it as a reply. "" is no thread."""
    if not thread:
        return content
    relation = {
        "rel_type": "m.thread",
        "event_id": thread,
        "is_falling_back": True,
        "m.in_reply_to": {"event_id": thread},
    }
    return {**content, "m.relates_to": relation}


def edit_content(event: str, text: str) -> dict[str, Any]:
    """Return a new version of our message `event`. Older apps show its beginning."""
    return {
        "msgtype": "m.text",
        "body": f"* {text[:_EDIT_PREVIEW]}",
        "m.mentions": {},
        "m.new_content": message_content(text),
        "m.relates_to": {"rel_type": "m.replace", "event_id": event},
    }


def file_content(kind: str, mime: str, name: str, size: int, location: JsonObject) -> dict[str, Any]:
    """`location` is {"url"} or, encrypted, {"file"}. The kind "audio" is a voice message."""
    info = {"mimetype": mime, "size": size}
    voice: dict[str, Any] = {"org.matrix.msc3245.voice": {}} if kind == "audio" else {}
    return {"msgtype": f"m.{kind}", "body": name or kind, "filename": name or kind, "info": info, **voice, **location}


# ----------------------------------------------------------------------------------------------------------- of events


def _mapping(content: JsonObject, key: str) -> JsonObject:
    """Return a mapping in the content, whose types are not guaranteed: anyone can send an event."""
    value = content.get(key)
    return value if isinstance(value, Mapping) else {}


def _text(content: JsonObject, key: str) -> str:
    value = content.get(key)
    return value if isinstance(value, str) else ""


def _relation(event: JsonObject) -> JsonObject:
    return _mapping(_mapping(event, "content"), "m.relates_to")


def _strip_quoted_reply(content: JsonObject, body: str) -> str:
    """Return the text without the quoted message that older apps insert above it."""
    if not _mapping(_mapping(content, "m.relates_to"), "m.in_reply_to") or not _QUOTED_REPLY.match(body):
        return body
    lines = body.split("\n")
    first_own = next((n for n, line in enumerate(lines) if not line.startswith(">")), len(lines))
    return "\n".join(lines[first_own:]).strip("\n")


def _size(content: JsonObject) -> int:
    return len(json.dumps(content, ensure_ascii=False).encode())


# ------------------------------------------------------------------------------------------------------ the position


@dataclass(frozen=True, slots=True)
class UndecryptedEvent:
    """An encrypted event whose key is missing."""

    room: str
    event: str
    session: str


@dataclass(frozen=True, slots=True)
class RoomUpgrade:
    """A room that was replaced by another. `private`: a direct conversation."""

    old: str
    new: str
    private: bool


@dataclass(frozen=True, slots=True)
class SyncPosition:
    """Where receiving continues."""

    since: str = ""  # the server's own token
    unread: tuple[UndecryptedEvent, ...] = ()  # events that wait for their keys
    # Events with live text that no answer has replaced yet, by target.
    drafts: Mapping[str, str] = field(default_factory=dict)
    replaced: tuple[RoomUpgrade, ...] = ()  # in the order of replacement

    @classmethod
    def parse(cls, text: str) -> SyncPosition:
        """The inverse of `str`; "" before anything was received."""
        if not text:
            return cls()
        raw = json.loads(text)
        replaced = tuple(RoomUpgrade(*fields) for fields in raw.get("replaced", ()))
        return cls(raw["since"], tuple(UndecryptedEvent(*fields) for fields in raw["unread"]), raw["drafts"], replaced)

    def __str__(self) -> str:
        unread = [[entry.room, entry.event, entry.session] for entry in self.unread]
        replaced = [[entry.old, entry.new, entry.private] for entry in self.replaced]
        return json.dumps({"since": self.since, "unread": unread, "drafts": dict(self.drafts), "replaced": replaced})

    def with_undecrypted(self, event: UndecryptedEvent) -> SyncPosition:
        """Add a waiting event; the oldest is dropped if there are too many."""
        return self if event in self.unread else replace(self, unread=(*self.unread, event)[-_MAX_UNDECRYPTED:])

    def without_undecrypted(self, event: UndecryptedEvent) -> SyncPosition:
        return replace(self, unread=tuple(other for other in self.unread if other != event))

    def after_own_event(self, event: JsonObject, target: str) -> SyncPosition:
        """Record an own event: a draft was written, replaced by its answer, or deleted."""
        drafts, transaction = dict(self.drafts), _transaction_id(event)
        if transaction.startswith(_DRAFT):
            drafts[target] = _text(event, "event_id")
        ended = redacted_event_id(event) or (replaced_event_id(event) if transaction.startswith(_ANSWER) else "")
        return replace(self, drafts={draft_target: draft for draft_target, draft in drafts.items() if draft != ended})

    # ------------------------------------------------------------------------------------------------- replaced rooms

    def knows_upgrade(self, old: str, new: str) -> bool:
        """Return whether this replacement of a room was noted before."""
        return any((upgrade.old, upgrade.new) == (old, new) for upgrade in self.replaced)

    def original_room(self, room: str) -> str:
        """Return the first of the rooms this one replaces, whose id identifies the conversation."""
        for upgrade in reversed(self.replaced):
            room = upgrade.old if upgrade.new == room else room
        return room

    def is_group_room(self, room: str) -> bool:
        """Return whether it replaced a room of more than two, which it remains even before the others have joined."""
        return any(upgrade.new == room and not upgrade.private for upgrade in self.replaced)

    def moved_rooms(self) -> dict[str, str]:
        """Return the current room by each replaced room."""
        moved: dict[str, str] = {}
        for upgrade in reversed(self.replaced):
            moved.setdefault(upgrade.old, moved.get(upgrade.new, upgrade.new))
        return moved
