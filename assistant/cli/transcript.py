"""Records of the master log as commands print them: a few lines for people, an object for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

from assistant.cli.plain import say
from assistant.cli.tables import local
from assistant.cli.text import one_line
from assistant.core.ports import HistoryPort
from assistant.core.records import LogRecord
from assistant.core.sessions import MAIN_SESSION

_PAGE = 200
_CONTINUED = "\n    "


def backwards(history: HistoryPort, scope: str, session: str | None) -> Iterator[LogRecord]:
    """Every record in scope that was not undone, newest first, read a page at a time."""
    before: int | None = None
    while page := sorted(
        history.recent(scope, session=session, limit=_PAGE, before_id=before), key=lambda r: r.id, reverse=True
    ):
        yield from page
        before = page[-1].id


def print_record(record: LogRecord, zone: ZoneInfo) -> None:
    """When, id, session (but for the owner's own), speaker, words; then the calls of tools."""
    who = record.name if record.role == "tool" else record.role
    of = f" of {', '.join(map(str, record.refs))}" if record.refs else ""
    kind = "" if record.kind == "message" else f" [{record.kind}{of}]"
    calls = "".join(f"{_CONTINUED}→ {c.name} {one_line(json.dumps(dict(c.arguments)), 200)}" for c in record.tool_calls)
    where = "" if record.session == MAIN_SESSION else f" {record.session}"
    words = _CONTINUED.join(record.content.splitlines())
    say(f"{local(record.ts, zone)} #{record.id}{where} {who}{kind}: {words}{calls}")


def record_json(record: LogRecord) -> dict[str, Any]:
    return {
        "id": record.id, "at": record.ts.isoformat(), "session": record.session, "generation": record.generation,
        "kind": record.kind, "role": record.role, "name": record.name, "content": record.content,
        "tool_calls": [{"id": c.id, "name": c.name, "arguments": dict(c.arguments)} for c in record.tool_calls],
        "tool_call_id": record.tool_call_id, "bridge": record.bridge, "sender": record.sender, "model": record.model,
        "turn": record.turn, "refs": list(record.refs),
        "bytes": [record.span.start, record.span.end],
    }  # fmt: skip
