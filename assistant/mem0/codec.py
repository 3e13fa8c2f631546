"""Converts what passes between the client, the child process and memory.db: the chosen embedder, a `Memory` in Mem0's
form (text, `user_id`, metadata), and rows of Mem0's history. Values are sent through the pipe as JSON
(`assistant.store.rows`).

Round trips are exact, to the microsecond and the character. Importing this module loads no embedder and no Mem0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.memories import Memory, MemoryVersion
from assistant.store.rows import from_values


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """The settings `embedder*` of `[memory]`. "" means the embedder's default."""

    kind: str = "wordllama"
    model: str = ""
    url: str = ""
    key: str = field(default="", repr=False)


def memory_metadata(memory: Memory) -> dict[str, Any]:
    """Return the metadata for Mem0 besides text and scope. All keys are always present, so that an update overwrites
    them; times sort as text."""
    return {
        "said_at": _timestamp(memory.said_at),
        "kind": memory.kind,
        "importance": memory.importance,
        "entries": list(memory.entries),
        "until": _timestamp(memory.until) if memory.until else None,
        "superseded_by": memory.superseded_by,
    }


def memory_from_payload(memory_id: str, payload: Mapping[str, Any]) -> Memory:
    """Return the memory of a stored payload. Raises `ValueError`, `KeyError` or `TypeError` if it is invalid."""
    return from_values(Memory, {**payload, "id": memory_id, "scope": payload["user_id"], "text": payload["data"]})


def version_from_row(row: Mapping[str, Any]) -> MemoryVersion:
    """Return the version of a row of Mem0's history; times without a zone are UTC."""
    at = datetime.fromisoformat(str(row.get("updated_at") or row["created_at"]))
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return MemoryVersion(at, str(row["event"]).lower(), row.get("old_memory") or "", row.get("new_memory") or "")


def _timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
