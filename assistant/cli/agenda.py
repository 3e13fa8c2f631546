"""`assistant remind` and `assistant schedule`: be reminded of something at a time, have something asked for you at
times that repeat, and see what became of every time.
"""

from __future__ import annotations

import shlex

import click

from assistant.cli.effective_settings import load_effective_settings
from assistant.cli.remote import print_slash_command
from assistant.cli.text import require_utf8
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
    text = require_utf8(" ".join(words), "The text").strip()
    looks = text in ("", *_LOOKING)
    sets = when is not None or every is not None
    if json_out and not looks:
        raise UsageError("--json goes with list and history. Nothing was changed.")
    if looks and sets:
        raise UsageError("What is the reminder to say? Nothing was set.")
    parts = [text or "list"]
    parts += ["--json"] if json_out else []
    parts += [f"--at {require_utf8(when, 'The time')}"] if when is not None else []
    parts += [f"--every {require_utf8(every, 'How often')}"] if every is not None else []
    print_slash_command(load_effective_settings(), f"/remind {' '.join(parts)}", session, begins=sets)


_json_option = click.option("--json", "json_out", is_flag=True, help="Print JSON.")
_session_option = click.option(
    "--session", default=MAIN_SESSION, show_default=True, metavar="NAME", help="The conversation it is asked in."
)


@click.group()
def schedule() -> None:
    """Schedule prompts: each is asked for you when it is due, and its answer comes to where it was made.

    \b
    Example:
      assistant schedule add news "What is on my list for today?" --every "weekday at 8:30"
      assistant schedule list
      assistant schedule history
    """


@schedule.command()
@click.argument("name")
@click.argument("prompt")
@click.option("--every", metavar="HOW OFTEN", help='In words: "weekday at 8:30", "Monday", "2 hours".')
@click.option("--cron", metavar="LINE", help='A line of cron: "30 8 * * 1-5".')
@click.option("--rrule", metavar="RULE", help='An RRULE: "FREQ=WEEKLY;BYDAY=MO"; --at says from when.')
@click.option("--at", "when", metavar="WHEN", help='Once, or from when on: "tomorrow at 9".')
@click.option(
    "--catch-up", type=click.Choice(["once", "all", "skip"]), help="For times that passed while nobody was there."
)
@_session_option
def add(
    name: str,
    prompt: str,
    every: str | None,
    cron: str | None,
    rrule: str | None,
    when: str | None,
    catch_up: str | None,
    session: str,
) -> None:
    """Schedule PROMPT under NAME, by one of --every, --cron, --rrule, or --at for once.

    \b
    Example:
      assistant schedule add news "What is on my list for today?" --every "weekday at 8:30"
      assistant schedule add rent "Has the rent been paid?" --cron "0 9 1 * *" --catch-up once
    """
    options = {"every": every, "cron": cron, "rrule": rrule, "at": when, "catch-up": catch_up}
    given = [word for option, value in options.items() if value is not None for word in (f"--{option}", value)]
    _run(["add", name, prompt, *given], session, begins=True)


@schedule.command("list")
@_json_option
@_session_option
def list_(json_out: bool, session: str) -> None:
    """List what is scheduled, the next one first.

    \b
    Example:
      assistant schedule list --json
    """
    _run(["list", *_json(json_out)], session)


@schedule.command()
@click.argument("name")
@_json_option
@_session_option
def show(name: str, json_out: bool, session: str) -> None:
    """Show one schedule whole.

    \b
    Example:
      assistant schedule show news
    """
    _run(["show", name, *_json(json_out)], session)


@schedule.command()
@click.argument("name")
@_session_option
def pause(name: str, session: str) -> None:
    """Pause a schedule. Its times pass by until it is resumed.

    \b
    Example:
      assistant schedule pause news
    """
    _run(["pause", name], session)


@schedule.command()
@click.argument("name")
@_session_option
def resume(name: str, session: str) -> None:
    """Go on with a schedule that was paused, from its next time on.

    \b
    Example:
      assistant schedule resume news
    """
    _run(["resume", name], session)


@schedule.command()
@click.argument("name")
@_session_option
def remove(name: str, session: str) -> None:
    """Remove a schedule. Its history stays.

    \b
    Example:
      assistant schedule remove news
    """
    _run(["remove", name], session)


@schedule.command()
@click.argument("name")
@_session_option
def run(name: str, session: str) -> None:
    """Ask it now, beside its times. Where no daemon runs, it is answered by the next one.

    \b
    Example:
      assistant schedule run news
    """
    _run(["run", name], session)


@schedule.command()
@click.argument("name", required=False)
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="How many, newest first.")
@_json_option
@_session_option
def history(name: str | None, limit: int, json_out: bool, session: str) -> None:
    """Show what became of every time, of schedules and reminders: ran, late or missed, and why.

    Looking at it acknowledges what was missed: `assistant status` is green again.

    \b
    Example:
      assistant schedule history
      assistant schedule history news --json
    """
    _run(["history", *([name] if name else []), "--limit", str(limit), *_json(json_out)], session)


def _json(wanted: bool) -> list[str]:
    return ["--json"] if wanted else []


def _run(words: list[str], session: str, *, begins: bool = False) -> None:
    text = shlex.join([require_utf8(word, "What you wrote") for word in words])
    print_slash_command(load_effective_settings(), f"/schedule {text}", session, begins=begins)
