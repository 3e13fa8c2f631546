"""What crosses between the client, the child process and memory.db: which embedder is chosen, a `Memory` as Mem0 keeps
it (words, `user_id`, metadata), a row of Mem0's history. Across the pipe values go as JSON (`assistant.store.rows`).

What always holds: whatever went in comes back the same, to the microsecond and the character. Light: importing this
loads no embedder and no Mem0.
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
    """Which embedder: the settings `embedder*` of `[memory]`. "" takes the embedder's default."""

    kind: str = "wordllama"
    model: str = ""
    url: str = ""
    key: str = field(default="", repr=False)


def memory_metadata(memory: Memory) -> dict[str, Any]:
    """What Mem0 is given beside the words and the scope. Every key is always there, so that an update overwrites; times
    sort as text."""
    return {
        "said_at": _timestamp(memory.said_at),
        "kind": memory.kind,
        "importance": memory.importance,
        "entries": list(memory.entries),
        "until": _timestamp(memory.until) if memory.until else None,
        "superseded_by": memory.superseded_by,
    }


def memory_from_payload(memory_id: str, payload: Mapping[str, Any]) -> Memory:
    """A memory of what a store has. Raises `ValueError`, `KeyError` or `TypeError` for what is none."""
    return from_values(Memory, {**payload, "id": memory_id, "scope": payload["user_id"], "text": payload["data"]})


def version_from_row(row: Mapping[str, Any]) -> MemoryVersion:
    """A row of Mem0's history; times without a zone are UTC."""
    at = datetime.fromisoformat(str(row.get("updated_at") or row["created_at"]))
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return MemoryVersion(at, str(row["event"]).lower(), row.get("old_memory") or "", row.get("new_memory") or "")


def _timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
