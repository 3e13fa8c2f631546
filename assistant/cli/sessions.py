"""`assistant sessions`: the conversations of the home, current and ended; put one away, take one up, export one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from assistant.cli.commanding import say_answer
from assistant.cli.in_force import settings_in_force
from assistant.cli.options import given, shared
from assistant.cli.plain import as_json, say, tell
from assistant.cli.session_export import FORMATS, written
from assistant.cli.stored import opened
from assistant.cli.tables import table
from assistant.core.errors import HomeError
from assistant.core.sessions import MAIN_SESSION, parse_session_name
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
from assistant.wire import resets as wire_resets
from assistant.wire import stores as wire_stores

_MOST_EACH = 10
_json = shared("--json", "Print JSON: an array of conversations, or one object.", is_flag=True)


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
    settings = settings_in_force(looks=True)
    with opened(settings) as stores:
        looking = wire_resets.looking_at(settings, stores)
        one = looking.one(session, number)
        note, known = looking.note(one.generation), one.generation
        made = [c for c in stores.conversation.checkpoints(known.session) if c.generation == known.number]
    if given(context, "json"):
        live = [c.summary for c in made if c.state == "live" and c.summary]
        more: dict[str, Any] = {
            "handover": note,
            "summary": live[-1] if live else "",
            "compactions": [c.id for c in made],
        }
        as_json(listed_json(one) | more)
    else:
        say(describe_generation(one, note, made, settings.zone))


@sessions.command()
@click.argument("session", metavar="SESSION")
def end(session: str) -> None:
    """Put a thread away: learn from it, archive it. The next message in it begins a new conversation.

    \b
    Example:
      assistant sessions end trip
    """
    say_answer(settings_in_force(), f"/sessions end {parse_session_name(session)}", MAIN_SESSION)


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
    say_answer(settings_in_force(), " ".join(words), MAIN_SESSION)


@sessions.command()
@click.argument("session", metavar="SESSION", default=MAIN_SESSION)
@click.option("--generation", type=click.IntRange(1), metavar="N", help="That conversation; else the current one.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="md", show_default=True, help="How to write it.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Into this file.")
def export(session: str, generation: int | None, form: str, output: Path | None) -> None:
    """Print everything that was said in one conversation, or write it to a file.

    \b
    Example:
      assistant sessions export main -o main.md
      assistant sessions export trip --generation 2 --format jsonl
    """
    settings = settings_in_force(looks=True)
    with opened(settings) as stores:
        known = wire_resets.looking_at(settings, stores).one(session, generation).generation
        lines = written(stores.generations.records(known.session, known.number), known, form, settings.zone)
        if output is None:
            for line in lines:
                say(line)
            return
        _write(output, lines)
    tell(f"{known.session}, number {known.number}: {pluralize(known.messages, 'message')} written to {output}.")


def _list(context: click.Context, most: int) -> None:
    settings = settings_in_force(looks=True)
    with opened(settings) as stores:
        found = list(_looking(settings, stores).listed(most))
    if given(context, "json"):
        as_json([listed_json(one) for one in found])
        return
    table(
        SESSION_COLUMNS, [session_cells(one, settings.zone) for one in found], right=NUMERIC_COLUMNS,
        empty="No conversation yet. Begin with `assistant chat`.",
    )  # fmt: skip


def _looking(settings: Settings, stores: wire_stores.Stores) -> SessionReader:
    return wire_resets.looking_at(settings, stores)


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
