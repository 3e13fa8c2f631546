"""`assistant reset`: end a conversation and begin it afresh, with what was learned, an archive and a hand-over note."""

from __future__ import annotations

import sys

import click

from assistant.cli.asking import sure
from assistant.cli.commanding import say_answer
from assistant.cli.in_force import settings_in_force
from assistant.cli.plain import say, tell
from assistant.cli.stored import opened
from assistant.core.errors import UsageError
from assistant.core.sessions import MAIN_SESSION, parse_session_name
from assistant.core.text import pluralize
from assistant.settings.settings import Settings
from assistant.wire import resets as wire_resets


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
    settings, key = settings_in_force(), parse_session_name(session)
    if cancel:
        say_answer(settings, f"/reset {key} --cancel", MAIN_SESSION)
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("Say --yes to reset where nobody can be asked. Nothing was changed.")
        say(foreseen(settings, key))
        if not sure("Reset it?"):
            return
    tell(f"Resetting {key}: reading it for what is worth remembering, then archiving it…")
    say_answer(settings, f"/reset {key}", MAIN_SESSION)


def foreseen(settings: Settings, key: str) -> str:
    """What a reset would do. Raises `UsageError` for a session that there is not."""
    with opened(settings) as stores:
        looking = wire_resets.looking_at(settings, stores)
        known = looking.one(key, None).generation
        where = settings.values.archive.url or str(settings.home.path / "archive")
        requests = pluralize(len(stores.requests.open(known.session)), "open request")
    return (
        f"{known.session} (number {known.number}) has {pluralize(known.messages, 'message')}. What is worth remembering "
        f"is written down first, then all of it is archived at {where}, and the archive read back.\n"
        f"The next conversation begins empty, with a short note of what was open ({requests}). Memories, "
        "to-dos, pins, requests and the log stay as they are."
    )
