"""What crosses between the client, the child process and memory.db: which embedder is wanted, a `Memory` as Mem0 keeps
it (words, `user_id`, metadata) and as JSON, and what this package needs of the tables of memory.db.

What always holds: whatever went in comes back the same, to the microsecond and the character. Light: importing this
loads no embedder and no Mem0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from assistant.core.memories import Memory, MemoryChange, MemoryVersion


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """Which embedder: the settings `embedder*` of `[memory]`. "" takes the embedder's default."""

    kind: str = "wordllama"
    model: str = ""
    url: str = ""
    key: str = field(default="", repr=False)


MemoryPayload = Mapping[str, Any]


def memory_metadata(memory: Memory) -> dict[str, Any]:
    """What Mem0 is given beside the words and the scope. Every key is always there, so that an update overwrites."""
    return {
        "said_at": _timestamp(memory.said_at),
        "kind": memory.kind,
        "importance": memory.importance,
        "entries": list(memory.entries),
        "until": _timestamp(memory.until) if memory.until else None,
        "superseded_by": memory.superseded_by,
    }


def memory_from_payload(memory_id: str, payload: MemoryPayload) -> Memory:
    """A memory of what a store has. Raises `ValueError`, `KeyError` or `TypeError` for what is none."""
    return Memory(
        id=memory_id,
        scope=str(payload["user_id"]),
        text=str(payload["data"]),
        said_at=datetime.fromisoformat(payload["said_at"]),
        kind=str(payload["kind"]),
        importance=float(payload["importance"]),
        entries=tuple(int(entry) for entry in payload["entries"]),
        until=datetime.fromisoformat(payload["until"]) if payload.get("until") else None,
        superseded_by=str(payload["superseded_by"]),
    )


def memory_to_json(memory: Memory) -> dict[str, Any]:
    return {"id": memory.id, "user_id": memory.scope, "data": memory.text, **memory_metadata(memory)}


def memory_from_json(value: MemoryPayload) -> Memory:
    return memory_from_payload(str(value["id"]), value)


def change_to_json(change: MemoryChange) -> dict[str, Any]:
    return {"action": change.action, "memory": memory_to_json(change.memory)}


def change_from_json(value: MemoryPayload) -> MemoryChange:
    return MemoryChange(value["action"], memory_from_json(value["memory"]))


def version_from_row(row: MemoryPayload) -> MemoryVersion:
    """A row of Mem0's history; times without a zone are UTC."""
    at = datetime.fromisoformat(str(row.get("updated_at") or row["created_at"]))
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return MemoryVersion(
        at, str(row["event"]).lower(), str(row.get("old_memory") or ""), str(row.get("new_memory") or "")
    )


def _timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def version_to_json(made: MemoryVersion) -> dict[str, Any]:
    return {"at": _timestamp(made.at), "action": made.action, "before": made.before, "after": made.after}


def version_from_json(value: MemoryPayload) -> MemoryVersion:
    return MemoryVersion(datetime.fromisoformat(value["at"]), value["action"], value["before"], value["after"])


MemoryRow = tuple[str, dict[str, Any]]


class MemoryTableReader(Protocol):
    """`assistant.store.memory.vectors.MemoryVectors`, for reading."""

    def get(self, memory_id: str) -> MemoryRow | None: ...
    def get_many(self, memory_ids: Sequence[str]) -> dict[str, dict[str, Any]]: ...
    def list_memories(
        self, scope: str | None = None, equal: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> list[MemoryRow]: ...
    def vectors(
        self, embedder: str, scope: str | None = None, equal: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[str, bytes]]: ...
    def search_text(
        self, query: str, scope: str | None = None, equal: Mapping[str, Any] | None = None, *, limit: int = 20
    ) -> list[tuple[str, float]]: ...
    def active_embedder(self) -> tuple[str, dict[str, Any]] | None: ...


class MemoryTable(MemoryTableReader, Protocol):
    """The same, for writing."""

    def put(self, memory_id: str, payload: Mapping[str, Any], embedder: str, vector: bytes | None) -> None: ...
    def remove(self, memory_ids: Sequence[str]) -> None: ...
    def activate_embedder(self, embedder: str, settings: Mapping[str, Any]) -> None: ...
    def memories_without_vector(self, embedder: str, *, limit: int) -> tuple[list[tuple[str, str]], int]: ...
    def add_vectors(self, embedder: str, made: Sequence[tuple[str, str, bytes]]) -> None: ...
    def erase(self, memory_ids: Sequence[str]) -> None: ...


class MemoryHistoryTable(Protocol):
    """`assistant.store.memory.vectors.MemoryHistory`."""

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None: ...
    def history_of_memory(self, memory_id: str) -> list[dict[str, Any]]: ...
    def clear(self) -> None: ...


class MemoryTransactions(Protocol):
    """`assistant.store.memory.vectors.MemoryBatch`."""

    def writing(self) -> AbstractContextManager[Any]: ...
