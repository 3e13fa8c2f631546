"""Runs all bridges independently (F39), each with its own outbox worker, and shows the progress of turns on the bridges
their messages came from."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from assistant.core.bridge_api import Bridge, InboundPort, TurnEvent
from assistant.core.dataclass import dataclass
from assistant.core.errors import BridgeError, StoreError
from assistant.core.logger import get_logger
from assistant.core.notices import NoticeKind
from assistant.core.people import Identity
from assistant.core.ports import Barrier
from assistant.core.records import OutgoingMessage, Turn
from assistant.core.sessions import is_visible_on_bridge, peer_session_key, room_session_key, session_role
from assistant.core.shutdown import SHUTDOWN_TIMEOUTS, ShutdownTimeouts, finish_within
from assistant.core.store_ports import Outbox
from assistant.core.telemetry import Tracer
from assistant.gateway.outbox_worker import LoadMedia, MarkLate, OutboxWorker, ResolveDestination
from assistant.gateway.supervisor import BridgeSupervisor
from assistant.store.script.inbox import BridgeStates
from assistant.store.script.people import ConversationRoutes, People

log = get_logger()


@dataclass(slots=True)
class _ManagedBridge:
    """A bridge with its supervisor and worker."""

    bridge: Bridge
    supervisor: BridgeSupervisor
    worker: OutboxWorker
    paused: bool = False


class Dispatcher:
    """Delivers the outbox over all bridges."""

    def __init__(
        self,
        outbox: Outbox,
        bridges: Mapping[str, Bridge],
        clock: Callable[[], datetime],
        resolve_destination: ResolveDestination,
        states: BridgeStates,
        load_media: LoadMedia,
        mark_late: MarkLate,
        tracer: Tracer,
    ) -> None:
        """`resolve_destination` returns the bridge and target to which a message may currently be sent, or None."""
        self._outbox = outbox
        self._resolve_destination = resolve_destination
        self._states = states
        self._load_media = load_media
        self._mark_late = mark_late
        self._clock = clock
        self._tracer = tracer
        self._barrier: Barrier | None = None
        self._inbound: InboundPort | None = None
        # Concurrent changes of a bridge could leave it running twice or not at all.
        self._changing = asyncio.Lock()
        self._managed = {name: self._manage(bridge) for name, bridge in bridges.items()}
        self._followed: dict[str, list[OutgoingMessage]] = {}

    def keep_before_sending(self, barrier: Barrier) -> None:
        """From now on wait for it before each send."""
        self._barrier = barrier
        for managed in self._managed.values():
            managed.worker.barrier = barrier

    # --------------------------------------------------------------------------------------------------------- bridges

    async def start(self, inbound: InboundPort) -> None:
        """Start every bridge that is not paused, without waiting for connections. Raises `StoreError`."""
        self._inbound = inbound
        for name in self._managed:
            self._start(name, inbound)
        # Let each bridge run up to its first await.
        await asyncio.sleep(0)

    async def stop(self, timeouts: ShutdownTimeouts = SHUTDOWN_TIMEOUTS) -> None:
        """Send what can be sent at once, then stop all workers and bridges concurrently."""
        # Prevents starting a bridge that is being added.
        self._inbound = None
        await asyncio.gather(*(self._stop(managed, timeouts) for managed in self._managed.values()))

    def show_progress(self, session: str, text: str) -> None:
        """Show a line to all clients that have the session open."""
        self.show(TurnEvent("notice", session, "", {"text": NoticeKind.RESET_PROGRESS.fill(text=text).text}))

    def show_changed(self, session: str) -> None:
        """Tell all clients that have the session open that something that was said was undone."""
        self.show(TurnEvent("changed", session, ""))

    async def put(self, name: str, bridge: Bridge) -> None:
        """Add a bridge, replacing one of the same name."""
        async with self._changing:
            await self._remove(name)
            self._managed[name] = self._manage(bridge)
            if self._inbound is not None:
                self._start(name, self._inbound)

    async def drop(self, name: str) -> None:
        """Remove a bridge; its pending deliveries stay in the outbox."""
        async with self._changing:
            await self._remove(name)

    async def _remove(self, name: str) -> None:
        if name in self._managed:
            await self._stop(self._managed[name], SHUTDOWN_TIMEOUTS)
            del self._managed[name]

    async def pause(self, name: str) -> None:
        """Stop receiving and sending until `resume`, also across restarts; pending deliveries are kept."""
        async with self._changing:
            self._states.set_paused(name, True)
            if name in self._managed:
                self._managed[name].paused = True
                await self._stop(self._managed[name], SHUTDOWN_TIMEOUTS)

    async def resume(self, name: str) -> None:
        """Undo a pause, also the stored one; the bridge runs on return if the daemon is up."""
        async with self._changing:
            self._states.set_paused(name, False)
            if name in self._managed:
                self._managed[name].paused = False
                if self._inbound is not None:
                    self._start(name, self._inbound)

    def retry_now(self, name: str) -> None:
        """Retry now instead of waiting."""
        if name in self._managed:
            self._managed[name].supervisor.retry_now()
            self._managed[name].worker.retry_held_back()

    @property
    def bridges(self) -> Mapping[str, Bridge]:
        """By name; paused ones too."""
        return {name: managed.bridge for name, managed in self._managed.items()}

    def bridge_states(self) -> Mapping[str, Mapping[str, Any]]:
        """Return by bridge name: `ok`, `error`, `state` (connecting, connected, paused, failing), `since` and
        `retry_at` (ISO-8601), and the number of items `waiting`."""
        return {name: self._status_of(name, managed) for name, managed in self._managed.items()}

    def _manage(self, bridge: Bridge) -> _ManagedBridge:
        worker = OutboxWorker(
            bridge,
            self._outbox,
            self._resolve_destination,
            self.wake,
            self._load_media,
            self._mark_late,
            self._clock,
            self._tracer,
            self._barrier,
        )
        return _ManagedBridge(bridge, BridgeSupervisor(bridge, self._clock), worker)

    def _start(self, name: str, inbound: InboundPort) -> None:
        managed = self._managed[name]
        managed.paused = managed.paused or self._states.is_paused(name)
        if not managed.paused:
            managed.supervisor.start(inbound)
            managed.worker.start()

    async def _stop(self, managed: _ManagedBridge, timeouts: ShutdownTimeouts) -> None:
        name = managed.bridge.name
        await managed.worker.stop(timeouts, flush=not managed.paused)
        try:
            await finish_within(timeouts.bridge, managed.supervisor.stop(), f"bridge {name}")
        except BridgeError as error:
            log.error("bridge did not stop as it should", bridge=name, error=str(error))

    def _status_of(self, name: str, managed: _ManagedBridge) -> dict[str, Any]:
        supervisor, worker = managed.supervisor, managed.worker
        error = worker.disk_error or supervisor.error or worker.error
        return {
            "ok": not error,
            "error": error,
            "state": "paused" if managed.paused else supervisor.state,
            "since": supervisor.since.isoformat(),
            "retry_at": supervisor.retry_at.isoformat() if supervisor.retry_at else None,
            "waiting": self._outbox.count_open(name),
        }

    # --------------------------------------------------------------------------------------------------------- sending

    async def flush(self, bridge: str | None = None) -> None:
        """Send now what can be sent, on one bridge or on all that are not paused. Raises `StoreError`."""
        for name, managed in list(self._managed.items()):
            if bridge in (None, name) and not managed.paused:
                await managed.worker.flush()

    def wake(self, bridge: str | None = None) -> None:
        """Make the worker of one bridge, or all, check the outbox."""
        for name, managed in self._managed.items():
            if bridge in (None, name):
                managed.worker.wake()

    def retry_held_back(self, bridge: str) -> None:
        """Retry deliveries on this bridge now that a recipient is reachable again."""
        self._managed[bridge].worker.retry_held_back()

    def mark_connected(self, bridge: str) -> None:
        """Record that the bridge's network answers, and retry its deliveries."""
        if bridge in self._managed:
            self._managed[bridge].supervisor.mark_connected()
            self._managed[bridge].worker.retry_held_back()

    # --------------------------------------------------------------------------------------------------------- showing

    @contextmanager
    def follow_turn(self, turn: Turn) -> Iterator[None]:
        """Within the context, show the turn's events where its messages came from."""
        messages = [item.incoming for item in turn.items]
        self._followed[turn.id] = [
            OutgoingMessage("", message.session, message.scope, message.bridge, message.target, "")
            for message in messages
        ]
        try:
            yield
        finally:
            self._followed.pop(turn.id, None)

    def show(self, event: TurnEvent) -> None:
        """Show an event: on terminals to all clients that watch the session, elsewhere only at the turn's reply
        targets, while the reply may be sent there (I10)."""
        self._stop_showing(event)
        followed = self._followed.get(event.turn, ())
        for name, managed in self._managed.items():
            if not managed.bridge.capabilities.shows_sessions:
                targets = {answered.target for answered in followed if answered.bridge == name}
            else:
                targets = {""} if is_visible_on_bridge(event.session, name) else set()
            for target in targets:
                managed.bridge.show(event, target)

    def _stop_showing(self, event: TurnEvent) -> None:
        """Show the turn as aborted, and stop showing it, at targets that may no longer receive its reply."""
        followed = self._followed.get(event.turn, [])
        withdrawn = [answered for answered in followed if not self._may_show(answered)]
        if withdrawn:
            self._followed[event.turn] = [answered for answered in followed if answered not in withdrawn]
            ended = TurnEvent("turn", event.session, event.turn, {"state": "aborted"})
            for answered in withdrawn:
                managed = self._managed.get(answered.bridge)
                if managed is not None and not managed.bridge.capabilities.shows_sessions:
                    managed.bridge.show(ended, answered.target)

    def _may_show(self, outgoing: OutgoingMessage) -> bool:
        """Return whether the reply may be sent there; False if that cannot be determined."""
        with contextlib.suppress(StoreError):
            return self._resolve_destination(outgoing) == (outgoing.bridge, outgoing.target)
        return False


Destination = tuple[str, str]


@dataclass(frozen=True, slots=True)
class OutgoingRouter:
    people: People
    routes: ConversationRoutes
    terminal_bridge: str  # name of the terminal bridge

    def resolve_destination(self, outgoing: OutgoingMessage) -> Destination | None:
        """Return bridge and target for a message, or None if it must not be sent."""
        stored = (outgoing.bridge, outgoing.target)
        if outgoing.bridge == self.terminal_bridge:
            return stored
        match session_role(outgoing.session):
            case "owner":
                return stored if self._is_owners_account(*stored) else (self.terminal_bridge, outgoing.session)
            case "room":
                return None if self._room_is_denied(outgoing.session) else stored
            case "guest":
                return stored if self._may_receive(outgoing) else None

    def _is_owners_account(self, bridge: str, target: str) -> bool:
        account = self.routes.account_at(bridge, target)
        if account is None:
            return True
        person = self.people.find_by_identity(Identity(bridge, account))
        return person is not None and person.role == "owner"

    def _room_is_denied(self, session: str) -> bool:
        return any(
            room.state == "denied" and room_session_key(room.bridge, room.room) == session
            for room in self.people.list_rooms()
        )

    def _may_receive(self, outgoing: OutgoingMessage) -> bool:
        account = self.routes.account_at(outgoing.bridge, outgoing.target)
        if account is None or peer_session_key(outgoing.bridge, account) != outgoing.session:
            return True
        person = self.people.find_by_identity(Identity(outgoing.bridge, account))
        return outgoing.kind == "notice" if person is None else person.state == "allowed"
