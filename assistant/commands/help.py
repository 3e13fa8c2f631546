"""`/help`: the commands by subject, how one of them is used, and the keys of a terminal."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

import click

from assistant.commands.argv import ALIASES, expand_alias, rewrite_for_chat
from assistant.commands.context import CommandContext, CommandEntry
from assistant.commands.table import TableCommand, words_argument
from assistant.commands.usage_line import usage_line
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.permissions import ALL_ROLES

KEYS = """Keys in a terminal:

- **Enter** sends, **Alt-Enter** (or Esc, then Enter) begins a new line; pasted lines stay together.
- **Tab** and the arrow keys choose from the menu that `/` opens; **Esc** closes it.
- **Up** and **Down** bring back what you typed before; **Ctrl-R** searches it.
- **Ctrl-C** clears the line; on an empty line it stops the answer that is being written.
- **Ctrl-D** on an empty line, `exit`, `quit` or `bye` leave. What was said is kept."""

_OF_A_SHELL = (" --json", " --session", " --yes", " | ", " > ")


@dataclass(frozen=True, slots=True)
class HelpAnswer:
    """What can be typed."""

    text: str  # Markdown
    commands: list[CommandEntry]  # every command that may be used here, also those within others


@click.command(cls=TableCommand, roles=ALL_ROLES, with_session=False)
@words_argument("words", required=False, metavar="COMMAND")
def help(context: CommandContext, words: str) -> HelpAnswer:
    """Show what you can type, or how one command is used. `/help keys` lists the keys of a terminal.

    > /help
    > /help pins
    > /help keys
    """
    entries, path = context.list_commands(), words.removeprefix("/").split()
    if not path:
        text = _overview(entries, with_keys=context.bridge == "terminal")
    else:
        text = KEYS if path == ["keys"] else _details(entries, [path[0].lower(), *path[1:]])
    return HelpAnswer(text, list(entries))


def describe_commands(
    groups: Mapping[str, Sequence[click.Command]], usable: Collection[str], role: str
) -> Iterator[CommandEntry]:
    """Each command of the `groups` whose name, or short form, is `usable`, followed by those within it."""
    for subject, commands in groups.items():
        for command in commands:
            name = command.name or ""
            shown = [short for short, path in ALIASES.items() if path[0] == name and len(path) > 1]
            if name in usable:
                yield from _entries(command, (name,), subject, role)
            for short in shown:
                if short in usable and isinstance(command, click.Group):
                    yield _entry(command.commands[ALIASES[short][1]], (short,), subject)


def _entries(command: click.Command, path: tuple[str, ...], subject: str, role: str) -> Iterator[CommandEntry]:
    yield _entry(command, path, subject)
    for name, within in command.commands.items() if isinstance(command, click.Group) else ():
        if not isinstance(within, TableCommand) or role in within.roles:
            yield from _entries(within, (*path, name), subject, role)


def _entry(command: click.Command, path: tuple[str, ...], subject: str) -> CommandEntry:
    about = rewrite_for_chat(command.get_short_help_str(limit=200).rstrip("."))
    paragraphs = rewrite_for_chat(inspect.cleandoc(command.help or "")).split("\n\n")
    more = "\n\n".join(part.strip() for part in paragraphs if not part.startswith("\b"))
    examples = [line.strip() for part in paragraphs if part.startswith("\b") for line in part.splitlines()[2:]]
    # Some examples only a shell understands.
    typed = [line for line in examples if line.startswith("/") and not any(it in line for it in _OF_A_SHELL)]
    return CommandEntry(f"/{' '.join(path)}", subject, usage_line(command, path), about, more, typed)


def _overview(entries: Sequence[CommandEntry], *, with_keys: bool) -> str:
    top = [entry for entry in entries if " " not in entry.name]
    blocks = [
        "\n".join([f"**{subject}**", "", *(f"- `{entry.name}` — {entry.about}" for entry in group)])
        for subject, group in groupby(top, attrgetter("subject"))
    ]
    keys = " `/help keys` lists the keys, and `/quit` leaves; what was said is kept." if with_keys else ""
    return "\n\n".join([*blocks, f"`/help todo` shows how one of them is used.{keys}"])


def _details(entries: Sequence[CommandEntry], path: Sequence[str]) -> str:
    by_name = {entry.name: entry for entry in entries}
    entry = by_name.get(f"/{' '.join(path)}") or by_name.get(f"/{' '.join(expand_alias(path))}")
    if entry is None:
        raise UsageError(f"There is no command /{' '.join(path)} here. `/help` lists the commands.")
    within = [it for it in entries if it.name.startswith(f"{entry.name} ")]
    lines = [f"`{entry.usage}`", "", entry.more]
    lines += ["", *(f"- `{it.usage}` — {it.about}" for it in within)] if within else []
    lines += ["", f"For example: {', '.join(f'`{line}`' for line in entry.examples)}"] if entry.examples else []
    return "\n".join(lines)
