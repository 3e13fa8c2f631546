"""The slash commands about bridges: how they are, a test of one, and having one wait.

What always holds: a pause and its end outlive a restart; a test goes the way of every delivery, through the outbox, and
only what the network confirmed is called sent.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from assistant.commands.bridging_report import NOT_SET_UP, bridge_lines, standing_json, standing_of
from assistant.core.bridge_api import (
    NETWORK_NAMES,
    Bridge,
    BridgeStatesPort,
    BridgeStatus,
    DeliveryOutcome,
    RedirectResult,
)
from assistant.core.errors import AssistantError, BridgeError, UsageError
from assistant.core.people import SessionRoutesPort
from assistant.core.records import OutgoingMessage
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.core.slash_commands import Command, CommandInvocation
from assistant.core.store_ports import Outbox
from assistant.core.text import pluralize

BRIDGE = "/bridge [test NAME | pause NAME | resume NAME | reload NAME]"
TEST_MESSAGE = "This is a test: what I send you here arrives. Write to me whenever you like."

# Seconds in which a network says who we are there, where a list would be shorter without it.
_ACCOUNT_WITHIN = 3.0


class Running(Protocol):
    """What runs bridges (`assistant.gateway.delivery.Delivery`)."""

    @property
    def bridges(self) -> Mapping[str, Bridge]: ...
    def status(self) -> Mapping[str, Any]: ...
    async def drop(self, name: str) -> None: ...
    async def pause(self, name: str) -> None: ...
    async def resume(self, name: str) -> None: ...
    def hurry(self, name: str) -> None: ...
    async def flush(self, bridge: str | None = None) -> None: ...


class Fates(Protocol):
    """What became of what went out (`assistant.store.script.outbox.Deliveries`)."""

    def fate(self, key: str) -> DeliveryOutcome | None: ...
    def cut_off(self, bridge: str, now: datetime) -> None: ...
    def bring_home(self, bridge: str, home: str, now: datetime, *, ended: bool) -> RedirectResult: ...


@dataclass(frozen=True, slots=True)
class Kept:
    """What the home keeps of bridges: what goes out and what became of it, how far each has come, and where the owner
    is there."""

    outbox: Outbox
    fates: Fates
    states: BridgeStatesPort
    places: SessionRoutesPort


class BridgeCommands:
    def __init__(
        self, running: Running, reload: Callable[[str], Awaitable[None]], kept: Kept, zone: ZoneInfo, home: str
    ) -> None:
        """`reload` takes one bridge up as the settings are now; `home` is the bridge of the home's own terminals."""
        self._running = running
        self._reload = reload
        self._outbox = kept.outbox
        self._fates = kept.fates
        self._states = kept.states
        self._places = kept.places
        self._zone = zone
        self._home = home
        self._accounts: dict[str, tuple[Bridge, str]] = {}

    def entries(self) -> Mapping[str, Command]:
        return {"bridge": Command(BRIDGE, "how the bridges are; a test message; have one wait, or go on", self._run)}

    async def _run(self, call: CommandInvocation) -> str:
        match _words(call.rest):
            case [] | ["list"]:
                return "\n".join(bridge_lines(await self.standings(), self._zone))
            case ["list", "--json"]:
                return json.dumps([standing_json(one) for one in await self.standings()], ensure_ascii=False)
            case ["test", name]:
                return await self._test(self._there(name), call.now)
            case ["pause", name]:
                await self._running.pause(self._there(name).name)
                return f"{name} is paused: nothing is received or sent there. What is written there meanwhile waits."
            case ["resume", name]:
                await self._running.resume(self._there(name).name)
                self._running.hurry(name)
                return f"{name} goes on."
            case ["reload", name] if name in NETWORK_NAMES:
                await self._reload(name)
                return f"{name} is as the settings say now."
            case ["anew", name] if name in NETWORK_NAMES:
                await self._running.drop(name)
                self._fates.cut_off(name, call.now)
                self._states.forget(name)
                await self._reload(name)
                return f"{name} begins anew, as the settings say now."
            case ["remove", name] if name in NETWORK_NAMES:
                return await self._removed(name, call.now)
        raise UsageError(f"Use {BRIDGE}. Nothing was changed.")

    # ---------------------------------------------------------------------------------------------------------- looking

    async def standings(self) -> list[BridgeStatus]:
        """Every bridge but the home's own terminals, with who we are there where that can be had soon."""
        found = {name: one for name, one in self._running.status()["bridges"].items() if name in self._networks()}
        accounts = await asyncio.gather(*(self._account(name, one["state"]) for name, one in found.items()))
        return [standing_of(*one) for one in zip(found, found.values(), accounts, strict=True)]

    def _networks(self) -> dict[str, Bridge]:
        return {name: one for name, one in self._running.bridges.items() if not one.capabilities.terminals}

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
        if self._states.paused(name):
            raise UsageError(f"{name} is paused, and nothing was sent. `assistant bridge resume {name}` goes on.")
        account = await bridge.check()
        self._accounts[name] = bridge, account
        target = self._places.owners_at(name)
        if target is None:
            raise AssistantError(
                f"{name} answers, as {account}, but you have not written from there yet, so nothing was sent. "
                f"`assistant bridge add {name}` tells how to."
            )
        key = f"test:{name}:{now.isoformat()}"
        self._outbox.push(OutgoingMessage(key, MAIN_SESSION, OWNER_SCOPE, name, target, TEST_MESSAGE, "notice"), now)
        self._running.hurry(name)
        # Twice: what is on its way to the same place already goes first.
        await self._running.flush(name)
        await self._running.flush(name)
        return self._outcome(name, account, self._fates.fate(key))

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
        self._states.forget(name)
        brought = self._fates.bring_home(name, self._home, now, ended=True)
        told = []
        if brought.home:
            told.append(f"To the terminal instead: {pluralize(brought.home, 'delivery', 'deliveries')} to you.")
        if brought.left:
            left = pluralize(brought.left, "delivery", "deliveries")
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
        raise UsageError(f"A quotation mark has no partner. Use {BRIDGE}. Nothing was changed.") from None
