"""Receives messages over Slack's socket, and passes them to the gateway.

An envelope is acknowledged once the gateway has stored its content; Slack resends others under the same ids. Missed
messages are read from each channel's history, starting at its position; messages from before the assistant joined a
channel are not read. A channel's position is stored in the same transaction as the message (I1).
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Literal

from aiohttp import ClientWebSocketResponse, WSMsgType

from assistant.bridges.remote_files import RemoteFiles
from assistant.bridges.slack import events as form
from assistant.bridges.slack.api import SlackApi, SlackRefusal, translate_slack_errors
from assistant.bridges.slack.events import JsonObject, SlackPosition
from assistant.core.bridge_api import InboundMessage, InboundPort, MessageChange
from assistant.core.errors import BridgeError
from assistant.core.logger import get_logger
from assistant.core.messages import Media

log = get_logger()

_BRIDGE = "slack"
_PAGE = 200
# Maximum number of pages read per channel after a downtime.
_MAX_PAGES = 20
_MAX_REMEMBERED = 1000
_HELLO_SECONDS = 30.0
_KINDS = "public_channel,private_channel,mpim,im"
_MAX_MENTIONS = 50
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError)
_Arrival = InboundMessage | MessageChange


class SlackReceiver:
    """One run: from the stored position, until cancelled."""

    def __init__(self, api: SlackApi, inbound: InboundPort, me: str) -> None:
        """`me` is the assistant's own account."""
        self._api = api
        self._inbound = inbound
        self._me = me
        self._position = SlackPosition.parse(inbound.load_position(_BRIDGE))
        self._is_first = not self._position.newest
        # Messages received both live and from the history are passed on once; names are looked up once.
        self._received: dict[str, None] = {}
        self._names: dict[str, str] = {}
        self._files = RemoteFiles("Slack", self._api.download)

    async def run(self) -> None:
        """Raises `BridgeError`, and `StoreError` if a message could not be stored."""
        while True:
            socket = await self._api.open_socket()
            try:
                await self._expect_hello(socket)
                # The socket is open already, so new messages arrive over it.
                await self._catch_up()
                self._inbound.mark_connected(_BRIDGE)
                await self._receive(socket)
            finally:
                await socket.close()

    async def _expect_hello(self, socket: ClientWebSocketResponse) -> None:
        with translate_slack_errors():
            message = await socket.receive(_HELLO_SECONDS)
        if message.type != WSMsgType.TEXT or message.json().get("type") != "hello":
            raise BridgeError("Slack closed the connection before it began.")

    async def _receive(self, socket: ClientWebSocketResponse) -> None:
        """Return when Slack requests a reconnect, as it does every few hours."""
        while True:
            with translate_slack_errors():
                message = await socket.receive()
            if message.type != WSMsgType.TEXT:
                raise BridgeError("The connection to Slack broke.")
            envelope = message.json()
            if envelope.get("type") == "disconnect":
                if envelope.get("reason") == "link_disabled":
                    raise BridgeError("Socket Mode is turned off for the Slack app. Turn it on in the app's settings.")
                return
            if "envelope_id" in envelope:
                await self._handle(envelope)
                with translate_slack_errors():
                    await socket.send_json({"envelope_id": envelope["envelope_id"]})

    async def _handle(self, envelope: JsonObject) -> None:
        await self._hand_in(await self._read_safely(self._read_envelope(envelope)))

    async def _read_envelope(self, envelope: JsonObject) -> _Arrival | None:
        payload = envelope["payload"]
        match envelope["type"]:
            case "events_api":
                return await self._read_event(payload["event"])
            case "interactive" if payload.get("type") == "block_actions":
                return await self._read_press(payload)
            case "slash_commands":
                return await self._read_command(payload)
        return None

    async def _read_safely(self, reading: Awaitable[_Arrival | None]) -> _Arrival | None:
        """Skip what cannot be read, so that it does not block later messages."""
        try:
            return await reading
        except _MALFORMED as error:
            log.error("a slack event cannot be read", error=type(error).__name__)
            return None

    async def _hand_in(self, arrival: _Arrival | None) -> None:
        if isinstance(arrival, MessageChange):
            await self._inbound.receive_change(arrival)
        elif arrival is not None:
            await self._inbound.receive(arrival)
            self._position = SlackPosition.parse(arrival.position)
            self._received[arrival.external_id] = None
            if len(self._received) > _MAX_REMEMBERED:
                del self._received[next(iter(self._received))]

    # ----------------------------------------------------------------------------------------------------- catching up

    async def _catch_up(self) -> None:
        """Read messages since the position; the first time, only set the position of each channel."""
        before = str(self._position)
        for channel in await self._channels():
            try:
                if self._is_first:
                    answer = await self._api.call(self._api.web.conversations_history(channel=channel, limit=1))
                    newest = next((str(message["ts"]) for message in answer["messages"]), "0")
                    self._position = self._position.advance(channel, newest)
                else:
                    await self._read_channel(channel)
            except SlackRefusal as refusal:
                if not refusal.refused:
                    raise
                log.warning("a slack channel cannot be read", channel=channel, error=str(refusal))
        if not self._is_first:
            for channel, thread in self._position.threads():
                await self._read_thread(channel, thread)
        if self._is_first or str(self._position) != before:
            self._inbound.save_position(_BRIDGE, str(self._position))
        self._is_first = False

    async def _channels(self) -> list[str]:
        channels: list[str] = []
        cursor = ""
        for _ in range(_MAX_PAGES):
            answer = await self._api.call(
                self._api.web.users_conversations(types=_KINDS, limit=_PAGE, cursor=cursor, exclude_archived=True)
            )
            channels += [str(channel["id"]) for channel in answer["channels"]]
            cursor = (answer.get("response_metadata") or {}).get("next_cursor", "")
            if not cursor:
                break
        return channels

    async def _read_channel(self, channel: str) -> None:
        oldest = self._position.newest.get(channel, "")
        messages: list[JsonObject] = []
        cursor = ""
        for _ in range(_MAX_PAGES):
            answer = await self._api.call(
                self._api.web.conversations_history(channel=channel, oldest=oldest or "0", limit=_PAGE, cursor=cursor)
            )
            messages += answer["messages"]
            cursor = (answer.get("response_metadata") or {}).get("next_cursor", "")
            if not cursor or any(self._is_own_joining(message) for message in answer["messages"]):
                break
        else:
            log.warning("away too long: the oldest messages of a slack channel are not read", channel=channel)
        messages = self._since_joining(messages[::-1], is_known=bool(oldest) or form.is_private(channel))
        for message in messages:
            await self._hand_in(await self._read_safely(self._read_message(channel, message)))
            newest_reply = str(message.get("latest_reply") or "")
            if newest_reply > self._position.newest.get(form.format_target(channel, message["ts"]), oldest or "0"):
                await self._read_thread(channel, message["ts"])
        if messages:
            self._position = self._position.advance(channel, str(messages[-1]["ts"]))

    async def _read_thread(self, channel: str, thread: str) -> None:
        place = form.format_target(channel, thread)
        oldest, cursor = self._position.newest.get(place, thread), ""
        for _ in range(_MAX_PAGES):
            try:
                answer = await self._api.call(
                    self._api.web.conversations_replies(
                        channel=channel, ts=thread, oldest=oldest, limit=_PAGE, cursor=cursor
                    )
                )
            except SlackRefusal as refusal:
                if not refusal.refused:
                    raise
                return
            for message in answer["messages"]:
                if message["ts"] > oldest:
                    await self._hand_in(await self._read_safely(self._read_message(channel, message)))
                    self._position = self._position.advance(place, str(message["ts"]))
            cursor = (answer.get("response_metadata") or {}).get("next_cursor", "")
            if not cursor:
                return

    def _is_own_joining(self, message: JsonObject) -> bool:
        return message.get("subtype") in ("channel_join", "group_join") and message.get("user") == self._me

    def _since_joining(self, messages: list[JsonObject], *, is_known: bool) -> list[JsonObject]:
        """Return messages from while the assistant was there; in a new channel, nothing older."""
        joinings = [at for at, message in enumerate(messages) if self._is_own_joining(message)]
        if joinings:
            return messages[joinings[-1] :]
        return messages if is_known else messages[-1:]

    # --------------------------------------------------------------------------------------------------------- messages

    async def _read_event(self, event: JsonObject) -> _Arrival | None:
        if event.get("type") != "message":
            return None
        channel = str(event["channel"])
        match event.get("subtype"):
            case "message_changed":
                return await self._read_edit(channel, event)
            case "message_deleted":
                return self._read_deletion(channel, event)
        return await self._read_message(channel, event)

    async def _read_message(self, channel: str, message: JsonObject) -> InboundMessage | None:
        identity = f"{channel}:{message['ts']}"
        if not form.is_said_by_a_person(message, self._me) or identity in self._received:
            return None
        sender, place = message["user"], form.format_target(channel, form.thread_of(message))
        room = None if form.is_private(channel) else channel
        addressed = room is None or form.is_addressed(message, self._me)
        accepts = self._inbound.accepts_from(_BRIDGE, sender, room, addressed=addressed)
        media, missing = await self._files.fetch(form.files_of(message), is_expected=accepts)
        text = "\n".join(part for part in (await self._text(message), *missing) if part)
        if not text.strip() and not media:
            return None
        return await self._arrival(identity, sender, text, place, media, addressed=addressed, ts=message["ts"])

    async def _read_edit(self, channel: str, event: JsonObject) -> MessageChange | None:
        message, before = event["message"], event.get("previous_message") or {}
        # Link previews, and growing threads, also appear as edits.
        if not form.is_said_by_a_person(message, self._me) or message.get("text") == before.get("text"):
            return None
        return self._change(channel, event, "edit", message["ts"], message["user"], await self._text(message))

    def _read_deletion(self, channel: str, event: JsonObject) -> MessageChange | None:
        before = event.get("previous_message") or {}
        if not form.is_said_by_a_person(before, self._me):
            return None
        return self._change(channel, event, "delete", event["deleted_ts"], before["user"])

    def _change(
        self, channel: str, event: JsonObject, kind: Literal["edit", "delete"], ts: str, sender: str, text: str = ""
    ) -> MessageChange:
        room = None if form.is_private(channel) else channel
        identity, change = f"{channel}:{ts}", f"{channel}:{event['ts']}"
        return MessageChange(_BRIDGE, identity, change, kind, sender, text, room, str(self._position))

    async def _read_press(self, payload: JsonObject) -> InboundMessage | None:
        """Handle a button like a typed command."""
        action, channel, message = payload["actions"][0], str(payload["channel"]["id"]), payload["message"]
        if message.get("user") != self._me:
            return None
        identity = f"press:{channel}:{message['ts']}:{action['action_ts']}"
        place = form.format_target(channel, form.thread_of(message))
        return await self._arrival(identity, str(payload["user"]["id"]), str(action["value"]), place)

    async def _read_command(self, payload: JsonObject) -> InboundMessage:
        """Handle the app's own slash command: its text is for the assistant."""
        text = str(payload.get("text", "")).strip().removeprefix("/") or "help"
        identity = f"command:{payload['trigger_id']}"
        return await self._arrival(identity, str(payload["user_id"]), f"/{text}", str(payload["channel_id"]))

    async def _arrival(
        self,
        identity: str,
        sender: str,
        text: str,
        place: str,
        media: tuple[Media, ...] = (),
        *,
        addressed: bool = True,
        ts: str = "",
    ) -> InboundMessage:
        """Return the arrival to pass on; with `ts` it moves the position."""
        channel, _ = form.parse_target(place)
        room = None if form.is_private(channel) else channel
        return InboundMessage(
            _BRIDGE,
            identity,
            sender,
            text,
            await self._name(sender),
            media,
            place,
            room,
            "" if room is None else await self._channel_name(channel),
            addressed,
            str(self._position.advance(place, ts) if ts else self._position),
        )

    async def _text(self, message: JsonObject) -> str:
        mentioned = sorted(form.mentioned_users(message))[:_MAX_MENTIONS]
        return form.text_of_message(message, self._me, {user: await self._name(user) for user in mentioned})

    # ------------------------------------------------------------------------------------------------------------ names

    async def _name(self, user: str) -> str:
        """Return the name of an account; "" if Slack does not tell."""
        if user not in self._names:
            self._names[user] = ""
            try:
                about = (await self._api.call(self._api.web.users_info(user=user)))["user"]
                profile = about.get("profile") or {}
                self._names[user] = str(profile.get("display_name") or about.get("real_name") or about.get("name", ""))
            except SlackRefusal as refusal:
                log.debug("slack tells no name", user=user, error=str(refusal))
        return self._names[user]

    async def _channel_name(self, channel: str) -> str:
        if channel not in self._names:
            self._names[channel] = ""
            try:
                about: Mapping[str, Any] = await self._api.call(self._api.web.conversations_info(channel=channel))
                self._names[channel] = str(about["channel"].get("name", ""))
            except SlackRefusal as refusal:
                log.debug("slack tells no name", channel=channel, error=str(refusal))
        return self._names[channel]
