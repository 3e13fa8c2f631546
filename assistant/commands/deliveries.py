"""Deliveries that did not arrive, or may not have.

What may have arrived is sent once more on the owner's word alone (I8). What waits for another try can be dropped, so
that nothing holds up for ever what came after it; what is being sent cannot. Of words for others than the owner none
are shown, only for whom they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import CommandGroup, numbers_argument
from assistant.core.bridge_api import UndeliveredItem
from assistant.core.calendar import format_local_time
from assistant.core.errors import UsageError
from assistant.core.records import OutboxState
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import pluralize, preview_line

_STATES = {
    "ambiguous": "may or may not have arrived",
    "failed": "was refused",
    "withheld": "was kept back",
}


@dataclass(frozen=True, slots=True)
class DeliveryItem:
    """Something that is stuck."""

    id: int
    state: OutboxState
    bridge: str
    session: str
    at: datetime  # when it was written
    since: datetime  # when it came into its state
    parts_sent: int  # of its parts, those that the network has for certain
    attempts: int
    error: str
    text: str  # its beginning; "(for NAME)" where it is for others


@click.group(cls=CommandGroup)
def deliveries() -> None:
    """What did not arrive where it was sent, or may not have.

    What may have arrived, or was refused, is never sent again automatically: you decide. You can also drop what is
    still retried: later messages to the same place wait for it.

    \b
    Example:
      assistant deliveries
      assistant deliveries again 12
      assistant deliveries drop 12 13
    """


def _render_list(items: Sequence[DeliveryItem], zone: tzinfo) -> str:
    if not items:
        return "Nothing is stuck: what was sent arrived, or is on its way."
    lines = [f"- {_line(item, zone)}" for item in items]
    return "\n".join([*lines, "", "`/deliveries again ID` sends one once more, `/deliveries drop ID` drops it."])


def _line(item: DeliveryItem, zone: tzinfo) -> str:
    why = f" ({item.error.rstrip('.')})" if item.error else ""
    state = _STATES.get(item.state) or f"is retried automatically, after {pluralize(item.attempts, 'try', 'tries')}"
    return f"#{item.id} to {item.bridge}, {format_local_time(item.at, zone)}: {state}{why}. `{item.text}`"


@deliveries.command("list", result=list[DeliveryItem], render=_render_list, reads=True, with_session=False)
def list_deliveries(context: CommandContext) -> list[DeliveryItem]:
    """List what is stuck, oldest first.

    \b
    Example:
      assistant deliveries list --json
    """
    return [_item(stuck) for stuck in context.stores.deliveries.list_stuck()]


def _item(stuck: UndeliveredItem) -> DeliveryItem:
    text = preview_line(stuck.body) if stuck.scope == OWNER_SCOPE else f"(for {stuck.session})"
    return DeliveryItem(
        stuck.id,
        stuck.state,
        stuck.bridge,
        stuck.session,
        stuck.created_at,
        stuck.updated_at,
        stuck.parts_sent,
        stuck.attempts,
        stuck.error,
        text,
    )


def _render_again(items: Sequence[DeliveryItem], _: tzinfo) -> str:
    return f"Sent once more: {_numbers(items)}. `/deliveries` shows whether that failed again."


@deliveries.command("again", result=list[DeliveryItem], render=_render_again, with_session=False)
@numbers_argument("ids")
def again(context: CommandContext, ids: Sequence[int]) -> list[DeliveryItem]:
    """Send these once more. What did arrive the first time is then there twice.

    \b
    Example:
      assistant deliveries again 12
    """
    stuck = _find(context, ids)
    if automatic := next((item for item in stuck if item.is_sent_automatically), None):
        raise UsageError(
            f"Delivery #{automatic.id} is retried automatically. Nothing was changed; "
            f"`/deliveries drop {automatic.id}` drops it."
        )
    return _decide(context, stuck, context.stores.deliveries.retry)


def _render_dropped(items: Sequence[DeliveryItem], _: tzinfo) -> str:
    return f"Dropped: {_numbers(items)}. The conversation keeps what was said."


@deliveries.command("drop", result=list[DeliveryItem], render=_render_dropped, with_session=False)
@numbers_argument("ids")
def drop(context: CommandContext, ids: Sequence[int]) -> list[DeliveryItem]:
    """Drop these: they are neither sent nor listed any more. The conversation keeps what was said.

    \b
    Example:
      assistant deliveries drop 12 13
    """
    return _decide(context, _find(context, ids), context.stores.deliveries.drop)


def _find(context: CommandContext, ids: Sequence[int]) -> list[UndeliveredItem]:
    """All of them, or `UsageError`."""
    found = []
    for number in ids:
        item = context.stores.deliveries.find(number)
        if item is None:
            raise UsageError(
                f"Delivery {number} is not stuck. Nothing was changed; `/deliveries` lists those that are."
            )
        if item.is_sent_automatically and not item.error:
            raise UsageError(f"Delivery #{item.id} is on its way. Nothing was changed.")
        found.append(item)
    return found


def _decide(
    context: CommandContext, stuck: Sequence[UndeliveredItem], decide: Callable[[int, datetime], bool]
) -> list[DeliveryItem]:
    for item in stuck:
        decide(item.id, context.now)
    for bridge in {item.bridge for item in stuck}:
        context.services.bridges.retry_now(bridge)
    return [_item(item) for item in stuck]


def _numbers(items: Sequence[DeliveryItem]) -> str:
    return ", ".join(f"#{item.id}" for item in items)
