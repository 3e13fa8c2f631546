"""`assistant deliveries`: what did not get to where it was to go, or may not have, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable

import click

from assistant.cli.effective_settings import load_effective_settings
from assistant.cli.home_stores import open_home_stores
from assistant.cli.options import Function, shared_option, shared_option_value
from assistant.cli.output import print_json, print_markdown
from assistant.cli.remote import run_slash_command
from assistant.cli.tables import format_local_time, print_table
from assistant.cli.text import shorten_line
from assistant.commands.bridges import NOTHING_STUCK, delivery_excerpt, describe_delivery_state, stuck_delivery_json
from assistant.core.bridge_api import UndeliveredItem
from assistant.core.sessions import MAIN_SESSION
from assistant.settings.settings import Settings

_json: Callable[[Function], Function] = shared_option(
    "--json", "Print a JSON array of what is stuck, oldest first.", is_flag=True
)
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
        _list(load_effective_settings(read_only=True), bool(shared_option_value(context, "json")))


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
    settings = load_effective_settings()
    answer = run_slash_command(settings, f"/deliveries {what} {' '.join(map(str, ids))}", MAIN_SESSION)
    if shared_option_value(context, "json"):
        _list(settings, True)
    else:
        print_markdown(answer)


def _list(settings: Settings, json_out: bool) -> None:
    with open_home_stores(settings) as stores:
        stuck = stores.deliveries.list_stuck()
    if json_out:
        print_json([stuck_delivery_json(one) for one in stuck])
        return
    print_table(
        ("id", "to", "when", "state", "what"),
        [
            (
                str(one.id),
                one.bridge,
                format_local_time(one.created_at, settings.zone),
                _state(one),
                shorten_line(delivery_excerpt(one), 100),
            )
            for one in stuck
        ],
        right=("id",),
        empty=NOTHING_STUCK,
    )


def _state(one: UndeliveredItem) -> str:
    return (
        f"{describe_delivery_state(one)}: {shorten_line(one.error, 100)}" if one.error else describe_delivery_state(one)
    )
