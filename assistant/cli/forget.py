"""`assistant forget`: shows what would vanish from every copy, asks, and has it forgotten."""

from __future__ import annotations

import sys
from typing import Any

import click

from assistant.cli import attach
from assistant.cli.commanding import opened_here
from assistant.cli.in_force import settings_in_force
from assistant.cli.lines import next_line
from assistant.cli.link import Link
from assistant.cli.logs import log_to_stderr
from assistant.cli.memory import of_session
from assistant.cli.plain import as_json, say, tell
from assistant.cli.stored import require_home
from assistant.cli.text import typed
from assistant.commands.forget_report import code_in, counts_in
from assistant.core.errors import UsageError
from assistant.core.text import lazy_regex
from assistant.settings.settings import Settings

_KEPT = "Nothing was changed."
_LIKE_A_CODE = lazy_regex(r"[0-9A-Fa-f]{6}")


@click.command()
@click.argument("words", metavar="ID|TEXT", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@of_session
@click.option("--json", "json_out", is_flag=True, help="Print a JSON object: what there was, and whether it is gone.")
def forget(words: tuple[str, ...], yes: bool, session: str, json_out: bool) -> int:
    """Forget something for good, in every copy: a memory by its id, a journal entry (e12), a message (#17), or TEXT.

    Shows what would go and asks. It cannot be taken back.

    \b
    Example:
      assistant forget 1a2b3c4d
      assistant forget "the code of the gate" --yes
    """
    what = typed(" ".join(words), "The text").strip()
    if not what:
        raise UsageError(f"Say what to forget. {_KEPT}")
    settings = settings_in_force()
    require_home(settings)
    log_to_stderr("error")
    return attach.run(_forgotten(settings, what, session, yes=yes, json_out=json_out))


async def _forgotten(settings: Settings, what: str, session: str, *, yes: bool, json_out: bool) -> int:
    """The exit code. A code holds for the process that gave it, so both steps go over one link."""
    async with attach.home_link(settings, opened_here) as link:
        found = await link.command(f"/forget {_named(what)}", session)
        code = code_in(found)
        if not code:
            _tell(found, "", json_out=json_out)
            return 0
        if not yes and not await _agreed(found):
            if json_out:
                _tell(found, "", json_out=True)
            tell(_KEPT)
            return 1
        return await _carried_out(link, found, code, session, json_out=json_out)


async def _carried_out(link: Link, found: str, code: str, session: str, *, json_out: bool) -> int:
    done = await link.command(f"/forget {code}", session)
    _tell(found, done, json_out=json_out)
    return 0


async def _agreed(found: str) -> bool:
    """Whether the person at the terminal says so."""
    if sys.stdin is None or not sys.stdin.isatty():
        tell(f"{found}\nNobody is there to say yes; --yes says it.")
        return False
    tell(found.rpartition("\n")[0])
    tell("It cannot be taken back. Forget it? [y/N]")
    return (await next_line()).strip().lower() in ("y", "yes")


def _named(what: str) -> str:
    """As `/forget` takes it, which would take six digits for one of its codes."""
    if _LIKE_A_CODE.fullmatch(what) is None:
        return what
    return f"#{what}" if what.isdecimal() else f"memory {what}"


def _tell(found: str, done: str, *, json_out: bool) -> None:
    if not json_out:
        say(done or found)
        return
    told: dict[str, Any] = {"forgotten": bool(done), "places": counts_in(found), "report": done or found}
    as_json(told)
