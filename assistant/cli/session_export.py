"""A conversation as text that people and programs read elsewhere: Markdown, or JSON a line. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from zoneinfo import ZoneInfo

from assistant.cli.tables import local
from assistant.cli.text import clean
from assistant.cli.transcript import record_json
from assistant.core.records import LogRecord
from assistant.core.sessions import Generation

FORMATS = ("md", "jsonl")
_SPEAKERS = {"user": "You", "assistant": "Assistant", "tool": "Tool", "system": "Note"}


def written(records: Iterable[LogRecord], known: Generation, form: str, zone: ZoneInfo) -> Iterator[str]:
    """The lines, without their ends."""
    if form == "jsonl":
        yield from (json.dumps(record_json(record), ensure_ascii=False) for record in records)
        return
    yield f"# {known.session}, number {known.number}\n"
    yield f"Begun {local(known.started_at, zone)}" + (
        f", ended {local(known.ended_at, zone)}" if known.ended_at else ""
    )
    for record in records:
        yield _section(record, known, zone)


def _section(record: LogRecord, known: Generation, zone: ZoneInfo) -> str:
    who = _SPEAKERS[record.role] if record.role != "tool" else f"Tool {record.name or ''}".strip()
    if record.role == "user" and record.sender not in (None, "owner") and known.scope != "owner":
        who = record.name or record.sender or who
    calls = "".join(
        f"\n\n→ `{call.name}` {json.dumps(dict(call.arguments), ensure_ascii=False)}" for call in record.tool_calls
    )
    return f"\n## {who}, {local(record.ts, zone)} (#{record.id})\n\n{clean(record.content)}{clean(calls)}"
