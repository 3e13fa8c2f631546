"""`assistant memory edit`, `import` and `rebuild`, by whoever serves the home, `export`, and `assistant forget`, which
shows what would vanish from every copy, asks, and has it forgotten.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from assistant.cli.effective_settings import load_effective_settings
from assistant.cli.home_stores import require_home
from assistant.cli.link import Link, open_link, run_with_signals
from assistant.cli.logging_setup import configure_logging
from assistant.cli.memory import query_memories, session_option
from assistant.cli.output import print_json, print_remark, print_text
from assistant.cli.remote import open_home_locally, print_slash_command
from assistant.cli.text import read_next_line, require_utf8
from assistant.commands.erasure import KEEP_BACKUPS, confirmation_code_in, preview_counts
from assistant.core.calendar import utc_now
from assistant.core.errors import UsageError
from assistant.core.sessions import MAIN_SESSION
from assistant.core.text import lazy_regex
from assistant.memory.service import MemoryService
from assistant.settings.settings import Settings

_json_option = click.option("--json", "json_out", is_flag=True, help="Print a JSON object of what was done.")


@click.command()
@click.argument("reference", metavar="ID")
@click.argument("words", metavar="TEXT", nargs=-1, required=True)
@session_option
@_json_option
def edit(reference: str, words: tuple[str, ...], session: str, json_out: bool) -> None:
    """Put a memory right: from now on TEXT holds instead. What it said before stays, with the date.

    \b
    Example:
      assistant memory edit 1a2b3c4d "Anna works at the harbour"
    """
    named = "".join(require_utf8(reference, "The ID").split())
    text = require_utf8(" ".join(words), "The text").strip()
    if not named or not text:
        raise UsageError("Give an ID and a text. Nothing was changed.")
    print_slash_command(load_effective_settings(), f"{_action('edit', json_out)} {named} {text}", session)


@click.command(name="import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@session_option
@_json_option
def import_(file: Path, session: str, json_out: bool) -> None:
    """Note what FILE says: an export (JSON or JSON lines), a JSON list of texts, or plain text, a memory a line.

    Importing it twice changes nothing. A file in which anything is malformed is refused as a whole. A home that is not
    there yet is made.

    \b
    Example:
      assistant memory import notes.txt
    """
    path = require_utf8(str(file.resolve()), "The file's name")
    print_slash_command(load_effective_settings(), f"{_action('import', json_out)} {path}", session, begins=True)


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
    print_slash_command(load_effective_settings(), text, MAIN_SESSION)


@click.command()
@click.option("--json/--jsonl", "whole", default=True, help="One JSON object, or JSON lines after a line about them.")
@session_option
def export(whole: bool, session: str) -> None:
    """Print everything remembered, former memories and the journal included, as `assistant memory import` reads it.

    \b
    Example:
      assistant memory export > memories.json
      assistant memory export --jsonl | grep Anna
    """
    settings = load_effective_settings()

    async def look(memory: MemoryService, scope: str) -> dict[str, Any]:
        return await memory.export(scope, utc_now())

    told = query_memories(settings, session, look)
    if whole:
        print_json(told)
        return
    entries, memories = told.pop("entries"), told.pop("memories")
    for row in (told, *({"entry": one} for one in entries), *({"memory": one} for one in memories)):
        print_text(json.dumps(row, ensure_ascii=False))


def _action(name: str, json_out: bool) -> str:
    return f"/memory {name} --json" if json_out else f"/memory {name}"


_KEPT = "Nothing was changed."
_LIKE_A_CODE = lazy_regex(r"[0-9A-Fa-f]{6}")


@click.command()
@click.argument("words", metavar="ID|TEXT", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--keep-backups", is_flag=True, help="List the backups that have it, and keep them.")
@session_option
@click.option("--json", "json_out", is_flag=True, help="Print a JSON object: what there was, and whether it is gone.")
def forget(words: tuple[str, ...], yes: bool, keep_backups: bool, session: str, json_out: bool) -> int:
    """Forget something for good, in every copy: a memory by its id, a journal entry (e12), a message (#17), or TEXT.

    Shows what would go and asks. It cannot be taken back. Backups that have it are removed, and one new backup is made.

    \b
    Example:
      assistant forget 1a2b3c4d
      assistant forget "the code of the gate" --yes
    """
    what = require_utf8(" ".join(words), "The text").strip()
    if not what:
        raise UsageError(f"Say what to forget. {_KEPT}")
    settings = load_effective_settings()
    require_home(settings)
    configure_logging("error")
    target = f"{KEEP_BACKUPS} {_named(what)}" if keep_backups else _named(what)
    return run_with_signals(_forgotten(settings, target, session, yes=yes, json_out=json_out))


async def _forgotten(settings: Settings, target: str, session: str, *, yes: bool, json_out: bool) -> int:
    """The exit code. A code holds for the process that gave it, so both steps go over one link."""
    async with open_link(settings, open_home_locally) as link:
        found = await link.run_command(f"/forget {target}", session)
        code = confirmation_code_in(found)
        if not code:
            _tell(found, "", json_out=json_out)
            return 0
        if not yes and not await _agreed(found):
            if json_out:
                _tell(found, "", json_out=True)
            print_remark(_KEPT)
            return 1
        return await _carried_out(link, found, code, session, json_out=json_out)


async def _carried_out(link: Link, found: str, code: str, session: str, *, json_out: bool) -> int:
    done = await link.run_command(f"/forget {code}", session)
    _tell(found, done, json_out=json_out)
    return 0


async def _agreed(found: str) -> bool:
    """Whether the person at the terminal says so."""
    if sys.stdin is None or not sys.stdin.isatty():
        print_remark(f"{found}\nNobody is there to say yes; --yes says it.")
        return False
    print_remark(found.rpartition("\n")[0])
    print_remark("It cannot be taken back. Forget it? [y/N]")
    return (await read_next_line()).strip().lower() in ("y", "yes")


def _named(what: str) -> str:
    """As `/forget` takes it, which would take six digits for one of its codes."""
    if _LIKE_A_CODE.fullmatch(what) is None:
        return what
    return f"#{what}" if what.isdecimal() else f"memory {what}"


def _tell(found: str, done: str, *, json_out: bool) -> None:
    if not json_out:
        print_text(done or found)
        return
    told: dict[str, Any] = {"forgotten": bool(done), "places": preview_counts(found), "report": done or found}
    print_json(told)
