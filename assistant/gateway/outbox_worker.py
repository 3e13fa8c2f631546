"""Sends what is in the outbox for one bridge: one logical reply, one key, one body (I8).

Pending items are marked `sending` before the bridge is asked and `sent` after it confirmed, several places at the same
time. At each place they go out in their order: while one waits for another try, what came after it waits too. A long
one goes out in parts, and how many of them the network has is stored. A send that may have arrived is repeated under
the same key only inside the bridge's deduplication window; otherwise it becomes `ambiguous`. What the network refuses
is `failed`. The owner gets a notice of both, and neither holds up anything.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

import structlog

from assistant.core.bridge_api import Bridge, OutgoingPart
from assistant.core.dataclass import dataclass
from assistant.core.errors import BridgeError, RecipientNotConnected, StoreError
from assistant.core.messages import Media
from assistant.core.notices import NoticeKind
from assistant.core.records import Button, OutboxItem, OutgoingMessage
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE, session_role
from assistant.core.shutdown import ShutdownTimeouts, finish_within
from assistant.core.store_ports import Outbox
from assistant.core.telemetry import Tracer
from assistant.core.text import beside_loop, preview_line
from assistant.gateway.parts import split_into_parts
from assistant.gateway.supervisor import as_bridge_error

log = structlog.get_logger()

# Bridge and target to which something may still go; None for nowhere.
ResolveDestination = Callable[[OutgoingMessage], tuple[str, str] | None]
# Reads the bytes of a file that goes out. Raises `BridgeError` where there is no such file.
LoadMedia = Callable[[Media], Media]

_MIN_RETRY_DELAY = timedelta(seconds=1)
_MAX_RETRY_DELAY = timedelta(minutes=5)
_DISK_RETRY_DELAY = timedelta(seconds=5)
_PAGE = 100
_MIN_WAIT = 0.05
# Seconds; a network that has neither taken nor refused a message by then is gone.
_SEND_TIMEOUT = 120.0
# Seconds for a send that was cancelled to clean up.
_CANCEL_TIMEOUT = 1.0
# Places that are sent to at the same time.
_MAX_PLACES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class _Pause:
    """How long nothing is sent to a place, and why."""

    until: datetime
    error: str = ""
    firm: bool = False  # it does not end when somebody can be reached again


@dataclass(slots=True, eq=False)
class OutboxWorker:
    """Sends what is in the outbox for one bridge. `error` says why something waits, `disk_error` what is wrong with the
    disk."""

    bridge: Bridge
    outbox: Outbox
    resolve_destination: ResolveDestination
    wake_bridge: Callable[[str], None]  # wakes the worker of a bridge to which something was redirected
    load_media: LoadMedia
    clock: Callable[[], datetime]
    tracer: Tracer
    disk_error: str = ""
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None
    _timer: asyncio.TimerHandle | None = None
    # By place, the task that sends there.
    _sending: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _pauses: dict[str, _Pause] = field(default_factory=dict)
    # Items without a recipient: at a terminal each waits for its own session, and holds up no other.
    _unheard_ids: set[int] = field(default_factory=set)
    _arrivals: int = 0

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
        await self._finish_sending(timeouts.flush)
        if flush:
            with contextlib.suppress(StoreError):
                await finish_within(timeouts.flush, self.flush(), f"deliveries to {self.bridge.name}")
        await self._finish_sending(0)

    async def _finish_sending(self, seconds: float) -> None:
        """Give what is being sent so many seconds to be confirmed."""
        if self._sending:
            await asyncio.wait(list(self._sending.values()), timeout=seconds)
        for task in (unfinished := list(self._sending.values())):
            task.cancel()
        if unfinished:
            await asyncio.wait(unfinished, timeout=_CANCEL_TIMEOUT)

    async def flush(self) -> None:
        """Send now what can be sent now. Raises `StoreError`."""
        self._send_pending(self.clock())
        while self._sending:
            await asyncio.wait(list(self._sending.values()))
            if self.disk_error:
                raise StoreError(self.disk_error)
            self._send_pending(self.clock())

    def wake(self) -> None:
        """Look again at the outbox."""
        self._wake.set()

    def retry_held_back(self) -> None:
        """Somebody can be reached again: try what was held back now."""
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
        """Start sending at every place where something waits and nothing is being sent."""
        sendable = self._sendable_items(now, _MAX_PLACES_AT_ONCE - len(self._sending))
        for place, items in sendable.items():
            task = asyncio.create_task(self._send_to(place, items), name=f"to {self.bridge.name} {place}")
            self._sending[place] = task
            task.add_done_callback(partial(self._on_place_done, place))

    def _sendable_items(self, now: datetime, limit: int) -> dict[str, list[OutboxItem]]:
        """What may be sent now, for up to `limit` places. However much waits for a place that failed, the others are
        found."""
        items_by_place: dict[str, list[OutboxItem]] = {}
        seen_places = {*self._sending, *(place for place, pause in self._pauses.items() if pause.until > now)}
        while len(items_by_place) < limit:
            items = self.outbox.pending_items(
                self.bridge.name, limit=_PAGE, except_targets=seen_places, except_ids=self._unheard_ids
            )
            for item in items:
                items_by_place.setdefault(item.outgoing.target, []).append(item)
            seen_places |= items_by_place.keys()
            if len(items) < _PAGE:
                # A place where nothing waits any more has no error.
                self._pauses = {place: pause for place, pause in self._pauses.items() if place in seen_places}
                break
        return dict(list(items_by_place.items())[:limit])

    def _on_place_done(self, place: str, _: asyncio.Task[None]) -> None:
        del self._sending[place]
        self.wake()

    async def _send_to(self, place: str, items: Sequence[OutboxItem]) -> None:
        """To one place, in order."""
        with self._note_disk_errors(place):
            for item in items:
                if not await self._finish(item.id):
                    return
                self._pauses.pop(place, None)

    async def _finish(self, item_id: int) -> bool:
        """Send it if it still is to be sent; False where what came after it has to wait."""
        now = self.clock()
        item = self.outbox.find_open(item_id)
        if item is None or not self._may_go(item, now):
            return True
        if item.state == "sending" and not self._is_within_dedupe_window(item, now):
            self._give_up(item, "ambiguous", "interrupted while it was being sent", now)
            return True
        return await self._send(item)

    def _may_go(self, item: OutboxItem, now: datetime) -> bool:
        """Whether it may still go to its target. Otherwise it is redirected or withheld; what may have arrived is not
        shown elsewhere before the owner was asked."""
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
        """False where what came after it has to wait."""
        arrivals, uncertain = self._arrivals, item.state == "sending"
        try:
            parts = await beside_loop(len(item.outgoing.body), split_into_parts, item, self.bridge)
            if self.outbox.find_open(item.id) != item:
                # It was dropped, or goes elsewhere: it is looked at again.
                return True
            texts = [part.text for part in parts if part.media is None]
            if len(texts) > 1 and not item.parts:
                self.outbox.save_parts(item.id, texts, self.clock())
            for part in parts[item.parts_sent :]:
                self.outbox.set_state(item.id, "sending", self.clock())
                loaded = part if part.media is None else replace(part, media=self.load_media(part.media))
                with self.tracer.span("send", bridge=self.bridge.name) as span:
                    await _send_part(self.bridge, loaded)
                    span.set_attributes(ok=True)
                uncertain = False
                if not part.last:
                    self.outbox.record_parts_sent(item.id, part.number, self.clock())
        except BridgeError as error:
            return self._on_failure(item, error, uncertain or error.ambiguous, somebody_came=self._arrivals != arrivals)
        self.outbox.set_state(item.id, "sent", self.clock())
        return True

    def _on_failure(self, item: OutboxItem, error: BridgeError, uncertain: bool, *, somebody_came: bool) -> bool:
        """False where what came after it has to wait. What was uncertain once stays so, however the next try fails: it
        is `sending`, for as long as the bridge removes duplicates."""
        now, nobody = self.clock(), isinstance(error, RecipientNotConnected)
        is_guest_notice = item.outgoing.kind == "notice" and not _is_owners(item.outgoing)
        if error.refused and not uncertain and is_guest_notice:
            # Such as a stranger's code: anybody can write once, and then block the assistant.
            self.outbox.set_state(item.id, "dropped", now, error=str(error))
            return True
        if error.refused or (uncertain and not self.bridge.capabilities.dedupe_seconds):
            tried = replace(item, attempts=item.attempts + 1)
            self._give_up(tried, "ambiguous" if uncertain else "failed", str(error), now)
            return True
        # That nobody is there is not reported as an error.
        reported = "" if nobody and not uncertain else str(error)
        self.outbox.set_state(item.id, "sending" if uncertain else "pending", now, error=reported)
        if error.retry_after:
            until = now + timedelta(seconds=error.retry_after)
            self._pauses[item.outgoing.target] = _Pause(until, reported, firm=True)
        # Where somebody came while it failed, it is tried again at once.
        elif nobody and not somebody_came:
            self._unheard_ids.add(item.id)
        elif not somebody_came:
            self._pauses[item.outgoing.target] = _Pause(now + _retry_delay(item), reported)
        return nobody

    def _give_up(self, item: OutboxItem, state: Literal["ambiguous", "failed"], error: str, now: datetime) -> None:
        """It is not sent again automatically, and the owner gets a notice."""
        self.outbox.give_up(item.id, state, error, _give_up_notice(item, state, error), now)
        log.warning("delivery given up", bridge=self.bridge.name, key=item.outgoing.key, state=state)
        self.wake_bridge(_TERMINAL_BRIDGE)
        self.wake()

    def _is_within_dedupe_window(self, item: OutboxItem, now: datetime) -> bool:
        """However long it waited before: the network knows its key since the first try."""
        return now - (item.tried_at or item.created_at) < timedelta(seconds=self.bridge.capabilities.dedupe_seconds)

    def _wake_later(self, now: datetime) -> None:
        """Wake this worker when the first item that is held back may be tried again; `now` is when they were read."""
        if self._timer is not None:
            self._timer.cancel()
        if waits := [pause.until for pause in self._pauses.values() if pause.until > now]:
            wait = (min(waits) - now).total_seconds()
            self._timer = asyncio.get_running_loop().call_later(max(wait, _MIN_WAIT), self.wake)

    @contextlib.contextmanager
    def _note_disk_errors(self, place: str | None = None) -> Iterator[None]:
        """A disk error goes into the status, and its place is tried again after a while."""
        try:
            yield
            self.disk_error = ""
        except StoreError as error:
            self.disk_error = str(error)
            if place is not None:
                self._pauses[place] = _Pause(self.clock() + _DISK_RETRY_DELAY, firm=True)
            log.error("outbox cannot be written", bridge=self.bridge.name, error=str(error))


async def _send_part(bridge: Bridge, part: OutgoingPart) -> None:
    """Raises `BridgeError`, whatever went wrong."""
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


_TERMINAL_BRIDGE = "terminal"
_KEY_PREFIXES = {"ambiguous": "uncertain:", "failed": "refused:"}


def _give_up_notice(item: OutboxItem, state: Literal["ambiguous", "failed"], error: str) -> OutgoingMessage | None:
    """Goes to the terminals, but to its own target where the owner's message may have arrived there. None for such a
    notice."""
    outgoing, place = item.outgoing, (_TERMINAL_BRIDGE, MAIN_SESSION)
    if outgoing.key.startswith(tuple(_KEY_PREFIXES.values())):
        return None
    if state == "ambiguous":
        place = (outgoing.bridge, outgoing.target) if _is_owners(outgoing) else place
    retry, drop = f"/deliveries again {item.id}", f"/deliveries drop {item.id}"
    buttons = (Button("Send it again", retry), Button("Discard it", drop))
    # A message that was sent again gets another notice when it fails again: `attempts` makes their keys differ.
    key = f"{_KEY_PREFIXES[state]}{item.id}:{item.attempts}"
    # The words that it quotes are erased with the message.
    kind = NoticeKind.DELIVERY_REFUSED if state == "failed" else NoticeKind.DELIVERY_UNCERTAIN
    notice = kind.fill(
        buttons=buttons,
        what=_describe_message(outgoing),
        bridge=outgoing.bridge,
        error=error.rstrip("."),
        retry=retry,
        drop=drop,
    )
    return notice.to_message(key, MAIN_SESSION, OWNER_SCOPE, *place, message_id=outgoing.message_id)


def _describe_message(outgoing: OutgoingMessage) -> str:
    if not _is_owners(outgoing):
        return f"A message to {outgoing.session}"
    words = preview_line(outgoing.body) or ", ".join(preview_line(file.name or file.mime) for file in outgoing.media)
    return f"A message to you (`{words}`)" if words else "A message to you"


def _is_owners(outgoing: OutgoingMessage) -> bool:
    return session_role(outgoing.session) == "owner"
