"""What a group and its subcommands share: options, given before or after the subcommand's name, the last one counts;
and what is done where no subcommand is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


class ListingGroup(click.Group):
    """A group that does without a subcommand what its subcommand `list` does."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "invoke_without_command": True})

    def invoke(self, ctx: click.Context) -> Any:
        done = super().invoke(ctx)
        return ctx.invoke(self.commands["list"]) if ctx.invoked_subcommand is None else done


def shared_option(name: str, help_text: str, **attributes: Any) -> Callable[[Function], Function]:
    """An option for a command that asks `given` what it says, instead of taking it as an argument."""
    return click.option(name, help=help_text, expose_value=False, callback=_remember, **attributes)


def shared_option_value(context: click.Context, name: str) -> Any:
    """What the option said, wherever it stood; None where it was not given."""
    return context.meta.get(_key(name))


def _remember(context: click.Context, option: click.Parameter, value: Any) -> None:
    # `meta` is one for all contexts of a command line.
    if value and option.name:
        context.meta[_key(option.name)] = value


def _key(name: str) -> str:
    return f"{__name__}.{name}"
