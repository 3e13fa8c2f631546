"""Sessions and their generations as people read them, in a chat or on a command line. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from assistant.core.archive_ports import Archived
from assistant.core.compactions import Checkpoint
from assistant.core.generations import Generation, Reset
from assistant.core.plural import counted
from assistant.core.records import SessionInfo
from assistant.core.sessions import kind_of
from assistant.sessions.reset import Done

COLUMNS = ("session", "kind", "generation", "messages", "context", "from", "until", "ended", "archive")
NUMBERS = ("generation", "messages")
_WHY = {
    "manual": "by hand", "daily": "daily", "idle": "idle", "end": "put away", "resume": "for an earlier one",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Listed:
    """One generation as it is listed: `info` of its session where it is the current one."""

    generation: Generation
    info: SessionInfo | None
    archive: Archived | None
    reset: Reset | None = None


def cells(one: Listed, zone: tzinfo) -> tuple[str, ...]:
    """A row, under `COLUMNS`. `until` is when it ended, or when something was said last."""
    known = one.generation
    until = known.ended_at or known.last_at
    return (
        known.session, kind_of(known.session), str(known.number), f"{known.messages:,}", _context(one),
        _time(known.started_at, zone), _time(until, zone), _ended(one), one.archive.url if one.archive else "",
    )  # fmt: skip


def as_json(one: Listed) -> dict[str, Any]:
    """Stable keys; times in UTC."""
    known = one.generation
    return {
        "session": known.session, "generation": known.number, "scope": known.scope,
        "started_at": known.started_at.isoformat(), "last_at": _iso(known.last_at), "messages": known.messages,
        "view_messages": one.info.view_messages if one.info else 0,
        "view_tokens": one.info.view_tokens if one.info else 0,
        "checkpoints": one.info.checkpoints if one.info else 0,
        "kind": kind_of(known.session), "first_at": _iso(known.first_at), "ended_at": _iso(known.ended_at),
        "ended": known.end_reason or None, "pressure": known.pressure, "resumed": known.resumed,
        "archive": one.archive.url if one.archive else None,
    }  # fmt: skip


def markdown(rows: Sequence[Listed], zone: tzinfo) -> str:
    lines = [
        f"| {' | '.join(COLUMNS)} |",
        "|" + "|".join("---:" if name in NUMBERS else "---" for name in COLUMNS) + "|",
    ]
    return "\n".join([*lines, *(f"| {' | '.join(cells(one, zone))} |" for one in rows)])


def shown(one: Listed, note: str, checkpoints: Sequence[Checkpoint], zone: tzinfo) -> str:
    """Everything about one generation; `note` is what handed over to it."""
    return "\n\n".join(_sections(one, note, checkpoints, zone))


def told(done: Done) -> str:
    """What a person is told of a reset that was carried out."""
    ended = done.ended
    read = "Everything worth keeping was written down first."
    if done.unread:
        read = f"{counted(done.unread, 'message')} could not be read for memories now and wait for the next sleep."
    if done.unread and done.reading:
        read = f"{counted(done.unread, 'message')} are still to be read for memories, from now on or at the next sleep."
    kept = f" Archived at {done.archive.url}, read back and proved." if done.archive.url else ""
    again = ""
    if can_go_on(ended):
        again = f" `/sessions resume {ended.session} {ended.number}` takes the conversation up again."
    return (
        f"{ended.session} begins afresh (number {done.generation}). {read} The {counted(ended.messages, 'message')} of "
        f"number {ended.number} stay in the master log.{kept} Open requests, to-dos and pins go on.{again}"
    )


def can_go_on(ended: Generation) -> bool:
    """Whether there is something in it to take up again."""
    return bool(ended.messages) or ended.resumed is not None


def _sections(one: Listed, note: str, checkpoints: Sequence[Checkpoint], zone: tzinfo) -> Iterator[str]:
    known = one.generation
    begun = f"{known.session}, number {known.number} ({kind_of(known.session)}): {counted(known.messages, 'message')}"
    going_on = f", going on from number {known.resumed}" if known.resumed is not None else ""
    since = f"begun {_time(known.started_at, zone)}{going_on}"
    ended = f"ended {_time(known.ended_at, zone)}, {_ended(one)}" if known.ended_at else _ended(one) or "going on"
    yield f"{begun}, {since}, {ended}. Context: {_context(one) or 'empty'}."
    if one.archive:
        yield f"Archived at {one.archive.url} ({one.archive.bytes:,} bytes, {_time(one.archive.archived_at, zone)})."
    if note:
        yield f"Handed over to it:\n{note}"
    live = [row for row in checkpoints if row.state == "live" and row.summary]
    if live:
        yield f"Its newest summary:\n{live[-1].summary}"
    if checkpoints:
        listed = ", ".join(f"{row.id} ({row.tier}, {row.state})" for row in checkpoints)
        yield f"Compactions, as `aihistory show ID` tells more of: {listed}."


def _context(one: Listed) -> str:
    if one.info is not None:
        return f"{one.info.view_tokens:,} tokens"
    return "" if one.generation.pressure is None else f"{one.generation.pressure:.0%}"


def _ended(one: Listed) -> str:
    if one.generation.ended_at is not None:
        return _WHY.get(one.generation.end_reason, one.generation.end_reason)
    if one.reset is not None and one.reset.state == "waiting":
        return "reset waits for the archive"
    return ""


def _time(moment: datetime | None, zone: tzinfo) -> str:
    return "" if moment is None else f"{moment.astimezone(zone):%Y-%m-%d %H:%M}"


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
