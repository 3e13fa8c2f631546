"""Which Matrix rooms the assistant enters: where it is invited, and where another room takes the place of one that it
is in, as apps do to bring a room to a newer version.

What always holds: it enters a room where the owner invites it, or an account or a server that they named, and no other;
what nobody allowed yet waits, and is looked at again at the next start. A room goes on in another where each says so of
the other, and the same account said both; no room can be passed off as the one before. The assistant enters the new
room by itself where it would follow an invitation of that account; otherwise it has to be invited there. A talk between
two goes on only in a room that is between two.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import structlog
from nio import Event, MatrixInvitedRoom

from assistant.bridges.matrix import events as form
from assistant.bridges.matrix.client import MatrixClient, MatrixRefusal
from assistant.bridges.matrix.sync_position import RoomUpgrade, SyncPosition
from assistant.core.errors import BridgeError

log = structlog.get_logger()

# Of a sync nothing but the invitations.
_FILTER: dict[str, Any] = {
    "presence": {"types": []},
    "account_data": {"types": []},
    "room": {
        "timeline": {"limit": 1},
        "state": {"types": []},
        "ephemeral": {"types": []},
        "account_data": {"types": []},
    },
}


class RoomInvitations:
    def __init__(self, client: MatrixClient, allowed: tuple[str, ...], is_owners: Callable[[str], bool]) -> None:
        """`allowed` are accounts, and servers as in "example.org"."""
        self._client = client
        self._allowed = frozenset(allowed)
        self._is_owners = is_owners
        self._passed_over: set[str] = set()

    def is_allowed(self, inviter: str) -> bool:
        """Whether it goes where this account wants it."""
        return self._is_owners(inviter) or bool({inviter, inviter.partition(":")[2]} & self._allowed)

    async def fetch_pending(self) -> None:
        """Those of before too: the owner may have allowed them meanwhile. Raises `BridgeError`."""
        query = urllib.parse.urlencode({"filter": json.dumps(_FILTER)})
        synced = await self._client.request_json("GET", f"/_matrix/client/v3/sync?{query}")
        for room_id, invited in synced.get("rooms", {}).get("invite", {}).items():
            room = self._client.invited_rooms.setdefault(room_id, MatrixInvitedRoom(room_id, self._client.user_id))
            for event in invited["invite_state"]["events"]:
                if form.membership_change(event, self._client.user_id)[0] == "invite":
                    room.inviter = event["sender"]
        await self.accept_allowed()

    async def accept_allowed(self) -> None:
        """Those that the client knows of."""
        for room_id, room in list(self._client.invited_rooms.items()):
            inviter = room.inviter or ""
            if self.is_allowed(inviter):
                await self._accept(room_id, inviter)
            elif room_id not in self._passed_over:
                self._passed_over.add(room_id)
                log.warning("an invitation waits: nobody allowed it", room=room_id, inviter=inviter)

    async def _accept(self, room_id: str, inviter: str) -> None:
        try:
            await self._client.join(room_id)
        except BridgeError as error:
            # A join may take minutes where many servers are in a room: that is tried again beside what else there is.
            log.warning("an invitation could not be accepted", room=room_id, inviter=inviter, error=str(error))
            if not (isinstance(error, MatrixRefusal) and error.is_final):
                return
        self._client.invited_rooms.pop(room_id, None)


@dataclass(frozen=True, slots=True)
class _UpgradeClaim:
    """What one end says of the other."""

    room: str
    by: str


class RoomUpgrades:
    """`waiting` are rooms that were replaced, and do not go on yet."""

    def __init__(self, client: MatrixClient, invitations: RoomInvitations) -> None:
        self.pending: dict[str, _UpgradeClaim] = {}
        self._client = client
        self._invitations = invitations
        # By room, which one it says that it takes the place of.
        self._before: dict[str, _UpgradeClaim] = {}
        self._refused: set[str] = set()

    def note_events(self, room_id: str, events: Iterable[Event]) -> None:
        for event in events:
            if new := form.replacement_room_id(event.source):
                self.pending[room_id] = _UpgradeClaim(new, form.event_sender(event.source))
            if old := form.predecessor_room_id(event.source):
                self._before[room_id] = _UpgradeClaim(old, form.event_sender(event.source))

    async def follow_upgrades(self, position: SyncPosition, is_private: Callable[[str], bool]) -> SyncPosition:
        """The position with what goes on elsewhere from now on."""
        for old, said in list(self.pending.items()):
            if position.knows_upgrade(old, said.room) or old not in self._client.rooms:
                del self.pending[old]
            elif said.room in self._client.rooms:
                del self.pending[old]
                position = self._gone_on(position, old, said, is_private)
            elif old not in self._refused:
                await self._enter(old, said)
        return position

    def _gone_on(
        self, position: SyncPosition, old: str, said: _UpgradeClaim, is_private: Callable[[str], bool]
    ) -> SyncPosition:
        private = is_private(old)
        if self._before.get(said.room) != _UpgradeClaim(old, said.by) or (private and not is_private(said.room)):
            log.warning("a room does not go on in the one that is said to replace it", room=old, new=said.room)
            return position
        log.info("a room goes on in another", room=old, new=said.room)
        return replace(position, replaced=(*position.replaced, RoomUpgrade(old, said.room, private)))

    async def _enter(self, old: str, said: _UpgradeClaim) -> None:
        error = ""
        if self._invitations.is_allowed(said.by):
            try:
                await self._client.request_json(
                    "POST", f"{form.api_path('join', said.room)}?via={form.server_of_account(said.by)}", {}
                )
            except BridgeError as refusal:
                if not (isinstance(refusal, MatrixRefusal) and refusal.is_final):
                    log.warning("the room that replaces another could not be entered", room=said.room, why=str(refusal))
                    return
                error = str(refusal)
            else:
                return
        self._refused.add(old)
        log.warning(
            "a room was replaced: the assistant has to be invited to the new one",
            room=old,
            new=said.room,
            by=said.by,
            why=error or "nobody allowed that account to invite it",
        )
