"""Rooms of the Matrix bridge that another one took the place of, as apps do to bring a room to a newer version.

What always holds: a room goes on in another where each says so of the other, and the same account said both; no room
can be passed off as the one before. The assistant enters by itself where it would follow an invitation of that account;
otherwise it has to be invited there. A talk between two goes on only in a room that is between two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import structlog
from nio import Event

from assistant.bridges.matrix import form
from assistant.bridges.matrix.client import Client, Refused
from assistant.bridges.matrix.invitations import Invitations
from assistant.bridges.matrix.position import Position, Replaced
from assistant.core.errors import BridgeError

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Said:
    """What one end says of the other."""

    room: str
    by: str


class Upgrades:
    """`waiting` are rooms that were replaced, and do not go on yet."""

    def __init__(self, client: Client, invitations: Invitations) -> None:
        self.waiting: dict[str, _Said] = {}
        self._client = client
        self._invitations = invitations
        # By room, which one it says that it takes the place of.
        self._before: dict[str, _Said] = {}
        self._refused: set[str] = set()

    def note(self, room_id: str, events: Iterable[Event]) -> None:
        for event in events:
            if new := form.replacement(event.source):
                self.waiting[room_id] = _Said(new, form.sender(event.source))
            if old := form.predecessor(event.source):
                self._before[room_id] = _Said(old, form.sender(event.source))

    async def follow(self, position: Position, is_private: Callable[[str], bool]) -> Position:
        """The position with what goes on elsewhere from now on."""
        for old, said in list(self.waiting.items()):
            if position.follows(old, said.room) or old not in self._client.rooms:
                del self.waiting[old]
            elif said.room in self._client.rooms:
                del self.waiting[old]
                position = self._gone_on(position, old, said, is_private)
            elif old not in self._refused:
                await self._enter(old, said)
        return position

    def _gone_on(self, position: Position, old: str, said: _Said, is_private: Callable[[str], bool]) -> Position:
        private = is_private(old)
        if self._before.get(said.room) != _Said(old, said.by) or (private and not is_private(said.room)):
            log.warning("a room does not go on in the one that is said to replace it", room=old, new=said.room)
            return position
        log.info("a room goes on in another", room=old, new=said.room)
        return replace(position, replaced=(*position.replaced, Replaced(old, said.room, private)))

    async def _enter(self, old: str, said: _Said) -> None:
        error = ""
        if self._invitations.allow(said.by):
            try:
                await self._client.ask("POST", f"{form.path('join', said.room)}?via={form.server_of(said.by)}", {})
            except BridgeError as refusal:
                if not (isinstance(refusal, Refused) and refusal.final):
                    log.warning("the room that replaces another could not be entered", room=said.room, why=str(refusal))
                    return
                error = str(refusal)
            else:
                return
        self._refused.add(old)
        log.warning(
            "a room was replaced: the assistant has to be invited to the new one", room=old, new=said.room, by=said.by,
            why=error or "nobody allowed that account to invite it",
        )  # fmt: skip
