"""`assistant setup`: what an assistant has to know before it begins, asked in a conversation.

Each step can be left out and asked again. What was answered is kept as it is answered; a step that is broken off in the
middle of a choice that needs more than one answer (who answers, and the key for it) changes nothing of that choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from assistant.cli import setup_model, setup_steps
from assistant.cli.asking import LeftOut
from assistant.cli.config_changing import when_taken_over
from assistant.cli.lazy import INTERRUPTED
from assistant.cli.logs import log_to_stderr
from assistant.cli.plain import say
from assistant.service.home_lock import is_home_served
from assistant.settings.home import Home, home_from_environment

# Each adds to the list what it changed, as soon as it is on the disk.
Step = Callable[[Home, list[str]], None]
STEPS: dict[str, tuple[str, Step]] = {
    "model": ("Who answers", setup_model.model),
    "persona": ("Names", setup_steps.persona),
    "time": ("Time", setup_steps.time),
    "budget": ("Budget", setup_steps.budget),
    "bridge": ("Bridge", setup_steps.bridge),
    "service": ("Service", setup_steps.service),
}
_HOW = "Enter keeps what stands in brackets, - leaves a step out, Ctrl-C ends this; what you answered is kept."


@click.command()
@click.argument("steps", nargs=-1, type=click.Choice(list(STEPS)))
@click.pass_context
def setup(context: click.Context, steps: Sequence[str]) -> None:
    """Ask for what the assistant has to know, all of it or the named STEPS: who answers, names, time, budget, bridge,
    service.

    It can be said again at any time: what is set already stands in brackets. Answers may be piped in, line by line.

    \b
    Example:
      assistant setup
      assistant setup model
      printf 'offline\\n' | assistant setup model
    """
    log_to_stderr("error")
    home = home_from_environment()
    say(f"Setting up the assistant in {home.path}. {_HOW}")
    kept: list[str] = []
    for name in steps or STEPS:
        title, step = STEPS[name]
        say(f"\n{title}")
        try:
            step(home, kept)
        except LeftOut:
            say("Left out.")
        except (click.Abort, KeyboardInterrupt):
            say(f"\nEnded. {_told(kept)} `assistant setup {name}` goes on from here.")
            context.exit(INTERRUPTED)
    say(f"\n{_told(kept)}\n{_next(home, kept)}")


def _told(kept: list[str]) -> str:
    done = ", ".join(dict.fromkeys(kept))
    return f"Changed and kept: {done}." if done else "Nothing was changed."


def _next(home: Home, kept: Sequence[str]) -> str:
    if is_home_served(home):
        return when_taken_over(kept) if kept else "The assistant runs: `assistant chat` to talk with it."
    return (
        "Next: `assistant chat` to talk, `assistant run` to keep it running (it sleeps at night), `assistant status` "
        "to see how it is. `assistant config show` lists everything else."
    )
