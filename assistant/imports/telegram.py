"""Reads exports of Telegram Desktop: `result.json` of one chat, or of all.

The owner is the account of the export (`personal_information`); in a chat with one other person this identifies both;
in a group whose export lacks it, nobody is the owner unless the person who imports it gives their name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, BinaryIO

from assistant.core.dataclass import dataclass
from assistant.core.import_records import ImportedBatch, ImportedMessage
from assistant.imports.json_stream import TOO_LARGE, CutOff, read_objects
from assistant.imports.records import (
    BATCH_MESSAGES,
    BadRecord,
    Read,
    ReadOptions,
    RejectedRecord,
    clean_id,
    clean_title,
    clean_words,
    read_time,
)

_CUT_OFF = "the file ends, or is broken, there; everything before it was read"
_ALL = ("chats", "list", "item", "messages", "item")
_LEFT = ("left_chats", "list", "item", "messages", "item")
_ONE = ("messages", "item")


@dataclass(slots=True)
class _Chat:
    """The chat whose messages follow."""

    values: dict[str, Any] = field(default_factory=dict)
    number: int = 0
    read_count: int = 0
    batch: list[ImportedMessage] = field(default_factory=list)

    @property
    def position(self) -> str:
        return f"chat {self.number}, message {self.read_count}" if self.number else f"message {self.read_count}"

    def take_batch(self) -> Iterator[ImportedBatch]:
        if self.batch:
            title = clean_title(self.values.get("name"), "Saved messages" if self._is_own else "Untitled")
            yield ImportedBatch("telegram", clean_id(self.values.get("id")), title, tuple(self.batch))
            self.batch = []

    @property
    def _is_own(self) -> bool:
        return self.values.get("type") == "saved_messages"

    def is_owner(self, sender_id: str, sender: str, owner_id: str, owner: str) -> bool:
        if self._is_own or (owner and sender == owner) or (owner_id and sender_id == owner_id):
            return True
        is_personal = self.values.get("type") in ("personal_chat", "bot_chat")
        return bool(is_personal and not owner_id and not owner and sender_id != f"user{self.values.get('id')}")


def read_telegram(stream: BinaryIO, options: ReadOptions) -> Iterator[Read]:
    """Yield batches of each chat, and records that cannot be read, of an export of one chat or of all. A file that was
    cut off gives what it has."""
    chat, owner_id = _Chat(), ""
    try:
        for path, value in read_objects(stream, {_ALL, _LEFT, _ONE}):
            if path == ("personal_information", "user_id"):
                owner_id = f"user{value}"
            elif len(path) == 1 or path[:-1] in (_ALL[:3], _LEFT[:3]):
                if path[-1] == "name" and len(path) > 1:
                    yield from chat.take_batch()
                    chat = _Chat(number=chat.number + 1)
                chat.values[path[-1]] = value
            elif path in (_ALL, _LEFT, _ONE):
                chat.read_count += 1
                try:
                    message = _message(value, chat, owner_id, options)
                except BadRecord as error:
                    yield RejectedRecord(chat.position, str(error))
                    continue
                chat.batch += [message] if message is not None else []
                if len(chat.batch) == BATCH_MESSAGES:
                    yield from chat.take_batch()
        yield from chat.take_batch()
    except CutOff:
        yield from chat.take_batch()
        chat.read_count += 1
        yield RejectedRecord(chat.position, _CUT_OFF)


def _message(row: Any, chat: _Chat, owner_id: str, options: ReadOptions) -> ImportedMessage | None:
    if row is TOO_LARGE or not isinstance(row, Mapping):
        raise BadRecord("is too large, or nested too deeply")
    if row.get("type") != "message":
        return None
    text = clean_words(_plain_text(row.get("text")))
    name = row.get("file_name") or row.get("media_type")
    if isinstance(name, str) and name:
        text = f"{text}\n[file: {clean_words(name)}]".strip()
    if not text:
        return None
    sender_id, sender = str(row.get("from_id") or ""), clean_title(row.get("from"), "Deleted account")
    at = read_time(row["date_unixtime"] if "date_unixtime" in row else row.get("date"), options)
    is_owner = chat.is_owner(sender_id, sender, owner_id, options.owner)
    return ImportedMessage(clean_id(row.get("id")), "user", text, at, "" if is_owner else sender)


def _plain_text(text: Any) -> str:
    """Return a text, joining formatted pieces."""
    if isinstance(text, list):
        pieces = (piece.get("text") if isinstance(piece, Mapping) else piece for piece in text)
        return "".join(piece for piece in pieces if isinstance(piece, str))
    return text if isinstance(text, str) else ""
