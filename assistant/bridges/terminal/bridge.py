"""The terminal bridge: people at terminals, attached to the daemon over its control socket or within its process.

What always holds:
- A delivery counts as made only when a terminal confirmed its key, so a terminal that dies in between loses nothing.
- Nothing here waits for a terminal's reading: each has a bounded queue, and one that falls behind, or does not confirm
  in time, is detached with a notice. It may attach again and is then given what is still pending, or, where it names
  the last delivery it has, everything after that (`DeliveryFeed`).
- A terminal shows a key once, however often it is given, so a resend is safe for as long as people keep terminals open.

What people type does not come in here: it is accepted through `DaemonControl`, which answers with its ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from assistant import __version__
from assistant.bridges.terminal.delivery_feed import DeliveryFeed, DeliveryMark
from assistant.core.bridge_api import BridgeCapabilities, InboundPort, OutgoingPart, TurnEvent
from assistant.core.errors import BridgeError, RecipientNotConnected, UsageError
from assistant.core.records import OutboxItem, OutgoingMessage
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.store_ports import Outbox
from assistant.gateway.markdown_splitter import split_into_parts

# A name of an event and its data, as a terminal receives it.
TerminalEvent = tuple[str, Mapping[str, Any]]

_QUEUE_SIZE = 2048
_CONFIRM_SECONDS = 20.0
_DEDUPE_SECONDS = 7 * 24 * 3600.0
_MAX_EARLY = 10_000


@dataclass(slots=True, eq=False)
class Terminal:
    """One attached terminal, and what it was given."""

    session: str
    feed: DeliveryFeed
    queue: asyncio.Queue[TerminalEvent | None]

    def accepts(self, outgoing: OutgoingMessage) -> bool:
        return self.feed.accepts(outgoing)

    async def events(self, idle_seconds: float | None = None) -> AsyncIterator[TerminalEvent]:
        """What happens in the session, `hello` first; ends when the terminal is detached.

        `idle` says that nothing happened for `idle_seconds`, so that a carrier can show that it is alive."""
        while True:
            try:
                async with asyncio.timeout(idle_seconds):
                    event = await self.queue.get()
            except TimeoutError:
                event = ("idle", {})
            if event is None:
                return
            yield event


@dataclass(slots=True)
class _Confirmation:
    """A delivery on its way."""

    arrived: asyncio.Future[None]
    recipients: set[Terminal] = field(default_factory=set)  # those that have it and are still attached


class TerminalBridge:
    """See `Bridge`. `on_attach` is called when somebody can be reached again; the runtime then sends what waits."""

    name = "terminal"
    capabilities = BridgeCapabilities(edit=True, typing=True, shows_sessions=True, dedupe_seconds=_DEDUPE_SECONDS)

    def __init__(
        self,
        outbox: Outbox,
        *,
        queue_size: int = _QUEUE_SIZE,
        confirm_seconds: float = _CONFIRM_SECONDS,
    ) -> None:
        """Terminals that attach again get from `outbox` what they missed."""
        self.on_attach: Callable[[], None] = _ignore
        self._outbox = outbox
        self._queue_size = queue_size
        self._confirm_seconds = confirm_seconds
        self._terminals: list[Terminal] = []
        self._confirmations: dict[str, _Confirmation] = {}
        # Keys that were confirmed before they were sent.
        self._confirmed_early: dict[str, None] = {}
        self._stopped = False

    async def check(self) -> str:
        return "the terminals of this machine"

    async def run(self, inbound: InboundPort) -> None:
        """See `DaemonControl` for what people type."""
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
        """A terminal of `session` for as long as the context is open. With `inbox_id` it takes only the deliveries that
        answer that message; `after` is the place of the last delivery it has, which confirms those up to it.

        Raises `StoreError`."""
        feed = DeliveryFeed(self._outbox, self.name, session, inbox_id, after)
        terminal = Terminal(session, feed, asyncio.Queue())
        hello = {"session": session, "version": __version__, "id": str(feed.start_mark)}
        terminal.queue.put_nowait(("hello", hello))
        missed, is_all = feed.read_missed() if after is not None else ((), True)
        for item in missed:
            terminal.queue.put_nowait(
                ("deliver", _delivery(item, "".join(piece.text for piece in split_into_parts(item, self))))
            )
        self._terminals.append(terminal)
        try:
            if self._stopped or not is_all:
                self._detach(terminal)
            else:
                self.on_attach()
            yield terminal
        finally:
            self._detach(terminal)

    def acknowledge(self, key: str) -> bool:
        """A terminal has shown the delivery `key`. False when nothing waits for that (any more). Raises `UsageError`
        where there never was such a delivery, and `StoreError`."""
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

    def count_attached(self, session: str) -> int:
        """How many terminals show this session."""
        return sum(terminal.session == session for terminal in self._terminals)

    # ----------------------------------------------------------------------------------------------------------- bridge

    async def send(self, part: OutgoingPart) -> None:
        """Give it to the session's terminals; the first confirmation ends it.

        Raises `RecipientNotConnected` when no terminal is attached or the last one left, `BridgeError` when none
        confirmed."""
        outgoing = part.item.outgoing
        confirmation = _Confirmation(asyncio.get_running_loop().create_future())
        confirmation.recipients.update(terminal for terminal in self._terminals if terminal.accepts(outgoing))
        if self._is_already_shown(part.item, confirmation.recipients):
            return
        if not confirmation.recipients:
            raise RecipientNotConnected()
        self._confirmations[outgoing.key] = confirmation
        try:
            for terminal in list(confirmation.recipients):
                self._deliver(terminal, part)
            async with asyncio.timeout(self._confirm_seconds):
                await confirmation.arrived
        except TimeoutError:
            for terminal in list(confirmation.recipients):
                self._detach(terminal, "This terminal did not confirm a message in time and was detached.")
            text = "No terminal confirmed the message in time; it waits for the next terminal."
            raise BridgeError(text, ambiguous=True) from None
        finally:
            del self._confirmations[outgoing.key]

    def _is_already_shown(self, item: OutboxItem, recipients: Collection[Terminal]) -> bool:
        """Whether a terminal confirmed it before it was sent."""
        key = item.outgoing.key
        early = key in self._confirmed_early
        self._confirmed_early.pop(key, None)
        return early or any(terminal.feed.was_shown(item) for terminal in recipients)

    def _deliver(self, terminal: Terminal, part: OutgoingPart) -> None:
        for item in terminal.feed.read_due(part.item):
            text = part.text if item is part.item else "".join(piece.text for piece in split_into_parts(item, self))
            self._put(terminal, ("deliver", _delivery(item, text)))

    def show(self, event: TurnEvent, target: str) -> None:
        for terminal in [t for t in self._terminals if t.session == event.session]:
            self._put(terminal, (event.kind, {**event.data, "turn": event.turn}))

    def _put(self, terminal: Terminal, event: TerminalEvent) -> None:
        if terminal.queue.qsize() >= self._queue_size:
            self._detach(terminal, "This terminal fell too far behind and was detached; nothing is lost.")
        else:
            terminal.queue.put_nowait(event)

    def _detach(self, terminal: Terminal, notice: str = "") -> None:
        if terminal not in self._terminals:
            return
        self._terminals.remove(terminal)
        if notice:
            _empty(terminal.queue)
            terminal.queue.put_nowait(("notice", {"text": notice, "turn": ""}))
        terminal.queue.put_nowait(None)
        for confirmation in self._confirmations.values():
            confirmation.recipients.discard(terminal)
            if not confirmation.recipients and not confirmation.arrived.done():
                confirmation.arrived.set_exception(RecipientNotConnected())


def _delivery(item: OutboxItem, text: str) -> dict[str, Any]:
    outgoing = item.outgoing
    return {
        "id": str(DeliveryMark(item.id, item.created_at)),
        "key": outgoing.key,
        "kind": outgoing.kind,
        "body": text,
        "message_id": outgoing.message_id,
        "inbox_id": outgoing.inbox_id,
    }


def _empty(queue: asyncio.Queue[TerminalEvent | None]) -> None:
    while not queue.empty():
        queue.get_nowait()


def _ignore() -> None:
    """Until `on_attach` is set."""
