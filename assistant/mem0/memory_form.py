"""A `Memory` as Mem0 keeps it (words, `user_id`, metadata), and as it travels to the child process and back.

What always holds: whatever went in comes back the same, to the microsecond and the character.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from assistant.core.memories import Memory, MemoryChange, MemoryVersion

Payload = Mapping[str, Any]


def metadata(memory: Memory) -> dict[str, Any]:
    """What Mem0 is given beside the words and the scope. Every key is always there, so that an update overwrites."""
    return {
        "said_at": _written(memory.said_at),
        "kind": memory.kind,
        "importance": memory.importance,
        "entries": list(memory.entries),
        "until": _written(memory.until) if memory.until else None,
        "superseded_by": memory.superseded_by,
    }


def from_payload(memory_id: str, payload: Payload) -> Memory:
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


def to_json(memory: Memory) -> dict[str, Any]:
    return {"id": memory.id, "user_id": memory.scope, "data": memory.text, **metadata(memory)}


def from_json(value: Payload) -> Memory:
    return from_payload(str(value["id"]), value)


def change_to_json(change: MemoryChange) -> dict[str, Any]:
    return {"action": change.action, "memory": to_json(change.memory)}


def change_from_json(value: Payload) -> MemoryChange:
    return MemoryChange(value["action"], from_json(value["memory"]))


def version(row: Payload) -> MemoryVersion:
    """A row of Mem0's history; times without a zone are UTC."""
    at = datetime.fromisoformat(str(row.get("updated_at") or row["created_at"]))
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return MemoryVersion(
        at, str(row["event"]).lower(), str(row.get("old_memory") or ""), str(row.get("new_memory") or "")
    )


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def version_to_json(made: MemoryVersion) -> dict[str, Any]:
    return {"at": _written(made.at), "action": made.action, "before": made.before, "after": made.after}


def version_from_json(value: Payload) -> MemoryVersion:
    return MemoryVersion(datetime.fromisoformat(value["at"]), value["action"], value["before"], value["after"])
