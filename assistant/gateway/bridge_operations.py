"""Owner operations on running bridges: status, test, pause, restart, remove.

Pauses survive a restart. A test message goes through the outbox like any delivery, and is reported as sent only if the
network confirmed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from assistant.core.bridge_api import NETWORK_NAMES, Bridge, BridgeStatus, DeliveryOutcome
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, BridgeError, UsageError
from assistant.core.notices import NoticeKind
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.core.text import pluralize
from assistant.gateway.dispatcher import Dispatcher
from assistant.store.script.inbox import BridgeStates
from assistant.store.script.outbox import StoredOutbox, StuckItems
from assistant.store.script.people import ConversationRoutes

# Seconds to wait for a network to name our account; otherwise it is omitted from the list.
_ACCOUNT_WITHIN = 3.0


@dataclass(frozen=True, slots=True)
class BridgeOperations:
    """Owner operations on running bridges."""

    dispatcher: Dispatcher
    reload_bridge: Callable[[str], Awaitable[None]]  # starts a bridge with the current settings
    outbox: StoredOutbox
    deliveries: StuckItems
    states: BridgeStates
    places: ConversationRoutes
    terminal: str  # the bridge of the terminals
    _accounts: dict[str, tuple[Bridge, str]] = field(default_factory=dict)

    async def list_statuses(self) -> list[BridgeStatus]:
        """Return the status of every network bridge, with its account if the network answers quickly."""
        reports = self.dispatcher.bridge_states()
        return await asyncio.gather(*(self._status(name, reports[name]) for name in self._networks()))

    async def pause(self, name: str) -> str:
        """Return what to tell the owner. Also paused after a restart. Raises `UsageError` if the network is not set
        up."""
        await self.dispatcher.pause(self._running(name).name)
        return f"{name} is paused: nothing is received or sent there. What is written there meanwhile waits."

    async def resume(self, name: str) -> str:
        """Return what to tell the owner. Raises `UsageError` if the network is not set up."""
        await self.dispatcher.resume(self._running(name).name)
        self.dispatcher.retry_now(name)
        return f"{name} is running again."

    async def reload(self, name: str) -> str:
        """Return what to tell the owner. Raises `SettingsError`, and `StoreError` if it could not be replaced yet."""
        await self.reload_bridge(name)
        return f"{name} runs with the current settings."

    async def begin_anew(self, name: str, now: datetime) -> str:
        """Reset a bridge: mark deliveries in progress as ambiguous, delete its state, and start it again."""
        await self.dispatcher.drop(name)
        self.deliveries.mark_ambiguous(name, now)
        self.states.delete(name)
        await self.reload_bridge(name)
        return f"{name} starts again, with the current settings."

    async def test(self, name: str, now: datetime) -> str:
        """Send a test message. Raises `AssistantError` with the outcome if it was not sent."""
        bridge = self._running(name)
        if self.states.is_paused(name):
            raise UsageError(f"{name} is paused, and nothing was sent. `assistant bridge resume {name}` resumes it.")
        account = await bridge.check()
        self._accounts[name] = bridge, account
        target = self.places.find_owner_target(name)
        if target is None:
            raise AssistantError(
                f"{name} answers, as {account}, but you have not written from there yet, so nothing was sent. "
                f"`assistant bridge add {name}` shows how."
            )
        key = f"test:{name}:{now.isoformat()}"
        test = NoticeKind.BRIDGE_TEST.fill().to_message(key, MAIN_SESSION, OWNER_SCOPE, name, target)
        self.outbox.push(test, now)
        self.dispatcher.retry_now(name)
        # Twice: deliveries already in progress to the same target go first.
        await self.dispatcher.flush(name)
        await self.dispatcher.flush(name)
        return _outcome(name, account, self.deliveries.delivery_state(key))

    async def remove(self, name: str, now: datetime) -> str:
        """Clean up the state and deliveries of a bridge that was removed from the settings."""
        await self.reload_bridge(name)
        if name in self.dispatcher.bridges:
            raise UsageError(f"{name} is set up. Nothing was changed; `assistant bridge remove {name}` removes it.")
        self.states.delete(name)
        result = self.deliveries.redirect_to_home(name, self.terminal, now, ended=True)
        lines = []
        if result.redirected:
            lines.append(f"To the terminal instead: {pluralize(result.redirected, 'delivery', 'deliveries')} to you.")
        if result.still_waiting:
            left = pluralize(result.still_waiting, "delivery", "deliveries")
            lines.append(f"Kept, should {name} be added again: {left} to others.")
        return " ".join(lines) or "Nothing was waiting to go out there."

    def retry_now(self, bridge: str) -> None:
        self.dispatcher.retry_now(bridge)

    def _networks(self) -> dict[str, Bridge]:
        bridges = self.dispatcher.bridges
        return {name: bridge for name, bridge in bridges.items() if not bridge.capabilities.shows_sessions}

    async def _status(self, name: str, report: Mapping[str, Any]) -> BridgeStatus:
        since = datetime.fromisoformat(report["since"]) if report.get("since") else None
        account = await self._account(name, report["state"])
        return BridgeStatus(name, report["state"], account, since, report.get("waiting", 0), report["error"])

    async def _account(self, name: str, state: str) -> str:
        """Return the account, queried once per connected bridge."""
        bridge = self.dispatcher.bridges[name]
        asked_bridge, account = self._accounts.get(name, (None, ""))
        if asked_bridge is bridge or state != "connected":
            return account if asked_bridge is bridge else ""
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
            raise UsageError(f"{name} is not set up. Nothing was done; `assistant bridge add {name}` sets it up.")
        raise UsageError(f"There is no bridge {name!r}. Bridges are: {', '.join(networks or NETWORK_NAMES)}.")


def _outcome(name: str, account: str, delivery: DeliveryOutcome | None) -> str:
    """Describe the outcome of a test. Raises `AssistantError` unless the network confirmed it."""
    state, error = (delivery.state, delivery.error) if delivery is not None else ("pending", "")
    match state:
        case "sent":
            return f"{name} answers, as {account}, and took the test message."
        case "ambiguous":
            problem = f"whether the test message arrived is not known: {error} Look there; it is not sent twice."
        case "failed":
            problem = f"refused the test message: {error}"
        case _:
            problem = f"the test message still waits{f': {error}' if error else '.'} It is kept and sent."
    raise AssistantError(f"{name} answers, as {account}, but {problem}")
