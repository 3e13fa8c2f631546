"""Where an outgoing message may still go, asked right before it is sent.

What always holds: the owner's words go to the terminal and to accounts that are the owner's now, not to one that was
when they were asked for. Nothing is sent to people who were denied or removed, nor to rooms that were denied (I10).
Strangers get their notices: those have nothing of anybody else's.
"""

from __future__ import annotations

from assistant.core.people import Identity
from assistant.core.records import OutgoingMessage
from assistant.core.sessions import peer_session_key, room_session_key, session_role
from assistant.store.script.people import ConversationRoutes, People

Destination = tuple[str, str]


class OutgoingRouter:
    def __init__(self, people: People, routes: ConversationRoutes, terminal_bridge: str) -> None:
        """`terminal_bridge` is the name of the bridge of the terminals."""
        self._people = people
        self._routes = routes
        self._terminal_bridge = terminal_bridge

    def resolve_destination(self, outgoing: OutgoingMessage) -> Destination | None:
        """Bridge and target; None where nobody may have it."""
        stored = (outgoing.bridge, outgoing.target)
        if outgoing.bridge == self._terminal_bridge:
            return stored
        match session_role(outgoing.session):
            case "owner":
                return stored if self._is_owners_account(*stored) else (self._terminal_bridge, outgoing.session)
            case "room":
                return None if self._room_is_denied(outgoing.session) else stored
            case "guest":
                return stored if self._may_receive(outgoing) else None

    def _is_owners_account(self, bridge: str, target: str) -> bool:
        account = self._routes.account_at(bridge, target)
        if account is None:
            return True
        person = self._people.find_by_identity(Identity(bridge, account))
        return person is not None and person.role == "owner"

    def _room_is_denied(self, session: str) -> bool:
        return any(
            room.state == "denied" and room_session_key(room.bridge, room.room) == session
            for room in self._people.list_rooms()
        )

    def _may_receive(self, outgoing: OutgoingMessage) -> bool:
        account = self._routes.account_at(outgoing.bridge, outgoing.target)
        if account is None or peer_session_key(outgoing.bridge, account) != outgoing.session:
            return True
        person = self._people.find_by_identity(Identity(outgoing.bridge, account))
        return outgoing.kind == "notice" if person is None else person.state == "allowed"
