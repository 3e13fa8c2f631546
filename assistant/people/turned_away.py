"""What waits of somebody who is not answered any more: it was accepted, so the log has it; no turn takes it up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from assistant.core.people_ports import People
from assistant.core.persons import Identity
from assistant.core.records import InboxItem, Outgoing
from assistant.core.sessions import role_of, room_key

_AT_A_TIME = 100_000


class Waiting(Protocol):
    """What arrived and waits (`ports.Conversation`)."""

    def waiting(self) -> list[str]: ...
    def inbox(self, session: str, *, limit: int = 100) -> list[InboxItem]: ...
    def supersede(self, items: Sequence[InboxItem], outgoing: Sequence[Outgoing], now: datetime) -> None: ...


class TurnedAway:
    def __init__(self, conversation: Waiting, people: People) -> None:
        self._conversation = conversation
        self._people = people

    def settle(self, now: datetime) -> None:
        """After the owner decided on somebody, and at start: nothing of whoever is denied waits any more. Raises
        `StoreError`."""
        denied = {room_key(one.bridge, one.room) for one in self._people.rooms() if one.state == "denied"}
        for session in self._conversation.waiting():
            if role_of(session) == "owner":
                continue
            items = self._conversation.inbox(session, limit=_AT_A_TIME)
            away = [item for item in items if session in denied or self._is_denied(item)]
            if away:
                self._conversation.supersede(away, [], now)

    def _is_denied(self, item: InboxItem) -> bool:
        person = self._people.by(Identity(item.incoming.bridge, item.incoming.sender))
        return person is not None and person.state == "denied"
