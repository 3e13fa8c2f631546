"""Which deliveries a terminal gets, and which it has: each once, in order, also after it was away."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from assistant.core.dataclass import dataclass
from assistant.core.records import OutboxItem, OutgoingMessage
from assistant.core.store_ports import Outbox

# Maximum number of deliveries for a terminal that attaches again; if there are more, its stream ends after these, and
# it gets the rest when it attaches once more.
_MAX_CATCH_UP = 500
_PAGE = 10_000
_OPEN = ("pending", "sending")
_HIDDEN_STATES = ("withheld", "dropped")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


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
