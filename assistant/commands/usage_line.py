"""How a command is typed in a conversation, with its options."""

from __future__ import annotations

from collections.abc import Sequence

import click

# Parameters of the options that only a shell has, on every command.
AS_JSON, SESSION_NAME = "as_json", "session_name"


class ShellOption(click.Option):
    """An option that a conversation refuses, and that its help does not name."""


def usage_line(command: click.Command, path: Sequence[str]) -> str:
    """`/pins add TEXT`, with its options."""
    context = click.Context(command, info_name="/" + " ".join(path))
    pieces = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    if isinstance(command, click.Group):
        pieces = [f"[{' | '.join(command.commands)}]"]
    options = [
        f"[{option.opts[0]}{'' if option.is_flag else f' {option.metavar or _placeholder(option)}'}]"
        for option in command.params
        if isinstance(option, click.Option)
        and option.name not in (AS_JSON, SESSION_NAME)
        and not (option.hidden or isinstance(option, ShellOption))
    ]
    return " ".join([f"/{' '.join(path)}", *pieces, *options])


def _placeholder(option: click.Option) -> str:
    return "N" if isinstance(option.type, click.types.IntParamType) else str(option.name).upper()
