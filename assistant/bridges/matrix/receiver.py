"""The Matrix bridge's way in: what the server tells, handed through the door.

What always holds: the server's token goes on only when the door has everything that came with it; a crash in between
brings it again, under the same ids. What was said before the assistant was in a room is none of its business. An event
that cannot be decrypted yet is remembered with the position, and read when its key comes.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

import structlog
from nio import Event, MatrixRoom, MegolmEvent
from nio.api import MessageDirection
from nio.events import ForwardedRoomKeyEvent, RoomKeyEvent
from nio.responses import RoomInfo, SyncResponse

from assistant.bridges.matrix import events as form
from assistant.bridges.matrix.client import MatrixClient, MatrixRefusal, translate_matrix_errors
from assistant.bridges.matrix.drafts import MatrixDrafts
from assistant.bridges.matrix.events import JsonObject, MatrixAttachment
from assistant.bridges.matrix.rooms import RoomInvitations, RoomUpgrades
from assistant.bridges.matrix.sync_position import SyncPosition, UndecryptedEvent
from assistant.core.bridge_api import InboundMessage, InboundPort, MessageChange
from assistant.core.errors import BridgeError
from assistant.core.messages import Media

log = structlog.get_logger()

_BRIDGE = "matrix"
_POLL_MILLISECONDS = 30_000
_PAGE = 100
# Of what a room said while the assistant was away, as many pages are read.
_PAGES = 100
_MOST_FILE_BYTES = 20_000_000
_REMEMBERED = 1000
# A key that is not there after so many looks is asked for.
_PATIENCE = 2
_FILTER: dict[Any, Any] = {
    "presence": {"types": []},
    "account_data": {"types": []},
    "room": {"timeline": {"limit": _PAGE}, "ephemeral": {"types": []}, "account_data": {"types": []}},
}
_CANNOT_READ = (
    "I could not read an encrypted message here: its key has not reached me. I read it as soon as it does; otherwise, "
    "please send it again."
)


# Is told where rooms that were replaced go on, "" for nowhere yet.
OnRoomsMoved = Callable[[Mapping[str, str]], None]


class MatrixReceiver:
    """One run: from where the door is, until cancelled. `patience` are seconds until an answer has come whole."""

    sync_timeout_seconds = 300.0

    def __init__(
        self,
        client: MatrixClient,
        door: InboundPort,
        drafts: MatrixDrafts,
        on_rooms_moved: OnRoomsMoved,
        invites: tuple[str, ...],
        is_owners: Callable[[str], bool],
    ) -> None:
        self._client = client
        self._door = door
        self._drafts = drafts
        self._moved = on_rooms_moved
        self._named = frozenset(invites)
        self._invitations = RoomInvitations(client, invites, is_owners)
        self._upgrades = RoomUpgrades(client, self._invitations)
        self._position = SyncPosition.parse(door.load_position(_BRIDGE))
        self._kept = self._position
        # Threads and messages of our own, asked for once.
        self._ours: dict[str, None] = {}
        self._services: dict[str, frozenset[str]] = {}
        self._missed: dict[UndecryptedEvent, int] = {}

    async def run(self) -> None:
        """Raises `BridgeError`, and `StoreError` where the door could not keep something."""
        began = not self._position.since
        # Synapse answers the same question the same for minutes; of a first one it takes no account of the patience.
        first = await self._sync(random.randrange(1, _POLL_MILLISECONDS), full_state=not began)
        await self._pass(first, nothing_said=began)
        await self._invitations.fetch_pending()
        if self._position.unread:
            await self._read_late(self._position.unread)
            self._advance()
        self._door.mark_connected(_BRIDGE)
        while True:
            await self._pass(await self._sync(_POLL_MILLISECONDS))

    async def _sync(self, wait: int, *, full_state: bool = False) -> SyncResponse:
        # nio passes over an answer that ends where it is already, as one that comes again after a failure does.
        self._client.next_batch = ""
        with translate_matrix_errors():
            # Of nio's, a first one has no end.
            async with asyncio.timeout(self.sync_timeout_seconds):
                synced: SyncResponse = await self._client.sync(wait, _FILTER, self._position.since or None, full_state)
        return synced

    async def _pass(self, synced: SyncResponse, *, nothing_said: bool = False) -> None:
        since, told = self._position.since, bool(synced.to_device_events or synced.rooms.invite)
        for room_id, info in synced.rooms.join.items():
            events = [*info.state, *info.timeline.events]
            self._note_services(room_id, events)
            self._upgrades.note_events(room_id, events)
        await self._follow()
        for room_id, info in synced.rooms.join.items():
            if not nothing_said:
                told = await self._take_room(self._client.rooms[room_id], info, since) or told
        for room_id in synced.rooms.leave:
            self._client.rooms.pop(room_id, None)
            self._client.invited_rooms.pop(room_id, None)
        await self._invitations.accept_allowed()
        await self._client.sync_keys()
        await self._read_late(self._readable(synced))
        await self._ask_for_keys()
        self._position = replace(self._position, since=synced.next_batch)
        self._drafts.note_existing_drafts(self._position.drafts)
        if told or nothing_said or replace(self._kept, since="") != replace(self._position, since=""):
            self._advance()

    def _advance(self) -> None:
        self._door.save_position(_BRIDGE, str(self._position))
        self._kept = self._position

    async def _follow(self) -> None:
        """Before anything is handed in that was said where a room goes on."""
        rooms = self._client.rooms
        self._position = await self._upgrades.follow_upgrades(self._position, lambda one: self._is_private(rooms[one]))
        self._moved({**self._position.moved_rooms(), **dict.fromkeys(self._upgrades.pending, "")})

    # ------------------------------------------------------------------------------------------------------------ rooms

    async def _take_room(self, room: MatrixRoom, info: RoomInfo, since: str) -> bool:
        """Hand in what was said in a room; whether anything there was not the assistant's own."""
        events = list(info.timeline.events)
        if info.timeline.limited and not self._joins(events):
            events = [*await self._gap(room.room_id, info.timeline.prev_batch or "", since), *events]
        told = False
        for event in self._while_there(events):
            if event.sender == self._client.user_id:
                self._position = self._position.after_own_event(event.source, self._target(room, event.source))
            else:
                told = True
                await self._take(room, event)
        return told

    async def _gap(self, room_id: str, before: str, since: str) -> list[Event]:
        """What was said there between `since` and `before`, oldest first: the newest `_PAGES` pages of it."""
        found: list[Event] = []
        for _ in range(_PAGES):
            page = await self._client.room_messages(room_id, before, since, MessageDirection.back, _PAGE)
            found += page.chunk
            if not page.chunk or not page.end or self._joins(page.chunk):
                return found[::-1]
            before = page.end
        log.warning("away too long: the oldest of what a room said is not read", room=room_id, read=len(found))
        return found[::-1]

    def _joins(self, events: Iterable[Event]) -> bool:
        return any(_entered(form.membership_change(event.source, self._client.user_id)) for event in events)

    def _while_there(self, events: list[Event]) -> list[Event]:
        """Those that were said while the assistant was in the room."""
        kept: list[Event] = []
        there = True
        for event in events:
            change = form.membership_change(event.source, self._client.user_id)
            if _entered(change):
                kept = [] if there else kept
                there = True
            elif change[0] in ("leave", "ban"):
                there = False
            elif there:
                kept.append(event)
        return kept

    def _note_services(self, room_id: str, events: Iterable[Event]) -> None:
        for event in events:
            if event.source.get("type") == "io.element.functional_members":
                self._services[room_id] = form.read_service_members(event.source)

    def _is_private(self, room: MatrixRoom) -> bool:
        """Whether it is between two for sure. Who was invited can read on; what anybody may enter never is. A bridge's
        own account counts for nobody where the owner named it, not because the room says so."""
        if self._position.is_group_room(room.room_id):
            return False
        services = self._services.get(room.room_id, frozenset()) & self._named
        return len(room.users.keys() - services) == 2 and room.join_rule == "invite"

    def _target(self, room: MatrixRoom, event: JsonObject) -> str:
        return form.format_target(room.room_id, form.thread_root_id(event))

    # --------------------------------------------------------------------------------------------------------- messages

    async def _take(self, room: MatrixRoom, event: Event) -> None:
        said = event.source
        if isinstance(event, MegolmEvent):
            self._wait_for_key(room, event)
        elif gone := form.redacted_event_id(said):
            await self._door.receive_change(self._change(room, said, gone, "delete"))
        elif edited := form.edited_event_id(said):
            await self._door.receive_change(self._change(room, said, edited, "edit", form.read_edited_text(said)))
        elif form.is_message_event(said):
            await self._hand_in(room, said)

    async def _hand_in(self, room: MatrixRoom, said: JsonObject) -> None:
        text, file = form.read_text(said), form.read_attachment(said)
        if not text.strip() and file is None:
            return
        private, sender = self._is_private(room), said["sender"]
        addressed = private or await self._is_addressed(room, said)
        place = None if private else self._position.original_room(room.room_id)
        expected = self._door.accepts_from(_BRIDGE, sender, place, addressed=addressed)
        arrival = InboundMessage(
            _BRIDGE,
            said["event_id"],
            sender,
            text,
            sender_name=room.user_name(sender) or "",
            media=() if file is None else (await self._media(file, wanted=expected),),
            target=self._target(room, said),
            room=place,
            room_name="" if private else room.display_name,
            addressed=addressed,
        )
        await self._door.receive(arrival)

    def _change(
        self, room: MatrixRoom, said: JsonObject, of: str, kind: Literal["edit", "delete"], content: str = ""
    ) -> MessageChange:
        place = None if self._is_private(room) else self._position.original_room(room.room_id)
        return MessageChange(_BRIDGE, of, said["event_id"], kind, said["sender"], content, place)

    async def _media(self, file: MatrixAttachment, *, wanted: bool) -> Media:
        """Pictures and files come along; of voices and films it is said that they came."""
        data = None
        if wanted and file.kind in ("m.image", "m.file") and file.size <= _MOST_FILE_BYTES:
            data = await self._client.fetch_file(file, _MOST_FILE_BYTES)
        kind: Literal["image", "file"] = "image" if file.kind == "m.image" else "file"
        size = file.size if data is None else len(data)
        return Media(kind, file.mime, file.name, size, None if data is None else base64.b64encode(data).decode())

    async def _is_addressed(self, room: MatrixRoom, said: JsonObject) -> bool:
        user = self._client.user_id
        if form.mentions_account(said, user, room.user_name(user) or ""):
            return True
        for event in (form.replied_event_id(said), form.thread_root_id(said)):
            if event and await self._is_ours(room.room_id, event):
                return True
        return False

    async def _is_ours(self, room_id: str, event: str) -> bool:
        """Whether the assistant said it, or something in its thread."""
        if event in self._ours:
            return True
        try:
            found = await self._client.request_json("GET", form.api_path("rooms", room_id, "event", event))
        except MatrixRefusal as refusal:
            if not refusal.is_final:
                raise
            return False
        if not form.is_from_account(found, self._client.user_id):
            return False
        self._ours[event] = None
        if len(self._ours) > _REMEMBERED:
            del self._ours[next(iter(self._ours))]
        return True

    # ------------------------------------------------------------------------------------------------------------- keys

    def _wait_for_key(self, room: MatrixRoom, event: MegolmEvent) -> None:
        unread = UndecryptedEvent(room.room_id, event.event_id, event.session_id)
        log.warning("a message cannot be decrypted yet", room=room.room_id, message=event.event_id)
        self._position = self._position.with_undecrypted(unread)
        self._missed.setdefault(unread, 0)

    def _readable(self, synced: SyncResponse) -> list[UndecryptedEvent]:
        """What waits for a key that came just now."""
        keys = [event for event in synced.to_device_events if isinstance(event, (RoomKeyEvent, ForwardedRoomKeyEvent))]
        sessions = {key.session_id for key in keys}
        return [unread for unread in self._position.unread if unread.session in sessions]

    async def _read_late(self, waiting: Iterable[UndecryptedEvent]) -> None:
        for unread in waiting:
            room = self._client.rooms.get(unread.room)
            try:
                event = None if room is None else await self._client.retry_decryption(unread)
            except MatrixRefusal as refusal:
                if not refusal.is_final:
                    raise
                event, room = None, None
            if room is None:
                self._position = self._position.without_undecrypted(unread)
            elif event is not None:
                await self._take(room, event)
                self._position = self._position.without_undecrypted(unread)
                self._missed.pop(unread, None)

    async def _ask_for_keys(self) -> None:
        """Say once, between two, that something could not be read; in a room everybody would have to hear it."""
        for unread, looks in list(self._missed.items()):
            self._missed[unread] = looks + 1
            if looks < _PATIENCE:
                continue
            del self._missed[unread]
            room = self._client.rooms.get(unread.room)
            if room is None or not self._is_private(room):
                continue
            notice = {"msgtype": "m.notice", "body": _CANNOT_READ}
            try:
                await self._client.send_message(unread.room, notice, form.notice_transaction_id("key", unread.session))
            except BridgeError as error:
                log.warning("nobody could be asked for a key", room=unread.room, error=str(error))


def _entered(change: tuple[str, str]) -> bool:
    now, before = change
    return now == "join" and before != "join"
