"""One bridge's way out of the outbox: one logical reply, one key, one body (I8).

Pending items are marked `sending` before the bridge is asked and `sent` after it confirmed, several places side by
side. At each place they go out in their order: while one waits for another try, what came after it waits too. A long
one goes out in parts, and how many of them the network has is kept. A send that may have arrived is repeated under the
same key only inside the bridge's deduplication window; otherwise it becomes `ambiguous`. What the network refuses is
`failed`. Of both the owner is told, and neither holds up anything.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

import structlog

from assistant.core.bridge_api import Bridge, OutgoingPart
from assistant.core.errors import BridgeError, RecipientNotConnected, StoreError
from assistant.core.messages import Media
from assistant.core.records import OutboxItem, OutgoingMessage
from assistant.core.shutdown import ShutdownTimeouts, finish_within
from assistant.core.store_ports import Outbox
from assistant.core.telemetry import NULL_TRACER, Tracer
from assistant.gateway.delivery_notices import (
    TERMINAL_BRIDGE,
    ambiguous_delivery_notice,
    is_notice_to_guest,
    refused_delivery_notice,
)
from assistant.gateway.splitter import split_into_parts
from assistant.gateway.supervisor import as_bridge_error

log = structlog.get_logger()

# Bridge and target to which something may still go; None for nowhere.
ResolveDestination = Callable[[OutgoingMessage], tuple[str, str] | None]
# A file that goes out, as it is kept, to the same with what is in it. Raises `BridgeError` where it is gone.
LoadMedia = Callable[[Media], Media]

_FIRST_RETRY = timedelta(seconds=1)
_LONGEST_RETRY = timedelta(minutes=5)
_RETRY_DISK = timedelta(seconds=5)
_LOOK_AHEAD = 100
_SHORTEST_WAIT = 0.05
# A network that neither takes nor refuses a message within this is taken for one that is gone.
_LONGEST_SEND = 120.0
# A send that is given up gets so long to clean up.
_UNWINDING = 1.0
# Places that are sent to side by side.
_SIDE_BY_SIDE = 8


@dataclass(frozen=True, slots=True)
class _Pause:
    """How long nothing is sent to a place, and why. `firm`: nobody who comes ends it."""

    until: datetime
    error: str = ""
    firm: bool = False


class OutboxWorker:
    """`error` is the trouble for which something waits, `stuck` that of the home's disk."""

    def __init__(
        self,
        bridge: Bridge,
        outbox: Outbox,
        resolve_destination: ResolveDestination,
        wake_bridge: Callable[[str], None],
        load_media: LoadMedia,
        clock: Callable[[], datetime],
        tracer: Tracer = NULL_TRACER,
    ) -> None:
        """`elsewhere` is told of a bridge that something was sent on to; `loaded` reads a file that goes out."""
        self.bridge = bridge
        self.disk_error = ""
        self._outbox = outbox
        self._destination = resolve_destination
        self._elsewhere = wake_bridge
        self._loaded = load_media
        self._clock = clock
        self._tracer = tracer
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        # The places that are being sent to.
        self._lanes: dict[str, asyncio.Task[None]] = {}
        self._pauses: dict[str, _Pause] = {}
        # What nobody was there for: at a terminal each waits for its own audience, and holds up no other.
        self._unheard: set[int] = set()
        self._arrivals = 0

    @property
    def error(self) -> str:
        return next((pause.error for pause in self._pauses.values() if pause.error), "")

    def start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name=f"outbox {self.bridge.name}")
        self.wake()

    async def stop(self, timeouts: ShutdownTimeouts, *, flush: bool) -> None:
        """Wait for what is just being sent, with `flush` send what can be sent at once, and end."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        await self._clear(timeouts.flush)
        if flush:
            with contextlib.suppress(StoreError):
                await finish_within(timeouts.flush, self.flush(), f"deliveries to {self.bridge.name}")
        await self._clear(0)

    async def _clear(self, seconds: float) -> None:
        """What is being sent gets so long to be confirmed."""
        if self._lanes:
            await asyncio.wait(list(self._lanes.values()), timeout=seconds)
        for lane in (late := list(self._lanes.values())):
            lane.cancel()
        if late:
            await asyncio.wait(late, timeout=_UNWINDING)

    async def flush(self) -> None:
        """Send now what can be sent now. Raises `StoreError`."""
        self._send_pending(self._clock())
        while self._lanes:
            await asyncio.wait(list(self._lanes.values()))
            if self.disk_error:
                raise StoreError(self.disk_error)
            self._send_pending(self._clock())

    def wake(self) -> None:
        """Look again at the outbox."""
        self._wake.set()

    def retry_held_back(self) -> None:
        """Somebody can be reached again: what was held back is tried at once."""
        self._arrivals += 1
        self._unheard.clear()
        self._pauses = {place: pause for place, pause in self._pauses.items() if pause.firm}
        self.wake()

    # --------------------------------------------------------------------------------------------------------- sending

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            now = self._clock()
            with self._noting_disk():
                self._send_pending(now)
            self._wake_later(now)

    def _send_pending(self, now: datetime) -> None:
        """Begin to send at every place where something waits and nothing is being sent."""
        waiting = self._waiting(now, _SIDE_BY_SIDE - len(self._lanes))
        for place, items in waiting.items():
            lane = asyncio.create_task(self._send_to(place, items), name=f"to {self.bridge.name} {place}")
            self._lanes[place] = lane
            lane.add_done_callback(partial(self._left, place))

    def _waiting(self, now: datetime, most: int) -> dict[str, list[OutboxItem]]:
        """What may be sent now, by place, so many places at most. However much waits for one that is in trouble, the
        others are looked at."""
        found: dict[str, list[OutboxItem]] = {}
        looked_at = {*self._lanes, *(place for place, pause in self._pauses.items() if pause.until > now)}
        while len(found) < most:
            items = self._outbox.pending_items(
                self.bridge.name, limit=_LOOK_AHEAD, except_targets=looked_at, except_ids=self._unheard
            )
            for item in items:
                found.setdefault(item.outgoing.target, []).append(item)
            looked_at |= found.keys()
            if len(items) < _LOOK_AHEAD:
                # Where nothing waits any more there is no trouble.
                self._pauses = {place: pause for place, pause in self._pauses.items() if place in looked_at}
                break
        return dict(list(found.items())[:most])

    def _left(self, place: str, _: asyncio.Task[None]) -> None:
        del self._lanes[place]
        self.wake()

    async def _send_to(self, place: str, items: Sequence[OutboxItem]) -> None:
        """To one place, in order."""
        with self._noting_disk(place):
            for item in items:
                if not await self._is_done_with(item.id):
                    return
                self._pauses.pop(place, None)

    async def _is_done_with(self, item_id: int) -> bool:
        """Send it, where it still is to be sent; whether what came after it may go."""
        now = self._clock()
        item = self._outbox.find_open(item_id)
        if item is None or not self._may_go(item, now):
            return True
        if item.state == "sending" and not self._may_repeat(item, now):
            self._give_up(item, "ambiguous", "interrupted while it was being sent", now)
            return True
        return await self._send(item)

    def _may_go(self, item: OutboxItem, now: datetime) -> bool:
        """Whether it may still go where it was to; what may not goes where it may, or nowhere. What may have arrived is
        not shown elsewhere without a word."""
        place = self._destination(item.outgoing)
        if place == (item.outgoing.bridge, item.outgoing.target):
            return True
        if place is None:
            self._outbox.set_state(item.id, "withheld", now, error="whoever it was for is not answered any more")
        elif item.state == "sending":
            self._give_up(item, "ambiguous", "interrupted while it was sent to where it may not go any more", now)
        else:
            self._outbox.redirect(item.id, *place, now)
            self._elsewhere(place[0])
        return False

    async def _send(self, item: OutboxItem) -> bool:
        """Whether what came after it may go."""
        arrivals, uncertain = self._arrivals, item.state == "sending"
        try:
            parts = split_into_parts(item, self.bridge)
            texts = [part.text for part in parts if part.media is None]
            if len(texts) > 1 and not item.parts:
                self._outbox.save_parts(item.id, texts, self._clock())
            for part in parts[item.parts_sent :]:
                self._outbox.set_state(item.id, "sending", self._clock())
                whole = part if part.media is None else replace(part, media=self._loaded(part.media))
                with self._tracer.span("send", bridge=self.bridge.name) as span:
                    await _sent(self.bridge, whole)
                    span.set_attributes(ok=True)
                uncertain = False
                if not part.last:
                    self._outbox.record_parts_sent(item.id, part.number, self._clock())
        except BridgeError as error:
            return self._failed(item, error, uncertain or error.ambiguous, somebody_came=self._arrivals != arrivals)
        self._outbox.set_state(item.id, "sent", self._clock())
        return True

    def _failed(self, item: OutboxItem, error: BridgeError, uncertain: bool, *, somebody_came: bool) -> bool:
        """Whether what came after it may go all the same. What once was uncertain stays so, however the next try fails:
        it is `sending`, and has its window."""
        now, nobody = self._clock(), isinstance(error, RecipientNotConnected)
        if error.refused and not uncertain and is_notice_to_guest(item.outgoing):
            self._outbox.set_state(item.id, "dropped", now, error=str(error))
            return True
        if error.refused or (uncertain and not self.bridge.capabilities.dedupe_seconds):
            tried = replace(item, attempts=item.attempts + 1)
            self._give_up(tried, "ambiguous" if uncertain else "failed", str(error), now)
            return True
        # That nobody is there is no trouble, and none that it would be told of.
        told = "" if nobody and not uncertain else str(error)
        self._outbox.set_state(item.id, "sending" if uncertain else "pending", now, error=told)
        if error.retry_after:
            until = now + timedelta(seconds=error.retry_after)
            self._pauses[item.outgoing.target] = _Pause(until, told, firm=True)
        # Somebody may have come while it failed: that is not to be slept through.
        elif nobody and not somebody_came:
            self._unheard.add(item.id)
        elif not somebody_came:
            self._pauses[item.outgoing.target] = _Pause(now + _pause(item), told)
        return nobody

    def _give_up(self, item: OutboxItem, state: Literal["ambiguous", "failed"], error: str, now: datetime) -> None:
        """It is not sent again by itself, and the owner is told."""
        notice = ambiguous_delivery_notice(item) if state == "ambiguous" else refused_delivery_notice(item, error)
        self._outbox.give_up(item.id, state, error, notice, now)
        log.warning("delivery given up", bridge=self.bridge.name, key=item.outgoing.key, state=state)
        self._elsewhere(TERMINAL_BRIDGE)
        self.wake()

    def _may_repeat(self, item: OutboxItem, now: datetime) -> bool:
        return now - item.created_at < timedelta(seconds=self.bridge.capabilities.dedupe_seconds)

    def _wake_later(self, now: datetime) -> None:
        """What is held back wakes the pump when the first of it may be tried again; `now` is when it was looked at."""
        if self._timer is not None:
            self._timer.cancel()
        if waits := [pause.until for pause in self._pauses.values() if pause.until > now]:
            wait = (min(waits) - now).total_seconds()
            self._timer = asyncio.get_running_loop().call_later(max(wait, _SHORTEST_WAIT), self.wake)

    @contextlib.contextmanager
    def _noting_disk(self, place: str | None = None) -> Iterator[None]:
        """A disk that refuses is told of, and tried again after a while."""
        try:
            yield
            self.disk_error = ""
        except StoreError as error:
            self.disk_error = str(error)
            if place is not None:
                self._pauses[place] = _Pause(self._clock() + _RETRY_DISK, firm=True)
            log.error("outbox cannot be written", bridge=self.bridge.name, error=str(error))


async def _sent(bridge: Bridge, part: OutgoingPart) -> None:
    """Raises `BridgeError`, whatever it was that went wrong."""
    with as_bridge_error(bridge.name, f"Sending to {bridge.name} failed", ambiguous=True):
        try:
            async with asyncio.timeout(_LONGEST_SEND):
                await bridge.send(part)
        except TimeoutError:
            raise BridgeError(
                f"{bridge.name} neither took nor refused a message within {_LONGEST_SEND:g} s.", ambiguous=True
            ) from None


def _pause(item: OutboxItem) -> timedelta:
    doublings: int = 2 ** min(item.attempts, 10)
    return min(_LONGEST_RETRY, _FIRST_RETRY * doublings)
