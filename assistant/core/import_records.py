"""Conversations imported from other programs, as the reader of an export passes them to the store. Pure.

Authorship decides what is learned: the owner's messages are learned from, an assistant's replies are kept, and other
people's messages are searchable but never learned as the owner's (I10). Imported messages are not requests: they get no
turn, no reply and no view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

from assistant.core.dataclass import dataclass

ImportSource = Literal[
    "chatgpt", "claude", "telegram", "whatsapp", "openclaw", "hermes", "letta", "nanobot", "markdown", "jsonl"
]
IMPORT_SOURCES: tuple[ImportSource, ...] = get_args(ImportSource)
SOURCE_NAMES: Mapping[str, str] = {
    "chatgpt": "ChatGPT",
    "claude": "Claude",
    "telegram": "Telegram",
    "whatsapp": "WhatsApp",
    "openclaw": "OpenClaw",
    "hermes": "Hermes",
    "letta": "Letta",
    "nanobot": "nanobot",
    "markdown": "Markdown",
    "jsonl": "JSON lines",
}


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    # Unique within the conversation and stable across exports; never contains message text. "" if the file has no ids:
    # then the text identifies the message.
    external_id: str
    role: Literal["user", "assistant"]
    text: str
    at: datetime
    speaker: str = ""  # another person's name; "" for owner and assistant


@dataclass(frozen=True, slots=True)
class ImportedBatch:
    """Consecutive messages of one conversation."""

    source: ImportSource
    external_id: str  # of the conversation, stable across exports of the account
    title: str
    messages: tuple[ImportedMessage, ...]


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """Counts of one or several imported batches."""

    conversations: int = 0  # new ones
    messages: int = 0  # new ones
    known: int = 0  # already present

    def __add__(self, other: ImportCounts) -> ImportCounts:
        return ImportCounts(
            self.conversations + other.conversations, self.messages + other.messages, self.known + other.known
        )


@dataclass(frozen=True, slots=True)
class ImportRun:
    """One import run; its id identifies what it imported."""

    id: int
    source: str
    name: str  # of the file
    state: Literal["running", "done", "undone"]
    begun_at: datetime
    ended_at: datetime | None
    conversations: int
    messages: int
    rejected: int  # unreadable records of the file


def batch_to_json(batch: ImportedBatch) -> dict[str, Any]:
    """Return what `batch_from_json` reads."""
    return {
        "source": batch.source,
        "id": batch.external_id,
        "title": batch.title,
        "messages": [[m.external_id, m.role, m.text, m.at.isoformat(), m.speaker] for m in batch.messages],
    }


def batch_from_json(raw: Mapping[str, Any]) -> ImportedBatch:
    """Raises `ValueError`, `KeyError` or `TypeError`."""
    messages: Sequence[Sequence[Any]] = raw["messages"]
    if raw["source"] not in IMPORT_SOURCES:
        raise ValueError("an unknown source")
    return ImportedBatch(
        raw["source"],
        str(raw["id"]),
        str(raw["title"]),
        tuple(ImportedMessage(key, _role(role), text, _time(at), speaker) for key, role, text, at, speaker in messages),
    )


def _role(role: str) -> Literal["user", "assistant"]:
    if role not in ("user", "assistant"):
        raise ValueError("an unknown role")
    return "user" if role == "user" else "assistant"


def _time(at: str) -> datetime:
    moment = datetime.fromisoformat(at)
    if moment.tzinfo is None:
        raise ValueError("a time without its zone")
    return moment
