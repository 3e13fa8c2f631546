"""All bridges of a home: each runs by itself (F39), with a pump of its own from the outbox, and is shown what happens
in the turns that answer those who wrote there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from assistant.core.bridge_api import Bridge, InboundPort, TurnEvent
from assistant.core.errors import BridgeError, StoreError
from assistant.core.messages import Media
from assistant.core.records import IncomingMessage, OutgoingMessage
from assistant.core.sessions import is_visible_on_bridge
from assistant.core.shutdown import SHUTDOWN_TIMEOUTS, ShutdownTimeouts, finish_within
from assistant.core.store_ports import Outbox
from assistant.core.telemetry import NULL_TRACER, Tracer
from assistant.gateway.outbox_worker import LoadMedia, OutboxWorker, ResolveDestination
from assistant.gateway.supervisor import BridgeSupervisor
from assistant.store.script.state import BridgeStates

log = structlog.get_logger()


def keep_media_unloaded(media: Media) -> Media:
    return media


@dataclass(slots=True)
class _ManagedBridge:
    """One bridge: its connection and its pump."""

    bridge: Bridge
    supervisor: BridgeSupervisor
    worker: OutboxWorker
    paused: bool = False


class Dispatcher:
    """What is on its way out, and over what."""

    def __init__(
        self,
        outbox: Outbox,
        bridges: Mapping[str, Bridge],
        clock: Callable[[], datetime],
        resolve_destination: ResolveDestination | None = None,
        states: BridgeStates | None = None,
        load_media: LoadMedia = keep_media_unloaded,
        tracer: Tracer = NULL_TRACER,
    ) -> None:
        """`destination` tells bridge and target to which something may still go, None for nowhere; without it, where
        it was to go when it was stored. Without `states` no bridge stays paused. `loaded` reads a file that goes
        out."""
        self._outbox = outbox
        self._destination = resolve_destination or _as_stored
        self._states = states
        self._loaded = load_media
        self._clock = clock
        self._tracer = tracer
        self._door: InboundPort | None = None
        # Two who change one bridge at once would leave two of it running, or none.
        self._changing = asyncio.Lock()
        self._lines = {name: self._line(bridge) for name, bridge in bridges.items()}
        self._followed: dict[str, list[OutgoingMessage]] = {}

    # --------------------------------------------------------------------------------------------------------- bridges

    async def start(self, door: InboundPort) -> None:
        """Start every bridge that is not paused; nobody waits for one to connect. Raises `StoreError`."""
        self._door = door
        for name in self._lines:
            self._begin(name, door)
        # What a bridge does before it first waits is done.
        await asyncio.sleep(0)

    async def stop(self, timeouts: ShutdownTimeouts = SHUTDOWN_TIMEOUTS) -> None:
        """Flush what can be sent at once, then stop pumps and bridges, side by side; none waits for another's end."""
        # Who is just having another bridge begins none any more.
        self._door = None
        await asyncio.gather(*(self._end(line, timeouts) for line in self._lines.values()))

    def show_notice(self, session: str, text: str) -> None:
        """Show a line to whoever has the session open now."""
        self.show(TurnEvent("notice", session, "", {"text": text}))

    async def put(self, name: str, bridge: Bridge) -> None:
        """Have a bridge from now on, instead of another of its name where there is one."""
        async with self._changing:
            await self._dropped(name)
            self._lines[name] = self._line(bridge)
            if self._door is not None:
                self._begin(name, self._door)

    async def drop(self, name: str) -> None:
        """Have it no longer; what waits for it goes on waiting."""
        async with self._changing:
            await self._dropped(name)

    async def _dropped(self, name: str) -> None:
        if name in self._lines:
            await self._end(self._lines[name], SHUTDOWN_TIMEOUTS)
            del self._lines[name]

    async def pause(self, name: str) -> None:
        """Neither receive nor send there, across restarts too, until `resume`; what waits for it is kept."""
        async with self._changing:
            if self._states is not None:
                self._states.set_paused(name, True)
            if name in self._lines:
                self._lines[name].paused = True
                await self._end(self._lines[name], SHUTDOWN_TIMEOUTS)

    async def resume(self, name: str) -> None:
        async with self._changing:
            if self._states is not None:
                self._states.set_paused(name, False)
            if name in self._lines:
                self._lines[name].paused = False
                if self._door is not None:
                    self._begin(name, self._door)

    def retry_now(self, name: str) -> None:
        """Try now what waits for another try."""
        if name in self._lines:
            self._lines[name].supervisor.retry_now()
            self._lines[name].worker.retry_held_back()

    @property
    def bridges(self) -> Mapping[str, Bridge]:
        return {name: line.bridge for name, line in self._lines.items()}

    def status(self) -> Mapping[str, Any]:
        """`bridges` maps names to `ok`, `error`, `state` (connecting, connected, paused, failing), `since` and
        `retry_at` (ISO-8601), and how many items wait."""
        return {
            "outbox": dict(self._outbox.count_by_state()),
            "bridges": {name: self._condition(name, line) for name, line in self._lines.items()},
        }

    def _line(self, bridge: Bridge) -> _ManagedBridge:
        pump = OutboxWorker(bridge, self._outbox, self._destination, self.wake, self._loaded, self._clock, self._tracer)
        return _ManagedBridge(bridge, BridgeSupervisor(bridge, self._clock), pump)

    def _begin(self, name: str, door: InboundPort) -> None:
        line = self._lines[name]
        line.paused = line.paused or (self._states is not None and self._states.is_paused(name))
        if not line.paused:
            line.supervisor.start(door)
            line.worker.start()

    async def _end(self, line: _ManagedBridge, patience: ShutdownTimeouts) -> None:
        name = line.bridge.name
        await line.worker.stop(patience, flush=not line.paused)
        try:
            await finish_within(patience.bridge, line.supervisor.stop(), f"bridge {name}")
        except BridgeError as error:
            log.error("bridge did not stop as it should", bridge=name, error=str(error))

    def _condition(self, name: str, line: _ManagedBridge) -> dict[str, Any]:
        connection, pump = line.supervisor, line.worker
        error = pump.disk_error or connection.error or pump.error
        return {
            "ok": not error,
            "error": error,
            "state": "paused" if line.paused else connection.state,
            "since": connection.since.isoformat(),
            "retry_at": connection.retry_at.isoformat() if connection.retry_at else None,
            "waiting": self._outbox.count_open(name),
        }

    # --------------------------------------------------------------------------------------------------------- sending

    async def flush(self, bridge: str | None = None) -> None:
        """Send now what can be sent now, on one bridge or on all that are not paused. Raises `StoreError`."""
        for name, line in list(self._lines.items()):
            if bridge in (None, name) and not line.paused:
                await line.worker.flush()

    def wake(self, bridge: str | None = None) -> None:
        """Look again at the outbox of one bridge, or of all."""
        for name, line in self._lines.items():
            if bridge in (None, name):
                line.worker.wake()

    def retry_held_back(self, bridge: str) -> None:
        """Somebody can be reached again on this bridge: what was held back is tried at once."""
        self._lines[bridge].worker.retry_held_back()

    def mark_connected(self, bridge: str) -> None:
        """Its network answers."""
        if bridge in self._lines:
            self._lines[bridge].supervisor.mark_connected()
            self._lines[bridge].worker.retry_held_back()

    def bodies_of_turn(self, turn: str) -> list[str]:
        return [item.outgoing.body for item in self._outbox.list_by_turn(turn)]

    # --------------------------------------------------------------------------------------------------------- showing

    def follow_turn(self, turn: str, incoming: Sequence[IncomingMessage]) -> None:
        """A turn answers these: what happens in it is shown where they came from."""
        self._followed[turn] = [
            OutgoingMessage("", one.session, one.scope, one.bridge, one.target, "") for one in incoming
        ]

    def unfollow_turn(self, turn: str) -> None:
        self._followed.pop(turn, None)

    def show(self, event: TurnEvent) -> None:
        """On the home's own terminals to whoever looks on the session; elsewhere only at the places that the turn
        answers, while they may have its answer (I10)."""
        self._leave_off(event)
        places = {(one.bridge, one.target) for one in self._followed.get(event.turn, ())}
        for name, line in self._lines.items():
            if line.bridge.capabilities.shows_sessions:
                if is_visible_on_bridge(event.session, name):
                    line.bridge.show(event, "")
                continue
            for _, target in [place for place in places if place[0] == name]:
                line.bridge.show(event, target)

    def _leave_off(self, event: TurnEvent) -> None:
        """Where the answer may not go any more, its turn is shown as ended: what stands there is withdrawn."""
        followed = self._followed.get(event.turn, [])
        left = [one for one in followed if not self._is_meant(one)]
        if left:
            self._followed[event.turn] = [one for one in followed if one not in left]
            ended = TurnEvent("turn", event.session, event.turn, {"state": "aborted"})
            for one in left:
                if one.bridge in self._lines and not self._lines[one.bridge].bridge.capabilities.shows_sessions:
                    self._lines[one.bridge].bridge.show(ended, one.target)

    def _is_meant(self, outgoing: OutgoingMessage) -> bool:
        """Where this cannot be known, nothing is shown."""
        with contextlib.suppress(StoreError):
            return self._destination(outgoing) == (outgoing.bridge, outgoing.target)
        return False


def _as_stored(outgoing: OutgoingMessage) -> tuple[str, str]:
    return outgoing.bridge, outgoing.target
