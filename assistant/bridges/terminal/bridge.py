"""The terminal bridge: terminals, attached to the daemon over its control socket or within its process.

- A delivery counts as made only when a terminal confirmed its key, so a terminal that dies in between loses nothing.
- Nothing here waits for a terminal to read: each has a bounded queue, and one that falls behind, or does not confirm in
  time, is detached with a notice. It may attach again and then gets what is still pending, or, if it names its last
  delivery, everything after that (`DeliveryFeed`).
- A terminal shows a key once, however often it receives it, so resending is safe as long as terminals stay open.

Typed messages do not come in here: they are accepted by `DaemonControl`, which returns their ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from assistant import __version__
from assistant.bridges.terminal.feed import DeliveryFeed, DeliveryMark
from assistant.core.bridge_api import BridgeCapabilities, InboundPort, OutgoingPart, TurnEvent
from assistant.core.dataclass import dataclass
from assistant.core.errors import BridgeError, RecipientNotConnected, UsageError
from assistant.core.notices import NoticeKind
from assistant.core.records import OutboxItem, is_answer_key
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.store_ports import Outbox
from assistant.gateway.parts import split_into_parts

# The name of an event and its data, as a terminal receives it.
TerminalEvent = tuple[str, Mapping[str, Any]]

_QUEUE_SIZE = 2048
_CONFIRM_SECONDS = 20.0
_DEDUPE_SECONDS = 7 * 24 * 3600.0
_MAX_EARLY = 10_000
_UNCONFIRMED = "A message was not confirmed in time, so this connection is closed. The message is kept."
_BEHIND = "This connection fell too far behind, so it is closed. Nothing is lost."


@dataclass(slots=True, eq=False)
class Terminal:
    """One attached terminal, and what it was given."""

    session: str
    feed: DeliveryFeed
    queue: asyncio.Queue[TerminalEvent | None]

    async def events(self, idle_seconds: float | None = None) -> AsyncIterator[TerminalEvent]:
        """Yield the events of the session, `hello` first; ends when the terminal is detached.

        `idle` is sent after `idle_seconds` without events, to keep the connection alive."""
        while True:
            try:
                event = self.queue.get_nowait()
            except asyncio.QueueEmpty:
                event = await self._next_event(idle_seconds)
            if event is None:
                return
            yield event

    async def _next_event(self, idle_seconds: float | None) -> TerminalEvent | None:
        try:
            async with asyncio.timeout(idle_seconds):
                return await self.queue.get()
        except TimeoutError:
            return "idle", {}


@dataclass(slots=True)
class _RunningTurn:
    """A turn, and what it has shown that was not withdrawn."""

    id: str
    tools: list[TerminalEvent] = field(default_factory=list)
    text: str = ""

    def add(self, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "delta":
            self.text += data["text"]
        elif kind in ("tool", "discard"):
            self.text = ""
        if kind == "tool":
            self.tools.append((kind, data))

    def events(self) -> Iterator[TerminalEvent]:
        """Yield it for a terminal that was not there."""
        yield from self.tools
        if self.text:
            yield "delta", {"text": self.text, "turn": self.id}


@dataclass(slots=True)
class _Confirmation:
    """A delivery waiting for confirmation."""

    part: OutgoingPart
    arrived: asyncio.Future[None]
    recipients: set[Terminal]  # attached terminals that received it
    deadline: asyncio.Timeout


class TerminalBridge:
    """See `Bridge`. `on_attach` is called when a terminal attaches; the runtime then sends what waits.
    `find_disk_trouble` returns why nothing can be stored, which is shown to a terminal that attaches then."""

    name = "terminal"
    capabilities = BridgeCapabilities(
        edit=True, typing=True, shows_sessions=True, dedupe_seconds=_DEDUPE_SECONDS, shows_key_once=True
    )

    def __init__(
        self, outbox: Outbox, *, queue_size: int = _QUEUE_SIZE, confirm_seconds: float = _CONFIRM_SECONDS
    ) -> None:
        """Terminals that attach again get what they missed from `outbox`."""
        self.on_attach: Callable[[], None] = lambda: None
        self.find_disk_trouble: Callable[[], str] = lambda: ""
        self._outbox = outbox
        self._queue_size = queue_size
        self._confirm_seconds = confirm_seconds
        self._terminals: list[Terminal] = []
        self._running_turns: dict[str, _RunningTurn] = {}  # by session
        self._confirmations: dict[str, _Confirmation] = {}
        # Keys that were confirmed before they were sent.
        self._confirmed_early: dict[str, None] = {}
        self._stopped = False

    async def check(self) -> str:
        return "the terminals of this machine"

    async def run(self, inbound: InboundPort) -> None:
        """Wait until cancelled: see `DaemonControl` for typed messages."""
        self._stopped = False
        inbound.mark_connected(self.name)
        await asyncio.get_running_loop().create_future()

    async def aclose(self) -> None:
        """Detach all terminals; their event streams end."""
        self._stopped = True
        for terminal in list(self._terminals):
            self._detach(terminal)

    # -------------------------------------------------------------------------------------------------------- terminals

    @contextmanager
    def attach(
        self, session: str, inbox_id: int | None = None, after: DeliveryMark | None = None
    ) -> Iterator[Terminal]:
        """Attach a terminal to `session` for the duration of the context. With `inbox_id` it only takes the deliveries
        that answer that message; `after` is its last delivery, which confirms those up to it.

        Raises `StoreError`."""
        feed = DeliveryFeed(self._outbox, self.name, session, inbox_id, after)
        terminal = Terminal(session, feed, asyncio.Queue())
        turn = self._running_turns.get(session)
        hello = {
            "session": session,
            "version": __version__,
            "id": str(feed.start_mark),
            "turn": turn.id if turn else "",
        }
        terminal.queue.put_nowait(("hello", hello))
        if trouble := self.find_disk_trouble():
            notice = NoticeKind.DISK_TROUBLE.fill(text=trouble)
            terminal.queue.put_nowait(("notice", {"text": notice.text, "turn": "", "disk": True}))
        missed, is_all = feed.read_missed() if after is not None else ((), True)
        for item in missed:
            terminal.queue.put_nowait(self._delivery(item, waited=True))
        for event in turn.events() if turn else ():
            terminal.queue.put_nowait(event)
        self._terminals.append(terminal)
        try:
            if self._stopped or not is_all:
                self._detach(terminal)
            else:
                self._join(terminal)
                self.on_attach()
            yield terminal
        finally:
            self._detach(terminal)

    def is_attached(self) -> bool:
        """Return whether a terminal, a page or a program is attached now."""
        return bool(self._terminals)

    def _join(self, terminal: Terminal) -> None:
        """Give it the unconfirmed deliveries of other terminals, with the same deadline."""
        for confirmation in self._confirmations.values():
            item = confirmation.part.item
            if confirmation.arrived.done() or not terminal.feed.accepts(item.outgoing):
                continue
            if terminal.feed.was_shown(item):
                confirmation.arrived.set_result(None)
                continue
            confirmation.recipients.add(terminal)
            confirmation.deadline.reschedule(asyncio.get_running_loop().time() + self._confirm_seconds)
            self._deliver(terminal, confirmation.part)

    def has_delivered(self, turn: str | None) -> bool:
        """Return whether the answer of a turn, or a notice that there is none, was delivered."""
        sent = self._outbox.list_by_turn(turn) if turn else []
        return any(one.state == "sent" for one in sent if is_answer_key(one.outgoing.key))

    def acknowledge(self, key: str) -> bool:
        """A terminal has shown the delivery `key`. Returns False if it is not waiting for confirmation. Raises
        `UsageError` if it never existed, and `StoreError`."""
        confirmation = self._confirmations.get(key)
        if confirmation is None:
            return self._acknowledge_early(key)
        if confirmation.arrived.done():
            return False
        confirmation.arrived.set_result(None)
        return True

    def _acknowledge_early(self, key: str) -> bool:
        was_given = any(terminal.feed.was_given_early(key) for terminal in self._terminals)
        if not was_given and not self._outbox.has(key, OWNER_SCOPE):
            raise UsageError(f"There is no delivery {key!r}. Nothing was changed; each has its key in its event.")
        if was_given and len(self._confirmed_early) < _MAX_EARLY:
            self._confirmed_early[key] = None
        return was_given

    # ----------------------------------------------------------------------------------------------------------- bridge

    async def send(self, part: OutgoingPart) -> None:
        """Send it to the session's terminals; the first confirmation completes it.

        Raises `RecipientNotConnected` if no terminal is attached or the last one left, `BridgeError` if none
        confirmed."""
        outgoing = part.item.outgoing
        recipients = {terminal for terminal in self._terminals if terminal.feed.accepts(outgoing)}
        if self._is_already_shown(part.item, recipients):
            return
        if not recipients:
            raise RecipientNotConnected()
        arrived = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._confirm_seconds) as deadline:
                self._confirmations[outgoing.key] = _Confirmation(part, arrived, recipients, deadline)
                for terminal in list(recipients):
                    self._deliver(terminal, part)
                await arrived
        except TimeoutError:
            for terminal in list(recipients):
                self._detach(terminal, _UNCONFIRMED)
            text = "No terminal confirmed the message in time; it waits for the next terminal."
            raise BridgeError(text, ambiguous=True) from None
        finally:
            self._confirmations.pop(outgoing.key, None)

    def _is_already_shown(self, item: OutboxItem, recipients: Collection[Terminal]) -> bool:
        """Return whether a terminal confirmed it before it was sent."""
        key = item.outgoing.key
        early = key in self._confirmed_early
        self._confirmed_early.pop(key, None)
        return early or any(terminal.feed.was_shown(item) for terminal in recipients)

    def _deliver(self, terminal: Terminal, part: OutgoingPart) -> None:
        for item in terminal.feed.read_due(part.item):
            text = part.text if item is part.item else None
            self._put(terminal, self._delivery(item, text, waited=terminal.feed.has_waited(item)))

    def _delivery(self, item: OutboxItem, text: str | None = None, *, waited: bool) -> TerminalEvent:
        """Return the event for a delivery, with its whole or the given text; `waited`: it existed before the terminal
        attached."""
        outgoing = item.outgoing
        if text is None:
            text = "".join(part.text for part in split_into_parts(item, self))
        data = {
            "id": str(DeliveryMark(item.id, item.created_at)),
            "key": outgoing.key,
            "kind": outgoing.kind,
            "body": text,
            "message_id": outgoing.message_id,
            "inbox_id": outgoing.inbox_id,
            "waited": waited,
            "buttons": [{"label": button.label, "command": button.command} for button in outgoing.buttons],
        }
        return "deliver", data

    def show(self, event: TurnEvent, target: str) -> None:
        """Pass the event to every terminal of the session."""
        data = {**event.data, "turn": event.turn}
        running = self._running_turns.get(event.session)
        if event.kind == "turn" and event.data["state"] == "started":
            self._running_turns[event.session] = _RunningTurn(event.turn)
        elif event.kind == "turn":
            self._running_turns.pop(event.session, None)
        elif running is not None and running.id == event.turn:
            running.add(event.kind, data)
        for terminal in [t for t in self._terminals if t.session == event.session]:
            self._put(terminal, (event.kind, data))

    def show_changed(self) -> None:
        """Something that was said was forgotten, in whatever session."""
        for session in {terminal.session for terminal in self._terminals}:
            self.show(TurnEvent("changed", session, ""), "")

    def _put(self, terminal: Terminal, event: TerminalEvent) -> None:
        if terminal.queue.qsize() >= self._queue_size:
            self._detach(terminal, _BEHIND)
        else:
            terminal.queue.put_nowait(event)

    def _detach(self, terminal: Terminal, notice: str = "") -> None:
        if terminal not in self._terminals:
            return
        self._terminals.remove(terminal)
        if notice:
            while not terminal.queue.empty():
                terminal.queue.get_nowait()
            terminal.queue.put_nowait(("notice", {"text": NoticeKind.DETACHED.fill(text=notice).text, "turn": ""}))
        terminal.queue.put_nowait(None)
        for confirmation in self._confirmations.values():
            confirmation.recipients.discard(terminal)
            if not confirmation.recipients and not confirmation.arrived.done():
                confirmation.arrived.set_exception(RecipientNotConnected())
