"""`assistant sessions export` and `assistant memory export`: everything that was said in one conversation, as Markdown
or JSON lines; everything that is remembered, as JSON.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click

from assistant.cli.home_stores import load_effective_settings, open_home_stores, scope_of_session
from assistant.cli.output import JsonOption, clean_for_terminal, print_json, print_remark, print_text, print_value
from assistant.cli.shell import with_commands
from assistant.commands import memory as memory_commands
from assistant.commands import sessions as session_commands
from assistant.commands.archive import MessageItem
from assistant.commands.items import Item
from assistant.core.calendar import format_local_time, utc_now
from assistant.core.errors import HomeError
from assistant.core.records import LogRecord
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE, Generation, session_name
from assistant.core.text import pluralize
from assistant.wire.stores import build_session_reader

_SPEAKERS = {"user": "You", "assistant": "Assistant", "tool": "Tool", "system": "Note"}


@click.command("export")
@click.argument("session", metavar="SESSION", default=MAIN_SESSION)
@click.option("--generation", type=click.IntRange(1), metavar="N", help="Conversation N; by default the current one.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("md", "jsonl")),
    default="md",
    show_default=True,
    help="Markdown or JSON lines.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write to this file."
)
def export_session(session: str, generation: int | None, form: str, output: Path | None) -> None:
    """Print a whole conversation, or write it to a file.

    > assistant sessions export main -o main.md
    > assistant sessions export trip --generation 2 --format jsonl
    """
    settings = load_effective_settings(read_only=True)
    with open_home_stores(settings) as stores:
        chosen = build_session_reader(settings, stores).get_generation(session, generation).generation
        lines: Iterator[str]
        said: Counter[bool] = Counter()
        records = _counted(stores.generations.records_of_generation(chosen.session, chosen.number), said)
        if form == "jsonl":
            lines = (MessageItem.model_validate(record).model_dump_json() for record in records)
        else:
            lines = markdown_lines(records, chosen, settings.zone)
        if output is None:
            for line in lines:
                print_text(line)
            return
        _write(output, lines)
    count = pluralize(said[True], "message")
    print_remark(f"{session_name(chosen.session)}, number {chosen.number}: {count} written to {output}.")


def _counted(records: Iterable[LogRecord], said: Counter[bool]) -> Iterator[LogRecord]:
    """The records, and of those that were read, how many are messages."""
    for record in records:
        said[is_said(record.kind, record.role, record.content)] += 1
        yield record


def _write(output: Path, lines: Iterable[str]) -> None:
    """Raises `HomeError`."""
    try:
        with output.open("x", encoding="utf-8") as file:
            output.chmod(0o600)
            file.writelines(f"{line}\n" for line in lines)
    except FileExistsError:
        raise HomeError(f"{output} exists already. Nothing was written; name another file.") from None
    except OSError as error:
        raise HomeError(f"{output} was not written: {error.strerror}.") from None


def is_said(kind: object, role: object, content: object) -> bool:
    """Whether a record counts as a message in what exports and imports tell: words of a person or of the assistant, as
    an import elsewhere adds them, and no tool's call or result."""
    return kind == "message" and role in ("user", "assistant") and isinstance(content, str) and bool(content.strip())


def markdown_lines(records: Iterable[LogRecord], generation: Generation, zone: ZoneInfo) -> Iterator[str]:
    """Without their ends."""
    yield f"# {session_name(generation.session)}, number {generation.number}\n"
    end = f", ended {format_local_time(generation.ended_at, zone)}" if generation.ended_at else ""
    yield f"Started {format_local_time(generation.started_at, zone)}{end}"
    for record in records:
        yield _section(record, generation, zone)


def _section(record: LogRecord, generation: Generation, zone: ZoneInfo) -> str:
    who = _SPEAKERS[record.role] if record.role != "tool" else f"Tool {record.name or ''}".strip()
    if record.role == "user" and record.sender not in (None, "owner") and generation.scope != "owner":
        who = record.name or record.sender or who
    calls = "".join(
        f"\n\n→ `{call.name}` {json.dumps(dict(call.arguments), ensure_ascii=False)}" for call in record.tool_calls
    )
    heading = f"## {who}, {format_local_time(record.ts, zone)}"
    return f"\n{heading}\n\n{clean_for_terminal(record.content)}{clean_for_terminal(calls)}"


class MemoryExport(Item):
    """Everything that is remembered; `entries` is the journal."""

    version: int
    scope: str
    exported_at: str
    entries: list[dict[str, Any]]
    memories: list[dict[str, Any]]


@click.command("export")
@click.option(
    "--json/--jsonl",
    "whole",
    cls=JsonOption,
    shape=MemoryExport,
    default=True,
    help="One JSON object, or JSON lines after a line about them.",
)
@click.option("--session", default=MAIN_SESSION, metavar="NAME", help="The conversation that is meant (main).")
def export_memory(whole: bool, session: str) -> None:
    """Print all memories, as `assistant memory import` reads them.

    Former memories and the journal are included.

    > assistant memory export > memories.json
    > assistant memory export --jsonl | grep Anna
    """
    from assistant.wire.services import build_command_stores  # all commands, which the others of this module do without

    settings = load_effective_settings(read_only=True)
    with open_home_stores(settings) as stores:
        scope = OWNER_SCOPE if session == MAIN_SESSION else scope_of_session(stores.conversation, session)
        memory_service = build_command_stores(settings, stores).memory

        async def read() -> dict[str, object]:
            try:
                return await memory_service.export(scope, utc_now())
            finally:
                await stores.memories.aclose()

        exported = asyncio.run(read())
    if whole:
        print_value(MemoryExport, exported)
        return
    entries, memories = exported.pop("entries"), exported.pop("memories")
    assert isinstance(entries, list) and isinstance(memories, list)
    for row in (exported, *({"entry": entry} for entry in entries), *({"memory": memory} for memory in memories)):
        print_json(row, indent=None)


sessions = with_commands(session_commands.sessions, export_session)
memory = with_commands(memory_commands.memory, export_memory)
