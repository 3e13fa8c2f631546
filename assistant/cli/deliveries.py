"""`assistant deliveries`: what did not get to where it was to go, or may not have, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable

import click

from assistant.cli.commanding import command
from assistant.cli.in_force import settings_in_force
from assistant.cli.options import Function, given, shared
from assistant.cli.plain import as_json, say_markdown
from assistant.cli.stored import opened
from assistant.cli.tables import local, table
from assistant.cli.text import one_line
from assistant.commands.bridging_report import NOTHING_STUCK, excerpt, meaning, stuck_json
from assistant.core.bridge_api import UndeliveredItem
from assistant.core.sessions import MAIN_SESSION
from assistant.settings.settings import Settings

_json: Callable[[Function], Function] = shared(
    "--json", "Print a JSON array of what is stuck, oldest first.", is_flag=True
)  # fmt: skip
_ids = click.argument("ids", metavar="ID...", nargs=-1, required=True, type=click.IntRange(min=1))


@click.group(invoke_without_command=True)
@_json
@click.pass_context
def deliveries(context: click.Context) -> None:
    """List what did not arrive where it was to go, or may not have.

    What may have arrived, or was refused, is never sent again by itself: you decide. What is tried again by itself you
    can drop: what came after it waits for it.

    \b
    Example:
      assistant deliveries
      assistant deliveries again 12
      assistant deliveries drop 12 13
    """
    if context.invoked_subcommand is None:
        _list(settings_in_force(looks=True), bool(given(context, "json")))


@deliveries.command()
@_ids
@_json
@click.pass_context
def again(context: click.Context, ids: tuple[int, ...]) -> None:
    """Send these once more, even where they may have arrived: then they are there twice.

    \b
    Example:
      assistant deliveries again 12
    """
    _changed(context, "again", ids)


@deliveries.command()
@_ids
@_json
@click.pass_context
def drop(context: click.Context, ids: tuple[int, ...]) -> None:
    """Let these go: they are not sent any more, and not listed. The conversation keeps what was said.

    \b
    Example:
      assistant deliveries drop 12 13
    """
    _changed(context, "drop", ids)


def _changed(context: click.Context, what: str, ids: tuple[int, ...]) -> None:
    settings = settings_in_force()
    answer = command(settings, f"/deliveries {what} {' '.join(map(str, ids))}", MAIN_SESSION)
    if given(context, "json"):
        _list(settings, True)
    else:
        say_markdown(answer)


def _list(settings: Settings, json_out: bool) -> None:
    with opened(settings) as stores:
        stuck = stores.deliveries.stuck()
    if json_out:
        as_json([stuck_json(one) for one in stuck])
        return
    table(
        ("id", "to", "when", "state", "what"),
        [
            (str(one.id), one.bridge, local(one.created_at, settings.zone), _state(one), one_line(excerpt(one), 100))
            for one in stuck
        ],
        right=("id",),
        empty=NOTHING_STUCK,
    )


def _state(one: UndeliveredItem) -> str:
    return f"{meaning(one)}: {one_line(one.error, 100)}" if one.error else meaning(one)
