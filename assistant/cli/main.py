"""The `assistant` command. Each family of commands is its own module, loaded when it is asked for, so that a cold
`assistant chat -m` does not pay for the others.

Exit codes: 0 fine, 1 failed, 2 wrong use, 3 the model cannot be reached (the message is kept), 4 the budget is used up,
130 interrupted.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from assistant import __version__
from assistant.cli.lazy import LazyGroup, run_and_exit

if TYPE_CHECKING:
    from assistant.commands.table import ParsedCommand

# Headings, commands, and a line on each. The line is here so that the menu is shown without importing any command.
_MENU = {
    "Talk": {
        "chat": "Talk, or ask one thing with -m.",
        "open": "The page, in your browser.",
        "undo": "Remove the last exchange from a conversation.",
        "log": "What was said, from the message log.",
        "sessions": "Conversations, also those that ended.",
        "reset": "End a conversation and begin the next.",
        "compact": "Summarise older messages now, to make room.",
        "context": "What the model sees now, and what it costs.",
        "branch": "Continue from an earlier message.",
        "requests": "What you asked for, and what became of it.",
        "approvals": "What waits for your yes or no.",
        "pins": "Words that no compaction removes.",
    },
    "Remember": {
        "memory": "What it remembers: search, ask why, correct.",
        "add": "Give it files, folders or pages of the web.",
        "files": "Your files: search, list, read again.",
        "forget": "Erase for good, from every copy.",
        "sleep": "Sleep now; see what the last sleep did; undo it.",
        "archive": "Conversations that ended, and where they are archived.",
        "import": "Bring conversations along from other programs.",
        "export": "Everything, to read, to keep, to move elsewhere.",
    },
    "Time": {
        "agenda": "What is on: a day, or a week.",
        "brief": "Today in short, and what waits for you.",
        "todo": "Your to-do lists.",
        "remind": "Reminders.",
        "schedule": "Prompts that are asked for you at set times.",
        "calendar": "Your calendars and address books: add, list, read now.",
        "contacts": "Find somebody in your address books.",
    },
    "People and networks": {
        "people": "Who may talk to it, and as whom.",
        "bridge": "Telegram, Matrix, Discord, Slack, mail: set up, test, pause.",
        "mail": "Your own mail: set up, list, search, read.",
        "notify": "ntfy, Gotify, the desktop: tell you where you are not looking.",
        "deliveries": "What did not arrive, or may not have.",
        "web": "The page and the web API: address, logins, token.",
        "skills": "Instructions for kinds of work that you bring along.",
        "mcp": "MCP servers that it uses; be one for other programs.",
    },
    "Set up and run": {
        "setup": "Model, persona, time zone, budget, bridge, service.",
        "config": "Settings and secrets.",
        "run": "Run in the foreground.",
        "stop": "Stop the running assistant.",
        "service": "Run it as a service, under systemd or launchd.",
        "completion": "Completion of its commands in your shell.",
    },
    "Look after it": {
        "status": "How it is, in a few lines.",
        "doctor": "Check every part; what to do about each problem.",
        "usage": "What models have cost, against your caps.",
        "verify": "Prove that nothing is lost or changed.",
        "backup": "Everything in one file, and back.",
        "replica": "A copy in PostgreSQL that is never behind.",
        "fleet": "Many homes on several machines.",
        "docs": "The pages that explain it all.",
    },
}


def _load(name: str) -> click.Command:
    """Those that only a shell has, or that have more there."""
    command: click.Command
    match name:
        case "chat":
            from assistant.cli.chat.command import chat as command
        case "log":
            from assistant.cli.log import log as command
        case "sessions":
            from assistant.cli.exports import sessions as command
        case "memory":
            from assistant.cli.exports import memory as command
        case "archive":
            from assistant.cli.verify import archive as command
        case "export":
            from assistant.cli.transfer import export_home as command
        case "import":
            from assistant.cli.imports import imports as command
        case "web":
            from assistant.cli.web import web as command
        case "calendar":
            from assistant.cli.calendar import calendar as command
        case "mail":
            from assistant.cli.mail import mail as command
        case "skills":
            from assistant.cli.skills import skills as command
        case "mcp":
            from assistant.cli.mcp import mcp as command
        case "open":
            from assistant.cli.web import open_page as command
        case "bridge":
            from assistant.cli.bridge.command import bridge as command
        case "setup":
            from assistant.cli.setup.command import setup as command
        case "config":
            from assistant.cli.config.command import config as command
        case "run":
            from assistant.cli.serve import run as command
        case "stop":
            from assistant.cli.serve import stop as command
        case "completion":
            from assistant.cli.completion import completion as command
        case "service":
            from assistant.cli.service.command import service as command
        case "status":
            from assistant.cli.status import status as command
        case "doctor":
            from assistant.cli.status import doctor as command
        case "verify":
            from assistant.cli.verify import verify as command
        case "usage":
            from assistant.cli.usage import usage as command
        case "backup":
            from assistant.cli.backup import backup as command
        case "replica" | "fleet" | "docs":
            return _load_without_home(name)
        case _:
            return _load_from_table(name)
    return command


def _load_without_home(name: str) -> click.Command:
    """Those that are about a PostgreSQL server, or about the program."""
    command: click.Command
    match name:
        case "replica":
            from assistant.cli.replica import replica as command
        case "fleet":
            from assistant.cli.fleet import fleet as command
        case _:
            from assistant.cli.docs import docs as command
    return command


def _load_from_table(name: str) -> click.Command:
    """Those of conversations, as they are there."""
    command: click.Command
    match name:
        case "undo":
            from assistant.commands.general import undo as command
        case "reset":
            from assistant.commands.sessions import reset as command
        case "compact":
            from assistant.commands.compaction import compact as command
        case "context":
            from assistant.commands.context_parts import context as command
        case "branch":
            from assistant.commands.compaction import branch as command
        case "requests":
            from assistant.commands.tasks import requests as command
        case "pins":
            from assistant.commands.compaction import pins as command
        case "add":
            from assistant.commands.files import add as command
        case "files":
            from assistant.commands.files import files as command
        case "forget":
            from assistant.commands.erasure import forget as command
        case "sleep":
            from assistant.commands.sleep import sleep as command
        case "agenda":
            from assistant.commands.todo import agenda as command
        case "brief":
            from assistant.commands.todo import brief as command
        case "todo":
            from assistant.commands.todo import todo as command
        case "remind":
            from assistant.commands.reminders import remind as command
        case "schedule":
            from assistant.commands.schedules import schedule as command
        case "contacts":
            from assistant.commands.calendars import contacts as command
        case "people":
            from assistant.commands.people import people as command
        case "approvals":
            from assistant.commands.approvals import approvals as command
        case "notify":
            from assistant.commands.notify import notify as command
        case "deliveries":
            from assistant.commands.bridges import deliveries as command
        case _:
            raise LookupError(name)
    return command


@click.group(
    cls=LazyGroup,
    names=[name for commands in _MENU.values() for name in commands],
    load=_load,
    menu=_MENU,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`aihistory` shows what was compacted, and the original messages.",
)
@click.version_option(__version__, prog_name="assistant")
@click.option("--debug", is_flag=True, help="Show the traceback of an error, not only its line.")
@click.pass_context
def assistant(context: click.Context, debug: bool) -> None:
    """Nocturne: a personal assistant that keeps every message, and sleeps.

    Begin with `assistant chat`, or `assistant run` to keep it running. `assistant help NAME` explains a command.

    Exit codes: 0 fine, 1 failed, 2 wrong use, 3 the model cannot be reached (the message is kept), 4 the budget is
    used up.
    """
    context.obj = _run_in_shell


def _run_in_shell(parsed: ParsedCommand) -> None:
    from assistant.cli.shell import run_in_shell  # settings and stores are loaded where a command runs

    run_in_shell(parsed)


def main() -> None:
    # Before numpy is loaded: what a search multiplies is small, and threads that wait for a busy core cost it ten times
    # what they save. A person may set another number.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    run_and_exit(assistant)


if __name__ == "__main__":
    main()
