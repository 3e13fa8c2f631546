"""What of a session's deliveries one terminal was given: in the order of the outbox, each once.

What always holds: an id names a place in that order. A terminal that was given a delivery was given all before it that
were for it, or they were shown before it attached. So a terminal that comes again and names the last id it has is given
what came after it, none twice and none missing, however it went away, and whether the daemon is the same or a later
one: deliveries are read from the outbox. Naming an id says that everything up to it was shown.

After a backup was restored, ids are given a second time, to other deliveries. So a terminal names a `DeliveryMark`: an
id and when that delivery was made. Where another delivery has the id, what the terminal has ends before the first that
was made later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from assistant.core.records import OutboxItem, OutgoingMessage
from assistant.core.store_ports import Outbox

MAX_CATCH_UP = 500
"""Deliveries given at once to a terminal that attaches again; where there are more, its stream ends after these, and it
gets the rest when it attaches once more."""

_PAGE = 10_000
_OPEN = ("pending", "sending")
_HIDDEN_STATES = ("withheld", "dropped")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class DeliveryMark:
    """A place in the order of deliveries."""

    id: int
    at: datetime | None = None  # when the delivery there, or the last one before it, was made

    def __str__(self) -> str:
        return f"{self.id}" if self.at is None else f"{self.id}-{(self.at - _EPOCH) // _MICROSECOND}"

    @classmethod
    def parse(cls, text: str) -> DeliveryMark:
        """As `str` made it; up to 18 and 16 digits."""
        id_, _, made = text.partition("-")
        return cls(int(id_), _EPOCH + int(made) * _MICROSECOND if made else None)


class DeliveryFeed:
    """`after` is the place of the last one that the terminal has; None for one that has none, and is given what waits
    and what comes.

    With `inbox_id` it takes only what answers that message."""

    def __init__(
        self, outbox: Outbox, bridge: str, session: str, inbox_id: int | None, after: DeliveryMark | None
    ) -> None:
        self._outbox = outbox
        self._bridge = bridge
        self._session = session
        self._inbox_id = inbox_id
        self._shown_until = 0 if after is None else self._resolve_mark(after)
        self._first_new = self._given_until = self._newest() if after is None else self._shown_until
        # What waited when it came; the outbox worker sends it item by item, as each is confirmed.
        self._waiting = self._open_items() if after is None else []
        # Of that, what it was given.
        self._waiting_given: set[int] = set()
        # Given before the outbox worker sent it.
        self._given_early: set[str] = set()

    @property
    def start_mark(self) -> DeliveryMark:
        """The place up to which it has everything."""
        id_ = self._waiting[0].id - 1 if self._waiting else self._given_until
        last = self._outbox.newest(self._bridge, self._session, id_)
        return DeliveryMark(id_, None if last is None else last.created_at)

    def accepts(self, outgoing: OutgoingMessage) -> bool:
        return self._session == outgoing.session and self._inbox_id in (None, outgoing.inbox_id)

    def read_missed(self) -> tuple[Sequence[OutboxItem], bool]:
        """What came after the id it named, and whether that is all."""
        items = self._outbox.list_between(self._bridge, self._session, after=self._given_until, limit=MAX_CATCH_UP + 1)
        page = items[:MAX_CATCH_UP]
        return self._give_early(page), len(items) == len(page)

    def read_due(self, item: OutboxItem) -> Sequence[OutboxItem]:
        """What is to be given now that this item is sent, in order, itself last; nothing where it was given."""
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
        """Whether it named this id or a later one when it came, or was given it and somebody confirmed it."""
        if item.outgoing.key in self._given_early:
            return False
        return (
            item.id <= self._shown_until
            or self._first_new < item.id <= self._given_until
            or item.id in self._waiting_given
        )

    def was_given_early(self, key: str) -> bool:
        """Whether it was given before it was sent, and may be confirmed before that too."""
        return key in self._given_early

    def _newest(self) -> int:
        newest = self._outbox.newest(self._bridge, self._session)
        return 0 if newest is None else newest.id

    def _resolve_mark(self, mark: DeliveryMark) -> int:
        """The id of the last delivery up to the mark that is the one which it was when the mark was given."""
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
