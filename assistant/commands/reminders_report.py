"""What people are shown of the agenda: what waits, and what became of each slot. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from assistant.agenda.jobs import EndedSlot, Job
from assistant.agenda.recurrence import describe_recurrence
from assistant.core.calendar import format_moment as as_people_read
from assistant.core.text import pluralize
from assistant.core.tool_results import quote_text

_FIRST_WORDS = 120


def job_line(job: Job, when: str) -> str:
    paused = ", paused" if job.state == "paused" else ""
    name = f"{job.name}: " if job.name else ""
    return f"- {job.id}: {name}{quote_text(_short(job.text))}, {when}{paused}"


def job_lines(jobs: Sequence[Job], told: Callable[[Job], str], empty: str) -> str:
    return "\n".join(job_line(job, told(job)) for job in jobs) or empty


def job_json(job: Job) -> dict[str, Any]:
    return {
        "id": job.id, "kind": job.kind, "name": job.name, "text": job.text, "state": job.state,
        "due": job.due.at.isoformat() if job.due else None, "local": job.due.key if job.due else None,
        "repeats": describe_recurrence(job.spec), "zone": job.zone, "catch_up": job.catch_up, "session": job.place.session,
        "bridge": job.place.bridge, "created_at": job.created_at.isoformat(),
    }  # fmt: skip


def slot_lines(slots: Sequence[EndedSlot], others: Mapping[str, int], zone: ZoneInfo) -> str:
    """What became of slots, the newest first; `others` counts what was missed of other people, without words."""
    rows = [_slot_row(slot, zone) for slot in slots]
    table = (
        ["| due | ended | how | what | note |", "|---|---|---|---|---|", *rows] if rows else ["Nothing was due yet."]
    )
    more = [f"{scope}: {pluralize(count, 'slot')} missed." for scope, count in sorted(others.items())]
    return "\n".join([*table, *([""] if more else []), *more])


def _slot_row(slot: EndedSlot, zone: ZoneInfo) -> str:
    what = f"{slot.kind} {slot.job_id}: {slot.name or quote_text(_short(slot.text))}".replace("|", "\\|")
    due, ended = as_people_read(slot.due_at, zone), _clock(slot.ended_at, zone)
    return f"| {due} | {ended} | {slot.state} | {what} | {slot.note} |"


def _clock(at: datetime, zone: ZoneInfo) -> str:
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M:%S}"


def slot_json(slot: EndedSlot) -> dict[str, Any]:
    return {
        "job": slot.job_id, "kind": slot.kind, "name": slot.name, "text": slot.text, "due": slot.due_at.isoformat(),
        "local": slot.local_key, "state": slot.state, "ended": slot.ended_at.isoformat(), "note": slot.note,
        "seen": slot.seen_at.isoformat() if slot.seen_at else None,
    }  # fmt: skip


def as_json(rows: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(list(rows), ensure_ascii=False, indent=2)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _FIRST_WORDS else f"{line[: _FIRST_WORDS - 1]}…"
