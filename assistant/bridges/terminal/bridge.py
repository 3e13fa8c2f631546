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
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from assistant import __version__
from assistant.core.bridge_api import BridgeCapabilities, InboundPort, OutgoingPart, TurnEvent
from assistant.core.dataclass import dataclass
from assistant.core.errors import BridgeError, RecipientNotConnected, UsageError
from assistant.core.notices import NoticeKind
from assistant.core.records import OutboxItem, OutgoingMessage, is_answer_key
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.store_ports import Outbox
from assistant.gateway.parts import split_into_parts

# The name of an event and its data, as a terminal receives it.
TerminalEvent = tuple[str, Mapping[str, Any]]

_QUEUE_SIZE = 2048
_CONFIRM_SECONDS = 20.0
_DEDUPE_SECONDS = 7 * 24 * 3600.0
_MAX_EARLY = 10_000
# Maximum number of deliveries for a terminal that attaches again; if there are more, its stream ends after these, and
# it gets the rest when it attaches once more.
_MAX_CATCH_UP = 500
_PAGE = 10_000
_UNCONFIRMED = "A message was not confirmed in time, so this connection is closed. The message is kept."
_BEHIND = "This connection fell too far behind, so it is closed. Nothing is lost."
_OPEN = ("pending", "sending")
_HIDDEN_STATES = ("withheld", "dropped")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


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
                async with asyncio.timeout(idle_seconds):
                    event = await self.queue.get()
            except TimeoutError:
                event = ("idle", {})
            if event is None:
                return
            yield event


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
    capabilities = BridgeCapabilities(edit=True, typing=True, shows_sessions=True, dedupe_seconds=_DEDUPE_SECONDS)

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
        self._running_turns: dict[str, str] = {}  # by session
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
        turn = self._running_turns.get(session, "")
        hello = {"session": session, "version": __version__, "id": str(feed.start_mark), "turn": turn}
        terminal.queue.put_nowait(("hello", hello))
        if trouble := self.find_disk_trouble():
            notice = NoticeKind.DISK_TROUBLE.fill(text=trouble)
            terminal.queue.put_nowait(("notice", {"text": notice.text, "turn": "", "disk": True}))
        missed, is_all = feed.read_missed() if after is not None else ((), True)
        for item in missed:
            terminal.queue.put_nowait(self._delivery(item, waited=True))
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
        if event.kind == "turn" and event.data["state"] == "started":
            self._running_turns[event.session] = event.turn
        elif event.kind == "turn":
            self._running_turns.pop(event.session, None)
        for terminal in [t for t in self._terminals if t.session == event.session]:
            self._put(terminal, (event.kind, {**event.data, "turn": event.turn}))

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


@dataclass(frozen=True, slots=True)
class DeliveryMark:
    """A position in the order of deliveries."""

    id: int
    at: datetime | None = None  # creation time of the delivery there, or of the last one before it

    def __str__(self) -> str:
        return f"{self.id}" if self.at is None else f"{self.id}-{(self.at - _EPOCH) // _MICROSECOND}"

    @classmethod
    def parse(cls, text: str) -> DeliveryMark:
        """The inverse of `str`; up to 18 and 16 digits."""
        id_, _, made = text.partition("-")
        return cls(int(id_), _EPOCH + int(made) * _MICROSECOND if made else None)


class DeliveryFeed:
    """The deliveries of one terminal. `after` is the last one it has; None if it has none, and gets pending and future
    ones.

    With `inbox_id` it only takes those that answer that message, or none."""

    def __init__(
        self, outbox: Outbox, bridge: str, session: str, inbox_id: int | None, after: DeliveryMark | None
    ) -> None:
        self._outbox = outbox
        self._bridge = bridge
        self._session = session
        self._inbox_id = inbox_id
        self._shown_until = 0 if after is None else self._resolve_mark(after)
        self._first_new = self._given_until = self._newest() if after is None else self._shown_until
        # Pending when it attached; the outbox worker sends these one by one, as each is confirmed.
        self._waiting = self._open_items() if after is None else []
        # The part of these it was given.
        self._waiting_given: set[int] = set()
        # Given before the outbox worker sent it.
        self._given_early: set[str] = set()

    @property
    def start_mark(self) -> DeliveryMark:
        """Return the position up to which it has everything."""
        id_ = self._waiting[0].id - 1 if self._waiting else self._given_until
        last = self._outbox.newest(self._bridge, self._session, id_)
        return DeliveryMark(id_, None if last is None else last.created_at)

    def accepts(self, outgoing: OutgoingMessage) -> bool:
        """Return whether a delivery is for it: answers to other messages are not; reminders and notices answer none."""
        return self._session == outgoing.session and (
            self._inbox_id is None or outgoing.inbox_id in (None, self._inbox_id)
        )

    def read_missed(self) -> tuple[Sequence[OutboxItem], bool]:
        """Return what came after its last delivery, and whether that is all."""
        items = self._outbox.list_between(self._bridge, self._session, after=self._given_until, limit=_MAX_CATCH_UP + 1)
        page = items[:_MAX_CATCH_UP]
        return self._give_early(page), len(items) == len(page)

    def read_due(self, item: OutboxItem) -> Sequence[OutboxItem]:
        """Return what to give now that this item is sent, in order, itself last; empty if it was already given."""
        if item.outgoing.key in self._given_early:
            self._given_early.discard(item.outgoing.key)
            return ()
        if item.id > self._given_until:
            before, self._waiting = self._waiting, []
            self._waiting_given |= {waiting.id for waiting in before}
            between = self._outbox.list_between(
                self._bridge, self._session, after=self._given_until, before=item.id, limit=_PAGE
            )
            self._given_until = item.id
        else:
            before, between = [waiting for waiting in self._waiting if waiting.id < item.id], []
            self._waiting_given |= {waiting.id for waiting in self._waiting if waiting.id <= item.id}
            self._waiting = [waiting for waiting in self._waiting if waiting.id > item.id]
        return [*self._give_early(before), *self._give_early(between), item]

    def was_shown(self, item: OutboxItem) -> bool:
        """Return whether it had this item when it attached, or was given it and it was confirmed."""
        if item.outgoing.key in self._given_early:
            return False
        return (
            item.id <= self._shown_until
            or self._first_new < item.id <= self._given_until
            or item.id in self._waiting_given
        )

    def has_waited(self, item: OutboxItem) -> bool:
        """Return whether it existed before the terminal attached."""
        return item.id <= self._first_new

    def was_given_early(self, key: str) -> bool:
        """Return whether it was given before it was sent, and may be confirmed before that too."""
        return key in self._given_early

    def _newest(self) -> int:
        newest = self._outbox.newest(self._bridge, self._session)
        return 0 if newest is None else newest.id

    def _resolve_mark(self, mark: DeliveryMark) -> int:
        """Return the id of the last delivery up to the mark, checking that it is the one the mark was made for."""
        last = self._outbox.newest(self._bridge, self._session, mark.id)
        if last is None or mark.at is None or last.created_at == mark.at:
            return 0 if last is None else last.id
        first = self._outbox.first_since(self._bridge, self._session, mark.at)
        return last.id if first is None else min(last.id, first.id - 1)

    def _give_early(self, items: Sequence[OutboxItem]) -> list[OutboxItem]:
        visible = [item for item in items if item.state not in _HIDDEN_STATES and self.accepts(item.outgoing)]
        self._given_early |= {item.outgoing.key for item in visible if item.state in _OPEN}
        if items:
            self._given_until = max(self._given_until, items[-1].id)
        return visible

    def _open_items(self) -> list[OutboxItem]:
        items = self._outbox.list_open(self._bridge, self._session, limit=_PAGE)
        return [item for item in items if self.accepts(item.outgoing)]
