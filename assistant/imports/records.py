"""The values that readers of exports yield, and their limits. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.import_records import ImportedBatch, ImportedMessage, ImportSource

MAX_TEXT = 1_000_000
"""Characters of one message; more is a file that somebody pasted."""

MAX_TITLE = 200
MAX_ID = 200
BATCH_MESSAGES = 200
BATCH_CHARACTERS = 4_000_000
_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
_CLOCKS_DIFFER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """A record of a file that is left out."""

    where: str  # such as "conversation 17, message 3"
    why: str


class BadRecord(Exception):
    """The text says what is wrong with the record."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options for reading a file."""

    now: datetime
    zone: tzinfo  # time zone of times without one
    owner: str = ""  # the owner's name in it


Read = ImportedBatch | RejectedRecord


def clean_words(value: Any) -> str:
    """Return a text without invalid characters. Raises `BadRecord`."""
    if not isinstance(value, str):
        raise BadRecord("has no text")
    if len(value) > MAX_TEXT:
        raise BadRecord(f"has {len(value):,} characters; at most {MAX_TEXT:,} are taken")
    return value.replace("\0", "").encode("utf-8", "replace").decode().strip()


def clean_title(value: Any, otherwise: str) -> str:
    """Return one line of at most `MAX_TITLE` characters; `otherwise` if it is empty or no text."""
    title = " ".join(clean_words(value[:10_000]).split()) if isinstance(value, str) else ""
    return title[:MAX_TITLE] or otherwise


def clean_id(value: Any) -> str:
    """Raises `BadRecord`."""
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not text or len(text) > MAX_ID:
        raise BadRecord("has no id")
    return clean_words(text)


def read_time(value: Any, options: ReadOptions) -> datetime:
    """Parse seconds since 1970, or an ISO 8601 time. Raises `BadRecord`."""
    try:
        if isinstance(value, bool) or value is None:
            raise ValueError
        if isinstance(value, int | float) or (isinstance(value, str) and value.isdecimal() and len(value) <= 12):
            seconds = float(value)
            if not math.isfinite(seconds):
                raise ValueError
            at = datetime.fromtimestamp(seconds, UTC)
        else:
            at = datetime.fromisoformat(value)
            at = (at if at.tzinfo else at.replace(tzinfo=options.zone)).astimezone(UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        raise BadRecord("has no date") from None
    if not _EARLIEST <= at <= options.now + _CLOCKS_DIFFER:
        raise BadRecord(f"is dated {at.date().isoformat()}")
    return at


def in_batches(
    source: ImportSource, external_id: str, title: str, messages: Iterator[ImportedMessage | RejectedRecord]
) -> Iterator[Read]:
    """Yield the messages of one conversation in batches."""
    batch: list[ImportedMessage] = []
    size = 0
    for message in messages:
        if isinstance(message, RejectedRecord):
            yield message
            continue
        batch.append(message)
        size += len(message.text)
        if len(batch) == BATCH_MESSAGES or size > BATCH_CHARACTERS:
            yield ImportedBatch(source, external_id, title, tuple(batch))
            batch, size = [], 0
    if batch:
        yield ImportedBatch(source, external_id, title, tuple(batch))
