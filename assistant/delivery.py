"""Outbox to bridges: one logical reply, one key, one body (I8), and one bridge's trouble is its own (F39).

Every bridge has a pump: pending items in order, marked `sending` before the bridge is asked and `sent` after it
confirmed. A send that may have arrived is repeated under the same key only inside the bridge's deduplication window;
otherwise it becomes `ambiguous` and is shown to the owner instead of being sent twice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog

from assistant.ending import PATIENCE, Patience, within
from assistant.errors import BridgeError, NobodyThere, StoreError
from assistant.ports import Bridge, Outbox, Receive
from assistant.records import OutboxItem, Outgoing, TurnEvent
from assistant.sessions import is_on

log = structlog.get_logger()

_FIRST_RETRY = timedelta(seconds=1)
_LONGEST_RETRY = timedelta(minutes=5)
# Nobody is there: `attached` ends the wait; the clock is only a second chance.
_UNTIL_ATTACHED = timedelta(days=1)
_LOOK_AHEAD = 1000
_SHORTEST_WAIT = 0.05


@dataclass(slots=True)
class _Pump:
    """One bridge's worker. `retry_at` holds back single items, so that one target's trouble delays nobody else.

    `error` is the bridge's last trouble, `stuck` that of the home's disk; `arrivals` counts who attached."""

    bridge: Bridge
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    passing: asyncio.Lock = field(default_factory=asyncio.Lock)
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
    arrivals: int = 0
    error: str = ""
    stuck: str = ""
    retry_at: dict[int, datetime] = field(default_factory=dict)


class Delivery:
    """All bridges of a home, and what is on its way out to them."""

    def __init__(
        self,
        outbox: Outbox,
        bridges: Mapping[str, Bridge],
        clock: Callable[[], datetime],
        destination: Callable[[Outgoing], tuple[str, str] | None] | None = None,
    ) -> None:
        """`destination` tells bridge and target to which something may still go, None for nowhere; without it, where
        it was to go when it was stored."""
        self._outbox = outbox
        self._destination = destination
        self._clock = clock
        self._pumps = {name: _Pump(bridge) for name, bridge in bridges.items()}

    async def start(self, receive: Receive) -> None:
        """Start every bridge; one that fails is reported in `status` and does not keep the others from starting."""
        for name, pump in self._pumps.items():
            try:
                await pump.bridge.start(receive)
            except BridgeError as error:
                pump.error = str(error)
                log.error("bridge did not start", bridge=name, error=str(error))
            pump.task = asyncio.create_task(self._run(name, pump), name=f"outbox {name}")
            pump.wake.set()

    async def stop(self, patience: Patience = PATIENCE) -> None:
        """Flush what can be sent at once, then stop pumps and bridges, side by side; none waits for another's end."""
        await asyncio.gather(*(self._stop(name, pump, patience) for name, pump in self._pumps.items()))

    async def _stop(self, name: str, pump: _Pump, patience: Patience) -> None:
        if pump.timer is not None:
            pump.timer.cancel()
        if pump.task is not None:
            # What was just confirmed is noted, before the pump is stopped where it stands.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience.flush), pump.passing:
                    pass
            pump.task.cancel()
        with contextlib.suppress(StoreError):
            await within(patience.flush, self._pass(name, pump), f"deliveries to {name}")
        try:
            await within(patience.bridge, pump.bridge.stop(), f"bridge {name}")
        except BridgeError as error:
            log.error("bridge did not stop as it should", bridge=name, error=str(error))

    async def flush(self) -> None:
        """Send now what can be sent now. Raises `StoreError`."""
        for name, pump in self._pumps.items():
            await self._pass(name, pump)

    def wake(self, bridge: str | None = None) -> None:
        """Look again at the outbox of one bridge, or of all."""
        for name, pump in self._pumps.items():
            if bridge in (None, name):
                pump.wake.set()

    def attached(self, bridge: str) -> None:
        """Somebody can be reached again on this bridge: what was held back is tried at once."""
        self._pumps[bridge].arrivals += 1
        self._pumps[bridge].retry_at.clear()
        self.wake(bridge)

    def show(self, event: TurnEvent) -> None:
        """What happens in the owner's sessions may be shown anywhere, in somebody else's only on their bridge."""
        for name, pump in self._pumps.items():
            if is_on(event.session, name):
                pump.bridge.show(event)

    def bodies(self, turn: str) -> list[str]:
        return [item.outgoing.body for item in self._outbox.by_turn(turn)]

    def status(self) -> Mapping[str, Any]:
        return {
            "outbox": dict(self._outbox.counts()),
            "bridges": {name: _condition(pump.stuck or pump.error) for name, pump in self._pumps.items()},
        }

    # ------------------------------------------------------------------------------------------------------------- pump

    async def _run(self, name: str, pump: _Pump) -> None:
        while True:
            await pump.wake.wait()
            pump.wake.clear()
            try:
                await self._pass(name, pump)
                pump.stuck = ""
            except StoreError as error:
                pump.stuck = str(error)
                log.error("outbox cannot be written", bridge=name, error=str(error))
            self._wake_later(pump)

    async def _pass(self, name: str, pump: _Pump) -> None:
        async with pump.passing:
            await self._send_pending(name, pump)

    async def _send_pending(self, name: str, pump: _Pump) -> None:
        now = self._clock()
        for item in self._outbox.pending(name, limit=_LOOK_AHEAD):
            if pump.retry_at.get(item.id, now) > now or not self._may_go(item, now):
                continue
            if item.state == "sending" and not self._may_repeat(pump.bridge, item, now):
                self._outbox.mark(item.id, "ambiguous", now, error="interrupted while it was being sent")
                log.warning("delivery is uncertain; not repeated", bridge=name, key=item.outgoing.key)
                continue
            await self._send(name, pump, item)

    def _may_go(self, item: OutboxItem, now: datetime) -> bool:
        """Whether it may still go where it was to; what may not goes where it may, or nowhere."""
        here = (item.outgoing.bridge, item.outgoing.target)
        place = here if self._destination is None else self._destination(item.outgoing)
        if place is None:
            self._outbox.mark(item.id, "withheld", now, error="whoever it was for is not answered any more")
        elif place != here:
            self._outbox.redirect(item.id, *place, now)
            self.wake(place[0])
        return place == here

    async def _send(self, name: str, pump: _Pump, item: OutboxItem) -> None:
        arrivals = pump.arrivals
        self._outbox.mark(item.id, "sending", self._clock())
        try:
            await pump.bridge.send(item)
        except BridgeError as error:
            pump.error = "" if isinstance(error, NobodyThere) else str(error)
            uncertain = error.ambiguous and not pump.bridge.capabilities.dedupe_seconds
            self._outbox.mark(item.id, "ambiguous" if uncertain else "pending", self._clock(), error=str(error))
            # Somebody may have attached while the last one was leaving: that is not to be slept through.
            if pump.arrivals == arrivals:
                pump.retry_at[item.id] = self._clock() + self._pause(item, error)
        else:
            pump.error = ""
            pump.retry_at.pop(item.id, None)
            self._outbox.mark(item.id, "sent", self._clock())

    @staticmethod
    def _may_repeat(bridge: Bridge, item: OutboxItem, now: datetime) -> bool:
        return now - item.created_at < timedelta(seconds=bridge.capabilities.dedupe_seconds)

    @staticmethod
    def _pause(item: OutboxItem, error: BridgeError) -> timedelta:
        if isinstance(error, NobodyThere):
            return _UNTIL_ATTACHED
        if error.retry_after:
            return timedelta(seconds=error.retry_after)
        doublings: int = 2 ** min(item.attempts, 10)
        return min(_LONGEST_RETRY, _FIRST_RETRY * doublings)

    def _wake_later(self, pump: _Pump) -> None:
        """Items held back wake the pump when the first of them may be tried again."""
        if pump.timer is not None:
            pump.timer.cancel()
        if pump.retry_at:
            wait = (min(pump.retry_at.values()) - self._clock()).total_seconds()
            pump.timer = asyncio.get_running_loop().call_later(max(wait, _SHORTEST_WAIT), pump.wake.set)


def _condition(error: str) -> dict[str, Any]:
    return {"ok": not error, "error": error}
