"""What a shell completes beyond what click does: files, and what the command takes that a group implies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem  # what no command needs but the one that a shell asks


def complete_files(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave it to the shell, which knows the files."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def complete_names(names: Iterable[str]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Complete one of these names."""
    return lambda context, parameter, incomplete: [name for name in names if name.startswith(incomplete)]


def with_implied(
    own: list[CompletionItem], implied: click.Command | None, context: click.Context, incomplete: str
) -> list[CompletionItem]:
    """Add to what a group completes the options of the command that it implies, or its first argument."""
    if implied is None:
        return own
    below = click.Context(implied, context, info_name=implied.name, resilient_parsing=True)
    first = next((one for one in implied.params if isinstance(one, click.Argument)), None)
    asked = implied if incomplete.startswith("-") else first
    more = asked.shell_complete(below, incomplete) if asked is not None else []
    known = {item.value for item in own}
    return [*own, *(item for item in more if item.value not in known)]
