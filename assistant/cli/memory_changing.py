"""`assistant memory edit`, `import`, `rebuild`, by whoever serves the home, and `export`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from assistant.cli.commanding import say_answer
from assistant.cli.in_force import settings_in_force
from assistant.cli.memory import looked, of_session
from assistant.cli.plain import as_json, say
from assistant.cli.text import typed
from assistant.core.calendar import utc_now
from assistant.core.errors import UsageError
from assistant.core.sessions import MAIN_SESSION
from assistant.memory.commands import MemoryCommands

_json_option = click.option("--json", "json_out", is_flag=True, help="Print a JSON object of what was done.")


@click.command()
@click.argument("reference", metavar="ID")
@click.argument("words", metavar="TEXT", nargs=-1, required=True)
@of_session
@_json_option
def edit(reference: str, words: tuple[str, ...], session: str, json_out: bool) -> None:
    """Put a memory right: from now on TEXT holds instead. What it said before stays, with the date.

    \b
    Example:
      assistant memory edit 1a2b3c4d "Anna works at the harbour"
    """
    named = "".join(typed(reference, "The ID").split())
    text = typed(" ".join(words), "The text").strip()
    if not named or not text:
        raise UsageError("Give an ID and a text. Nothing was changed.")
    say_answer(settings_in_force(), f"{_action('edit', json_out)} {named} {text}", session)


@click.command(name="import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@of_session
@_json_option
def import_(file: Path, session: str, json_out: bool) -> None:
    """Note what FILE says: an export (JSON or JSON lines), a JSON list of texts, or plain text, a memory a line.

    Importing it twice changes nothing. A file in which anything is malformed is refused as a whole. A home that is not
    there yet is made.

    \b
    Example:
      assistant memory import notes.txt
    """
    path = typed(str(file.resolve()), "The file's name")
    say_answer(settings_in_force(), f"{_action('import', json_out)} {path}", session, begins=True)


@click.command()
@click.option("--from-log", is_flag=True, help="First read every message again, for what the journal lacks.")
@_json_option
def rebuild(from_log: bool, json_out: bool) -> None:
    """Make semantic memory again from the journal, which has everything. Run again, it changes nothing.

    With --from-log the configured model reads the whole log once more, which costs what it costs; whatever the journal
    has stays as it is.

    \b
    Example:
      assistant memory rebuild
    """
    text = _action("rebuild", json_out) + (" --from-log" if from_log else "")
    say_answer(settings_in_force(), text, MAIN_SESSION)


@click.command()
@click.option("--json/--jsonl", "whole", default=True, help="One JSON object, or JSON lines after a line about them.")
@of_session
def export(whole: bool, session: str) -> None:
    """Print everything remembered, former memories and the journal included, as `assistant memory import` reads it.

    \b
    Example:
      assistant memory export > memories.json
      assistant memory export --jsonl | grep Anna
    """
    settings = settings_in_force()

    async def look(memory: MemoryCommands, scope: str) -> dict[str, Any]:
        return await memory.export(scope, utc_now())

    told = looked(settings, session, look)
    if whole:
        as_json(told)
        return
    entries, memories = told.pop("entries"), told.pop("memories")
    for row in (told, *({"entry": one} for one in entries), *({"memory": one} for one in memories)):
        say(json.dumps(row, ensure_ascii=False))


def _action(name: str, json_out: bool) -> str:
    return f"/memory {name} --json" if json_out else f"/memory {name}"
