"""`assistant sessions export`: everything that was said in one conversation, as Markdown or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import click

from assistant.cli.home_stores import load_effective_settings, open_home_stores
from assistant.cli.output import clean_for_terminal, print_remark, print_text
from assistant.cli.shell import with_commands
from assistant.commands import sessions as session_commands
from assistant.commands.archive import MessageItem
from assistant.core.calendar import format_local_time
from assistant.core.errors import HomeError
from assistant.core.records import LogRecord
from assistant.core.sessions import MAIN_SESSION, Generation
from assistant.core.text import pluralize
from assistant.wire.stores import session_reader

EXPORT_FORMATS = ("md", "jsonl")


@click.command()
@click.argument("session", metavar="SESSION", default=MAIN_SESSION)
@click.option("--generation", type=click.IntRange(1), metavar="N", help="Conversation N; by default the current one.")
@click.option(
    "--format",
    "form",
    type=click.Choice(EXPORT_FORMATS),
    default="md",
    show_default=True,
    help="Markdown or JSON lines.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write to this file."
)
def export(session: str, generation: int | None, form: str, output: Path | None) -> None:
    """Print a whole conversation, or write it to a file.

    \b
    Example:
      assistant sessions export main -o main.md
      assistant sessions export trip --generation 2 --format jsonl
    """
    settings = load_effective_settings(read_only=True)
    with open_home_stores(settings) as stores:
        ended = session_reader(settings, stores).get_generation(session, generation).generation
        lines = export_lines(
            stores.generations.records_of_generation(ended.session, ended.number), ended, form, settings.zone
        )
        if output is None:
            for line in lines:
                print_text(line)
            return
        _write(output, lines)
    print_remark(f"{ended.session}, number {ended.number}: {pluralize(ended.messages, 'message')} written to {output}.")


def _write(output: Path, lines: Iterator[str]) -> None:
    """Raises `HomeError`."""
    try:
        with output.open("x", encoding="utf-8") as file:
            output.chmod(0o600)
            file.writelines(f"{line}\n" for line in lines)
    except FileExistsError:
        raise HomeError(f"{output} exists already. Nothing was written; name another file.") from None
    except OSError as error:
        raise HomeError(f"{output} was not written: {error.strerror}.") from None


sessions = with_commands(session_commands.sessions, export)

_SPEAKERS = {"user": "You", "assistant": "Assistant", "tool": "Tool", "system": "Note"}


def export_lines(records: Iterable[LogRecord], generation: Generation, form: str, zone: ZoneInfo) -> Iterator[str]:
    """The lines, without their ends."""
    if form == "jsonl":
        yield from (MessageItem.model_validate(record).model_dump_json() for record in records)
        return
    yield f"# {generation.session}, number {generation.number}\n"
    yield f"Started {format_local_time(generation.started_at, zone)}" + (
        f", ended {format_local_time(generation.ended_at, zone)}" if generation.ended_at else ""
    )
    for record in records:
        yield _section(record, generation, zone)


def _section(record: LogRecord, generation: Generation, zone: ZoneInfo) -> str:
    who = _SPEAKERS[record.role] if record.role != "tool" else f"Tool {record.name or ''}".strip()
    if record.role == "user" and record.sender not in (None, "owner") and generation.scope != "owner":
        who = record.name or record.sender or who
    calls = "".join(
        f"\n\n→ `{call.name}` {json.dumps(dict(call.arguments), ensure_ascii=False)}" for call in record.tool_calls
    )
    return (
        f"\n## {who}, {format_local_time(record.ts, zone)} "
        f"(#{record.id})\n\n{clean_for_terminal(record.content)}{clean_for_terminal(calls)}"
    )
