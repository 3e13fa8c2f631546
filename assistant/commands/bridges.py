"""The slash commands about bridges and about deliveries that did not arrive, and how both are shown to the owner:
lines of Markdown, and plain JSON. The renderers are pure.

What always holds: a pause and its end survive a restart. A test goes the way of every delivery, through the outbox,
and only what the network confirmed is called sent. What may have arrived is sent once more on the owner's word
alone (I8). What waits for another try can be dropped, so that nothing holds up for ever what came after it; what is
being sent cannot. Each line that says that something is wrong ends with what to do. Of what was meant for others
than the owner no words are shown, only for whom it was.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from assistant.core.bridge_api import (
    NETWORK_NAMES,
    Bridge,
    BridgeStatus,
    DeliveryOutcome,
    UndeliveredItem,
)
from assistant.core.errors import AssistantError, BridgeError, UsageError
from assistant.core.records import OutgoingMessage
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.core.slash_commands import Command, CommandInvocation
from assistant.core.store_ports import Outbox
from assistant.core.text import pluralize, preview_line
from assistant.store.script.outbox import StuckItems
from assistant.store.script.people import ConversationRoutes
from assistant.store.script.state import BridgeStates

BRIDGE_USAGE = "/bridge [test NAME | pause NAME | resume NAME | reload NAME]"
TEST_MESSAGE = "This is a test: what I send you here arrives. Write to me whenever you like."

# Seconds in which a network says who we are there, where a list would be shorter without it.
_ACCOUNT_WITHIN = 3.0


class BridgeRunner(Protocol):
    """What runs bridges (`assistant.gateway.dispatcher.Delivery`)."""

    @property
    def bridges(self) -> Mapping[str, Bridge]: ...
    def status(self) -> Mapping[str, Any]: ...
    async def drop(self, name: str) -> None: ...
    async def pause(self, name: str) -> None: ...
    async def resume(self, name: str) -> None: ...
    def retry_now(self, name: str) -> None: ...
    async def flush(self, bridge: str | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class BridgeStores:
    """What the home keeps of bridges: what goes out and what became of it, how far each has come, and where the owner
    is there."""

    outbox: Outbox
    deliveries: StuckItems
    states: BridgeStates
    places: ConversationRoutes


class BridgeCommands:
    def __init__(
        self,
        running: BridgeRunner,
        reload: Callable[[str], Awaitable[None]],
        kept: BridgeStores,
        zone: ZoneInfo,
        home: str,
    ) -> None:
        """`reload` takes one bridge up as the settings are now; `home` is the bridge of the home's own terminals."""
        self._running = running
        self._reload = reload
        self._outbox = kept.outbox
        self._fates = kept.deliveries
        self._states = kept.states
        self._places = kept.places
        self._zone = zone
        self._home = home
        self._accounts: dict[str, tuple[Bridge, str]] = {}

    def entries(self) -> Mapping[str, Command]:
        return {
            "bridge": Command(BRIDGE_USAGE, "how the bridges are; a test message; have one wait, or go on", self._run)
        }

    async def _run(self, call: CommandInvocation) -> str:
        match _words(call.arguments):
            case [] | ["list"]:
                return "\n".join(render_bridges(await self.read_bridge_statuses(), self._zone))
            case ["list", "--json"]:
                return json.dumps(
                    [bridge_status_json(one) for one in await self.read_bridge_statuses()], ensure_ascii=False
                )
            case ["test", name]:
                return await self._test(self._there(name), call.now)
            case ["pause", name]:
                await self._running.pause(self._there(name).name)
                return f"{name} is paused: nothing is received or sent there. What is written there meanwhile waits."
            case ["resume", name]:
                await self._running.resume(self._there(name).name)
                self._running.retry_now(name)
                return f"{name} goes on."
            case ["reload", name] if name in NETWORK_NAMES:
                await self._reload(name)
                return f"{name} is as the settings say now."
            case ["anew", name] if name in NETWORK_NAMES:
                await self._running.drop(name)
                self._fates.mark_ambiguous(name, call.now)
                self._states.delete(name)
                await self._reload(name)
                return f"{name} begins anew, as the settings say now."
            case ["remove", name] if name in NETWORK_NAMES:
                return await self._removed(name, call.now)
        raise UsageError(f"Use {BRIDGE_USAGE}. Nothing was changed.")

    # ---------------------------------------------------------------------------------------------------------- looking

    async def read_bridge_statuses(self) -> list[BridgeStatus]:
        """Every bridge but the home's own terminals, with who we are there where that can be had soon."""
        found = {name: one for name, one in self._running.status()["bridges"].items() if name in self._networks()}
        accounts = await asyncio.gather(*(self._account(name, one["state"]) for name, one in found.items()))
        return [bridge_status_from_report(*one) for one in zip(found, found.values(), accounts, strict=True)]

    def _networks(self) -> dict[str, Bridge]:
        return {name: one for name, one in self._running.bridges.items() if not one.capabilities.shows_sessions}

    async def _account(self, name: str, state: str) -> str:
        """Asked once of each bridge that is connected."""
        bridge = self._running.bridges[name]
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

    # ----------------------------------------------------------------------------------------------------------- acting

    async def _test(self, bridge: Bridge, now: datetime) -> str:
        """Raises `AssistantError` with what became of it where it was not sent."""
        name = bridge.name
        if self._states.is_paused(name):
            raise UsageError(f"{name} is paused, and nothing was sent. `assistant bridge resume {name}` goes on.")
        account = await bridge.check()
        self._accounts[name] = bridge, account
        target = self._places.find_owner_target(name)
        if target is None:
            raise AssistantError(
                f"{name} answers, as {account}, but you have not written from there yet, so nothing was sent. "
                f"`assistant bridge add {name}` tells how to."
            )
        key = f"test:{name}:{now.isoformat()}"
        self._outbox.push(OutgoingMessage(key, MAIN_SESSION, OWNER_SCOPE, name, target, TEST_MESSAGE, "notice"), now)
        self._running.retry_now(name)
        # Twice: what is on its way to the same place already goes first.
        await self._running.flush(name)
        await self._running.flush(name)
        return self._outcome(name, account, self._fates.delivery_state(key))

    def _outcome(self, name: str, account: str, fate: DeliveryOutcome | None) -> str:
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
        raise AssistantError(
            f"{name} answers, as {account}, but the test message still waits{why} It is kept and sent."
        )

    async def _removed(self, name: str, now: datetime) -> str:
        """Settle what a bridge that is set up no longer leaves behind."""
        await self._reload(name)
        if name in self._running.bridges:
            raise UsageError(f"{name} is set up. Nothing was changed; `assistant bridge remove {name}` takes it away.")
        self._states.delete(name)
        brought = self._fates.redirect_to_home(name, self._home, now, ended=True)
        told = []
        if brought.redirected:
            told.append(f"To the terminal instead: {pluralize(brought.redirected, 'delivery', 'deliveries')} to you.")
        if brought.still_waiting:
            left = pluralize(brought.still_waiting, "delivery", "deliveries")
            told.append(f"Kept, should {name} be added again: {left} to others.")
        return " ".join(told) or "Nothing was waiting to go out there."

    def _there(self, name: str) -> Bridge:
        networks = self._networks()
        if name in networks:
            return networks[name]
        if name in NETWORK_NAMES:
            raise UsageError(NOT_SET_UP.format(name=name))
        raise UsageError(f"There is no bridge {name!r}. Bridges are: {', '.join(networks or NETWORK_NAMES)}.")


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise UsageError(f"A quotation mark has no partner. Use {BRIDGE_USAGE}. Nothing was changed.") from None


DELIVERIES_USAGE = "/deliveries [again ID... | drop ID...]"


class DeliveryCommands:
    def __init__(self, deliveries: StuckItems, try_now: Callable[[str], None], zone: ZoneInfo) -> None:
        """`try_now` is told the bridge that has something to send at once."""
        self._deliveries = deliveries
        self._try_now = try_now
        self._zone = zone

    def entries(self) -> Mapping[str, Command]:
        text = "what did not arrive, or may not have; send it once more, or let it go"
        return {"deliveries": Command(DELIVERIES_USAGE, text, self._run)}

    async def _run(self, call: CommandInvocation) -> str:
        match call.arguments.split():
            case [] | ["list"]:
                return "\n".join(render_stuck_deliveries(self._deliveries.list_stuck(), self._zone))
            case ["again", *ids] if ids:
                found = self._found(ids)
                if waits := next((one for one in found if one.is_sent_automatically), None):
                    raise UsageError(
                        f"Delivery #{waits.id} is tried again by itself. Nothing was changed; "
                        f"`/deliveries drop {waits.id}` lets it go."
                    )
                self._decide(found, self._deliveries.retry, call.now)
                return f"Sent once more: {_numbers(found)}. `/deliveries` shows whether that failed again."
            case ["drop", *ids] if ids:
                found = self._found(ids)
                self._decide(found, self._deliveries.drop, call.now)
                return f"Let go: {_numbers(found)}. The conversation keeps what was said."
        raise UsageError(f"Use {DELIVERIES_USAGE}. Nothing was changed.")

    def _decide(self, found: Sequence[UndeliveredItem], decide: Callable[[int, datetime], bool], now: datetime) -> None:
        for one in found:
            decide(one.id, now)
        for bridge in {one.bridge for one in found}:
            self._try_now(bridge)

    def _found(self, ids: Sequence[str]) -> list[UndeliveredItem]:
        """All of them, or `UsageError`."""
        found = []
        for text in ids:
            number = text.removeprefix("#")
            one = self._deliveries.find(int(number)) if number.isdecimal() and len(number) < 19 else None
            if one is None:
                raise UsageError(
                    f"Delivery {text} is not stuck. Nothing was changed; `/deliveries` lists those that are."
                )
            if one.is_sent_automatically and not one.error:
                raise UsageError(f"Delivery #{one.id} is on its way. Nothing was changed.")
            found.append(one)
        return found


def _numbers(found: Sequence[UndeliveredItem]) -> str:
    return ", ".join(f"#{one.id}" for one in found)


NO_BRIDGE = "No bridge is set up. `assistant bridge add telegram` or `assistant bridge add matrix` sets one up."
NOT_SET_UP = "{name} is not set up. Nothing was done; `assistant bridge add {name}` sets it up."
NOTHING_STUCK = "Nothing is stuck: what went out arrived, or is on its way."

_DONE_BY_ITSELF = "It is tried again by itself; `assistant bridge test {name}` asks now."
_TO_DO = {
    "paused": "`assistant bridge resume {name}` goes on.",
    "failing": _DONE_BY_ITSELF,
    "off": "`assistant run`, or `assistant service start`, connects it.",
}
_MEANS = {
    "ambiguous": "may or may not have arrived",
    "failed": "was refused",
    "withheld": "was kept back",
}


def bridge_status_from_report(name: str, found: Mapping[str, Any], account: str = "") -> BridgeStatus:
    """What the delivery's status says of one bridge."""
    since = found.get("since")
    return BridgeStatus(
        name,
        found["state"],
        account,
        datetime.fromisoformat(since) if since else None,
        found.get("waiting", 0),
        found["error"],
    )


def bridge_status_json(standing: BridgeStatus) -> dict[str, Any]:
    return {
        "name": standing.name,
        "state": standing.state,
        "account": standing.account,
        "since": standing.since.isoformat() if standing.since else None,
        "waiting": standing.waiting,
        "error": standing.error,
        "todo": suggested_action(standing),
    }


def bridge_status_from_json(found: Mapping[str, Any]) -> BridgeStatus:
    since = datetime.fromisoformat(found["since"]) if found["since"] else None
    return BridgeStatus(found["name"], found["state"], found["account"], since, found["waiting"], found["error"])


def suggested_action(standing: BridgeStatus) -> str:
    """What a person may do about it; "" where nothing is needed."""
    if standing.state == "connected" and standing.error:
        return _DONE_BY_ITSELF.format(name=standing.name)
    return _TO_DO.get(standing.state, "").format(name=standing.name)


def render_bridges(standings: Sequence[BridgeStatus], zone: ZoneInfo) -> list[str]:
    return [f"- {_bridge_line(one, zone)}" for one in standings] or [NO_BRIDGE]


def render_stuck_deliveries(stuck: Sequence[UndeliveredItem], zone: ZoneInfo) -> list[str]:
    if not stuck:
        return [NOTHING_STUCK]
    lines = [f"- {_stuck_line(one, zone)}" for one in stuck]
    return [*lines, "", "`/deliveries again ID` sends one once more, `/deliveries drop ID` lets it go."]


def stuck_delivery_json(one: UndeliveredItem) -> dict[str, Any]:
    return {
        "id": one.id,
        "state": one.state,
        "bridge": one.bridge,
        "session": one.session,
        "at": one.created_at.isoformat(),
        "since": one.updated_at.isoformat(),
        "parts_sent": one.parts_sent,
        "attempts": one.attempts,
        "error": one.error,
        "text": delivery_excerpt(one),
    }


def delivery_excerpt(one: UndeliveredItem) -> str:
    """The beginning of what it says, on one line; of words for others only for whom they are."""
    if one.scope != OWNER_SCOPE:
        return f"(for {one.session})"
    return preview_line(one.body)


def describe_delivery_state(one: UndeliveredItem) -> str:
    """Its state, in words."""
    if one.is_sent_automatically:
        return f"is tried again by itself, after {pluralize(one.attempts, 'try', 'tries')}"
    return _MEANS.get(one.state, one.state)


def _bridge_line(one: BridgeStatus, zone: ZoneInfo) -> str:
    account = f" as {one.account}" if one.account else ""
    since = f" since {one.since.astimezone(zone):%Y-%m-%d %H:%M}" if one.since else ""
    waiting = f", {pluralize(one.waiting, 'delivery', 'deliveries')} waiting" if one.waiting else ""
    told = " ".join(text for text in (_sentence(one.error), suggested_action(one)) if text)
    return f"{one.name}{account}: {one.state}{since}{waiting}." + (f" {told}" if told else "")


def _stuck_line(one: UndeliveredItem, zone: ZoneInfo) -> str:
    at = f"{one.created_at.astimezone(zone):%Y-%m-%d %H:%M}"
    why = f" ({one.error.rstrip('.')})" if one.error else ""
    return f"#{one.id} to {one.bridge}, {at}: {describe_delivery_state(one)}{why}. `{delivery_excerpt(one)}`"


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?", "…")) else f"{text}."
