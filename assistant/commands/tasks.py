"""`requests`: what you asked for, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo

import click
from pydantic import Field

from assistant.commands.context import CommandContext
from assistant.commands.items import Item
from assistant.commands.table import CommandGroup, numbers_argument
from assistant.core.checkpoints import RequestState, UserRequest
from assistant.core.permissions import ALL_ROLES
from assistant.core.text import shorten_line

_LIMIT = 1000
# More than this nobody reads in a conversation.
_SHOWN = 20
_CLOSED_BY = {"answer": "answered", "model": "closed by the assistant", "user": "closed by you"}
_ENDS = {"done": "Done", "superseded": "Dropped"}


class RequestItem(Item):
    """One thing that was asked for."""

    id: int = Field(validation_alias="message_id")  # of the message it was asked in
    session: str
    at: datetime = Field(validation_alias="opened_at")
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

    > assistant requests
    > assistant requests done 12 15
    > assistant requests list --all --json
    """


def _render_list(requests: Sequence[UserRequest], zone: tzinfo) -> str:
    lines = [_line(request, zone) for request in requests[:_SHOWN]]
    older = len(requests) - _SHOWN
    return "\n".join([*lines, *([f"- … and {older} older ones"] if older > 0 else [])]) or "No request is open."


def _line(request: UserRequest, zone: tzinfo) -> str:
    ended: str = "dropped" if request.state == "superseded" else request.state
    if request.closed_at is not None:
        ended += f" {request.closed_at.astimezone(zone).date()}"
    state = ", ".join(filter(None, [ended, _CLOSED_BY.get(request.closed_by)]))
    if request.state == "open":
        state = "answered" if request.answered_by is not None else "not answered"
    day = request.opened_at.astimezone(zone).date()
    return f"- #{request.message_id} ({day}, {state}): {shorten_line(request.text, 100)}"


def _render_closed(requests: Sequence[UserRequest], _: tzinfo) -> str:
    return "\n".join(
        f"- {_ENDS.get(request.state, 'Open again')}: #{request.message_id} {shorten_line(request.text, 60)!r}"
        for request in requests
    )


@requests.command("list", result=list[RequestItem], render=_render_list, roles=ALL_ROLES, reads=True)
@click.option("--all", "everything", is_flag=True, help="Also those that are done or dropped.")
def list_requests(context: CommandContext, everything: bool) -> Sequence[UserRequest]:
    """List open requests, newest first.

    > assistant requests list --all
    """
    store = context.stores.requests
    if not everything:
        return store.list_open(context.session, limit=_LIMIT)
    in_scope = store.list_requests(context.scope, limit=_LIMIT)
    return [request for request in in_scope if request.session == context.session]


@requests.command("done", result=list[RequestItem], render=_render_closed, roles=ALL_ROLES)
@numbers_argument("ids")
def close_as_done(context: CommandContext, ids: Sequence[int]) -> Sequence[UserRequest]:
    """Mark requests as done.

    > assistant requests done 12 15
    """
    return context.stores.requests.close_requests(context.session, ids, "done", "user", (), context.now)


@requests.command("drop", result=list[RequestItem], render=_render_closed, roles=ALL_ROLES)
@numbers_argument("ids")
def drop(context: CommandContext, ids: Sequence[int]) -> Sequence[UserRequest]:
    """Mark requests as no longer wanted.

    > assistant requests drop 12
    """
    return context.stores.requests.close_requests(context.session, ids, "superseded", "user", (), context.now)
