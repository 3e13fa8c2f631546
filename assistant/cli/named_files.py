"""Files that a person names in a command at their own terminal: this process reads them, as the person may, and sends
what they say. The process that runs the command reads no file for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from assistant.cli.link import Link
from assistant.commands.argv import command_name, expand_alias, split_line
from assistant.commands.file_argument import CONTENT_OPTION, MAX_FILE_BYTES, named_file
from assistant.commands.table import ParsedCommand, parse_command
from assistant.core.errors import UsageError
from assistant.core.plain_files import FileRefused, expand_home, read_plain_text
from assistant.settings.home import home_from_environment

_COMMANDS_WITH_FILES = ("memory", "add")


def with_named_files(parsed: ParsedCommand, argv: Sequence[str]) -> list[str]:
    """The words of a command, with what its files say, or with where they were copied to. Raises `UsageError`."""
    if parsed.path != ("add",) or not parsed.params["sources"]:
        return with_file_content(parsed, argv)
    from assistant.cli.added_files import with_added_files  # one command needs it

    return with_added_files(home_from_environment(), parsed)


def with_file_content(parsed: ParsedCommand, argv: Sequence[str]) -> list[str]:
    """The words of a command, and what the file says that they name. Raises `UsageError`."""
    name = named_file(parsed)
    if name is None:
        return list(argv)
    try:
        content = read_plain_text(expand_home(name), MAX_FILE_BYTES)
    except FileRefused as error:
        raise UsageError(f"{name} {error}. Nothing was changed.") from None
    place = len(parsed.path)
    return [*argv[:place], f"{CONTENT_OPTION}={content}", *argv[place:]]


async def run_typed_command(link: Link, text: str, session: str) -> str:
    """Run what was typed with a slash in a terminal; what to show."""
    if command_name(text) in _COMMANDS_WITH_FILES:
        from assistant.commands.catalog import command_root  # all commands: only where one was typed

        argv = expand_alias(split_line(text.strip().removeprefix("/")))
        parsed = parse_command(command_root(), argv)
        if named_file(parsed) is not None or parsed.path == ("add",):
            words = await asyncio.to_thread(with_named_files, parsed, argv)
            return (await link.run_argv(words, session, parsed.command.max_seconds)).text_and_remark
    return await link.run_command(text.strip(), session)
