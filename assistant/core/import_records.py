"""What is brought along from other programs: conversations with their messages, as the reader of an export hands them
to the store. Pure.

Who says something decides what becomes of it, as anywhere: the owner's own words are learned from, an assistant's
answers are kept, and what other people said in a chat is found and never learned as the owner's (I10). Nothing that
is imported is a request: there is no turn, no answer, and no view that a model sees.
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
    # Within its conversation, the same in every export, without any of its words; "" where a file has none: then its
    # words tell it apart.
    external_id: str
    role: Literal["user", "assistant"]
    text: str
    at: datetime
    speaker: str = ""  # another person's name; "" for the owner and the assistant


@dataclass(frozen=True, slots=True)
class ImportedBatch:
    """Messages of one conversation that follow one another in the file."""

    source: ImportSource
    external_id: str  # of the conversation, the same in every export of the account
    title: str
    messages: tuple[ImportedMessage, ...]


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """What came of a batch, or of several."""

    conversations: int = 0  # that were not there before
    messages: int = 0  # that were added
    known: int = 0  # that were there already

    def __add__(self, other: ImportCounts) -> ImportCounts:
        return ImportCounts(
            self.conversations + other.conversations, self.messages + other.messages, self.known + other.known
        )


@dataclass(frozen=True, slots=True)
class ImportRun:
    """One import: what it brought is found by its number."""

    id: int
    source: str
    name: str  # of the file
    state: Literal["running", "done", "undone"]
    begun_at: datetime
    ended_at: datetime | None
    conversations: int
    messages: int
    rejected: int  # records of the file that could not be read


def batch_to_json(batch: ImportedBatch) -> dict[str, Any]:
    return {
        "source": batch.source,
        "id": batch.external_id,
        "title": batch.title,
        "messages": [[m.external_id, m.role, m.text, m.at.isoformat(), m.speaker] for m in batch.messages],
    }


def batch_from_json(raw: Mapping[str, Any]) -> ImportedBatch:
    """Raises `ValueError`, `KeyError`, `TypeError`."""
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
