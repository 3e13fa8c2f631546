"""Delivers outbox items of one bridge: one reply, one key, one body (I8).

Items are marked `sending` before the bridge is called and `sent` once it confirmed. Up to eight targets are served
concurrently; within a target, order is kept, and items wait while an earlier one is to be retried. Long messages are
sent in parts, and the number of confirmed parts is stored. A send whose outcome is unknown is retried with the same key
only within the bridge's deduplication window; otherwise it becomes `ambiguous`. What the network refuses is `failed`.
The owner is notified of both, and neither blocks later items. Where a key is shown once, whenever it comes again,
neither mark waits for the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

from assistant.core.bridge_api import Bridge, OutgoingPart
from assistant.core.calendar import CLOCK_TOLERANCE, is_still_ahead
from assistant.core.dataclass import dataclass
from assistant.core.errors import BridgeError, RecipientNotConnected, StoreError
from assistant.core.logger import get_logger
from assistant.core.messages import Media
from assistant.core.ports import Barrier
from assistant.core.records import OutboxItem, OutgoingMessage
from assistant.core.shutdown import ShutdownTimeouts, finish_within
from assistant.core.store_ports import Outbox
from assistant.core.telemetry import Tracer
from assistant.core.text import beside_loop, is_long
from assistant.gateway.notices import TERMINAL_BRIDGE, give_up_notice, is_owners
from assistant.gateway.parts import split_into_parts
from assistant.gateway.supervisor import as_bridge_error

log = get_logger()

# Returns the bridge and target to which a message may be sent, or None.
ResolveDestination = Callable[[OutgoingMessage], tuple[str, str] | None]
# Loads the bytes of an outgoing file. Raises `BridgeError` if it does not exist.
LoadMedia = Callable[[Media], Media]
# Returns the item as it is to be sent: with a word, stored, if it is late.
MarkLate = Callable[[OutboxItem, datetime], OutboxItem]

_MIN_RETRY_DELAY = timedelta(seconds=1)
_MAX_RETRY_DELAY = timedelta(minutes=5)
_DISK_RETRY_DELAY = timedelta(seconds=5)
_PAGE = 100
_MIN_WAIT = 0.05
# Seconds after which a network that has not answered is considered gone.
_SEND_TIMEOUT = 120.0
# Seconds at a stop for a cancelled send to clean up, and for a sync.
_CANCEL_TIMEOUT = 1.0
# Seconds after which deliveries that nobody waits for are synced, unless a later commit did.
_SYNC_DELAY = 0.1
_MAX_PLACES_AT_ONCE = 8  # targets served concurrently


@dataclass(frozen=True, slots=True)
class _Pause:
    """A target's backoff: until when nothing is sent there, and why."""

    began_at: datetime
    length: timedelta
    error: str = ""
    firm: bool = False  # not lifted when a recipient connects

    def remaining(self, now: datetime) -> timedelta:
        """Return how much is left of it; none once the clock was set back."""
        until = self.began_at + self.length
        return until - now if is_still_ahead(until, now, self.length) else timedelta()


@dataclass(slots=True, eq=False)
class OutboxWorker:
    """Delivers the outbox of one bridge. `error` is the latest delivery problem, `disk_error` the latest disk
    problem."""

    bridge: Bridge
    outbox: Outbox
    resolve_destination: ResolveDestination
    wake_bridge: Callable[[str], None]  # wakes the worker of a bridge to which an item was redirected
    load_media: LoadMedia
    mark_late: MarkLate
    clock: Callable[[], datetime]
    tracer: Tracer
    barrier: Barrier | None = None
    disk_error: str = ""
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None
    _timer: asyncio.TimerHandle | None = None
    _sync_timer: asyncio.TimerHandle | None = None
    _syncing: set[asyncio.Task[None]] = field(default_factory=set)
    _sending: dict[str, asyncio.Task[None]] = field(default_factory=dict)  # sender task by target
    _pauses: dict[str, _Pause] = field(default_factory=dict)
    # Items whose recipient is not connected: at a terminal each waits for its own session only.
    _unheard_ids: set[int] = field(default_factory=set)
    _arrivals: int = 0

    @property
    def error(self) -> str:
        """Why some delivery pauses; "" if none does."""
        return next((pause.error for pause in self._pauses.values() if pause.error), "")

    def start(self) -> None:
        """Start sending, or only wake it if it runs."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name=f"outbox {self.bridge.name}")
        self.wake()

    async def stop(self, timeouts: ShutdownTimeouts, *, flush: bool) -> None:
        """Wait for sends in progress, with `flush` also send what can be sent at once, and stop. Nothing of it goes on
        afterwards, when the store may be closed."""
        for running in (self._timer, self._task):
            if running is not None:
                running.cancel()
        await self._finish_sending(timeouts.flush)
        if flush:
            with contextlib.suppress(StoreError):
                await finish_within(timeouts.flush, self.flush(), f"deliveries to {self.bridge.name}")
        await self._finish_sending(0)
        await self._finish_syncing()

    async def _finish_syncing(self) -> None:
        """Sync at once what was to be synced later. A disk that takes long is not waited for; its error is not told."""
        if self._sync_timer is not None:
            self._sync_timer.cancel()
            self._start_sync()
        if self._syncing:
            _, unfinished = await asyncio.wait(self._syncing, timeout=_CANCEL_TIMEOUT)
            for task in unfinished:
                task.cancel()

    async def _finish_sending(self, seconds: float) -> None:
        """Give sends in progress some seconds to be confirmed, then cancel them."""
        if self._sending:
            await asyncio.wait(list(self._sending.values()), timeout=seconds)
        for task in (unfinished := list(self._sending.values())):
            task.cancel()
        if unfinished:
            await asyncio.wait(unfinished, timeout=_CANCEL_TIMEOUT)

    async def flush(self) -> None:
        """Send now what can be sent. Raises `StoreError`."""
        self._send_pending(self.clock())
        while self._sending:
            await asyncio.wait(list(self._sending.values()))
            if self.disk_error:
                raise StoreError(self.disk_error)
            self._send_pending(self.clock())

    def wake(self) -> None:
        """Check the outbox again."""
        self._wake.set()

    def retry_held_back(self) -> None:
        """Retry now what waits for a recipient or a backoff."""
        self._arrivals += 1
        self._unheard_ids.clear()
        self._pauses = {place: pause for place, pause in self._pauses.items() if pause.firm}
        self.wake()

    # --------------------------------------------------------------------------------------------------------- sending

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            now = self.clock()
            with self._note_disk_errors():
                self._send_pending(now)
            self._wake_later(now)

    def _send_pending(self, now: datetime) -> None:
        """Start a sender for every target with pending items and none in progress."""
        sendable = self._sendable_items(now, _MAX_PLACES_AT_ONCE - len(self._sending))
        for place, items in sendable.items():
            task = asyncio.create_task(self._send_to(place, items), name=f"to {self.bridge.name} {place}")
            self._sending[place] = task
            task.add_done_callback(partial(self._on_place_done, place))

    def _sendable_items(self, now: datetime, limit: int) -> dict[str, list[OutboxItem]]:
        """Return sendable items for up to `limit` targets. Items of failing targets are excluded in the query, so that
        they cannot hide others."""
        items_by_place: dict[str, list[OutboxItem]] = {}
        seen_places = {*self._sending, *(place for place, pause in self._pauses.items() if pause.remaining(now))}
        while len(items_by_place) < limit:
            items = self.outbox.pending_items(
                self.bridge.name, limit=_PAGE, except_targets=seen_places, except_ids=self._unheard_ids
            )
            for item in items:
                items_by_place.setdefault(item.outgoing.target, []).append(item)
            seen_places |= items_by_place.keys()
            if len(items) < _PAGE:
                # Targets without pending items have no error.
                self._pauses = {place: pause for place, pause in self._pauses.items() if place in seen_places}
                break
        return dict(list(items_by_place.items())[:limit])

    def _on_place_done(self, place: str, _: asyncio.Task[None]) -> None:
        del self._sending[place]
        self.wake()

    async def _send_to(self, place: str, items: Sequence[OutboxItem]) -> None:
        """Send to one target, in order."""
        with self._note_disk_errors(place):
            for item in items:
                if not await self._finish(item.id):
                    return
                self._pauses.pop(place, None)

    async def _finish(self, item_id: int) -> bool:
        """Send an item if it is still open. Returns False if later items have to wait."""
        now = self.clock()
        item = self.outbox.find_open(item_id)
        if item is None or not self._may_go(item, now):
            return True
        if item.state == "sending" and not self._is_within_dedupe_window(item, now):
            self._give_up(item, "ambiguous", "interrupted while it was being sent", now)
            return True
        return await self._send(self.mark_late(item, now))

    def _may_go(self, item: OutboxItem, now: datetime) -> bool:
        """Return whether an item may be sent to its target. Otherwise it is redirected or withheld; if it may have
        arrived, the owner is asked before it is shown elsewhere."""
        place = self.resolve_destination(item.outgoing)
        if place == (item.outgoing.bridge, item.outgoing.target):
            return True
        if place is None:
            self.outbox.set_state(item.id, "withheld", now, error="the person it was for is not answered any more")
        elif item.state == "sending":
            self._give_up(
                item, "ambiguous", "interrupted while it was sent to a place where it may not go any more", now
            )
        else:
            self.outbox.redirect(item.id, *place, now)
            self.wake_bridge(place[0])
        return False

    async def _send(self, item: OutboxItem) -> bool:
        """Send an item. Returns False if later items have to wait."""
        arrivals, uncertain = self._arrivals, item.state == "sending"
        try:
            parts = await beside_loop(len(item.outgoing.body), split_into_parts, item, self.bridge)
            if is_long(len(item.outgoing.body)) and self.outbox.find_open(item.id) != item:
                # It was dropped or redirected meanwhile, and is checked again.
                return True
            texts = [part.text for part in parts if part.media is None]
            if texts and texts != [item.outgoing.body] and len(parts) > 1 and not item.parts:
                self.outbox.save_parts(item.id, texts, self.clock())
            for part in parts[item.parts_sent :]:
                # A mark that a power cut takes is harmless where a key is shown once, and the item is made again.
                lasting = not self.bridge.capabilities.shows_key_once
                self.outbox.set_state(item.id, "sending", self.clock(), durable=lasting)
                loaded = part if part.media is None else replace(part, media=self.load_media(part.media))
                if self.barrier is not None:
                    await self.barrier(0)
                with self.tracer.span("send", bridge=self.bridge.name) as span:
                    await _send_part(self.bridge, loaded)
                    span.set_attributes(ok=True)
                uncertain = False
                if not part.last:
                    self.outbox.record_parts_sent(item.id, part.number, self.clock())
        except BridgeError as error:
            return self._on_failure(item, error, uncertain or error.ambiguous, somebody_came=self._arrivals != arrivals)
        self.outbox.set_state(item.id, "sent", self.clock())
        if not self.bridge.capabilities.shows_key_once:
            # In a thread: nobody waits for it, but the next message may come now.
            await asyncio.to_thread(self.outbox.sync)
        elif self._sync_timer is None:
            self._sync_timer = asyncio.get_running_loop().call_later(_SYNC_DELAY, self._start_sync)
        return True

    def _start_sync(self) -> None:
        self._sync_timer = None
        task = asyncio.create_task(self._sync(), name=f"outbox {self.bridge.name} to disk")
        self._syncing.add(task)
        task.add_done_callback(self._syncing.discard)

    async def _sync(self) -> None:
        with self._note_disk_errors():
            await asyncio.to_thread(self.outbox.sync)

    def _on_failure(self, item: OutboxItem, error: BridgeError, uncertain: bool, *, somebody_came: bool) -> bool:
        """Handle a failed send. Returns False if later items have to wait. Once the outcome is uncertain it stays so
        whatever the next attempt reports: the item remains `sending` within the deduplication window."""
        now, nobody = self.clock(), isinstance(error, RecipientNotConnected)
        is_guest_notice = item.outgoing.kind == "notice" and not is_owners(item.outgoing)
        if error.refused and not uncertain and is_guest_notice:
            # E.g. a stranger's pairing code: otherwise anyone could write once and then block the assistant.
            self.outbox.set_state(item.id, "dropped", now, error=str(error))
            return True
        if error.refused or (uncertain and not self.bridge.capabilities.dedupe_seconds):
            tried = replace(item, attempts=item.attempts + 1)
            self._give_up(tried, "ambiguous" if uncertain else "failed", str(error), now)
            return True
        # An absent recipient is not an error.
        reported = "" if nobody and not uncertain else str(error)
        self.outbox.set_state(item.id, "sending" if uncertain else "pending", now, error=reported)
        if error.retry_after:
            length = timedelta(seconds=error.retry_after)
            self._pauses[item.outgoing.target] = _Pause(now, length, reported, firm=True)
        # If a recipient connected during the attempt, retry at once.
        elif nobody and not somebody_came:
            self._unheard_ids.add(item.id)
        elif not somebody_came:
            self._pauses[item.outgoing.target] = _Pause(now, _retry_delay(item), reported)
        return nobody

    def _give_up(self, item: OutboxItem, state: Literal["ambiguous", "failed"], error: str, now: datetime) -> None:
        """Stop automatic retries and notify the owner."""
        self.outbox.give_up(item.id, state, error, give_up_notice(item, state, error), now)
        log.warning("delivery given up", bridge=self.bridge.name, key=item.outgoing.key, state=state)
        self.wake_bridge(TERMINAL_BRIDGE)
        self.wake()

    def _is_within_dedupe_window(self, item: OutboxItem, now: datetime) -> bool:
        """Return whether a resend is still deduplicated. The window starts with the first attempt, however long the
        item waited before; how long ago that was is not known once the clock was set back."""
        elapsed = now - (item.tried_at or item.created_at)
        return -CLOCK_TOLERANCE <= elapsed < timedelta(seconds=self.bridge.capabilities.dedupe_seconds)

    def _wake_later(self, now: datetime) -> None:
        """Wake the worker when the first pause ends; `now` is when the items were read."""
        if self._timer is not None:
            self._timer.cancel()
        if waits := list(filter(None, (pause.remaining(now) for pause in self._pauses.values()))):
            wait = min(waits).total_seconds()
            self._timer = asyncio.get_running_loop().call_later(max(wait, _MIN_WAIT), self.wake)

    @contextlib.contextmanager
    def _note_disk_errors(self, place: str | None = None) -> Iterator[None]:
        """Record a disk error for the status and retry the target later."""
        try:
            yield
            self.disk_error = ""
        except StoreError as error:
            self.disk_error = str(error)
            if place is not None:
                self._pauses[place] = _Pause(self.clock(), _DISK_RETRY_DELAY, firm=True)
            log.error("outbox cannot be written", bridge=self.bridge.name, error=str(error))


async def _send_part(bridge: Bridge, part: OutgoingPart) -> None:
    """Send one part. Raises only `BridgeError`."""
    with as_bridge_error(bridge.name, f"Sending to {bridge.name} failed", ambiguous=True):
        try:
            async with asyncio.timeout(_SEND_TIMEOUT):
                await bridge.send(part)
        except TimeoutError:
            raise BridgeError(
                f"{bridge.name} neither took nor refused a message within {_SEND_TIMEOUT:g} s.", ambiguous=True
            ) from None


def _retry_delay(item: OutboxItem) -> timedelta:
    doublings: int = 2 ** min(item.attempts, 10)
    return min(_MAX_RETRY_DELAY, _MIN_RETRY_DELAY * doublings)
