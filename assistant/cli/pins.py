"""`assistant pins`: words that stand in every request to the model, whatever is compacted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from assistant.cli.commanding import command
from assistant.cli.in_force import settings_in_force
from assistant.cli.options import Function, given, shared
from assistant.cli.plain import as_json, say_markdown
from assistant.cli.stored import opened, scope_of_session
from assistant.cli.tables import local, table
from assistant.cli.text import one_line, typed
from assistant.core.checkpoints import Pin
from assistant.core.errors import UsageError
from assistant.core.sessions import MAIN_SESSION
from assistant.settings.settings import Settings


def _options(function: Function) -> Function:
    session: Callable[[Function], Function] = shared("--session", "The conversation (main).", metavar="NAME")
    return session(shared("--json", "Print a JSON array of the pins, oldest first.", is_flag=True)(function))


@click.group(invoke_without_command=True)
@_options
@click.pass_context
def pins(context: click.Context) -> None:
    """List what is pinned: words that no compaction touches, sent with every request.

    \b
    Example:
      assistant pins
      assistant pins add "The dog is allergic to chicken"
      assistant pins add 12
      assistant pins remove 3
    """
    if context.invoked_subcommand is None:
        _list(settings_in_force(looks=True), _session(context), bool(given(context, "json")))


@pins.command()
@click.argument("words", metavar="TEXT|ID", nargs=-1, required=True)
@_options
@click.pass_context
def add(context: click.Context, words: tuple[str, ...]) -> None:
    """Pin a text, or the message with this ID (`assistant log` shows them).

    \b
    Example:
      assistant pins add "The dog is allergic to chicken"
      assistant pins add 12
    """
    text = typed(" ".join(words), "The text").strip()
    if not text:
        raise UsageError("There is nothing to pin in that. Nothing was changed.")
    _changed(context, f"/pin {text}")


@pins.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True, type=click.IntRange(min=1))
@_options
@click.pass_context
def remove(context: click.Context, ids: tuple[int, ...]) -> None:
    """Take pins away, by their own numbers as `assistant pins` lists them.

    \b
    Example:
      assistant pins remove 3
    """
    _changed(context, f"/unpin {' '.join(map(str, ids))}")


def _changed(context: click.Context, text: str) -> None:
    settings, session = settings_in_force(), _session(context)
    answer = command(settings, text, session)
    if given(context, "json"):
        _list(settings, session, True)
    else:
        say_markdown(answer)


def _session(context: click.Context) -> str:
    return str(given(context, "session") or MAIN_SESSION)


def _list(settings: Settings, session: str, json_out: bool) -> None:
    with opened(settings) as stores:
        scope_of_session(stores.conversation, session)
        found = stores.pins.all(session)
    if json_out:
        as_json([_as_json(pin) for pin in found])
        return
    table(
        ("id", "since", "message", "text"),
        [
            (
                str(pin.id), local(pin.created_at, settings.zone),
                "" if pin.message_id is None else f"{pin.role} #{pin.message_id}", one_line(pin.text, 300),
            )
            for pin in found
        ],
        right=("id",),
        empty='Nothing is pinned. Pin something with `assistant pins add "..."`.',
    )  # fmt: skip


def _as_json(pin: Pin) -> dict[str, Any]:
    return {
        "id": pin.id, "session": pin.session, "at": pin.created_at.isoformat(), "role": pin.role,
        "message_id": pin.message_id, "text": pin.text,
    }  # fmt: skip
