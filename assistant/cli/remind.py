"""`assistant remind`: be reminded of something at a time."""

from __future__ import annotations

import click

from assistant.cli.commanding import say_answer
from assistant.cli.in_force import settings_in_force
from assistant.cli.text import typed
from assistant.core.errors import UsageError
from assistant.core.sessions import MAIN_SESSION

_LOOKING = ("list", "history")


@click.command()
@click.argument("words", metavar="[TEXT... | list | cancel N | history]", nargs=-1)
@click.option("--at", "when", metavar="WHEN", help='When: "tomorrow at 9", "in 20 minutes", "2026-12-24 18:00".')
@click.option("--every", metavar="HOW OFTEN", help='How often: "weekday at 8:30", "2 hours", an RRULE, a line of cron.')
@click.option(
    "--session", default=MAIN_SESSION, show_default=True, metavar="NAME", help="The conversation it comes to."
)
@click.option("--json", "json_out", is_flag=True, help="With list and history: print a JSON array.")
def remind(words: tuple[str, ...], when: str | None, every: str | None, session: str, json_out: bool) -> None:
    """Set a reminder, list those that wait, cancel one, or see what became of them.

    A reminder comes to the conversation it was set in. Times are by the clock of your home.

    \b
    Example:
      assistant remind call mum --at "tomorrow at 9"
      assistant remind stretch --every "weekday at 10:30"
      assistant remind list
      assistant remind cancel 3
    """
    text = typed(" ".join(words), "The text").strip()
    looks = text in ("", *_LOOKING)
    sets = when is not None or every is not None
    if json_out and not looks:
        raise UsageError("--json goes with list and history. Nothing was changed.")
    if looks and sets:
        raise UsageError("What is the reminder to say? Nothing was set.")
    parts = [text or "list"]
    parts += ["--json"] if json_out else []
    parts += [f"--at {typed(when, 'The time')}"] if when is not None else []
    parts += [f"--every {typed(every, 'How often')}"] if every is not None else []
    say_answer(settings_in_force(), f"/remind {' '.join(parts)}", session, begins=sets)
