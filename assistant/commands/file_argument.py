"""A file as the argument of a command: read where the person is who names it.

What always holds: a terminal of the owner's reads the file and sends what it says. From anywhere else, a network or the
API, a file is read inside the workspace alone (`CommandContext.read_file`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from assistant.commands.completion import complete_files
from assistant.commands.table import ParsedCommand

CONTENT_OPTION = "--content"
# What goes to a daemon in one request, with room for how it is written there.
MAX_FILE_BYTES = 32 * 1024 * 1024


_HELP = "What the file says, from the terminal that read it."


def file_argument(name: str, content: str) -> Callable[[Any], Any]:
    """A file to be read. A terminal of the owner's reads it and sends what it says as the parameter `content`; without
    that it is read inside the workspace alone (`CommandContext.read_file`)."""

    def declare(function: Any) -> Any:
        hidden = click.option(CONTENT_OPTION, content, hidden=True, type=click.UNPROCESSED, help=_HELP)(function)
        return click.argument(
            name, cls=_FileArgument, metavar="FILE", type=click.UNPROCESSED, shell_complete=complete_files
        )(hidden)

    return declare


class _FileArgument(click.Argument):
    pass


def named_file(parsed: ParsedCommand) -> str | None:
    """The file that a command line names and whose content it has not; None where there is none."""
    has_content = any(
        CONTENT_OPTION in option.opts and parsed.params.get(option.name or "") is not None
        for option in parsed.command.params
    )
    names = (parsed.params[p.name or ""] for p in parsed.command.params if isinstance(p, _FileArgument))
    return None if has_content else next(names, None)
