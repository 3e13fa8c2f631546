"""A `Dispatcher` as tests need one: what it sends goes where it was to go when it was stored, and nothing is paused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from assistant.core.bridge_api import Bridge
from assistant.core.records import OutgoingMessage
from assistant.core.telemetry import NULL_TRACER
from assistant.gateway.dispatcher import Dispatcher
from assistant.gateway.outbox_worker import MarkLate, ResolveDestination
from assistant.store.script.inbox import BridgeStates
from assistant.store.script.outbox import StoredOutbox


class NeverPaused:
    """`BridgeStates` that remember nothing."""

    def set_paused(self, bridge: str, paused: bool) -> None:
        return None

    def is_paused(self, bridge: str) -> bool:
        return False


def destination_as_stored(outgoing: OutgoingMessage) -> tuple[str, str]:
    return outgoing.bridge, outgoing.target


def open_dispatcher(
    outbox: StoredOutbox,
    bridges: Mapping[str, Bridge],
    clock: Callable[[], datetime],
    resolve: ResolveDestination = destination_as_stored,
    states: BridgeStates | None = None,
    mark_late: MarkLate = lambda item, _: item,
) -> Dispatcher:
    """Files go out as they are."""
    return Dispatcher(
        outbox,
        bridges,
        clock,
        resolve,
        states or NeverPaused(),  # type: ignore[arg-type]
        lambda media: media,
        mark_late,
        NULL_TRACER,
    )
