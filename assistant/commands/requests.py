"""`requests`: what you asked for, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import CommandGroup, numbers_argument
from assistant.core.checkpoints import RequestState, UserRequest
from assistant.core.errors import UsageError
from assistant.core.people import ALL_ROLES
from assistant.core.text import shorten_line

_LIMIT = 1000
# More than this nobody reads in a conversation.
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class RequestItem:
    """One thing that was asked for."""

    id: int  # of the message it was asked in
    session: str
    at: datetime
    state: RequestState
    task: bool  # it is not over with its answer
    text: str
    answered_by: int | None  # the message that answered it
    closed_by: str  # "answer", "model", "user", or "" while it is open
    cites: tuple[int, ...]  # the messages that show that it is done
    closed_at: datetime | None


@click.group(cls=CommandGroup)
def requests() -> None:
    """What you asked for, and what became of it.

    Questions close with their answer. A task stays open until the assistant, or you, say that it is done; a compaction
    keeps open requests word for word. An ID is that of the message.

    \b
    Example:
      assistant requests
      assistant requests done 12 15
      assistant requests list --all --json
    """


def _render_list(items: Sequence[RequestItem], zone: tzinfo) -> str:
    lines = [_line(item, zone) for item in items[:_SHOWN]]
    older = len(items) - _SHOWN
    return "\n".join([*lines, *([f"- … and {older} older ones"] if older > 0 else [])]) or "No request is open."


def _render_closed(items: Sequence[RequestItem], _: tzinfo) -> str:
    words = {"done": "Done", "superseded": "Dropped"}
    return "\n".join(
        f"- {words.get(item.state, 'Open again')}: #{item.id} {shorten_line(item.text, 60)!r}" for item in items
    )


@requests.command("list", result=list[RequestItem], render=_render_list, roles=ALL_ROLES, reads=True)
@click.option("--all", "everything", is_flag=True, help="Also those that are done or dropped.")
def list_requests(context: CommandContext, everything: bool) -> list[RequestItem]:
    """List open requests, newest first.

    \b
    Example:
      assistant requests list --all
    """
    stores = context.stores
    if not everything:
        return [_item(request) for request in stores.requests.list_open(context.session, limit=_LIMIT)]
    found = stores.requests.list_requests(context.scope, limit=_LIMIT)
    return [_item(request) for request in found if request.session == context.session]


@requests.command("done", result=list[RequestItem], render=_render_closed, roles=ALL_ROLES)
@numbers_argument("ids")
def close_as_done(context: CommandContext, ids: Sequence[int]) -> list[RequestItem]:
    """Mark requests as done.

    \b
    Example:
      assistant requests done 12 15
    """
    return _close(context, ids, "done")


@requests.command("drop", result=list[RequestItem], render=_render_closed, roles=ALL_ROLES)
@numbers_argument("ids")
def drop(context: CommandContext, ids: Sequence[int]) -> list[RequestItem]:
    """Mark requests as no longer wanted.

    \b
    Example:
      assistant requests drop 12
    """
    return _close(context, ids, "superseded")


def _close(context: CommandContext, ids: Sequence[int], state: RequestState) -> list[RequestItem]:
    if not ids:
        raise UsageError("A number is missing. Nothing was changed.")
    closed = context.stores.requests.close_requests(context.session, ids, state, "user", (), context.now)
    return [_item(request) for request in closed]


def _item(request: UserRequest) -> RequestItem:
    return RequestItem(
        request.message_id,
        request.session,
        request.opened_at,
        request.state,
        request.task,
        request.text,
        request.answered_by,
        request.closed_by,
        request.cites,
        request.closed_at,
    )


_CLOSED_BY = {"answer": "answered", "model": "closed by the assistant", "user": "closed by you"}


def _line(item: RequestItem, zone: tzinfo) -> str:
    if item.state == "open":
        state = f"answered in #{item.answered_by}" if item.answered_by is not None else "not answered"
    else:
        state = f"{'dropped' if item.state == 'superseded' else item.state}, {_CLOSED_BY.get(item.closed_by, '')}"
    return f"- #{item.id} ({item.at.astimezone(zone).date()}, {state.strip(', ')}): {shorten_line(item.text, 100)}"
