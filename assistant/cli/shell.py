"""Commands of the table (`assistant.commands`) in a shell.

One that reads runs in this process, beside a daemon or without one. All others are run by the process that serves the
data folder: the daemon, or this process where none runs. So what a command line changes goes one way.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import click

from assistant.cli.home_stores import load_effective_settings, open_home_stores
from assistant.cli.lazy import ARGV
from assistant.cli.logging_setup import log_to_file
from assistant.cli.named_files import with_named_files
from assistant.cli.open_link import open_home_locally, open_link, run_with_signals
from assistant.cli.output import clean_for_terminal, print_json, print_markdown, print_remark, require_utf8
from assistant.cli.prompts import read_next_line
from assistant.commands.argv import rewrite_for_shell
from assistant.commands.context import CommandContext, CommandStores
from assistant.commands.table import CommandGroup, CommandResult, Confirmation, ParsedCommand, TableCommand
from assistant.core.calendar import utc_now
from assistant.core.errors import AssistantError, NewHome, StoreError, UsageError
from assistant.core.sessions import MAIN_SESSION
from assistant.service.home_lock import is_home_served
from assistant.settings.settings import Settings

_LOOK_EVERY = 0.2


def run_in_shell(parsed: ParsedCommand) -> None:
    """Run a command of the table and print what it did. Ends with the exit code of its result."""
    context = click.get_current_context()
    for word in context.meta.get(ARGV, ()):
        require_utf8(word, "What you wrote")
    session = parsed.session or MAIN_SESSION
    settings = load_effective_settings(read_only=parsed.command.reads)
    try:
        if parsed.command.reads:
            result = asyncio.run(_read(settings, parsed, session))
        else:
            result = run_with_signals(_run(settings, parsed, _words(context, parsed), session))
    except KeyboardInterrupt:
        if parsed.command.reads:
            raise
        if is_home_served(settings.home.path):
            print_remark(f"`assistant {' '.join(parsed.path)}` continues in the running assistant.")
        else:
            print_remark("It was interrupted. What was done is kept.")
        raise
    except NewHome as error:
        if parsed.session is not None or _names_something(parsed):
            raise
        result = CommandResult(str(error), None)
    except AssistantError as error:
        error.args = (rewrite_for_shell(str(error)), *error.args[1:])
        raise
    print_result(result, as_json=parsed.as_json)
    context.exit(result.exit_code)


def _names_something(parsed: ParsedCommand) -> bool:
    """Whether the words of a command are about something of its own, which is not there where nothing is."""
    arguments = (param for param in parsed.command.params if isinstance(param, click.Argument))
    return any(parsed.params.get(argument.name or "") for argument in arguments)


def with_commands(group: CommandGroup, *commands: click.Command) -> CommandGroup:
    """A group of the table with commands that only a shell has."""
    everything = {**group.commands, **{command.name or "": command for command in commands}}
    return CommandGroup(group.name, everything, help=group.help, default=group.default, is_free_text=group.is_free_text)


def print_result(result: CommandResult, *, as_json: bool) -> None:
    """Print the text as Markdown or the value as JSON on standard output, the remark on standard error."""
    if as_json:
        print_json(result.value)
    elif result.text:
        print_markdown(rewrite_for_shell(result.text))
    if result.remark:
        print_remark(rewrite_for_shell(result.remark))


async def _read(settings: Settings, parsed: ParsedCommand, session: str) -> CommandResult:
    from assistant.wire.services import build_command_stores

    with open_home_stores(settings) as stores:
        context = CommandContext(
            session=session,
            now=utc_now(),
            zone=settings.zone,
            stores=build_command_stores(settings, stores),
            running=None,
            surface="shell",
        )
        if parsed.session is not None:
            context.require_session()
        try:
            return await parsed.command.run(context, parsed.params)
        finally:
            await stores.memories.aclose()


async def _run(settings: Settings, parsed: ParsedCommand, argv: Sequence[str], session: str) -> CommandResult:
    log_to_file(settings.home.program_log)
    command = parsed.command
    async with open_link(settings, partial(open_home_locally, begins=command.creates_home)) as link:
        result = await _answer(settings, command, link.run_argv(argv, session, command.max_seconds))
        confirmation = result.confirmation
        if confirmation is None or parsed.as_json:
            return result
        if result.text:
            print_markdown(rewrite_for_shell(result.text))
        chosen = await _choose(confirmation)
        if chosen is None:
            print_remark("Nothing was changed.")
            return CommandResult("", None, result.exit_code)
        return await link.run_argv(chosen, session, command.max_seconds)


async def _answer(
    settings: Settings, command: TableCommand, running: Coroutine[Any, Any, CommandResult]
) -> CommandResult:
    """What a command did; a terminal that waits is shown how far it is."""
    task = asyncio.create_task(running)
    try:
        if command.follow is not None and sys.stderr.isatty():
            await _show_progress(settings, command.follow, task)
        return await task
    finally:
        task.cancel()


async def _show_progress(
    settings: Settings, follow: Callable[[CommandStores, datetime], str], task: asyncio.Task[CommandResult]
) -> None:
    """Until there is an answer. The stores are read beside the process that serves the data folder."""
    from rich.console import Console  # only where somebody looks on
    from rich.status import Status

    from assistant.wire.services import build_command_stores

    with open_home_stores(settings) as stores, Status("Starting", console=Console(stderr=True)) as status:
        reading = build_command_stores(settings, stores)
        while not task.done():
            with contextlib.suppress(StoreError):
                status.update(clean_for_terminal(follow(reading, utc_now())))
            await asyncio.wait([task], timeout=_LOOK_EVERY)


async def _choose(confirmation: Confirmation) -> Sequence[str] | None:
    """The words to run by what a person answers; None to leave everything as it is."""
    if not sys.stdin.isatty():
        raise UsageError("This needs an answer, and there is no terminal to ask at; add `--yes`. Nothing was changed.")
    has_choice = confirmation.otherwise is not None
    sys.stderr.write(f"{confirmation.question} {'[Y/n, c to cancel]' if has_choice else '[y/N]'} ")
    sys.stderr.flush()
    line = await read_next_line()
    answer = (line or "").strip().lower()
    if answer in ("y", "yes") or (has_choice and line is not None and not answer):
        return confirmation.argv
    return confirmation.otherwise if answer in ("n", "no") else None


def _words(context: click.Context, parsed: ParsedCommand) -> list[str]:
    """The words of the command from its name on, and what the file says that they name: a daemon works elsewhere."""
    argv: list[str] = context.meta[ARGV]
    return with_named_files(parsed, argv[argv.index(parsed.path[0]) :])
