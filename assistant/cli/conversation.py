"""`assistant pins`, `assistant requests` and `assistant compact`: what a conversation keeps in every request to the
model, what was asked of the assistant and is not done, and making room in the context now, seeing first what that
would do, or taking it back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from assistant.cli.aihistory.compactions import compaction_json
from assistant.cli.effective_settings import load_effective_settings
from assistant.cli.home_stores import open_home_stores, scope_of_session
from assistant.cli.options import Function, shared_option, shared_option_value
from assistant.cli.output import print_json, print_markdown
from assistant.cli.remote import print_slash_command, run_slash_command
from assistant.cli.tables import format_local_time, print_table
from assistant.cli.text import require_utf8, shorten_line
from assistant.core.checkpoints import Checkpoint, CheckpointState, Pin, UserRequest
from assistant.core.errors import UsageError
from assistant.core.sessions import MAIN_SESSION
from assistant.settings.settings import Settings


def _options(function: Function) -> Function:
    session: Callable[[Function], Function] = shared_option("--session", "The conversation (main).", metavar="NAME")
    return session(shared_option("--json", "Print a JSON array of the pins, oldest first.", is_flag=True)(function))


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
        _list(load_effective_settings(read_only=True), _session(context), bool(shared_option_value(context, "json")))


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
    text = require_utf8(" ".join(words), "The text").strip()
    if not text:
        raise UsageError("There is nothing to pin in that. Nothing was changed.")
    _change_pins(context, f"/pin {text}")


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
    _change_pins(context, f"/unpin {' '.join(map(str, ids))}")


def _change_pins(context: click.Context, text: str) -> None:
    settings, session = load_effective_settings(), _session(context)
    answer = run_slash_command(settings, text, session)
    if shared_option_value(context, "json"):
        _list(settings, session, True)
    else:
        print_markdown(answer)


def _session(context: click.Context) -> str:
    return str(shared_option_value(context, "session") or MAIN_SESSION)


def _list(settings: Settings, session: str, json_out: bool) -> None:
    with open_home_stores(settings) as stores:
        scope_of_session(stores.conversation, session)
        found = stores.pins.list_pins(session)
    if json_out:
        print_json([_pin_json(pin) for pin in found])
        return
    print_table(
        ("id", "since", "message", "text"),
        [
            (
                str(pin.id),
                format_local_time(pin.created_at, settings.zone),
                "" if pin.message_id is None else f"{pin.role} #{pin.message_id}",
                shorten_line(pin.text, 300),
            )
            for pin in found
        ],
        right=("id",),
        empty='Nothing is pinned. Pin something with `assistant pins add "..."`.',
    )


def _pin_json(pin: Pin) -> dict[str, Any]:
    return {
        "id": pin.id,
        "session": pin.session,
        "at": pin.created_at.isoformat(),
        "role": pin.role,
        "message_id": pin.message_id,
        "text": pin.text,
    }


_MOST = 1000


@click.command()
@click.argument("ids", metavar="[ID]...", nargs=-1, type=click.IntRange(min=1))
@click.option("--all", "everything", is_flag=True, help="Those that are done or dropped too.")
@click.option("--done", is_flag=True, help="Mark the requests with these IDs as done.")
@click.option("--drop", is_flag=True, help="Mark them as no longer wanted.")
@click.option("--session", default=MAIN_SESSION, show_default=True, metavar="NAME", help="The conversation.")
@click.option("--json", "json_out", is_flag=True, help="Print a JSON array, newest first.")
def requests(ids: tuple[int, ...], everything: bool, done: bool, drop: bool, session: str, json_out: bool) -> None:
    """List what you asked for and what is still open, newest first. A compaction keeps open requests word for word.

    Questions close with their answer; a task stays open until the assistant, or you, say that it is done. An ID is that
    of the message.

    \b
    Example:
      assistant requests
      assistant requests --done 12 15
      assistant requests --all --json
    """
    if done and drop:
        raise UsageError("Give --done or --drop, not both. Nothing was changed.")
    if bool(ids) != (done or drop):
        raise UsageError("Name the requests with --done or --drop, as in `assistant requests --done 12`.")
    settings = load_effective_settings(read_only=not ids)
    answer = (
        run_slash_command(settings, f"/{'done' if done else 'drop'} {' '.join(map(str, ids))}", session) if ids else ""
    )
    if answer and not json_out:
        print_markdown(answer)
        return
    found = _found(settings, session, everything)
    if json_out:
        print_json([_request_json(request) for request in found])
    else:
        _draw(found, settings, "Nothing was asked yet." if everything else "Nothing is open.")


def _found(settings: Settings, session: str, everything: bool) -> list[UserRequest]:
    with open_home_stores(settings) as stores:
        scope = scope_of_session(stores.conversation, session)
        if not everything:
            return stores.requests.list_open(session, limit=_MOST)
        return [one for one in stores.requests.list_requests(scope, limit=_MOST) if one.session == session]


def _draw(found: list[UserRequest], settings: Settings, empty: str) -> None:
    print_table(
        ("id", "asked", "state", "what"),
        [
            (str(r.message_id), format_local_time(r.opened_at, settings.zone), _state(r), shorten_line(r.text, 200))
            for r in found
        ],
        right=("id",),
        empty=empty,
    )


def _state(request: UserRequest) -> str:
    by = {"answer": "answered", "model": "by the assistant", "user": "by you"}.get(request.closed_by, "")
    kind = "task" if request.task else "question"
    return f"{request.state} {kind}" + (f", {by}" if by else "")


def _request_json(request: UserRequest) -> dict[str, Any]:
    return {
        "id": request.message_id,
        "session": request.session,
        "at": request.opened_at.isoformat(),
        "state": request.state,
        "task": request.task,
        "text": request.text,
        "answered_by": request.answered_by,
        "closed_by": request.closed_by,
        "cites": list(request.cites),
        "closed_at": request.closed_at.isoformat() if request.closed_at else None,
    }


_NEWEST = "newest"


@click.command()
@click.option("--session", default=MAIN_SESSION, show_default=True, metavar="NAME", help="The conversation to compact.")
@click.option("--focus", metavar="TEXT", help="What the summary should keep in mind above all.")
@click.option(
    "--dry-run", is_flag=True, help="Only tell what would go, what would stay and why, and what it would cost."
)
@click.option(
    "--undo",
    is_flag=False,
    flag_value=_NEWEST,
    metavar="[ID]",
    help="Restore the view from before the newest compaction; with an ID from before that one, later ones included.",
)
@click.option(
    "--json", "json_out", is_flag=True, help="Print a JSON array of what was made or undone, as `aihistory` does."
)
def compact(session: str, focus: str | None, dry_run: bool, undo: str | None, json_out: bool) -> None:
    """Summarise the older part of a conversation, so that its context has room again.

    Nothing is lost: the messages stay in the master log, and --undo brings them back into view.

    \b
    Example:
      assistant compact --dry-run
      assistant compact --focus "the move to Bergen"
      assistant compact --undo
    """
    if dry_run and json_out:
        raise UsageError("--dry-run prints its plan as text; there is no --json of it.")
    text = build_compact_command(focus, dry_run, undo)
    settings = load_effective_settings()
    if not json_out:
        print_slash_command(settings, text, session)
        return
    before = _states(settings, session)
    run_slash_command(settings, text, session)
    print_json(
        [compaction_json(one) for one in _changed_compactions(settings, session, before, undone=undo is not None)]
    )


def build_compact_command(focus: str | None, dry_run: bool, undo: str | None) -> str:
    """What the options say, as it is typed in a conversation. Raises `UsageError` where they contradict each other."""
    words = require_utf8(focus or "", "The focus").strip()
    if (focus is not None) + dry_run + (undo is not None) > 1:
        raise UsageError("Give one of --focus, --dry-run and --undo. Nothing was compacted.")
    if words.startswith("-"):
        raise UsageError("The focus begins with a dash, so it would be read as an option. Nothing was compacted.")
    if dry_run:
        return "/compact --dry-run"
    if undo is None:
        return f"/compact {words}".strip()
    if undo == _NEWEST:
        return "/compact --undo"
    if not undo.isascii() or not undo.isdigit():
        raise UsageError(f"{undo!r} is not the number of a compaction; `aihistory` lists them. Nothing was undone.")
    return f"/compact --undo {int(undo)}"


def _states(settings: Settings, session: str) -> dict[int, CheckpointState]:
    with open_home_stores(settings) as stores:
        scope_of_session(stores.conversation, session)
        return {one.id: one.state for one in stores.conversation.checkpoints(session)}


def _changed_compactions(
    settings: Settings, session: str, before: dict[int, CheckpointState], *, undone: bool
) -> list[Checkpoint]:
    """The compactions that were not there before, or that were undone since, newest first."""
    with open_home_stores(settings) as stores:
        found = stores.conversation.checkpoints(session)
    return [
        one
        for one in sorted(found, key=lambda one: one.id, reverse=True)
        if (one.state == "undone" and before.get(one.id) != "undone" if undone else one.id not in before)
    ]
