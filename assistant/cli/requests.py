"""`assistant requests`: what was asked of the assistant and is not done, and the word that it is."""

from __future__ import annotations

from typing import Any

import click

from assistant.cli.commanding import command
from assistant.cli.in_force import settings_in_force
from assistant.cli.plain import as_json, say_markdown
from assistant.cli.stored import opened, scope_of_session
from assistant.cli.tables import local, table
from assistant.cli.text import one_line
from assistant.core.checkpoints import UserRequest
from assistant.core.errors import UsageError
from assistant.core.sessions import MAIN_SESSION
from assistant.settings.settings import Settings

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
    settings = settings_in_force(looks=not ids)
    answer = command(settings, f"/{'done' if done else 'drop'} {' '.join(map(str, ids))}", session) if ids else ""
    if answer and not json_out:
        say_markdown(answer)
        return
    found = _found(settings, session, everything)
    if json_out:
        as_json([_as_json(request) for request in found])
    else:
        _draw(found, settings, "Nothing was asked yet." if everything else "Nothing is open.")


def _found(settings: Settings, session: str, everything: bool) -> list[UserRequest]:
    with opened(settings) as stores:
        scope = scope_of_session(stores.conversation, session)
        if not everything:
            return stores.requests.open(session, limit=_MOST)
        return [one for one in stores.requests.all(scope, limit=_MOST) if one.session == session]


def _draw(found: list[UserRequest], settings: Settings, empty: str) -> None:
    table(
        ("id", "asked", "state", "what"),
        [(str(r.message_id), local(r.opened_at, settings.zone), _state(r), one_line(r.text, 200)) for r in found],
        right=("id",),
        empty=empty,
    )


def _state(request: UserRequest) -> str:
    by = {"answer": "answered", "model": "by the assistant", "user": "by you"}.get(request.closed_by, "")
    kind = "task" if request.task else "question"
    return f"{request.state} {kind}" + (f", {by}" if by else "")


def _as_json(request: UserRequest) -> dict[str, Any]:
    return {
        "id": request.message_id, "session": request.session, "at": request.opened_at.isoformat(),
        "state": request.state, "task": request.task, "text": request.text, "answered_by": request.answered_by,
        "closed_by": request.closed_by, "cites": list(request.cites),
        "closed_at": request.closed_at.isoformat() if request.closed_at else None,
    }  # fmt: skip
