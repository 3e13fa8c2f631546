"""Receives messages over Matrix, and passes them to the gateway.

The server's token is stored only after the gateway has everything before it; after a crash in between, events come
again under the same ids. Messages from before the assistant joined a room are not read. An event that cannot be
decrypted yet is stored with the position, and read when its key arrives.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import urlencode

from nio import Event, MatrixRoom, MegolmEvent
from nio.api import MessageDirection
from nio.events import ForwardedRoomKeyEvent, RoomKeyEvent
from nio.responses import RoomInfo, SyncResponse

from assistant.bridges.matrix import events as form
from assistant.bridges.matrix.client import MatrixClient, MatrixRefusal, translate_matrix_errors
from assistant.bridges.matrix.drafts import MatrixDrafts
from assistant.bridges.matrix.events import JsonObject, MatrixAttachment, SyncPosition, UndecryptedEvent
from assistant.bridges.matrix.rooms import RoomInvitations, RoomUpgrades
from assistant.core.bridge_api import InboundMessage, InboundPort, MessageChange
from assistant.core.errors import BridgeError
from assistant.core.logger import get_logger
from assistant.core.messages import Media, MediaKind
from assistant.core.notices import NoticeKind

log = get_logger()

_BRIDGE = "matrix"
_POLL_MILLISECONDS, _QUICK_POLL_MILLISECONDS = 30_000, 1_000
_PAGE_SIZE = 100
# Maximum number of pages read per room after a downtime.
_MAX_PAGES = 100
_MAX_FILE_BYTES = 20_000_000
_MAX_OWN_EVENTS = 1000
# A key still missing after so many syncs is reported.
_SYNCS_BEFORE_NOTICE = 2
_FILTER: dict[Any, Any] = {
    "presence": {"types": []},
    "account_data": {"types": []},
    "room": {"timeline": {"limit": _PAGE_SIZE}, "ephemeral": {"types": []}, "account_data": {"types": []}},
}


# Receives the successors of rooms by the old room; "" if not known yet.
OnRoomsMoved = Callable[[Mapping[str, str]], None]


class MatrixReceiver:
    """One run: from the stored position, until cancelled. A sync may take `sync_timeout_seconds`."""

    sync_timeout_seconds = 300.0

    def __init__(
        self,
        client: MatrixClient,
        inbound: InboundPort,
        drafts: MatrixDrafts,
        on_rooms_moved: OnRoomsMoved,
        invites: tuple[str, ...],
        is_owners: Callable[[str], bool],
    ) -> None:
        self._client = client
        self._inbound = inbound
        self._drafts = drafts
        self._on_rooms_moved = on_rooms_moved
        self._named_accounts = frozenset(invites)
        self._invitations = RoomInvitations(client, invites, is_owners)
        self._upgrades = RoomUpgrades(client, self._invitations)
        self._position = SyncPosition.parse(inbound.load_position(_BRIDGE))
        self._saved_position = self._position
        # Own threads and messages, each looked up once.
        self._own_event_ids: dict[str, None] = {}
        self._service_members: dict[str, frozenset[str]] = {}
        self._sync_counts: dict[UndecryptedEvent, int] = {}

    async def run(self) -> None:
        """Raises `BridgeError`, and `StoreError` if a message could not be stored."""
        is_first_run = not self._position.since
        # Synapse caches the answer to the same request for minutes, and ignores the timeout of a first one.
        first = await self._sync(random.randrange(1, _POLL_MILLISECONDS), full_state=not is_first_run)
        await self._handle_sync(first, is_first_run=is_first_run)
        await self._invitations.fetch_pending()
        if self._position.unread:
            await self._retry_undecrypted(self._position.unread)
            self._save_position()
        self._inbound.mark_connected(_BRIDGE)
        while True:
            await self._handle_sync(await self._sync(_POLL_MILLISECONDS))

    async def _sync(self, wait: int, *, full_state: bool = False) -> SyncResponse:
        # nio ignores an answer with an unchanged token, such as the same answer after a failure.
        self._client.next_batch = ""
        with translate_matrix_errors():
            # nio's first sync has no timeout.
            async with asyncio.timeout(self.sync_timeout_seconds):
                synced: SyncResponse = await self._client.sync(wait, _FILTER, self._position.since or None, full_state)
        return synced

    async def _handle_sync(self, synced: SyncResponse, *, is_first_run: bool = False) -> None:
        since, has_news = self._position.since, bool(synced.to_device_events or synced.rooms.invite)
        for room_id, info in synced.rooms.join.items():
            events = [*info.state, *info.timeline.events]
            self._note_service_members(room_id, events)
            self._upgrades.note_events(room_id, events)
        await self._follow_upgrades()
        for room_id, info in synced.rooms.join.items():
            if not is_first_run:
                has_news = await self._handle_room(self._client.rooms[room_id], info, since) or has_news
        for room_id in synced.rooms.leave:
            self._client.rooms.pop(room_id, None)
            self._client.invited_rooms.pop(room_id, None)
        await self._invitations.accept_allowed()
        await self._client.sync_keys()
        await self._retry_undecrypted(self._now_readable(synced))
        await self._report_missing_keys()
        self._position = replace(self._position, since=synced.next_batch)
        self._drafts.note_existing_drafts(self._position.drafts)
        if has_news or is_first_run or replace(self._saved_position, since="") != replace(self._position, since=""):
            self._save_position()

    def _save_position(self) -> None:
        self._inbound.save_position(_BRIDGE, str(self._position))
        self._saved_position = self._position

    async def _follow_upgrades(self) -> None:
        """Record replaced rooms before their messages are passed on."""
        rooms = self._client.rooms
        self._position = await self._upgrades.follow_upgrades(
            self._position, lambda room_id: self._is_private(rooms[room_id])
        )
        self._on_rooms_moved({**self._position.moved_rooms(), **dict.fromkeys(self._upgrades.pending, "")})

    # ------------------------------------------------------------------------------------------------------------ rooms

    async def _handle_room(self, room: MatrixRoom, info: RoomInfo, since: str) -> bool:
        """Pass on the messages of a room. Returns whether anything there was not, or may not be, the
        assistant's own."""
        events = list(info.timeline.events)
        if info.timeline.limited and not self._joins(events):
            events = [*await self._read_gap(room.room_id, info.timeline.prev_batch or "", since), *events]
        has_news = bool(info.timeline.limited)
        for event in self._said_while_joined(events):
            if event.sender == self._client.user_id:
                self._position = self._position.after_own_event(event.source, self._target_of(room, event.source))
            else:
                has_news = True
                await self._handle_event(room, event)
        return has_news

    async def _read_gap(self, room_id: str, from_token: str, since: str) -> list[Event]:
        """Read the missed messages between two tokens, oldest first: the newest `_MAX_PAGES` pages."""
        events: list[Event] = []
        for _ in range(_MAX_PAGES):
            page = await self._client.room_messages(room_id, from_token, since, MessageDirection.back, _PAGE_SIZE)
            events += page.chunk
            if not page.chunk or not page.end or self._joins(page.chunk):
                return events[::-1]
            from_token = page.end
        log.warning("away too long: the oldest messages of a room are not read", room=room_id, read=len(events))
        return events[::-1]

    def _joins(self, events: Iterable[Event]) -> bool:
        return any(_has_joined(form.membership_change(event.source, self._client.user_id)) for event in events)

    def _said_while_joined(self, events: list[Event]) -> list[Event]:
        """Return the events from while the assistant was in the room."""
        messages: list[Event] = []
        is_joined = True
        for event in events:
            change = form.membership_change(event.source, self._client.user_id)
            if _has_joined(change):
                messages = [] if is_joined else messages
                is_joined = True
            elif change[0] in ("leave", "ban"):
                is_joined = False
            elif is_joined:
                messages.append(event)
        return messages

    def _note_service_members(self, room_id: str, events: Iterable[Event]) -> None:
        for event in events:
            if event.source.get("type") == "io.element.functional_members":
                self._service_members[room_id] = form.read_service_members(event.source)

    def _is_private(self, room: MatrixRoom) -> bool:
        """Return whether the room is certainly a direct conversation. Invited people can read too, and a public room
        never is one. A bridge's account does not count if the owner named it, not because the room says so."""
        if self._position.is_group_room(room.room_id):
            return False
        services = self._service_members.get(room.room_id, frozenset()) & self._named_accounts
        return len(room.users.keys() - services) == 2 and room.join_rule == "invite"

    def _target_of(self, room: MatrixRoom, event: JsonObject) -> str:
        return form.format_target(room.room_id, form.thread_root_id(event))

    # --------------------------------------------------------------------------------------------------------- messages

    async def _handle_event(self, room: MatrixRoom, event: Event) -> None:
        source = event.source
        if isinstance(event, MegolmEvent):
            self._remember_undecrypted(room, event)
        elif deleted_id := form.redacted_event_id(source):
            await self._inbound.receive_change(self._message_change(room, source, deleted_id, "delete"))
        elif edited_id := form.edited_event_id(source):
            await self._inbound.receive_change(
                self._message_change(room, source, edited_id, "edit", form.read_edited_text(source))
            )
        elif form.is_message_event(source):
            await self._receive_message(room, source)

    async def _receive_message(self, room: MatrixRoom, source: JsonObject) -> None:
        text, attachment = form.read_text(source), form.read_attachment(source)
        if not text.strip() and attachment is None:
            return
        is_private, sender = self._is_private(room), source["sender"]
        addressed = is_private or await self._is_addressed(room, source)
        room_id = None if is_private else self._position.original_room(room.room_id)
        is_expected = self._inbound.accepts_from(_BRIDGE, sender, room_id, addressed=addressed)
        arrival = InboundMessage(
            _BRIDGE,
            source["event_id"],
            sender,
            text,
            sender_name=room.user_name(sender) or "",
            media=() if attachment is None else (await self._load_media(attachment, is_expected=is_expected),),
            target=self._target_of(room, source),
            room=room_id,
            room_name="" if is_private else room.display_name,
            addressed=addressed,
        )
        await self._inbound.receive(arrival)

    def _message_change(
        self, room: MatrixRoom, source: JsonObject, event_id: str, kind: Literal["edit", "delete"], content: str = ""
    ) -> MessageChange:
        room_id = None if self._is_private(room) else self._position.original_room(room.room_id)
        return MessageChange(_BRIDGE, event_id, source["event_id"], kind, source["sender"], content, room_id)

    async def _load_media(self, attachment: MatrixAttachment, *, is_expected: bool) -> Media:
        """Load the data of images, files and voice messages; music and films are only named."""
        data = None
        if (
            is_expected
            and (attachment.voice or attachment.kind in ("m.image", "m.file"))
            and attachment.size <= _MAX_FILE_BYTES
        ):
            data = await self._client.fetch_file(attachment, _MAX_FILE_BYTES)
        kind: MediaKind = "image" if attachment.kind == "m.image" else "file"
        size = attachment.size if data is None else len(data)
        encoded = None if data is None else base64.b64encode(data).decode()
        return Media(kind, attachment.mime, attachment.name, size, encoded, voice=attachment.voice)

    async def _is_addressed(self, room: MatrixRoom, source: JsonObject) -> bool:
        user = self._client.user_id
        if form.mentions_account(source, user, room.user_name(user) or ""):
            return True
        for event in (form.replied_event_id(source), form.thread_root_id(source)):
            if event and await self._is_own_event(room.room_id, event):
                return True
        return False

    async def _is_own_event(self, room_id: str, event: str) -> bool:
        """Return whether the assistant wrote it, or something in its thread."""
        if event in self._own_event_ids:
            return True
        try:
            content = await self._client.request_json("GET", form.api_path("rooms", room_id, "event", event))
        except MatrixRefusal as refusal:
            if not refusal.is_final:
                raise
            return False
        if not form.is_from_account(content, self._client.user_id):
            return False
        self._own_event_ids[event] = None
        if len(self._own_event_ids) > _MAX_OWN_EVENTS:
            del self._own_event_ids[next(iter(self._own_event_ids))]
        return True

    # ------------------------------------------------------------------------------------------------------------- keys

    def _remember_undecrypted(self, room: MatrixRoom, event: MegolmEvent) -> None:
        unread = UndecryptedEvent(room.room_id, event.event_id, event.session_id)
        log.warning("a message cannot be decrypted yet", room=room.room_id, message=event.event_id)
        self._position = self._position.with_undecrypted(unread)
        self._sync_counts.setdefault(unread, 0)

    def _now_readable(self, synced: SyncResponse) -> list[UndecryptedEvent]:
        """Return the events whose key has just arrived."""
        keys = [event for event in synced.to_device_events if isinstance(event, (RoomKeyEvent, ForwardedRoomKeyEvent))]
        sessions = {key.session_id for key in keys}
        return [unread for unread in self._position.unread if unread.session in sessions]

    async def _retry_undecrypted(self, waiting: Iterable[UndecryptedEvent]) -> None:
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
                await self._handle_event(room, event)
                self._position = self._position.without_undecrypted(unread)
                self._sync_counts.pop(unread, None)

    async def _report_missing_keys(self) -> None:
        """Report once, in a direct conversation, that a message could not be read; in a room it would disturb
        everyone."""
        for unread, syncs in list(self._sync_counts.items()):
            self._sync_counts[unread] = syncs + 1
            if syncs < _SYNCS_BEFORE_NOTICE:
                continue
            del self._sync_counts[unread]
            room = self._client.rooms.get(unread.room)
            if room is None or not self._is_private(room):
                continue
            notice = {"msgtype": "m.notice", "body": NoticeKind.KEY_MISSING.fill().text}
            try:
                await self._client.send_message(unread.room, notice, form.notice_transaction_id("key", unread.session))
            except BridgeError as error:
                log.warning("the notice about a missing key could not be sent", room=unread.room, error=str(error))


async def has_events_since(client: MatrixClient, since: str) -> bool:
    """Return whether a sync would have anything that is not our own. Raises `BridgeError`."""
    # Varied as the first sync of a run, so that no earlier answer is repeated.
    wait = random.randrange(1, _QUICK_POLL_MILLISECONDS)
    options = {"since": since, "timeout": wait, "filter": json.dumps(_FILTER), "set_presence": "offline"}
    synced = await client.request_json("GET", f"{form.api_path('sync')}?{urlencode(options)}")
    rooms = synced.get("rooms", {})
    timelines = [room.get("timeline", {}) for room in rooms.get("join", {}).values()]
    senders = {event.get("sender") for timeline in timelines for event in timeline.get("events", ())}
    is_limited = any(timeline.get("limited") for timeline in timelines)
    return bool(
        is_limited or rooms.get("invite") or synced.get("to_device", {}).get("events") or senders - {client.user_id}
    )


def _has_joined(change: tuple[str, str]) -> bool:
    current, previous = change
    return current == "join" and previous != "join"
