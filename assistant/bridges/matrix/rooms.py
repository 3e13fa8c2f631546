"""Decides which Matrix rooms the assistant joins: on invitation, and when another room replaces one it is in, as apps
do to upgrade a room to a newer version.

It accepts invitations from the owner and from accounts or servers the owner named; others wait, and are checked again
at the next start. A room replaces another only if each names the other, and the same account said both, so that no room
can impersonate another. The assistant joins the new room by itself if it would accept an invitation from that account;
otherwise it has to be invited. A direct conversation is only replaced by a direct conversation.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from nio import Event, MatrixInvitedRoom

from assistant.bridges.matrix import events as form
from assistant.bridges.matrix.client import MatrixClient, MatrixRefusal
from assistant.bridges.matrix.events import RoomUpgrade, SyncPosition
from assistant.core.dataclass import dataclass
from assistant.core.errors import BridgeError
from assistant.core.logger import get_logger

log = get_logger()

# Only the invitations of a sync.
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
    """Accepts invitations to rooms from the owner and from those who are allowed to invite."""

    def __init__(self, client: MatrixClient, allowed: tuple[str, ...], is_owners: Callable[[str], bool]) -> None:
        """`allowed` are accounts, and servers such as "example.org"."""
        self._client = client
        self._allowed = frozenset(allowed)
        self._is_owners = is_owners
        self._logged_invitations: set[str] = set()

    def is_allowed(self, inviter: str) -> bool:
        """Return whether invitations of this account are accepted."""
        return self._is_owners(inviter) or bool({inviter, inviter.partition(":")[2]} & self._allowed)

    async def fetch_pending(self) -> None:
        """Accept earlier invitations as well: they may be allowed by now. Raises `BridgeError`."""
        query = urllib.parse.urlencode({"filter": json.dumps(_FILTER)})
        synced = await self._client.request_json("GET", f"/_matrix/client/v3/sync?{query}")
        for room_id, invited in synced.get("rooms", {}).get("invite", {}).items():
            room = self._client.invited_rooms.setdefault(room_id, MatrixInvitedRoom(room_id, self._client.user_id))
            for event in invited["invite_state"]["events"]:
                if form.membership_change(event, self._client.user_id)[0] == "invite":
                    room.inviter = event["sender"]
        await self.accept_allowed()

    async def accept_allowed(self) -> None:
        """Accept the invitations the client knows, if they are allowed."""
        for room_id, room in list(self._client.invited_rooms.items()):
            inviter = room.inviter or ""
            if self.is_allowed(inviter):
                await self._accept(room_id, inviter)
            elif room_id not in self._logged_invitations:
                self._logged_invitations.add(room_id)
                log.warning("an invitation waits: its sender is not allowed to invite", room=room_id, inviter=inviter)

    async def _accept(self, room_id: str, inviter: str) -> None:
        try:
            await self._client.join(room_id)
        except BridgeError as error:
            # Joining may take minutes if many servers are in a room: it is retried with the next sync.
            log.warning("an invitation could not be accepted", room=room_id, inviter=inviter, error=str(error))
            if not (isinstance(error, MatrixRefusal) and error.is_final):
                return
        self._client.invited_rooms.pop(room_id, None)


@dataclass(frozen=True, slots=True)
class _UpgradeClaim:
    """What one room says about the other, and which account said it."""

    room: str
    sender: str


class RoomUpgrades:
    """`pending` are replaced rooms whose new room is not joined yet."""

    def __init__(self, client: MatrixClient, invitations: RoomInvitations) -> None:
        self.pending: dict[str, _UpgradeClaim] = {}
        self._client = client
        self._invitations = invitations
        # For each room, the room it says it replaces.
        self._predecessors: dict[str, _UpgradeClaim] = {}
        self._not_entered: set[str] = set()

    def note_events(self, room_id: str, events: Iterable[Event]) -> None:
        """Note which room these events say this one is replaced by, and which it replaces."""
        for event in events:
            if successor := form.replacement_room_id(event.source):
                self.pending[room_id] = _UpgradeClaim(successor, event.sender)
            if predecessor := form.predecessor_room_id(event.source):
                self._predecessors[room_id] = _UpgradeClaim(predecessor, event.sender)

    async def follow_upgrades(self, position: SyncPosition, is_private: Callable[[str], bool]) -> SyncPosition:
        """Return the position with newly replaced rooms."""
        for old, claim in list(self.pending.items()):
            if position.knows_upgrade(old, claim.room) or old not in self._client.rooms:
                del self.pending[old]
            elif claim.room in self._client.rooms:
                del self.pending[old]
                position = self._confirm(position, old, claim, is_private)
            elif old not in self._not_entered:
                await self._enter(old, claim)
        return position

    def _confirm(
        self, position: SyncPosition, old: str, claim: _UpgradeClaim, is_private: Callable[[str], bool]
    ) -> SyncPosition:
        was_private = is_private(old)
        if self._predecessors.get(claim.room) != _UpgradeClaim(old, claim.sender) or (
            was_private and not is_private(claim.room)
        ):
            log.warning("a room is not replaced by the one that claims to replace it", room=old, new=claim.room)
            return position
        log.info("a room was replaced by another", room=old, new=claim.room)
        return replace(position, replaced=(*position.replaced, RoomUpgrade(old, claim.room, was_private)))

    async def _enter(self, old: str, claim: _UpgradeClaim) -> None:
        reason = ""
        if self._invitations.is_allowed(claim.sender):
            try:
                await self._client.request_json(
                    "POST", f"{form.api_path('join', claim.room)}?via={form.server_of_account(claim.sender)}", {}
                )
            except BridgeError as refusal:
                if not (isinstance(refusal, MatrixRefusal) and refusal.is_final):
                    log.warning(
                        "the room that replaces another could not be entered", room=claim.room, why=str(refusal)
                    )
                    return
                reason = str(refusal)
            else:
                return
        self._not_entered.add(old)
        log.warning(
            "a room was replaced: the assistant has to be invited to the new one",
            room=old,
            new=claim.room,
            by=claim.sender,
            why=reason or "that account is not allowed to invite it",
        )
