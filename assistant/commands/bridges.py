"""`bridge`: the networks on which you talk to the assistant, and how each is; `deliveries`: what did not arrive there,
or may not have.

What always holds: each line that says that something is wrong ends with what to do. What may have arrived is sent
once more on the owner's word alone (I8). What waits for another try can be dropped, so that nothing holds up for ever
what came after it; what is being sent cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from typing import Any

import click
from pydantic import Field, computed_field

from assistant.commands.context import CommandContext
from assistant.commands.items import Item
from assistant.commands.table import CommandGroup, numbers_argument
from assistant.core.bridge_api import NETWORK_NAMES, BridgeState, BridgeStatus, UndeliveredItem
from assistant.core.calendar import format_local_time
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.records import OutboxState
from assistant.core.text import pluralize

_MOST_SECONDS = 300.0
NO_BRIDGE = f"No bridge is set up. `assistant bridge add` sets one up: {', '.join(NETWORK_NAMES)}."
_RETRIED = "It is retried automatically; `assistant bridge test {name}` tries now."
_TO_DO = {
    "paused": "`assistant bridge resume {name}` resumes it.",
    "failing": _RETRIED,
    "off": "`assistant run`, or `assistant service start`, connects it.",
}
_STATES = {
    "ambiguous": "may or may not have arrived",
    "failed": "was refused",
    "withheld": "was kept back",
}


class BridgeItem(Item):
    """How one bridge is."""

    name: str
    state: BridgeState
    account: str  # who we are there
    since: datetime | None
    waiting: int  # deliveries that are to go out there
    error: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def todo(self) -> str:
        """What a person may do about it; "" where nothing is needed."""
        return _suggested_action(self)


def _suggested_action(bridge: BridgeItem | BridgeStatus) -> str:
    if bridge.state == "connected" and bridge.error:
        return _RETRIED.format(name=bridge.name)
    return _TO_DO.get(bridge.state, "").format(name=bridge.name)


@click.group(cls=CommandGroup)
def bridge() -> None:
    """Bridges: the networks on which you talk to the assistant, beside the terminal.

    > assistant bridge
    > assistant bridge add telegram
    > assistant bridge test telegram
    > assistant bridge pause telegram
    """


def render_bridges(bridges: Sequence[BridgeStatus], zone: tzinfo) -> str:
    return "\n".join(f"- {_bridge_line(status, zone)}" for status in bridges) or NO_BRIDGE


def _bridge_line(status: BridgeStatus, zone: tzinfo) -> str:
    account = f" as {status.account}" if status.account else ""
    since = f" since {status.since.astimezone(zone):%Y-%m-%d %H:%M}" if status.since else ""
    waiting = f", {pluralize(status.waiting, 'delivery', 'deliveries')} waiting" if status.waiting else ""
    error = status.error if not status.error or status.error.endswith((".", "!", "?", "…")) else f"{status.error}."
    advice = "".join(f" {text}" for text in (error, _suggested_action(status)) if text)
    return f"{status.name}{account}: {status.state}{since}{waiting}.{advice}"


@bridge.command("list", result=list[BridgeItem], render=render_bridges, with_session=False)
async def list_bridges(context: CommandContext) -> Sequence[BridgeStatus]:
    """List the bridges: how each is, who we are there, what waits. Also what to do about it.

    > assistant bridge list
    """
    return await context.services.bridges.list_statuses()


@dataclass(frozen=True, slots=True)
class BridgeChange:
    """What was done with a bridge."""

    name: str
    text: str


def _bridge_command(
    name: str, *, creates_home: bool = False, networks_only: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """A command on one bridge."""

    def decorate(function: Callable[..., Any]) -> Any:
        allowed = click.Choice(NETWORK_NAMES) if networks_only else click.STRING
        return bridge.command(
            name,
            creates_home=creates_home,
            max_seconds=_MOST_SECONDS,
            with_session=False,
        )(click.argument("name", type=allowed)(function))

    return decorate


@_bridge_command("test", creates_home=True)
async def test(context: CommandContext, name: str) -> BridgeChange:
    """Send yourself a test message. Exits with 0 when the network took it.

    > assistant bridge test telegram
    """
    return BridgeChange(name, await context.services.bridges.test(name, context.now))


@_bridge_command("pause", creates_home=True)
async def pause(context: CommandContext, name: str) -> BridgeChange:
    """Neither receive nor send there until `resume`, also after a restart.

    > assistant bridge pause telegram
    """
    return BridgeChange(name, await context.services.bridges.pause(name))


@_bridge_command("resume", creates_home=True)
async def resume(context: CommandContext, name: str) -> BridgeChange:
    """Receive and send again. What waits goes out, and what was written comes in.

    > assistant bridge resume telegram
    """
    return BridgeChange(name, await context.services.bridges.resume(name))


@_bridge_command("reload", networks_only=True)
async def reload(context: CommandContext, name: str) -> BridgeChange:
    """Start a bridge again with the settings as they are now.

    > assistant bridge reload telegram
    """
    return BridgeChange(name, await context.services.bridges.reload(name))


@_bridge_command("anew", networks_only=True)
async def anew(context: CommandContext, name: str) -> BridgeChange:
    """Begin anew on a network, as with another account. What was being sent counts as uncertain.

    > assistant bridge anew telegram
    """
    return BridgeChange(name, await context.services.bridges.begin_anew(name, context.now))


@_bridge_command("remove", networks_only=True)
async def remove(context: CommandContext, name: str) -> BridgeChange:
    """Settle what a bridge that is no longer set up leaves behind.

    > assistant bridge remove telegram
    """
    return BridgeChange(name, await context.services.bridges.remove(name, context.now))


# ----------------------------------------------------------------------------------------------------------- deliveries


class DeliveryItem(Item):
    """Something that is stuck."""

    id: int
    state: OutboxState
    bridge: str
    session: str
    at: datetime = Field(validation_alias="created_at")  # when it was written
    since: datetime = Field(validation_alias="updated_at")  # when it came into its state
    parts_sent: int  # of its parts, those that the network has for certain
    attempts: int
    error: str
    text: str = Field(validation_alias="preview")  # its beginning; "(for NAME)" where it is for others


@click.group(cls=CommandGroup)
def deliveries() -> None:
    """What did not arrive where it was sent, or may not have.

    What may have arrived, or was refused, is never sent again automatically: you decide. You can also drop what is
    still retried: later messages to the same place wait for it.

    > assistant deliveries
    > assistant deliveries again 12
    > assistant deliveries drop 12 13
    """


def _render_deliveries(items: Sequence[UndeliveredItem], zone: tzinfo) -> str:
    if not items:
        return "Nothing is stuck: what was sent arrived, or is on its way."
    lines = [f"- {_delivery_line(item, zone)}" for item in items]
    return "\n".join([*lines, "", "`/deliveries again ID` sends one again, `/deliveries drop ID` discards it."])


def _delivery_line(item: UndeliveredItem, zone: tzinfo) -> str:
    why = f" ({item.error.rstrip('.')})" if item.error else ""
    state = _STATES.get(item.state) or f"is retried automatically, after {pluralize(item.attempts, 'try', 'tries')}"
    return f"#{item.id} to {item.bridge}, {format_local_time(item.created_at, zone)}: {state}{why}. `{item.preview}`"


@deliveries.command("list", result=list[DeliveryItem], render=_render_deliveries, reads=True, with_session=False)
def list_deliveries(context: CommandContext) -> list[UndeliveredItem]:
    """List what is stuck, oldest first.

    > assistant deliveries list --json
    """
    return context.stores.deliveries.list_stuck()


@deliveries.command(
    "again",
    result=list[DeliveryItem],
    render=lambda items, _: f"Sent again: {_numbers(items)}. `/deliveries` shows whether that failed again.",
    with_session=False,
)
@numbers_argument("ids")
def again(context: CommandContext, ids: Sequence[int]) -> list[UndeliveredItem]:
    """Send these once more. What did arrive the first time is then there twice.

    > assistant deliveries again 12
    """
    stuck = _find_stuck(context, ids)
    if automatic := next((item for item in stuck if item.is_sent_automatically), None):
        raise UsageError(
            f"Delivery #{automatic.id} is retried automatically. Nothing was changed; "
            f"`/deliveries drop {automatic.id}` drops it."
        )
    return _decide(context, stuck, context.stores.deliveries.retry)


@deliveries.command(
    "drop",
    result=list[DeliveryItem],
    render=lambda items, _: f"Dropped: {_numbers(items)}. The conversation keeps what was said.",
    with_session=False,
)
@numbers_argument("ids")
def drop(context: CommandContext, ids: Sequence[int]) -> list[UndeliveredItem]:
    """Drop these: they are neither sent nor listed any more. The conversation keeps what was said.

    > assistant deliveries drop 12 13
    """
    return _decide(context, _find_stuck(context, ids), context.stores.deliveries.drop)


def _find_stuck(context: CommandContext, ids: Sequence[int]) -> list[UndeliveredItem]:
    """All of them, or `UsageError`."""
    stuck = []
    for number in ids:
        item = context.stores.deliveries.find(number)
        if item is None:
            raise UsageError(
                f"Delivery {number} is not stuck. Nothing was changed; `/deliveries` lists those that are."
            )
        if item.is_sent_automatically and not item.error:
            raise UsageError(f"Delivery #{item.id} is on its way. Nothing was changed.")
        stuck.append(item)
    return stuck


def _decide(
    context: CommandContext, stuck: list[UndeliveredItem], decide: Callable[[int, datetime], bool]
) -> list[UndeliveredItem]:
    for item in stuck:
        decide(item.id, context.now)
    for bridge in {item.bridge for item in stuck}:
        context.services.bridges.retry_now(bridge)
    return stuck


def _numbers(items: Sequence[UndeliveredItem]) -> str:
    return ", ".join(f"#{item.id}" for item in items)
