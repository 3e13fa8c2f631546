"""`assistant bridge add`: what is needed is asked and tried, then kept, then followed until a message has arrived."""

from __future__ import annotations

import asyncio

import click

from assistant.cli import attach, bridge_answers, bridge_keeping
from assistant.cli.asking import LeftOut, choose
from assistant.cli.bridge_answers import Answers, Given
from assistant.cli.bridge_following import follow, tell_code
from assistant.cli.commanding import command
from assistant.cli.plain import say
from assistant.core.errors import BridgeError
from assistant.core.sessions import MAIN_SESSION
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from assistant.wire import bridge_setup

_AFTER = {
    "again": "answer again",
    "keep": "keep the answers as they are, to be tried again by itself",
    "leave": "leave everything as it was",
}


def add(home: Home, name: str, given: Given, *, waits: bool) -> bool:
    """Set a bridge up; whether that came to its end, rather than to Ctrl-C. Raises as `set_up` does."""
    kept: list[str] = []
    try:
        set_up(home, name, given, kept, waits=waits)
    except LeftOut:
        say("Left out. Nothing was changed.")
    except (click.Abort, KeyboardInterrupt):
        left = f"{name} is set up and stays so; `assistant bridge add {name}` goes on from here."
        say(f"\nEnded. {left if kept else 'Nothing was changed.'}")
        return False
    return True


def set_up(home: Home, name: str, given: Given, kept: list[str], *, waits: bool) -> None:
    """Ask, try, keep, and follow; `kept` is added to as soon as things are kept. Raises `LeftOut`, `click.Abort`,
    `BridgeError`, `SettingsError`, `UsageError`, `StoreError`."""
    answers, account = _answered(home, name, given)
    kept += bridge_keeping.keep(home, name, answers, in_file=given.in_file)
    settings = load_settings(home)
    if answers.anew:
        command(settings, f"/bridge anew {name}", MAIN_SESSION, begins=True)
    if not account:
        say(f"{name} is set up, untried. `assistant bridge add {name}` goes on from here.")
    elif waits:
        attach.run(follow(settings, name, account, answers))
    else:
        attach.run(tell_code(settings, name, account, answers))


def _answered(home: Home, name: str, given: Given) -> tuple[Answers, str]:
    """What was answered, and who we are there; "" where a person keeps what could not be tried."""
    while True:
        settings = load_settings(home)
        answers = None
        try:
            answers = bridge_answers.of(name, home, settings, given)
            say(f"Asking {name} ...")
            trial = bridge_setup.with_answers(settings, name, answers.keys, answers.token)
            return answers, asyncio.run(bridge_setup.account_of(trial, name))
        except BridgeError as error:
            if not given.asks:
                raise
            say(str(error))
        possible = {word: means for word, means in _AFTER.items() if word != "keep" or answers is not None}
        match choose("What now?", possible, "again"):
            case "keep" if answers is not None:
                return answers, ""
            case "leave":
                raise LeftOut
