"""`assistant schedule`: have something asked for you at times that repeat, and see what became of every time."""

from __future__ import annotations

import shlex

import click

from assistant.cli.commanding import say_answer
from assistant.cli.in_force import settings_in_force
from assistant.cli.text import typed
from assistant.core.sessions import MAIN_SESSION

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
    name: str, prompt: str, every: str | None, cron: str | None, rrule: str | None, when: str | None,
    catch_up: str | None, session: str,
) -> None:  # fmt: skip
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
    text = shlex.join([typed(word, "What you wrote") for word in words])
    say_answer(settings_in_force(), f"/schedule {text}", session, begins=begins)
