"""The man pages of `assistant` and `aihistory`, from the same help that the terminal shows: one page for each program,
with all commands below it, as people search in one page rather than in a hundred."""

from __future__ import annotations

from collections.abc import Iterator

import click

_FILES = """\
.SH FILES
.TP
.I ~/.local/share/assistant
The data folder: messages, memories, files, backups; on macOS ~/Library/Application Support/assistant. Another one: the
variable ASSISTANT_HOME.
.TP
.I config.toml
In the data folder: your settings. `assistant config show` shows all, with their defaults.
"""


def render_man_page(root: click.Command, about: str, also: str) -> str:
    """`about`: one line of what it is; `also`: the page that goes with it. Roff, as groff_man(7) describes it."""
    name = str(root.name)
    context = click.Context(root, info_name=name, **root.context_settings)
    lines = [
        f'.TH {name.upper()} 1 "" "Nocturne" "User Commands"',
        ".SH NAME",
        rf"{_roff(name)} \- {_roff(about)}",
        ".SH SYNOPSIS",
        *_synopsis(context),
        ".SH DESCRIPTION",
        *_paragraphs(root.help or ""),
        ".SH OPTIONS",
        *_options(context),
        ".SH COMMANDS",
    ]
    for place in _commands(context):
        lines += [f".SS {_roff(place.command_path)}", *_synopsis(place)]
        lines += [*_paragraphs(place.command.help or ""), *_options(place)]
    return "\n".join([*lines, _FILES.rstrip(), ".SH SEE ALSO", f".BR {also} (1)"])


def _commands(context: click.Context) -> Iterator[click.Context]:
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if command is not None and not command.hidden:
                below = click.Context(command, parent=context, info_name=name)
                if not isinstance(command, click.Group) or command.invoke_without_command:
                    yield below
                yield from _commands(below)


def _synopsis(context: click.Context) -> list[str]:
    usage = " ".join(context.command.collect_usage_pieces(context))
    return [".PP", rf"\fB{_roff(context.command_path)}\fR {_roff(usage)}"]


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs of a docstring; examples, which the help marks by their indent, stay as they are."""
    for paragraph in text.replace("\b\n", "").strip().split("\n\n"):
        lines = paragraph.splitlines()
        examples = [line.strip().removeprefix("> ") for line in lines if line.startswith(("  ", "> "))]
        prose = " ".join(line.strip() for line in lines if not line.startswith(("  ", "> ")))
        if prose:
            yield from (".PP", _roff(prose))
        if examples:
            yield from (".PP", ".EX", *map(_roff, examples), ".EE")


def _options(context: click.Context) -> Iterator[str]:
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:
            yield from (".TP", rf"\fB{_roff(record[0])}\fR", _roff(" ".join(record[1].split())))


def _roff(text: str) -> str:
    """Text that roff reads as it is: no line begins a request, and a minus is one."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    escaped = "".join(letter if letter.isascii() else rf"\[u{ord(letter):04X}]" for letter in escaped)
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped
