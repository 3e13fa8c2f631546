"""A plan of memory changes as it is stored: its JSON, and the subjects (memories and entries) that it is about."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from assistant.core.memories import ChangePlan, Memory, MemoryChange
from assistant.store.encoding import format_time, parse_time


def entry_subject(entry_id: int) -> str:
    """A journal entry among what plans are about; a memory stands there by its id."""
    return f"entry {entry_id}"


def plan_to_json(plan: ChangePlan) -> dict[str, Any]:
    changes = [
        {
            "action": change.action,
            "memory": _memory_to_json(change.memory),
            "before": None if change.before is None else _memory_to_json(change.before),
        }
        for change in plan.changes
    ]
    return {**asdict(plan), "changes": changes}


def plan_from_json(told: dict[str, Any]) -> ChangePlan:
    changes = tuple(
        MemoryChange(
            change["action"],
            _memory_from_json(change["memory"]),
            None if change["before"] is None else _memory_from_json(change["before"]),
        )
        for change in told["changes"]
    )
    return ChangePlan(
        told["key"],
        told["cycle"],
        told["scope"],
        changes,
        tuple(told["entries"]),
        tuple((old, new) for old, new in told["superseded"]),
        tuple((one, why) for one, why in told["rejected"]),
    )


def _memory_to_json(memory: Memory) -> dict[str, Any]:
    until = None if memory.until is None else format_time(memory.until)
    return {**asdict(memory), "said_at": format_time(memory.said_at), "until": until}


def _memory_from_json(told: dict[str, Any]) -> Memory:
    until = None if told["until"] is None else parse_time(told["until"])
    return Memory(**{**told, "said_at": parse_time(told["said_at"]), "until": until, "entries": tuple(told["entries"])})
