"""Bridges as the owner sees them: how they are, testing, pausing and removing them.

What always holds: a pause and its end survive a restart. A test goes the way of every delivery, through the outbox,
and only what the network confirmed is called sent. Each line that says that something is wrong ends with what to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import CommandGroup
from assistant.core.bridge_api import NETWORK_NAMES, Bridge, BridgeState, BridgeStatus, DeliveryOutcome
from assistant.core.errors import AssistantError, BridgeError, UsageError
from assistant.core.records import OutgoingMessage
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.core.text import pluralize
from assistant.gateway.dispatcher import Dispatcher
from assistant.store.script.outbox import StoredOutbox, StuckItems
from assistant.store.script.people import ConversationRoutes
from assistant.store.script.state import BridgeStates

TEST_MESSAGE = "This is a test: what I send you here arrives. Write to me whenever you like."

# Seconds in which a network says who we are there, where a list would be shorter without it.
_ACCOUNT_WITHIN = 3.0
_MOST_SECONDS = 300.0


class BridgeOperations:
    """What the owner does with running bridges."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        reload: Callable[[str], Awaitable[None]],
        outbox: StoredOutbox,
        deliveries: StuckItems,
        states: BridgeStates,
        places: ConversationRoutes,
        terminal: str,
    ) -> None:
        """`reload` starts one bridge with the settings as they are now; `terminal` is the bridge of the terminals."""
        self._dispatcher = dispatcher
        self._reload = reload
        self._outbox = outbox
        self._deliveries = deliveries
        self._states = states
        self._places = places
        self._terminal = terminal
        self._accounts: dict[str, tuple[Bridge, str]] = {}

    async def list_statuses(self) -> list[BridgeStatus]:
        """Every bridge to a network, with who we are there where that can be had soon."""
        reports = {name: it for name, it in self._dispatcher.status()["bridges"].items() if name in self._networks()}
        accounts = await asyncio.gather(*(self._account(name, it["state"]) for name, it in reports.items()))
        return [bridge_status_from_report(*parts) for parts in zip(reports, reports.values(), accounts, strict=True)]

    async def pause(self, name: str) -> str:
        await self._dispatcher.pause(self._running(name).name)
        return f"{name} is paused: nothing is received or sent there. What is written there meanwhile waits."

    async def resume(self, name: str) -> str:
        await self._dispatcher.resume(self._running(name).name)
        self._dispatcher.retry_now(name)
        return f"{name} is running again."

    async def reload(self, name: str) -> str:
        await self._reload(name)
        return f"{name} runs with the settings as they are now."

    async def begin_anew(self, name: str, now: datetime) -> str:
        """As if it were new there: what was on its way may or may not have arrived."""
        await self._dispatcher.drop(name)
        self._deliveries.mark_ambiguous(name, now)
        self._states.delete(name)
        await self._reload(name)
        return f"{name} begins anew, with the settings as they are now."

    async def test(self, name: str, now: datetime) -> str:
        """Send a test message. Raises `AssistantError` with what became of it where it was not sent."""
        bridge = self._running(name)
        if self._states.is_paused(name):
            raise UsageError(f"{name} is paused, and nothing was sent. `assistant bridge resume {name}` resumes it.")
        account = await bridge.check()
        self._accounts[name] = bridge, account
        target = self._places.find_owner_target(name)
        if target is None:
            raise AssistantError(
                f"{name} answers, as {account}, but you have not written from there yet, so nothing was sent. "
                f"`assistant bridge add {name}` shows how."
            )
        key = f"test:{name}:{now.isoformat()}"
        self._outbox.push(OutgoingMessage(key, MAIN_SESSION, OWNER_SCOPE, name, target, TEST_MESSAGE, "notice"), now)
        self._dispatcher.retry_now(name)
        # Twice: what is on its way to the same place already goes first.
        await self._dispatcher.flush(name)
        await self._dispatcher.flush(name)
        return _outcome(name, account, self._deliveries.delivery_state(key))

    async def remove(self, name: str, now: datetime) -> str:
        """Settle what a bridge that is no longer set up leaves behind."""
        await self._reload(name)
        if name in self._dispatcher.bridges:
            raise UsageError(f"{name} is set up. Nothing was changed; `assistant bridge remove {name}` removes it.")
        self._states.delete(name)
        brought = self._deliveries.redirect_to_home(name, self._terminal, now, ended=True)
        lines = []
        if brought.redirected:
            lines.append(f"To the terminal instead: {pluralize(brought.redirected, 'delivery', 'deliveries')} to you.")
        if brought.still_waiting:
            left = pluralize(brought.still_waiting, "delivery", "deliveries")
            lines.append(f"Kept, should {name} be added again: {left} to others.")
        return " ".join(lines) or "Nothing was waiting to go out there."

    def retry_now(self, bridge: str) -> None:
        self._dispatcher.retry_now(bridge)

    def _networks(self) -> dict[str, Bridge]:
        return {name: it for name, it in self._dispatcher.bridges.items() if not it.capabilities.shows_sessions}

    async def _account(self, name: str, state: str) -> str:
        """Asked once of each bridge that is connected."""
        bridge = self._dispatcher.bridges[name]
        known, account = self._accounts.get(name, (None, ""))
        if known is bridge or state != "connected":
            return account if known is bridge else ""
        try:
            async with asyncio.timeout(_ACCOUNT_WITHIN):
                account = await bridge.check()
        except (BridgeError, TimeoutError):
            return ""
        self._accounts[name] = bridge, account
        return account

    def _running(self, name: str) -> Bridge:
        networks = self._networks()
        if name in networks:
            return networks[name]
        if name in NETWORK_NAMES:
            raise UsageError(NOT_SET_UP.format(name=name))
        raise UsageError(f"There is no bridge {name!r}. Bridges are: {', '.join(networks or NETWORK_NAMES)}.")


def _outcome(name: str, account: str, fate: DeliveryOutcome | None) -> str:
    if fate is not None and fate.state == "sent":
        return f"{name} answers, as {account}, and took the test message."
    if fate is not None and fate.state == "ambiguous":
        raise AssistantError(
            f"{name} answers, as {account}, but whether the test message arrived is not known: {fate.error} "
            "Look there; it is not sent twice."
        )
    if fate is not None and fate.state == "failed":
        raise AssistantError(f"{name} answers, as {account}, but refused the test message: {fate.error}")
    why = f": {fate.error}" if fate is not None and fate.error else "."
    raise AssistantError(f"{name} answers, as {account}, but the test message still waits{why} It is kept and sent.")


@dataclass(frozen=True, slots=True)
class BridgeItem:
    """How one bridge is."""

    name: str
    state: BridgeState
    account: str  # who we are there
    since: datetime | None
    waiting: int  # deliveries that are to go out there
    error: str
    todo: str  # what to do about it


def bridge_item(status: BridgeStatus) -> BridgeItem:
    return BridgeItem(
        status.name,
        status.state,
        status.account,
        status.since,
        status.waiting,
        status.error,
        suggested_action(status),
    )


@dataclass(frozen=True, slots=True)
class BridgeChange:
    """What was done with a bridge."""

    name: str
    text: str


def _render_change(change: BridgeChange, _: tzinfo) -> str:
    return change.text


@click.group(cls=CommandGroup)
def bridge() -> None:
    """Bridges: the networks on which you talk to the assistant, beside the terminal.

    \b
    Example:
      assistant bridge
      assistant bridge add telegram
      assistant bridge test telegram
      assistant bridge pause telegram
    """


def render_bridges(items: Sequence[BridgeItem], zone: tzinfo) -> str:
    return "\n".join(f"- {_bridge_line(item, zone)}" for item in items) or NO_BRIDGE


@bridge.command("list", result=list[BridgeItem], render=render_bridges, with_session=False)
async def list_bridges(context: CommandContext) -> list[BridgeItem]:
    """List the bridges: how each is, who we are there, what waits, and what to do.

    \b
    Example:
      assistant bridge list
    """
    return [bridge_item(status) for status in await context.services.bridges.list_statuses()]


def _bridge_command(
    name: str, *, creates_home: bool = False, networks_only: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """A command on one bridge."""

    def decorate(function: Callable[..., Any]) -> Any:
        allowed = click.Choice(NETWORK_NAMES) if networks_only else click.STRING
        return bridge.command(
            name,
            result=BridgeChange,
            render=_render_change,
            creates_home=creates_home,
            max_seconds=_MOST_SECONDS,
            with_session=False,
        )(click.argument("name", type=allowed)(function))

    return decorate


@_bridge_command("test", creates_home=True)
async def test(context: CommandContext, name: str) -> BridgeChange:
    """Send yourself a test message. Exits with 0 when the network took it.

    \b
    Example:
      assistant bridge test telegram
    """
    return BridgeChange(name, await context.services.bridges.test(name, context.now))


@_bridge_command("pause", creates_home=True)
async def pause(context: CommandContext, name: str) -> BridgeChange:
    """Neither receive nor send there until `resume`, also after a restart.

    \b
    Example:
      assistant bridge pause telegram
    """
    return BridgeChange(name, await context.services.bridges.pause(name))


@_bridge_command("resume", creates_home=True)
async def resume(context: CommandContext, name: str) -> BridgeChange:
    """Receive and send again: what waits goes out, what was written comes in.

    \b
    Example:
      assistant bridge resume telegram
    """
    return BridgeChange(name, await context.services.bridges.resume(name))


@_bridge_command("reload", networks_only=True)
async def reload(context: CommandContext, name: str) -> BridgeChange:
    """Start a bridge again with the settings as they are now.

    \b
    Example:
      assistant bridge reload telegram
    """
    return BridgeChange(name, await context.services.bridges.reload(name))


@_bridge_command("anew", networks_only=True)
async def anew(context: CommandContext, name: str) -> BridgeChange:
    """Begin anew on a network, as with another account. What was being sent counts as uncertain.

    \b
    Example:
      assistant bridge anew telegram
    """
    return BridgeChange(name, await context.services.bridges.begin_anew(name, context.now))


@_bridge_command("remove", networks_only=True)
async def remove(context: CommandContext, name: str) -> BridgeChange:
    """Settle what a bridge that is no longer set up leaves behind.

    \b
    Example:
      assistant bridge remove telegram
    """
    return BridgeChange(name, await context.services.bridges.remove(name, context.now))


NO_BRIDGE = "No bridge is set up. `assistant bridge add telegram` or `assistant bridge add matrix` sets one up."
NOT_SET_UP = "{name} is not set up. Nothing was done; `assistant bridge add {name}` sets it up."

_DONE_BY_ITSELF = "It is retried automatically; `assistant bridge test {name}` tries now."
_TO_DO = {
    "paused": "`assistant bridge resume {name}` resumes it.",
    "failing": _DONE_BY_ITSELF,
    "off": "`assistant run`, or `assistant service start`, connects it.",
}


def bridge_status_from_report(name: str, report: Mapping[str, Any], account: str = "") -> BridgeStatus:
    """What the delivery's status says of one bridge."""
    since = report.get("since")
    return BridgeStatus(
        name,
        report["state"],
        account,
        datetime.fromisoformat(since) if since else None,
        report.get("waiting", 0),
        report["error"],
    )


def suggested_action(status: BridgeStatus) -> str:
    """What a person may do about it; "" where nothing is needed."""
    if status.state == "connected" and status.error:
        return _DONE_BY_ITSELF.format(name=status.name)
    return _TO_DO.get(status.state, "").format(name=status.name)


def _bridge_line(item: BridgeItem, zone: tzinfo) -> str:
    account = f" as {item.account}" if item.account else ""
    since = f" since {item.since.astimezone(zone):%Y-%m-%d %H:%M}" if item.since else ""
    waiting = f", {pluralize(item.waiting, 'delivery', 'deliveries')} waiting" if item.waiting else ""
    advice = " ".join(text for text in (_sentence(item.error), item.todo) if text)
    return f"{item.name}{account}: {item.state}{since}{waiting}." + (f" {advice}" if advice else "")


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?", "…")) else f"{text}."
