"""Messages of people who were denied after they wrote: they were accepted, so the log has them; no turn takes them
up."""

from __future__ import annotations

from datetime import datetime

from assistant.core.people import Identity
from assistant.core.records import InboxItem
from assistant.core.sessions import room_session_key, session_role
from assistant.core.store_ports import Conversation
from assistant.store.script.people import People

_AT_A_TIME = 100_000


class DeniedMessages:
    def __init__(self, conversation: Conversation, people: People) -> None:
        self._conversation = conversation
        self._people = people

    def supersede_denied(self, now: datetime) -> None:
        """After the owner decided on somebody, and at start: nothing of whoever is denied waits any more. Raises
        `StoreError`."""
        denied = {room_session_key(one.bridge, one.room) for one in self._people.list_rooms() if one.state == "denied"}
        for session in self._conversation.sessions_waiting():
            if session_role(session) == "owner":
                continue
            items = self._conversation.list_accepted(session, limit=_AT_A_TIME)
            away = [item for item in items if session in denied or self._is_denied(item)]
            if away:
                self._conversation.supersede_items(away, [], now)

    def _is_denied(self, item: InboxItem) -> bool:
        person = self._people.find_by_identity(Identity(item.incoming.bridge, item.incoming.sender))
        return person is not None and person.state == "denied"
