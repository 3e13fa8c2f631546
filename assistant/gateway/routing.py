"""Where something that goes out may still go, asked right before it is sent.

What always holds: the owner's words go to the terminal and to accounts that are the owner's now, not to one that was
when they were asked for; who was denied, or is nobody any more, and rooms that were denied, are sent nothing (I10).
Strangers get their notices: whoever nobody decided on has nothing of anybody's to be kept from.
"""

from __future__ import annotations

from assistant.core.people import Identity
from assistant.core.records import OutgoingMessage
from assistant.core.sessions import peer_session_key, room_session_key, session_role
from assistant.store.script.people import ConversationRoutes, People

Destination = tuple[str, str]


class OutgoingRouter:
    def __init__(self, people: People, places: ConversationRoutes, terminal_bridge: str) -> None:
        """`home` is the bridge of the home's own terminals."""
        self._people = people
        self._places = places
        self._home = terminal_bridge

    def resolve_destination(self, outgoing: OutgoingMessage) -> Destination | None:
        """Bridge and target; None where nobody may have it."""
        here = (outgoing.bridge, outgoing.target)
        if outgoing.bridge == self._home:
            return here
        match session_role(outgoing.session):
            case "owner":
                return here if self._is_the_owners(*here) else (self._home, outgoing.session)
            case "room":
                return None if self._room_is_denied(outgoing.session) else here
            case "guest":
                return here if self._may_hear(outgoing) else None

    def _is_the_owners(self, bridge: str, target: str) -> bool:
        account = self._places.account_at(bridge, target)
        if account is None:
            return True
        person = self._people.find_by_identity(Identity(bridge, account))
        return person is not None and person.role == "owner"

    def _room_is_denied(self, session: str) -> bool:
        return any(
            room.state == "denied" and room_session_key(room.bridge, room.room) == session
            for room in self._people.list_rooms()
        )

    def _may_hear(self, outgoing: OutgoingMessage) -> bool:
        account = self._places.account_at(outgoing.bridge, outgoing.target)
        if account is None or peer_session_key(outgoing.bridge, account) != outgoing.session:
            return True
        person = self._people.find_by_identity(Identity(outgoing.bridge, account))
        return outgoing.kind == "notice" if person is None else person.state == "allowed"
