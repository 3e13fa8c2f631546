"""The Matrix bridge's invitations: which rooms the assistant enters.

What always holds: it enters a room where the owner invites it, or an account or a server that they named, and no other.
What nobody allowed yet waits, and is looked at again at the next start.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable
from typing import Any

import structlog
from nio import MatrixInvitedRoom

from assistant.bridges.matrix import form
from assistant.bridges.matrix.client import Client, Refused
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


class Invitations:
    def __init__(self, client: Client, allowed: tuple[str, ...], is_owners: Callable[[str], bool]) -> None:
        """`allowed` are accounts, and servers as in "example.org"."""
        self._client = client
        self._allowed = frozenset(allowed)
        self._is_owners = is_owners
        self._passed_over: set[str] = set()

    def allow(self, inviter: str) -> bool:
        """Whether it goes where this account wants it."""
        return self._is_owners(inviter) or bool({inviter, inviter.partition(":")[2]} & self._allowed)

    async def look(self) -> None:
        """Those of before too: the owner may have allowed them meanwhile. Raises `BridgeError`."""
        query = urllib.parse.urlencode({"filter": json.dumps(_FILTER)})
        synced = await self._client.ask("GET", f"/_matrix/client/v3/sync?{query}")
        for room_id, invited in synced.get("rooms", {}).get("invite", {}).items():
            room = self._client.invited_rooms.setdefault(room_id, MatrixInvitedRoom(room_id, self._client.user_id))
            for event in invited["invite_state"]["events"]:
                if form.membership(event, self._client.user_id)[0] == "invite":
                    room.inviter = event["sender"]
        await self.answer()

    async def answer(self) -> None:
        """Those that the client knows of."""
        for room_id, room in list(self._client.invited_rooms.items()):
            inviter = room.inviter or ""
            if self.allow(inviter):
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
            if not (isinstance(error, Refused) and error.final):
                return
        self._client.invited_rooms.pop(room_id, None)
