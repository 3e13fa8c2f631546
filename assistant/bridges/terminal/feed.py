"""What of a session's deliveries one terminal was given: in the order of the outbox, each once.

What always holds: an id names a place in that order, and whoever was given it was given everything before it that was
theirs, or had been there before they came. So a terminal that comes again and names the last id it has is given
what came after it, none twice and none missing, however it went away, and whether the daemon is the same or a later
one: the outbox is where the deliveries are read from. Naming an id says that everything up to it was shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from assistant.records import OutboxItem, Outgoing

MOST_AT_ONCE = 500
"""Deliveries given at once to a terminal that comes again; with more its stream ends after these, and goes on when it
comes again."""

_MOST_BETWEEN = 10_000
_OPEN = ("pending", "sending")
_NOT_TO_SHOW = ("withheld", "dropped")


class Deliveries(Protocol):
    """What of the outbox a terminal may be given."""

    def pending(self, bridge: str, *, limit: int = 100) -> list[OutboxItem]: ...

    def delivered(
        self, bridge: str, session: str, *, after: int, before: int | None = None, limit: int = 100
    ) -> list[OutboxItem]:
        """Items with ids between the two, in every state, oldest first."""
        ...

    def newest(self, bridge: str, session: str) -> int:
        """The largest id of a session's items there; 0 where there is none."""
        ...


class NoDeliveries:
    """Where there is no outbox, nothing was sent before."""

    def pending(self, bridge: str, *, limit: int = 100) -> list[OutboxItem]:
        return []

    def delivered(
        self, bridge: str, session: str, *, after: int, before: int | None = None, limit: int = 100
    ) -> list[OutboxItem]:
        return []

    def newest(self, bridge: str, session: str) -> int:
        return 0


class Feed:
    """`after` is the last id that the terminal has; None for one that has none, and is given what waits and what comes.

    With `inbox_id` it takes only what answers that message."""

    def __init__(
        self, deliveries: Deliveries, bridge: str, session: str, inbox_id: int | None, after: int | None
    ) -> None:
        self._deliveries = deliveries
        self._bridge = bridge
        self._session = session
        self._inbox_id = inbox_id
        # Nobody has seen what is not there yet: an id from before a backup was restored may be larger than any.
        newest = deliveries.newest(bridge, session)
        self._seen = min(after or 0, newest)
        self._begun = self._given = newest if after is None else self._seen
        # What waited when it came; the pump gives it item by item, as it is confirmed.
        self._waiting = self._open() if after is None else []
        # Of that, what it was given.
        self._waited: set[int] = set()
        # Given before the pump sent it.
        self._ahead: set[str] = set()

    @property
    def begins(self) -> int:
        """The id that stands for everything that it does not lack."""
        return self._waiting[0].id - 1 if self._waiting else self._given

    def takes(self, outgoing: Outgoing) -> bool:
        return self._session == outgoing.session and self._inbox_id in (None, outgoing.inbox_id)

    def missed(self) -> tuple[Sequence[OutboxItem], bool]:
        """What came after the id it named, and whether that is all."""
        found = self._deliveries.delivered(self._bridge, self._session, after=self._given, limit=MOST_AT_ONCE + 1)
        page = found[:MOST_AT_ONCE]
        return self._given_ahead(page), len(found) == len(page)

    def due(self, item: OutboxItem) -> Sequence[OutboxItem]:
        """What is to be given now that this item is sent, in order, itself last; nothing where it was given."""
        if item.outgoing.key in self._ahead:
            self._ahead.discard(item.outgoing.key)
            return ()
        if item.id > self._given:
            before, self._waiting = self._waiting, []
            self._waited |= {one.id for one in before}
            between = self._deliveries.delivered(
                self._bridge, self._session, after=self._given, before=item.id, limit=_MOST_BETWEEN
            )
            self._given = item.id
        else:
            before, between = [one for one in self._waiting if one.id < item.id], []
            self._waited |= {one.id for one in self._waiting if one.id <= item.id}
            self._waiting = [one for one in self._waiting if one.id > item.id]
        return [*self._given_ahead(before), *self._given_ahead(between), item]

    def has_shown(self, item: OutboxItem) -> bool:
        """Whether it named this id or a later one when it came, or was given it and somebody confirmed it."""
        if item.outgoing.key in self._ahead:
            return False
        return item.id <= self._seen or self._begun < item.id <= self._given or item.id in self._waited

    def was_given(self, key: str) -> bool:
        """Whether it was given before it was sent, and may be confirmed before that too."""
        return key in self._ahead

    def _given_ahead(self, items: Sequence[OutboxItem]) -> list[OutboxItem]:
        given = [one for one in items if one.state not in _NOT_TO_SHOW and self.takes(one.outgoing)]
        self._ahead |= {one.outgoing.key for one in given if one.state in _OPEN}
        if items:
            self._given = max(self._given, items[-1].id)
        return given

    def _open(self) -> list[OutboxItem]:
        items = self._deliveries.pending(self._bridge, limit=MOST_AT_ONCE)
        return [one for one in items if self.takes(one.outgoing)]
