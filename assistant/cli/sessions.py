"""`assistant sessions` and `assistant reset`: the conversations of the home, current and ended; put one away, take one
up, export one as Markdown or JSON lines; end one and begin it afresh, with what was learned, an archive and a
hand-over note.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click

from assistant.cli.effective_settings import load_effective_settings
from assistant.cli.home_stores import open_home_stores
from assistant.cli.log import record_json
from assistant.cli.options import shared_option, shared_option_value
from assistant.cli.output import print_json, print_remark, print_text
from assistant.cli.prompts import confirm_or_report
from assistant.cli.remote import print_slash_command
from assistant.cli.tables import format_local_time, print_table
from assistant.cli.text import clean_for_terminal
from assistant.core.errors import HomeError, UsageError
from assistant.core.records import LogRecord
from assistant.core.sessions import MAIN_SESSION, Generation, parse_session_name
from assistant.core.text import pluralize
from assistant.sessions.listing import (
    NUMERIC_COLUMNS,
    SESSION_COLUMNS,
    SessionReader,
    describe_generation,
    session_cells,
)
from assistant.sessions.listing import session_json as listed_json
from assistant.settings.settings import Settings
from assistant.wire.stores import Stores, session_reader

_MOST_EACH = 10
_json = shared_option("--json", "Print JSON: an array of conversations, or one object.", is_flag=True)

EXPORT_FORMATS = ("md", "jsonl")


@click.group(invoke_without_command=True)
@_json
@click.pass_context
def sessions(context: click.Context) -> None:
    """List the conversations of this home, the ended ones too.

    A conversation ends by a reset (`assistant reset`) and has a number; the next one begins with a note of what was
    open. What was said stays in the log, and in an archive.

    \b
    Example:
      assistant sessions
      assistant sessions --json
      assistant sessions show main 1
    """
    if context.invoked_subcommand is None:
        _list(context, _MOST_EACH)


@sessions.command("list")
@click.option(
    "--limit", default=_MOST_EACH, show_default=True, type=click.IntRange(1), help="How many of each session."
)
@_json
@click.pass_context
def list_(context: click.Context, limit: int) -> None:
    """List conversations, of each session the newest first.

    \b
    Example:
      assistant sessions list --limit 100
    """
    _list(context, limit)


@sessions.command()
@click.argument("session", metavar="SESSION", default=MAIN_SESSION)
@click.argument("number", metavar="[NUMBER]", required=False, type=click.IntRange(1))
@_json
@click.pass_context
def show(context: click.Context, session: str, number: int | None) -> None:
    """Show one conversation: when, how it ended, its summary, the note it began with, its compactions.

    \b
    Example:
      assistant sessions show
      assistant sessions show main 3
    """
    settings = load_effective_settings(read_only=True)
    with open_home_stores(settings) as stores:
        looking = session_reader(settings, stores)
        one = looking.get_generation(session, number)
        note, known = looking.handover_note(one.generation), one.generation
        made = [c for c in stores.conversation.checkpoints(known.session) if c.generation == known.number]
    if shared_option_value(context, "json"):
        live = [c.summary for c in made if c.state == "live" and c.summary]
        more: dict[str, Any] = {
            "handover": note,
            "summary": live[-1] if live else "",
            "compactions": [c.id for c in made],
        }
        print_json(listed_json(one) | more)
    else:
        print_text(describe_generation(one, note, made, settings.zone))


@sessions.command()
@click.argument("session", metavar="SESSION")
def end(session: str) -> None:
    """Put a thread away: learn from it, archive it. The next message in it begins a new conversation.

    \b
    Example:
      assistant sessions end trip
    """
    print_slash_command(load_effective_settings(), f"/sessions end {parse_session_name(session)}", MAIN_SESSION)


@sessions.command()
@click.argument("session", metavar="SESSION")
@click.argument("number", metavar="[NUMBER]", required=False, type=click.IntRange(1))
def resume(session: str, number: int | None) -> None:
    """Take an earlier conversation up again: the last one that ended, or that NUMBER. The current one is kept.

    \b
    Example:
      assistant sessions resume main
      assistant sessions resume trip 2
    """
    words = ["/sessions resume", parse_session_name(session), *([str(number)] if number else [])]
    print_slash_command(load_effective_settings(), " ".join(words), MAIN_SESSION)


@sessions.command()
@click.argument("session", metavar="SESSION", default=MAIN_SESSION)
@click.option("--generation", type=click.IntRange(1), metavar="N", help="That conversation; else the current one.")
@click.option(
    "--format", "form", type=click.Choice(EXPORT_FORMATS), default="md", show_default=True, help="How to write it."
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Into this file.")
def export(session: str, generation: int | None, form: str, output: Path | None) -> None:
    """Print everything that was said in one conversation, or write it to a file.

    \b
    Example:
      assistant sessions export main -o main.md
      assistant sessions export trip --generation 2 --format jsonl
    """
    settings = load_effective_settings(read_only=True)
    with open_home_stores(settings) as stores:
        known = session_reader(settings, stores).get_generation(session, generation).generation
        lines = export_lines(
            stores.generations.records_of_generation(known.session, known.number), known, form, settings.zone
        )
        if output is None:
            for line in lines:
                print_text(line)
            return
        _write(output, lines)
    print_remark(f"{known.session}, number {known.number}: {pluralize(known.messages, 'message')} written to {output}.")


def _list(context: click.Context, most: int) -> None:
    settings = load_effective_settings(read_only=True)
    with open_home_stores(settings) as stores:
        found = list(_looking(settings, stores).list_generations(most))
    if shared_option_value(context, "json"):
        print_json([listed_json(one) for one in found])
        return
    print_table(
        SESSION_COLUMNS,
        [session_cells(one, settings.zone) for one in found],
        right=NUMERIC_COLUMNS,
        empty="No conversation yet. Begin with `assistant chat`.",
    )


def _looking(settings: Settings, stores: Stores) -> SessionReader:
    return session_reader(settings, stores)


def _write(output: Path, lines: Iterator[str]) -> None:
    """Raises `HomeError`."""
    try:
        with output.open("x", encoding="utf-8") as file:
            output.chmod(0o600)
            file.writelines(f"{line}\n" for line in lines)
    except FileExistsError:
        raise HomeError(f"{output} is there already. Nothing was written; name another file.") from None
    except OSError as error:
        raise HomeError(f"{output} was not written: {error.strerror}.") from None


@click.command()
@click.option("--session", default=MAIN_SESSION, show_default=True, metavar="NAME", help="The conversation to end.")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@click.option("--cancel", is_flag=True, help="Give up a reset that waits for the archive.")
def reset(session: str, yes: bool, cancel: bool) -> None:
    """End a conversation and begin the next: learn from it first, archive it, hand over what was open.

    Nothing is forgotten: the messages stay in the log, and `assistant sessions resume` takes it up again.

    \b
    Example:
      assistant reset
      assistant reset --session trip --yes
    """
    settings, key = load_effective_settings(), parse_session_name(session)
    if cancel:
        print_slash_command(settings, f"/reset {key} --cancel", MAIN_SESSION)
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("Say --yes to reset where nobody can be asked. Nothing was changed.")
        print_text(preview_reset(settings, key))
        if not confirm_or_report("Reset it?"):
            return
    print_remark(f"Resetting {key}: reading it for what is worth remembering, then archiving it…")
    print_slash_command(settings, f"/reset {key}", MAIN_SESSION)


def preview_reset(settings: Settings, key: str) -> str:
    """What a reset would do. Raises `UsageError` for a session that there is not."""
    with open_home_stores(settings) as stores:
        looking = session_reader(settings, stores)
        known = looking.get_generation(key, None).generation
        where = settings.values.archive.url or str(settings.home.path / "archive")
        requests = pluralize(len(stores.requests.list_open(known.session)), "open request")
    return (
        f"{known.session} (number {known.number}) has {pluralize(known.messages, 'message')}. What is worth "
        f"remembering "
        f"is written down first, then all of it is archived at {where}, and the archive read back.\n"
        f"The next conversation begins empty, with a short note of what was open ({requests}). Memories, "
        "to-dos, pins, requests and the log stay as they are."
    )


_SPEAKERS = {"user": "You", "assistant": "Assistant", "tool": "Tool", "system": "Note"}


def export_lines(records: Iterable[LogRecord], known: Generation, form: str, zone: ZoneInfo) -> Iterator[str]:
    """The lines, without their ends."""
    if form == "jsonl":
        yield from (json.dumps(record_json(record), ensure_ascii=False) for record in records)
        return
    yield f"# {known.session}, number {known.number}\n"
    yield f"Begun {format_local_time(known.started_at, zone)}" + (
        f", ended {format_local_time(known.ended_at, zone)}" if known.ended_at else ""
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
    return (
        f"\n## {who}, {format_local_time(record.ts, zone)} "
        f"(#{record.id})\n\n{clean_for_terminal(record.content)}{clean_for_terminal(calls)}"
    )
