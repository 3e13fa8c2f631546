"""Receives messages over Discord's gateway, and passes them to the assistant's gateway.

An event counts as handled once it is stored; a resumed session continues after the last handled event. For a new
session, missed messages are read from each channel, starting at its position. Discord does not list direct
conversations, so each is recorded before its first message is passed on. A channel's position is stored in the same
transaction as the message (I1).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from datetime import datetime
from typing import Any

from assistant.bridges.discord import events as form
from assistant.bridges.discord.api import DiscordApi, DiscordRefusal
from assistant.bridges.discord.events import DiscordPosition, JsonObject
from assistant.bridges.discord.gateway import DiscordGateway
from assistant.bridges.remote_files import RemoteFiles
from assistant.core.bridge_api import InboundMessage, InboundPort, MessageChange
from assistant.core.errors import BridgeError
from assistant.core.logger import get_logger

log = get_logger()

_BRIDGE = "discord"
_PAGE = 100
# Maximum number of pages read per channel after a downtime.
_MAX_PAGES = 50
_MAX_REMEMBERED = 1000
_TEXT_CHANNELS = (0, 5, 10, 11, 12)
_THREADS = (10, 11, 12)
_PRESSED_BUTTON = 3
_ANSWERED_LATER = 6
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError)
_Arrival = InboundMessage | MessageChange


class DiscordReceiver:
    """One run: from the stored position, until cancelled."""

    def __init__(self, api: DiscordApi, gateway: DiscordGateway, token: str, inbound: InboundPort) -> None:
        self._api = api
        self._gateway = gateway
        self._token = token
        self._inbound = inbound
        self._me = ""
        self._position = DiscordPosition.parse(inbound.load_position(_BRIDGE))
        self._channels: dict[str, JsonObject] = {}  # those on servers, by id
        # Messages received both live and from the history are passed on once.
        self._received: dict[str, None] = {}
        self._files = RemoteFiles("Discord", self._api.download)

    async def run(self) -> None:
        """Raises `BridgeError`, and `StoreError` if a message could not be stored."""
        self._me = str((await self._api.call("GET", "/users/@me"))["id"])
        if not self._position.since:
            # Messages from before it joined are not read.
            self._position = DiscordPosition(form.snowflake_at(time.time()), {})
            self._inbound.save_position(_BRIDGE, str(self._position))
        while True:
            async for number, name, data in self._gateway.events(self._api, self._token):
                await self._handle(name, data)
                self._gateway.note_done(number)

    async def _handle(self, name: str, data: JsonObject) -> None:
        match name:
            case "READY":
                for place in list(self._position.newest):
                    if place.startswith(form.DIRECT):
                        await self._catch_up(place.removeprefix(form.DIRECT), "", self._position.newest[place])
                self._inbound.mark_connected(_BRIDGE)
            case "RESUMED":
                self._inbound.mark_connected(_BRIDGE)
            case "GUILD_CREATE":
                await self._enter_server(data)
            case "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE":
                self._channels[str(data.get("id"))] = data
            case "MESSAGE_CREATE":
                await self._hand_in(await self._read_safely(self._read_message(data, str(data.get("guild_id") or ""))))
            case "MESSAGE_UPDATE":
                await self._hand_in(await self._read_safely(self._read_edit(data)))
            case "MESSAGE_DELETE":
                await self._hand_in(await self._read_safely(self._read_deletion(data)))
            case "INTERACTION_CREATE" if data.get("type") == _PRESSED_BUTTON:
                await self._hand_in(await self._read_safely(self._read_press(data)))
                await self._answer_press(data)

    async def _read_safely(self, reading: Awaitable[_Arrival | None]) -> _Arrival | None:
        """Skip what cannot be read, so that it does not block later messages."""
        try:
            return await reading
        except _MALFORMED as error:
            log.error("a discord event cannot be read", error=type(error).__name__)
            return None

    async def _hand_in(self, arrival: _Arrival | None) -> None:
        if isinstance(arrival, MessageChange):
            await self._inbound.receive_change(arrival)
        elif arrival is not None:
            place = form.place_of(arrival.target, arrival.room)
            if arrival.room is None and place not in self._position.newest:
                self._position = self._position.advance(place, int(arrival.external_id.rpartition(":")[2]) - 1)
                self._inbound.save_position(_BRIDGE, str(self._position))
            await self._inbound.receive(arrival)
            self._position = DiscordPosition.parse(arrival.position)
            self._received[arrival.external_id] = None
            if len(self._received) > _MAX_REMEMBERED:
                del self._received[next(iter(self._received))]

    # ------------------------------------------------------------------------------------------------------ catching up

    async def _enter_server(self, server: JsonObject) -> None:
        joined = 0
        if server.get("joined_at"):
            joined = form.snowflake_at(datetime.fromisoformat(str(server["joined_at"])).timestamp())
        for channel in [*(server.get("channels") or ()), *(server.get("threads") or ())]:
            identity = str(channel["id"])
            self._channels[identity] = channel
            newest = int(channel.get("last_message_id") or 0)
            since = self._position.newest.get(identity) or max(self._position.since, joined)
            if channel.get("type") in _TEXT_CHANNELS and newest > since:
                await self._catch_up(identity, str(server["id"]), since)

    async def _catch_up(self, channel: str, server: str, newest: int) -> None:
        """Read missed messages of a channel."""
        for _ in range(_MAX_PAGES):
            try:
                page = await self._api.call("GET", f"/channels/{channel}/messages?after={newest}&limit={_PAGE}")
            except DiscordRefusal as refusal:
                if not refusal.refused:
                    raise
                log.warning("a discord channel cannot be read", channel=channel, error=str(refusal))
                return
            for message in sorted(page, key=lambda one: int(one["id"])):
                newest = int(message["id"])
                await self._hand_in(await self._read_safely(self._read_message(message, server)))
            if len(page) < _PAGE:
                return
        log.warning("away too long: not all messages of a discord channel are read", channel=channel)

    # --------------------------------------------------------------------------------------------------------- messages

    async def _read_message(self, message: JsonObject, server: str) -> InboundMessage | None:
        identity, channel = str(message["id"]), str(message["channel_id"])
        if not form.is_said_by_a_person(message) or identity in self._received:
            return None
        sender = str(message["author"]["id"])
        room, room_name = await self._room(channel, server)
        addressed = room is None or form.is_addressed(message, self._me)
        accepts = self._inbound.accepts_from(_BRIDGE, sender, room, addressed=addressed)
        media, missing = await self._files.fetch(form.files_of(message), is_expected=accepts)
        text = "\n".join(part for part in (self._text(message), *missing) if part)
        if not text.strip() and not media:
            return None
        position = str(self._position.advance(form.place_of(channel, room), int(identity)))
        return InboundMessage(
            _BRIDGE,
            identity,
            sender,
            text,
            form.name_of(message),
            media,
            channel,
            room,
            room_name,
            addressed,
            position,
        )

    async def _read_edit(self, message: JsonObject) -> MessageChange | None:
        # Link previews also appear as edits.
        if not message.get("edited_timestamp") or not form.is_said_by_a_person(message):
            return None
        identity, room = str(message["id"]), await self._room(str(message["channel_id"]), message.get("guild_id") or "")
        change, sender = f"{identity}:{message['edited_timestamp']}", str(message["author"]["id"])
        return MessageChange(
            _BRIDGE, identity, change, "edit", sender, self._text(message), room[0], str(self._position)
        )

    async def _read_deletion(self, deleted: JsonObject) -> MessageChange | None:
        """Handle a deletion; Discord does not say who did it."""
        identity, room = str(deleted["id"]), await self._room(str(deleted["channel_id"]), deleted.get("guild_id") or "")
        return MessageChange(_BRIDGE, identity, f"{identity}:deleted", "delete", "", "", room[0], str(self._position))

    async def _read_press(self, press: JsonObject) -> InboundMessage | None:
        """Handle a button like a typed command."""
        channel, server = str(press["channel_id"]), str(press.get("guild_id") or "")
        member = press.get("member") or {}
        user = press.get("user") or member["user"]
        if str((press["message"].get("author") or {}).get("id")) != self._me:
            return None
        room, room_name = await self._room(channel, server)
        return InboundMessage(
            _BRIDGE,
            f"press:{press['id']}",
            str(user["id"]),
            str(press["data"]["custom_id"]),
            form.name_of({"author": user, "member": member}),
            (),
            channel,
            room,
            room_name,
            position=str(self._position),
        )

    async def _answer_press(self, press: JsonObject) -> None:
        """Acknowledge a button press. Errors are ignored."""
        try:
            path = f"/interactions/{press['id']}/{press['token']}/callback"
            await self._api.call("POST", path, {"type": _ANSWERED_LATER})
        except (BridgeError, KeyError) as error:
            log.info("a discord button was not answered", error=str(error))

    def _text(self, message: JsonObject) -> str:
        names = {identity: str(channel.get("name", "")) for identity, channel in self._channels.items()}
        return form.text_of_message(message, self._me, names)

    async def _room(self, channel: str, server: str) -> tuple[str | None, str]:
        """Return the server channel (of a thread, its parent) and its name; None for direct messages."""
        if not server:
            return None, ""
        about = await self._channel(channel)
        if about.get("type") in _THREADS and about.get("parent_id"):
            channel = str(about["parent_id"])
            about = await self._channel(channel)
        return channel, str(about.get("name", ""))

    async def _channel(self, channel: str) -> JsonObject:
        if channel not in self._channels:
            found: dict[str, Any] = {}
            try:
                found = dict(await self._api.call("GET", f"/channels/{channel}"))
            except DiscordRefusal as refusal:
                log.debug("discord tells nothing of a channel", channel=channel, error=str(refusal))
            self._channels[channel] = found
        return self._channels[channel]
